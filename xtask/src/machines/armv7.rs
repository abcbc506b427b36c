//! The tests for 32-bit ARM, under an emulator, which cannot do what that of 64-bit ARM cannot either (`aarch64.rs`). Addresses
//! of its programs are others than those of this kernel, so nothing of theirs is read through `/proc`.

use super::Machine;
use crate::elsewhere::Program;
use crate::tools;

/// 32-bit ARM.
pub const MACHINE: Machine = Machine {
    name: "armv7",
    triple: "armv7-unknown-linux-gnueabihf",
    packages: tools::ARMV7,
    gcc: "arm-linux-gnueabihf-gcc",
    // The NDK's compiler does so of itself.
    flags: &["-funwind-tables"],
    root: "/usr/arm-linux-gnueabihf",
    loader: None,
    emulator: Some("qemu-arm"),
    profile: "dev",
    tests: &["--test", "unwind_arm"],
    programs: PROGRAMS,
};

const FORK: &str = "the emulator's fork with threads";
const THREADS: &str = "the emulator has threads of its own, and those of a program go some time after they are joined";
const CLOCK: &str = "the clock of Debian's C library has no table there, so a stack that was taken in it ends there";

const PROGRAMS: &[Program] = &[
    Program::of("arguments"),
    Program::of("directories"),
    Program::of("states"),
    Program { source: "dispatches", more: &[], cannot: &[("samples", CLOCK)] },
    Program::of("listeners"),
    Program { source: "reports", more: &[], cannot: &[("names_the_function", CLOCK), ("content", CLOCK)] },
    Program { source: "racing", more: &[], cannot: &[("install_and_uninstall", THREADS)] },
    Program::of("chained"),
    Program::of("long_names"),
    Program::of("no_looper"),
    Program { source: "cycles", more: &[], cannot: &[("leave_nothing", THREADS)] },
    Program {
        source: "forks",
        more: &[],
        cannot: &[
            ("parent_installing", FORK),
            ("child_leaves_nothing", FORK),
            ("executed_afterwards", "starts itself again"),
        ],
    },
];
