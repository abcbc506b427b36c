//! `cargo xtask bench`: what marks and watched looper rounds cost, as ratios measured side by side.

use crate::run::{Outcome, command, run};
use crate::{cmake, java, tools};

/// The command.
pub fn main(mut args: pico_args::Arguments) -> Outcome {
    let with_java = args.contains("--java");
    crate::nothing_left(args)?;
    tools::ensure_packages(&[tools::PACKAGES])?;
    let build = cmake::build(&["marks"])?;
    run(&mut command(build.join("benches/marks")))?;
    if with_java { java::bench() } else { Ok(()) }
}
