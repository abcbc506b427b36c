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
    root: "/usr/arm-linux-gnueabihf",
    loader: None,
    emulator: Some("qemu-arm"),
    profile: "dev",
    tests: &["--test", "unwind_arm"],
    programs: PROGRAMS,
};

const FORK: &str = "the emulator's fork with threads";
const THREADS: &str = "the emulator has threads of its own";

const PROGRAMS: &[Program] = &[
    Program::of("arguments"),
    Program::of("directories"),
    Program::of("states"),
    Program::of("dispatches"),
    Program::of("listeners"),
    Program::of("reports"),
    Program::of("racing"),
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
