//! The tests for 64-bit RISC-V, under an emulator: what that cannot do is told of 64-bit ARM's (`aarch64.rs`).
//!
//! Debian's C library has tables there for little more than what may be cancelled, and keeps no frame pointers. A stack
//! that was taken in anything else of it ends there, or goes on as an approximate one. Android's is compiled with tables.

use super::Machine;
use crate::elsewhere::Program;
use crate::tools;

/// 64-bit RISC-V.
pub const MACHINE: Machine = Machine {
    name: "riscv64",
    triple: "riscv64gc-unknown-linux-gnu",
    packages: tools::RISCV64,
    gcc: "riscv64-linux-gnu-gcc",
    flags: &["-fasynchronous-unwind-tables"],
    root: "/usr/riscv64-linux-gnu",
    loader: None,
    emulator: Some("qemu-riscv64"),
    profile: "emulated",
    tests: &["--tests"],
    programs: PROGRAMS,
};

const FORK: &str = "the emulator's fork with threads";
const THREADS: &str = "the emulator has threads of its own, and those of a program go some time after they are joined";
const MAPS: &str = "the emulator has no maps without the first thread";

const PROGRAMS: &[Program] = &[
    Program::of("arguments"),
    Program::of("directories"),
    Program::of("states"),
    Program::of("dispatches"),
    Program::of("listeners"),
    Program::of("reports"),
    Program { source: "racing", more: &[], cannot: &[("install_and_uninstall", THREADS)] },
    Program::of("chained"),
    Program::of("long_names"),
    Program::of("no_looper"),
    Program { source: "main_gone", more: &[], cannot: &[("goes_on", MAPS), ("reads_a_file", MAPS)] },
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
