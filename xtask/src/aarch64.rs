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
//! * No `process_vm_readv`: memory is read through `/proc/self/mem`.
//! * No vdso: the test in `tests/unwind.rs` that needs it says so.
//! * It takes fork of a process with threads badly, and does not wipe pages for the child.
//! * `execve` starts programs of the host: no test that starts itself again.
//! * It is slow, and more so to deliver a signal: no test of durations, and nothing here is a measurement.

use crate::elsewhere::{PATIENCE_S, Program, Standard, World};
use crate::run::{Outcome, command, output_of, root, run};
use crate::tools;
use std::process::Command;

const GCC: &str = "aarch64-linux-gnu-gcc";
/// A signal that the emulator delivers.
const SIGNAL: &str = "TEST_SIGNAL=40";

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

/// The command that runs nothing else.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    check()
}

/// Builds and runs them.
pub fn check() -> Outcome {
    tools::ensure_packages(&[tools::PACKAGES, tools::AARCH64])?;
    let emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"].map(str::to_owned);
    let triple = "aarch64-unknown-linux-gnu";
    let world = World {
        triple,
        standard: Standard::of(triple)?,
        name: "aarch64",
        compiler,
        libraries: ["-pthread", "-ldl"].map(str::to_owned).to_vec(),
        runner: emulator.iter().cloned().chain(["-E", SIGNAL].map(str::to_owned)).collect(),
        flags: "",
        patience_s: PATIENCE_S,
    };

    // A test unwinds, so where the standard library is made, it is the whole one.
    let mut tests = world.cargo("test", "std,test,panic_unwind");
    tests.args(["--profile", "emulated", "--tests"]).env("CC", GCC);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", GCC);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", emulator.join(" "));
    run(&mut tests)?;

    world.build_archive()?;
    example(&world)?;
    PROGRAMS.iter().try_for_each(|program| world.test(program))
}

fn compiler(_: &World) -> Command {
    let mut compiler = command(GCC);
    compiler.args(["-Wall", "-Wextra", "-Werror"]);
    compiler
}

/// The smallest program there is reports its block.
fn example(world: &World) -> Outcome {
    let program = world.link("minimal", &[root().join("examples-c/minimal.c")])?;
    let printed = output_of(&mut world.command(&program))?;
    let line = printed.lines().find(|line| line.starts_with("main loop was blocked for"));
    let report = line.and_then(|line| line.split_once(" in round: ")).map(|(_, path)| path);
    match report.map(std::fs::read_to_string) {
        Some(Ok(text)) if text.contains("loop-name = main loop") => Ok(()),
        _ => Err(format!("examples-c/minimal.c has not reported its block but printed {printed:?}")),
    }
}
