//! The tests for 32-bit x86, which this machine runs as they are, `/proc` and all.

use super::Machine;
use crate::elsewhere::Program;
use crate::tools;

/// 32-bit x86.
pub const MACHINE: Machine = Machine {
    name: "i686",
    triple: "i686-unknown-linux-gnu",
    packages: tools::I686,
    gcc: "i686-linux-gnu-gcc",
    flags: &[],
    root: "/usr/i686-linux-gnu",
    loader: Some("ld-linux.so.2"),
    emulator: None,
    profile: "dev",
    tests: &["--test", "unwind", "--test", "report_names"],
    programs: PROGRAMS,
};

const VDSO: &str = "the kernel's clock has no table there, so a stack that was taken in it may lack its caller";
const LOOPER: &str = "there is no looper for it";

const PROGRAMS: &[Program] = &[
    Program::of("arguments"),
    Program::of("directories"),
    Program::of("states"),
    Program::of("dispatches"),
    Program::of("listeners"),
    Program { source: "reports", more: &[], cannot: &[("names_the_function", VDSO)] },
    Program::of("racing"),
    Program::of("chained"),
    Program::of("long_names"),
    Program::of("no_looper"),
    Program::of("main_gone"),
    Program {
        source: "masks",
        more: &["support/crowd", "support/dump", "stacks/chain_odd", "stacks/chain_even"],
        cannot: &[("dumped_by_a_listener", "looks for the name that the program has elsewhere")],
    },
    Program {
        source: "cause",
        more: &["support/staged", "support/crowd", "stacks/chain_odd", "stacks/chain_even"],
        cannot: &[],
    },
    Program::of("stopped"),
    Program::of("cycles"),
    Program::of("forks"),
    Program::of("stacks/methods"),
    Program::of("stacks/hot"),
    Program {
        source: "stacks/waits",
        more: &["stacks/chain_odd", "stacks/chain_even", "bionic/looper"],
        cannot: &[("looper", LOOPER)],
    },
];
