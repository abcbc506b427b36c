//! The tests that do not depend on the processor, for 64-bit ARM, under an emulator.
//!
//! qemu runs one process of another processor on this kernel. What it cannot do, and who therefore does not run there:
//!
//! * `/proc/self/task/TID/` is the host's thread, so a waiting thread's registers are the emulator's: stacks are taken by
//!   signal, in the Rust tests and in the C program. The hybrid sampler's C tests run on the real processor only.
//! * It answers late to a signal, several milliseconds on a busy machine: no C test that holds times against limits.
//! * No `process_vm_readv`: memory is read through `/proc/self/mem`.
//! * No vdso, and no table for the return from a signal handler: the two tests in `tests/unwind.rs` say so themselves.
//! * `execve` runs programs of the host, so a test that starts itself again, or is linked into what it starts, cannot.
//! * It does not wipe pages on fork, and takes a good part of a minute for what the processor does in a second: tables of
//!   the host are kept small by optimising the tested crates.

use crate::run::{Outcome, command, output_of, root, run, run_quietly};
use std::path::{Path, PathBuf};
use std::process::Command;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const GCC: &str = "aarch64-linux-gnu-gcc";
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// The command that runs nothing else.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    crate::tools::ensure_packages_for_aarch64()?;
    check()
}

/// Builds and runs them.
pub fn check() -> Outcome {
    // Of the standard library the tests need all. A test unwinds, and so must it.
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--package", "blockcanary", "--lib", "--tests", "--target", TRIPLE]);
    tests.arg("-Zbuild-std=std,test,panic_unwind");
    for package in ["blockcanary", "gimli", "arrayvec"] {
        tests.arg("--config").arg(format!("profile.dev.package.{package}.opt-level=1"));
    }
    tests.env("CARGO_PROFILE_DEV_PANIC", "unwind").env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(&mut tests)?;

    // The archive as programs get it, of which a C program is made.
    let mut archive = cargo();
    archive.args(["build", "--quiet", "--release", "--package", "blockcanary", "--lib", "--target", TRIPLE]);
    run(archive.arg("-Zbuild-std=core"))?;
    c_program()
}

/// A cargo whose compiler can make its standard library for a processor that it has none for.
fn cargo() -> Command {
    let mut cargo = command("/usr/bin/cargo");
    let path = std::env::var("PATH").unwrap_or_default();
    cargo.env("PATH", format!("/usr/bin:{path}")).env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Cforce-frame-pointers=yes");
    cargo.env("CARGO_TARGET_DIR", folder()).env("CC", GCC);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", GCC);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("qemu-aarch64 -L {LIBRARIES}"));
    cargo
}

fn folder() -> PathBuf {
    root().join("target/aarch64")
}
