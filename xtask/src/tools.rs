//! What a fresh Debian or Ubuntu lacks: found out before anything is built, and installed if that is possible.

use crate::run::{Outcome, cargo, command, run, run_quietly};
use std::path::Path;

/// A program on PATH or a file that is there once a package is installed.
enum Sign {
    Program(&'static str),
    File(&'static str),
}

/// Every package of the distribution that building and testing takes, and how to see that it is there.
const PACKAGES: [(&str, Sign); 9] = [
    ("cmake", Sign::Program("cmake")),
    ("make", Sign::Program("make")),
    ("gcc", Sign::Program("gcc")),
    ("g++", Sign::Program("g++")),
    ("binutils", Sign::Program("objcopy")),
    ("libc6-dev", Sign::File("/usr/include/stdio.h")),
    ("android-libutils-dev", Sign::File("/usr/include/android/utils/Looper.h")),
    ("android-platform-frameworks-native-headers", Sign::File("/usr/include/android/android/looper.h")),
    ("strace", Sign::Program("strace")),
];

/// Makes sure that all packages are there; else says in one line which are not.
pub fn ensure_packages() -> Outcome {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    let needed = format!("needs the packages {names}: apt-get install {names}");
    if !on_path("apt-get") {
        return Err(format!("{needed} (no apt-get here to do it)"));
    }
    let prefix: &[&str] = match (is_root(), on_path("sudo")) {
        (true, _) => &[],
        (false, true) => &["sudo"],
        (false, false) => return Err(format!("{needed} (neither root nor sudo here to do it)")),
    };
    println!("installing {names}");
    let apt = |arguments: &[&str]| {
        let words = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments, &missing].concat();
        run_quietly(command(words[0]).args(&words[1..]))
    };
    let install = ["install", "--yes", "--no-install-recommends"];
    // Package lists may be missing or stale: only then are they fetched.
    apt(&install)
        .or_else(|_| {
            let words = [prefix, &["apt-get", "update"]].concat();
            run_quietly(command(words[0]).args(&words[1..])).and_then(|()| apt(&install))
        })
        .map_err(|_| needed)
}

/// Makes sure that rustfmt and clippy are there.
pub fn ensure_components() -> Outcome {
    for component in ["fmt", "clippy"] {
        if cargo().args([component, "--version"]).output().is_ok_and(|output| output.status.success()) {
            continue;
        }
        let package = if component == "fmt" { "rustfmt" } else { component };
        run(command("rustup").args(["component", "add", package]))
            .map_err(|_| format!("needs {package}: rustup component add {package}"))?;
    }
    Ok(())
}

fn missing() -> Vec<&'static str> {
    let there = |sign: &Sign| match sign {
        Sign::Program(name) => on_path(name),
        Sign::File(path) => Path::new(path).exists(),
    };
    PACKAGES.iter().filter(|(_, sign)| !there(sign)).map(|(name, _)| *name).collect()
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    command("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
