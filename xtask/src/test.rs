//! `cargo xtask test`: everything that must hold, cheapest first.

use crate::run::{Outcome, cargo, command, run};
use crate::{beside, bionic, cmake, contract, dist, documents, header, java, machines, reports, size, tools};
use std::sync::OnceLock;
use std::time::Instant;

/// The command.
pub fn main(mut args: pico_args::Arguments) -> Outcome {
    let (with_android, with_machines) = (!args.contains("--no-android"), !args.contains("--no-machines"));
    let with_java = !args.contains("--no-java");
    let rootfs: Option<String> = args.opt_value_from_str("--bionic").map_err(|error| error.to_string())?;
    crate::nothing_left(args)?;
    step("packages");
    tools::ensure_packages(&[tools::PACKAGES, tools::ANDROID, tools::SDL])?;
    tools::ensure_components()?;

    step("format");
    run(cargo().args(["fmt", "--all", "--check"])).map_err(|_| "not formatted: run `cargo fmt --all`".to_string())?;
    step("lints");
    run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    step("header");
    header::verify()?;
    contract::check()?;
    documents::check()?;
    step("Rust tests");
    run(cargo().args(["test", "--quiet", "--workspace"]))?;
    step("C programs");
    let build = cmake::build(&[])?;
    step("beside other Rust libraries");
    beside::check(&build)?;
    step("C tests");
    reports::clear(&build.join("tests/c"))?;
    // Most run alone; those that only build run side by side.
    run(command("ctest").arg("--test-dir").arg(&build).args(["--output-on-failure", "--parallel", "2"]))?;
    step("reports of the C tests");
    reports::check(&build.join("tests/c"))?;
    if with_java {
        step("a Java app's main thread");
        java::check()?;
    }
    if with_android {
        step("what is handed out");
        dist::make()?;
        size::check()?;
    }
    if with_machines {
        step("builds for other processors");
        machines::build_all()?;
    }
    for machine in machines::ALL.into_iter().filter(|_| with_machines) {
        step(machine.name());
        machine.check_within_all()?;
    }
    if let Some(rootfs) = rootfs {
        step("Android's C library");
        bionic::check(&rootfs)?;
    }
    step("all passed");
    Ok(())
}

/// Says what begins, and how long all before it has taken.
fn step(name: &str) {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    println!("== {name} ({} s)", BEGAN.get_or_init(Instant::now).elapsed().as_secs());
}
