//! C tests under ThreadSanitizer: does what the threads share have an order that the language knows?
//!
//! Only what races most, because a program is ten times as slow, and its threads fifty times as slow to start. The library
//! and the `core` it is built on are instrumented by another compiler than the programs, whose runtime library it uses.

use crate::elsewhere::{Program, Standard, World};
use crate::run::{Outcome, root};
use crate::tools;

const PROGRAMS: &[Program] = &[program("races"), program("racing"), program("listeners")];

const fn program(source: &'static str) -> Program {
    Program { source, more: &["sanitizer/memory"], cannot: &[] }
}

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    tools::ensure_packages(&[tools::PACKAGES, tools::RUST_SOURCE])?;
    let world = World {
        triple: "x86_64-unknown-linux-gnu",
        standard: Standard::Made,
        flags: "-Zsanitizer=thread",
        name: "tsan",
        compiler: ["gcc", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"].map(str::to_owned).to_vec(),
        libraries: ["-pthread", "-ldl"].map(str::to_owned).to_vec(),
        runner: ["env", "TSAN_OPTIONS=halt_on_error=1 second_deadlock_stack=1"].map(str::to_owned).to_vec(),
        patience_s: 900,
    };
    world.build_archive()?;
    sees_races(&world)?;
    PROGRAMS.iter().try_for_each(|program| world.test(program))
}

/// A race in a program is found here, and the library is instrumented like one: else what follows would show nothing.
fn sees_races(world: &World) -> Outcome {
    let program =
        world.link("race", &[root().join("tests/c/sanitizer/race.c"), root().join("tests/c/sanitizer/memory.c")])?;
    let output = world.command(&program).output().map_err(|error| format!("{}: {error}", program.display()))?;
    if !String::from_utf8_lossy(&output.stderr).contains("data race") {
        return Err("ThreadSanitizer does not see a race here".to_string());
    }
    let archive = world.folder().join(world.triple).join("release/libblockcanary.a");
    let bytes = std::fs::read(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    if ["__tsan_write8", "__tsan_atomic64_load"].iter().all(|name| memmem(&bytes, name.as_bytes())) {
        println!("   a race is seen, and the library is instrumented");
        Ok(())
    } else {
        Err("the library is not instrumented".to_string())
    }
}

fn memmem(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}
