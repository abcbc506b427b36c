//! Tests for other processors than this machine's: natively where it runs their programs, else under an emulator.
//!
//! Of each, all Rust tests of the library and most C tests; within `cargo xtask test`, those Rust tests that depend on the
//! processor at all.

mod aarch64;
mod armv7;
mod i686;
mod riscv64;

use crate::elsewhere::{PATIENCE_S, Program, Standard, World};
use crate::run::{Outcome, at_once, output_of, root, run};
use crate::tools;
use std::process::Command;

/// A processor, and how to come by programs for it.
pub struct Machine {
    /// The command's name.
    name: &'static str,
    /// As Rust names it with Debian's C library.
    triple: &'static str,
    /// What is installed for it.
    packages: &'static [tools::Package],
    /// The cross compiler.
    gcc: &'static str,
    /// What that has to be told besides.
    flags: &'static [&'static str],
    /// Where its C library is.
    root: &'static str,
    /// Its loader, where this machine runs programs of it as they are.
    loader: Option<&'static str>,
    /// The emulator, where it does not.
    emulator: Option<&'static str>,
    /// Cargo's profile for tests.
    profile: &'static str,
    /// Rust tests beside those in the source: what depends on the processor.
    tests: &'static [&'static str],
    /// C tests.
    programs: &'static [Program],
}

/// Those that `cargo xtask test` runs. The one that is missing takes as long again, and no device has it yet.
pub const ALL: [&Machine; 3] = [&aarch64::MACHINE, &i686::MACHINE, &armv7::MACHINE];

/// The machine of a command.
pub fn named(name: &str) -> Option<&'static Machine> {
    ALL.into_iter().chain([&riscv64::MACHINE]).find(|machine| machine.name == name)
}

/// Builds what `check_within_all` runs of all of them, side by side: making a standard library takes one processor at most
/// times.
pub fn build_all() -> Outcome {
    let worlds = ALL.into_iter().map(|machine| Ok((machine, machine.world()?))).collect::<Outcome<Vec<_>>>()?;
    let build = |(machine, world): &(&Machine, World)| {
        run(machine.cargo_test(world, machine.tests).arg("--no-run"))?;
        world.build_archive()
    };
    at_once(&worlds, build).map(drop)
}

/// Real-time signals that an emulator delivers are fewer than it says; the library would choose one of the others.
const SIGNAL: &str = "TEST_SIGNAL=40";

impl Machine {
    /// The command, which runs nothing else.
    pub fn main(&self, mut args: pico_args::Arguments) -> Outcome {
        let is_quick = args.contains("--quick");
        crate::nothing_left(args)?;
        if is_quick { self.check_within_all() } else { self.check(&["--tests"]) }
    }

    /// Builds and runs its tests, as a part of all.
    pub fn check_within_all(&self) -> Outcome {
        self.check(self.tests)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn check(&self, tests: &[&str]) -> Outcome {
        let world = self.world()?;
        run(&mut self.cargo_test(&world, tests))?;
        world.build_archive()?;
        example(&world)?;
        self.programs.iter().try_for_each(|program| world.test(program))
    }

    fn world(&self) -> Outcome<World> {
        tools::ensure_packages(&[tools::PACKAGES, tools::LINKER, self.packages])?;
        let emulator = self.emulator();
        let for_programs = if emulator.is_empty() { vec![] } else { ["-E", SIGNAL].map(str::to_owned).to_vec() };
        Ok(World {
            triple: self.triple,
            standard: Standard::of(self.triple)?,
            name: self.name,
            // The NDK's headers of the looper, for programs that would use one.
            compiler: [self.gcc, "-Wall", "-Wextra", "-Werror", "-isystem", "/usr/include/android"]
                .into_iter()
                .chain(self.flags.iter().copied())
                .map(str::to_owned)
                .collect(),
            libraries: [self.link_arguments(), ["-pthread", "-ldl"].map(str::to_owned).to_vec()].concat(),
            runner: [emulator, for_programs].concat(),
            flags: "",
            patience_s: PATIENCE_S,
        })
    }

    /// The emulator with what it takes, if there is one.
    fn emulator(&self) -> Vec<String> {
        let words = self.emulator.map(|program| [program, "-L", self.root].map(str::to_owned));
        words.into_iter().flatten().collect()
    }

    /// Builds and runs Rust tests.
    fn cargo_test(&self, world: &World, tests: &[&str]) -> Command {
        // A test unwinds, so where the standard library is made, it is the whole one.
        let mut cargo = world.cargo("test", "std,test,panic_unwind");
        cargo.args(["--profile", self.profile]).args(tests).env("CC", self.gcc);
        let target = self.triple.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{target}_LINKER"), self.gcc);
        if self.emulator.is_some() {
            cargo.env(format!("CARGO_TARGET_{target}_RUNNER"), self.emulator().join(" "));
        }
        let flags = self.link_arguments().into_iter().map(|argument| format!("-Clink-arg={argument}"));
        let flags = ["-Cforce-frame-pointers=yes".to_owned()].into_iter().chain(flags).collect::<Vec<_>>();
        cargo.env("RUSTFLAGS", flags.join(" "));
        cargo
    }

    /// Programs that run as they are find the C library that was installed for the cross compiler. By the older tag, which
    /// holds for what libraries load later, too.
    fn link_arguments(&self) -> Vec<String> {
        let Some(loader) = self.loader else { return vec![] };
        let libraries = format!("{}/lib", self.root);
        vec![format!("-Wl,-dynamic-linker,{libraries}/{loader}"), format!("-Wl,--disable-new-dtags,-rpath,{libraries}")]
    }
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
