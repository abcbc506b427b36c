//! The tests for 64-bit ARM, under an emulator.
//!
//! qemu runs one process of another processor on this kernel. What it cannot do:
//!
//! * Its `/proc/self/maps` is that of its own first thread, made over: when that has ended, there is none.
//! * `/proc/PID/stat` of itself tells when the thread that asks began, not when the process did.
//! * `/proc/self/task/TID/` shows the host's thread, so the registers of a waiting one are the emulator's. Stacks are
//!   taken by signal, also those of threads that wait; tests of the signal-free way, of names and counts of threads
//!   and of `/proc/self/status` are the real processor's.
//! * It has fewer real-time signals than it says, and takes handlers for the rest that never run. The library would
//!   choose one of those: tests name another.
//! * No `process_vm_readv`: memory is read the slower way.
//! * No vdso: the test in `tests/unwind.rs` that needs it says so.
//! * It takes fork of a process with threads badly, and does not wipe pages for the child.
//! * `execve` starts programs of the host: no test that starts itself again.
//! * It is slow, and more so to deliver a signal: no test of durations, and nothing here is a measurement.

use super::Machine;
use crate::elsewhere::Program;
use crate::tools;

/// 64-bit ARM.
pub const MACHINE: Machine = Machine {
    name: "aarch64",
    triple: "aarch64-unknown-linux-gnu",
    packages: tools::AARCH64,
    gcc: "aarch64-linux-gnu-gcc",
    flags: &[],
    root: "/usr/aarch64-linux-gnu",
    loader: None,
    emulator: Some("qemu-aarch64"),
    profile: "emulated",
    tests: &["--tests"],
    programs: PROGRAMS,
};

const FORK: &str = "the emulator's fork with threads";
const THREADS: &str = "the emulator has threads of its own";
const MAPS: &str = "the emulator has no maps without the first thread";

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
