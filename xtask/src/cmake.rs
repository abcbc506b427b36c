//! Building the C and C++ programs.

use crate::run::{Outcome, command, root, run_quietly};
use std::path::PathBuf;

/// Configures and builds `targets` (all with none) in Release under `build/`; gives the folder. What takes more packages than
/// most is left out where only some are wanted.
pub fn build(targets: &[&str]) -> Outcome<PathBuf> {
    let folder = root().join("build");
    let mut configure = command("cmake");
    configure.arg("-S").arg(root()).arg("-B").arg(&folder).arg("-DCMAKE_BUILD_TYPE=Release");
    let has_sdl = if targets.is_empty() { "ON" } else { "OFF" };
    configure.arg(format!("-DBLOCKCANARY_BUILD_SDL_EXAMPLE={has_sdl}"));
    run_quietly(&mut configure)?;
    let mut build = command("cmake");
    build.arg("--build").arg(&folder).args(["--parallel", "2"]);
    for target in targets {
        build.args(["--target", target]);
    }
    run_quietly(&mut build)?;
    Ok(folder)
}
