//! `cargo xtask bench`: what marks and watched looper rounds cost, as ratios measured side by side.

use crate::run::{Outcome, command, run};
use crate::{cmake, tools};

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    tools::ensure_packages(&[tools::PACKAGES])?;
    let build = cmake::build(&["marks"])?;
    run(&mut command(build.join("benches/marks")))
}
