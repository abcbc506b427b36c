//! What a fresh Debian or Ubuntu lacks: found out before anything is built, and installed if that is possible.

use crate::run::{Outcome, cargo, command, output_of, run, run_quietly};
use std::path::Path;

/// A program on PATH or a file that is there once a package is installed.
pub enum Sign {
    Program(&'static str),
    File(&'static str),
}

/// A package of the distribution, and how to see that it is there.
pub type Package = (&'static str, Sign);

/// All that building and testing on this machine takes.
pub const PACKAGES: &[Package] = &[
    ("cmake", Sign::Program("cmake")),
    ("make", Sign::Program("make")),
    ("gcc", Sign::Program("gcc")),
    ("g++", Sign::Program("g++")),
    ("binutils", Sign::Program("objcopy")),
    ("libc6-dev", Sign::File("/usr/include/stdio.h")),
    ("android-libutils-dev", Sign::File("/usr/include/android/utils/Looper.h")),
    ("android-platform-frameworks-native-headers", Sign::File("/usr/include/android/android/looper.h")),
    ("strace", Sign::Program("strace")),
    ("unzip", Sign::Program("unzip")),
    ("python3", Sign::Program("python3")),
    ("git", Sign::Program("git")),
    ("pkg-config", Sign::Program("pkg-config")),
];

/// What tests take beside: the linker that Android's programs are linked with.
pub const LINKER: &[Package] = &[("lld", Sign::Program("ld.lld"))];

/// A compiler that can make its standard library for a processor or system that it comes without.
pub const RUST_SOURCE: &[Package] = &[
    ("rustc-web", Sign::File("/usr/bin/rustc")),
    ("cargo-web", Sign::File("/usr/bin/cargo")),
    ("rust-web-src", Sign::File("/usr/lib/rustlib/src/rust/library/core/Cargo.toml")),
];

/// What tests for 64-bit ARM take.
pub const AARCH64: &[Package] = &[
    ("qemu-user", Sign::Program("qemu-aarch64")),
    ("gcc-aarch64-linux-gnu", Sign::Program("aarch64-linux-gnu-gcc")),
    ("libc6-dev-arm64-cross", Sign::File("/usr/aarch64-linux-gnu/include/stdio.h")),
];

/// What tests for 32-bit ARM take.
pub const ARMV7: &[Package] = &[
    ("qemu-user", Sign::Program("qemu-arm")),
    ("gcc-arm-linux-gnueabihf", Sign::Program("arm-linux-gnueabihf-gcc")),
    ("libc6-dev-armhf-cross", Sign::File("/usr/arm-linux-gnueabihf/include/stdio.h")),
];

/// What tests for 32-bit x86 take. Not the package for `gcc -m32`, with which other cross compilers cannot be installed.
pub const I686: &[Package] = &[
    ("gcc-i686-linux-gnu", Sign::Program("i686-linux-gnu-gcc")),
    ("libc6-dev-i386-cross", Sign::File("/usr/i686-linux-gnu/include/stdio.h")),
];

/// What tests for 64-bit RISC-V take.
pub const RISCV64: &[Package] = &[
    ("qemu-user", Sign::Program("qemu-riscv64")),
    ("gcc-riscv64-linux-gnu", Sign::Program("riscv64-linux-gnu-gcc")),
    ("libc6-dev-riscv64-cross", Sign::File("/usr/riscv64-linux-gnu/include/stdio.h")),
];

/// What runs the project's CMake scripts.
pub const CMAKE: &[Package] = &[("cmake", Sign::Program("cmake"))];

/// What localises archives for any processor.
pub const LLVM: &[Package] = &[("lld", Sign::Program("ld.lld")), ("llvm", Sign::Program("llvm-objcopy"))];

/// What one of the examples takes.
pub const SDL: &[Package] = &[("libsdl2-dev", Sign::File("/usr/include/SDL2/SDL.h"))];

/// What compiles and links for Android without an NDK.
pub const ANDROID: &[Package] =
    &[("clang", Sign::Program("clang")), ("lld", Sign::Program("ld.lld")), ("llvm", Sign::Program("llvm-ar"))];

/// Debian's names of this processor.
#[cfg(target_arch = "aarch64")]
macro_rules! on_this_processor {
    ($before:literal, $behind:literal) => {
        (concat!($before, "arm64", $behind), "/usr/lib/aarch64-linux-gnu/android")
    };
}
#[cfg(not(target_arch = "aarch64"))]
macro_rules! on_this_processor {
    ($before:literal, $behind:literal) => {
        (concat!($before, "amd64", $behind), "/usr/lib/x86_64-linux-gnu/android")
    };
}

/// Where Debian has Android's libraries.
pub const ANDROID_LIBRARIES: &str = on_this_processor!("", "").1;
/// Where Debian's JDK is.
pub const JDK: &str = on_this_processor!("/usr/lib/jvm/java-17-openjdk-", "").0;

/// What tests with a Java VM take.
pub const JAVA: &[Package] = &[
    ("openjdk-17-jdk-headless", Sign::File(on_this_processor!("/usr/lib/jvm/java-17-openjdk-", "/include/jni.h").0)),
    ("maven", Sign::Program("mvn")),
];

/// What tests on Android's C library take.
pub const BIONIC: &[Package] = &[("clang", Sign::Program("clang")), ("util-linux", Sign::Program("unshare"))];

/// Makes sure that packages are there; else says in one line which are not.
pub fn ensure_packages(packages: &[&'static [Package]]) -> Outcome {
    let missing = missing(packages);
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

/// Does the toolchain that runs xtask have this target's standard library, or can it be got?
pub fn ensure_target(triple: &str) -> bool {
    let is_there = || {
        let folder = output_of(command("rustc").args(["--print", "target-libdir", "--target", triple]));
        folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir())
    };
    // What it says where there is none to be got is no error of ours: another compiler makes it then.
    let add = || command("rustup").args(["target", "add", triple]).output().is_ok_and(|output| output.status.success());
    is_there() || on_path("rustup") && add() && is_there()
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

fn missing(packages: &[&'static [Package]]) -> Vec<&'static str> {
    let there = |sign: &Sign| match sign {
        Sign::Program(name) => on_path(name),
        Sign::File(path) => Path::new(path).exists(),
    };
    packages.iter().copied().flatten().filter(|(_, sign)| !there(sign)).map(|(name, _)| *name).collect()
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    command("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
