//! The C tests in another world than the machine's: for another processor, or on another C library.

use crate::run::{Outcome, cargo, command, root, run, run_quietly};
use crate::tools;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// No case takes longer, not even under an emulator.
pub const PATIENCE_S: u32 = 120;

/// Where a target's standard library comes from.
pub enum Standard {
    /// The toolchain that runs xtask has it.
    Ready,
    /// Another compiler comes with its source, and makes it.
    Made,
}

impl Standard {
    /// Of the toolchain, if it has it or can get it. Else the other compiler is made sure of.
    pub fn of(triple: &str) -> Outcome<Standard> {
        if tools::ensure_target(triple) {
            return Ok(Standard::Ready);
        }
        tools::ensure_packages(&[tools::RUST_SOURCE]).map(|()| Standard::Made)
    }

    /// The cargo that makes it; `None` for the one that runs xtask.
    pub fn cargo(&self) -> Option<&'static OsStr> {
        match self {
            Standard::Ready => None,
            Standard::Made => Some("/usr/bin/cargo".as_ref()),
        }
    }

    /// What that cargo is told to make `parts` of it.
    pub fn arguments(&self, parts: &str) -> Option<String> {
        matches!(self, Standard::Made).then(|| format!("-Zbuild-std={parts}"))
    }

    /// Lets a command, and what that starts, use its compiler.
    pub fn prepare(&self, command: &mut Command) {
        if let Standard::Made = self {
            let path = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("/usr/bin:{path}")).env("RUSTC_BOOTSTRAP", "1");
            for name in ["RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC", "CARGO"] {
                command.env_remove(name);
            }
        }
    }
}

/// Where programs are built and run.
pub struct World {
    /// Target of the library.
    pub triple: &'static str,
    /// Its standard library.
    pub standard: Standard,
    /// More for its compiler.
    pub flags: &'static str,
    /// Folder below `target/`.
    pub name: &'static str,
    /// The compiler, with all that it takes but sources and output.
    pub compiler: Vec<String>,
    /// What is linked after the library.
    pub libraries: Vec<String>,
    /// Starts a program that is named in the arguments behind.
    pub runner: Vec<String>,
    /// A case that takes longer has failed.
    pub patience_s: u32,
}

/// A program below `tests/c`, its further sources, and cases that cannot run, with the reason.
pub struct Program {
    /// Path without `.c`.
    pub source: &'static str,
    /// More of them.
    pub more: &'static [&'static str],
    /// (case, why).
    pub cannot: &'static [(&'static str, &'static str)],
}

impl Program {
    /// One that is a file and runs whole.
    pub const fn of(source: &'static str) -> Program {
        Program { source, more: &[], cannot: &[] }
    }
}

impl World {
    /// A command of cargo's for the library; `parts` are what it takes of a standard library that has to be made.
    pub fn cargo(&self, subcommand: &str, parts: &str) -> Command {
        let mut cargo = self.standard.cargo().map_or_else(cargo, command);
        self.standard.prepare(&mut cargo);
        cargo.args([subcommand, "--quiet", "--package", "blockcanary", "--lib", "--target", self.triple]);
        cargo.args(self.standard.arguments(parts));
        cargo
            .env("CARGO_TARGET_DIR", self.folder())
            .env("RUSTFLAGS", format!("-Cforce-frame-pointers=yes {}", self.flags));
        cargo
    }

    /// Where everything is built.
    pub fn folder(&self) -> PathBuf {
        root().join("target").join(self.name)
    }

    /// Builds the archive as programs get it. It is `no_std`: the core is all there is to make.
    pub fn build_archive(&self) -> Outcome {
        run(self.cargo("build", "core").arg("--release"))
    }

    /// Compiles and links a program with the library.
    pub fn link(&self, name: &str, sources: &[PathBuf]) -> Outcome<PathBuf> {
        let program = self.folder().join("c").join(name);
        let folder = program.parent().unwrap_or(&program);
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let (compiler, arguments) = self.compiler.split_first().ok_or("no compiler")?;
        let mut compile = command(compiler);
        compile.args(arguments);
        compile.args(["-O2", "-g", "-fno-omit-frame-pointer", "-D_GNU_SOURCE", "-rdynamic"]);
        compile.arg("-I").arg(root().join("include")).args(sources);
        compile.arg(self.folder().join(self.triple).join("release/libblockcanary.a")).args(&self.libraries);
        run_quietly(compile.arg("-o").arg(&program))?;
        Ok(program)
    }

    /// The program, started in the folder of programs and ended if it does not end.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = command("timeout");
        command.arg(self.patience_s.to_string()).args(&self.runner).arg(program).current_dir(self.folder().join("c"));
        command
    }

    /// Builds a program of `tests/c` and runs each of its cases in a process of its own.
    pub fn test(&self, program: &Program) -> Outcome {
        let tests = root().join("tests/c");
        let support = ["check", "blocks", "procfs", "load", "json", "stacks"].map(|name| format!("support/{name}"));
        let names = [program.source].into_iter().chain(program.more.iter().copied());
        let sources: Vec<PathBuf> =
            names.chain(support.iter().map(String::as_str)).map(|name| tests.join(format!("{name}.c"))).collect();
        let name = program.source.rsplit('/').next().unwrap_or(program.source);
        let built = self.link(name, &sources)?;
        let cases = self.cases(&built)?;
        if let Some((case, _)) = program.cannot.iter().find(|(case, _)| !cases.iter().any(|name| name == case)) {
            return Err(format!("{name} has no case {case}"));
        }
        for case in cases {
            if let Some((_, why)) = program.cannot.iter().find(|(other, _)| *other == case) {
                println!("   {name}.{case} not run: {why}");
                continue;
            }
            run_quietly(self.command(&built).arg(&case))?;
        }
        println!("   {name}");
        Ok(())
    }

    /// A program without arguments lists its cases.
    fn cases(&self, program: &Path) -> Outcome<Vec<String>> {
        let output = self.command(program).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let cases: Vec<String> = text.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect();
        if output.status.code() == Some(2) && !cases.is_empty() {
            Ok(cases)
        } else {
            Err(format!("{} does not run here: {}", program.display(), text.trim_end()))
        }
    }
}
