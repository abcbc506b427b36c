//! `cargo xtask demo`: the example engine blocks in four ways and shows what is reported of it.

use crate::run::{Outcome, command, run};
use crate::{cmake, tools};

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    tools::ensure_packages(&[tools::PACKAGES])?;
    println!("building the library and the example engine");
    let build = cmake::build(&["looper_engine"])?;

    // Reports of an earlier run would be counted for this one's.
    let reports = build.join("reports");
    let _ = std::fs::remove_dir_all(&reports);
    let mut engine = command(build.join("examples-c/looper_engine"));
    run(engine.args(["--seconds", "5", "--threshold-ms", "100", "--report-dir"]).arg(&reports))?;

    let written = std::fs::read_dir(&reports).map_err(|error| format!("{}: {error}", reports.display()))?;
    let count = written.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "log")).count();
    if count == 0 {
        return Err(format!("no report was written to {}", reports.display()));
    }
    println!("{count} reports, each as .log and .json, in {}", reports.display());
    Ok(())
}
