//! Other Rust libraries in one program with ours: of the same compiler and of another one, optimised as a whole or not,
//! linked by each linker, with what is needed of all archives or with all that is in them. Each program must link, ours must
//! see a block in it, and the other library must catch its own panics.

use crate::elsewhere::Standard;
use crate::run::{Outcome, at_once, command, output_of, root, run_quietly};
use crate::{cmake, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

const LINKERS: [&str; 3] = ["bfd", "gold", "lld"];
/// How the other library is optimised.
const KINDS: [(&str, &[&str]); 2] = [("plain", &[]), ("whole", &["-Clto=fat", "-Ccodegen-units=1"])];
/// Libraries that are linked behind.
const SYSTEM: [&str; 3] = ["-pthread", "-ldl", "-lm"];

/// One program.
struct Pair {
    name: String,
    other: PathBuf,
    linker: &'static str,
    takes_all: bool,
}

/// The command that runs nothing else.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    tools::ensure_packages(&[tools::PACKAGES])?;
    check(&cmake::build(&["blockcanary_archive"])?)
}

/// Builds and runs all of them with the archive of a build folder.
pub fn check(build: &Path) -> Outcome {
    tools::ensure_packages(&[tools::PACKAGES, tools::LINKER, tools::RUST_SOURCE])?;
    let folder = root().join("target/beside");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let [own, another] = [version(compiler(&Standard::Ready))?, version(compiler(&Standard::Made))?];
    if own == another {
        return Err(format!("two compilers of different versions are needed, both are {own}"));
    }
    let mut pairs = Vec::new();
    for (standard, version) in [(Standard::Ready, &own), (Standard::Made, &another)] {
        for (kind, flags) in KINDS {
            let other = folder.join(format!("libsecond-{version}-{kind}.a"));
            let mut compile = compiler(&standard);
            compile
                .args(["--edition", "2024", "--crate-type", "staticlib", "--crate-name", "second", "-O"])
                .args(flags);
            run_quietly(compile.arg("-o").arg(&other).arg(root().join("tests/c/second/second.rs")))?;
            for linker in LINKERS {
                for takes_all in [false, true] {
                    let name = format!("{version}-{kind}-{linker}{}", if takes_all { "-all" } else { "" });
                    pairs.push(Pair { name, other: other.clone(), linker, takes_all });
                }
            }
        }
    }
    let objects = objects(&folder)?;
    let ours = archive(build)?;
    let programs = at_once(&pairs, |pair| pair.link(&folder, &objects, &ours))?;
    programs.iter().try_for_each(|program| run_quietly(command(program).arg("together").current_dir(&folder)))?;
    println!("   {} programs, beside libraries of rustc {own} and {another}", programs.len());
    Ok(())
}

impl Pair {
    /// Ours comes first: what both would bring is then ours, if anything of that is to be seen.
    fn link(&self, folder: &Path, objects: &[PathBuf], ours: &Path) -> Outcome<PathBuf> {
        let program = folder.join(&self.name);
        let mut link = command("gcc");
        link.args(objects).arg(format!("-fuse-ld={}", self.linker));
        let [before, behind]: [&[&str]; 2] = match self.takes_all {
            true => [&["-Wl,--whole-archive"], &["-Wl,--no-whole-archive"]],
            false => [&[], &[]],
        };
        link.args(before).arg(ours).arg(&self.other).args(behind).args(SYSTEM);
        run_quietly(link.arg("-o").arg(&program))?;
        Ok(program)
    }
}

/// The toolchain's own compiler, or the distribution's.
fn compiler(standard: &Standard) -> Command {
    let mut compiler = command(match standard {
        Standard::Ready => "rustc",
        Standard::Made => "/usr/bin/rustc",
    });
    standard.prepare(&mut compiler);
    compiler
}

fn version(mut compiler: Command) -> Outcome<String> {
    let said = output_of(compiler.arg("--version"))?;
    said.split(' ').nth(1).map(str::to_owned).ok_or(format!("a compiler of no version: {said}"))
}

/// The archive as programs of this machine get it.
fn archive(build: &Path) -> Outcome<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let archive = build.join(triple).join("libblockcanary.a");
    if archive.exists() { Ok(archive) } else { Err(format!("there is no {}", archive.display())) }
}

/// The program, and what its tests share.
fn objects(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let tests = root().join("tests/c");
    let build = |source: &str| {
        let object = folder.join(source.replace('/', "-")).with_extension("o");
        let mut compile = command("gcc");
        compile.args(["-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I"]).arg(root().join("include"));
        run_quietly(compile.arg("-c").arg(tests.join(source)).arg("-o").arg(&object))?;
        Ok(object)
    };
    ["second/two_rusts.c", "support/check.c", "support/blocks.c"].into_iter().map(build).collect()
}
