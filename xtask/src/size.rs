//! `cargo xtask size`: how many bytes a program's library grows by. Written to `docs/size.md`.
//!
//! Measured is what is loaded of a stripped library that refers to functions of ours, less what is loaded of one that
//! refers to nothing, both linked by lld with `--gc-sections`. Nothing of Android's is needed: a library may leave symbols to
//! the loader.

mod parts;

use crate::abis::{Abi, Made};
use crate::android;
use crate::run::{Outcome, command, output_of, root, run_quietly};
use crate::tools;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What a program that only wants to know of its blocks calls.
const FEW: &[&str] = &[
    "bc_config_init",
    "bc_install",
    "bc_start",
    "bc_stop",
    "bc_uninstall",
    "bc_set_listener",
    "bc_loop_watch",
    "bc_dispatch_begin",
    "bc_dispatch_end",
];

/// Bytes that it may be, with all functions and with few.
const BARS: [u64; 2] = [96 * 1024, 64 * 1024];

/// What calls `src/hook` if there is anything to be called.
const MOST_OF_HOOKS: u64 = 2048;

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    tools::ensure_packages(&[tools::BIONIC, tools::LLVM])?;
    let all = functions()?;
    let few = few();
    let folder = folder()?;
    let mut table = String::from(HEAD);
    let mut by_part = None;
    for (abi, made) in android::all() {
        let archive = android::archive(abi, made)?;
        let link = |name: &str, functions: &[String]| link(&folder, abi, made, &archive, name, functions);
        let loaded = |name: &str, functions: &[String]| {
            let library = link(name, functions)?;
            run_quietly(command("llvm-strip").arg(&library))?;
            Loaded::of(&library)
        };
        if by_part.is_none() {
            by_part = Some((abi.name, parts::of(&link("named-all", &all)?)?, parts::of(&link("named-few", &few)?)?));
        }
        let (none, all, few) = (loaded("none", &[])?, loaded("all", &all)?, loaded("few", &few)?);
        let [all, few] = [all.less(&none), few.less(&none)];
        let kib = |bytes: u64| bytes.div_ceil(1024);
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} |",
            abi.name,
            kib(all.whole()),
            kib(few.whole()),
            kib(all.code),
            kib(all.constants),
            kib(all.tables),
            kib(all.linking),
        );
    }
    let (abi, of_all, of_few) = by_part.ok_or("no ABI is built")?;
    let _ = write!(table, "\n{}", parts::table(abi, &of_all, &of_few));
    let _ = write!(table, "\n{}", TAIL.replace("{all}", &kib_of(BARS[0])).replace("{few}", &kib_of(BARS[1])));
    print!("{table}");
    let path = root().join("docs/size.md");
    std::fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))
}

/// Fails where the few functions bring those along that leave marks for others, which a program has to ask for.
pub fn check() -> Outcome {
    let (abi, made) = android::all().next().ok_or("no ABI is built")?;
    let folder = folder()?;
    let few = parts::of(&link(&folder, abi, made, &abi.archive(), "named-few", &few())?)?;
    match few.get("hook") {
        Some(bytes) if *bytes > MOST_OF_HOOKS => {
            Err(format!("{}: {bytes} bytes of src/hook in a program that calls none of it", abi.name))
        }
        _ => Ok(()),
    }
}

fn few() -> Vec<String> {
    FEW.iter().map(|name| name.to_string()).collect()
}

fn folder() -> Outcome<PathBuf> {
    let folder = root().join("target/size");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn kib_of(bytes: u64) -> String {
    (bytes / 1024).to_string()
}

const HEAD: &str = "\
# Size

What a stripped shared library grows by, in KiB, when it refers to all functions of the header, or to few: install, start,
stop, a listener, a loop and its dispatches. Linked by lld with `--gc-sections` and `--exclude-libs`, without which a
library hands on all functions and so has all. Made by `cargo xtask size`.

| ABI | all | few | of all: code | constants | unwind tables | relocations, symbols, data |
| --- | --- | --- | --- | --- | --- | --- |
";

const TAIL: &str = "\
The goal was {all} KiB with all functions and {few} KiB with few, and is missed. A program that does not ask for loopers,
frames or interposed modules has next to nothing of those (`cargo xtask test` checks it). The rest comes with every install,
because what a block becomes is decided at run time: it may get stacks, causes, reports in two formats, the flight recorder
and its recovery. The table of parts shows what a library could weigh that had less: even stacks alone (`unwind`, `gimli`,
`sample`, `sys`) and their judging (`watch`) are more than the goal. No function has more than a fifteenth of the code. The
unwind tables let debuggers and crash handlers walk through the library's frames.

What is called from many places off the hot path is no part of each (`#[inline(never)]`), and what unwinding reads from has
one type, so that there is one of it. `CARGO_PROFILE_RELEASE_OPT_LEVEL=z` in the environment of the build makes it all a
twentieth smaller; marks then take calls of pieces that they share with other functions, so it is not the default.
";

/// The header's functions.
fn functions() -> Outcome<Vec<String>> {
    let path = root().join("include/blockcanary.h");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let declarations = text.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    let mut names: Vec<String> = declarations
        .filter_map(|line| line.split_once('(')?.0.rsplit(|c: char| !is_name(c)).next().map(str::to_owned))
        .filter(|name| name.starts_with("bc_"))
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() { Err(format!("{}: no function", path.display())) } else { Ok(names) }
}

fn link(folder: &Path, abi: &Abi, made: &Made, archive: &Path, name: &str, functions: &[String]) -> Outcome<PathBuf> {
    let path = |end: &str| folder.join(format!("{}-{name}{end}", abi.name));
    let mut source = String::from("#include <blockcanary.h>\nvoid *const table[] = {0,\n");
    functions.iter().for_each(|function| source += &format!("  (void *){function},\n"));
    source += "};\n";
    std::fs::write(path(".c"), source).map_err(|error| format!("{}: {error}", path(".c").display()))?;
    let mut compile = command("clang");
    compile.arg(abi.target()).args(["-Os", "-fPIC", "-ffreestanding", "-c", "-I"]);
    run_quietly(compile.arg(root().join("include")).arg(path(".c")).arg("-o").arg(path(".o")))?;
    let mut link = command("ld.lld");
    link.args([
        "-shared",
        "--gc-sections",
        "--exclude-libs=ALL",
        "--hash-style=gnu",
        "-z",
        "max-page-size=16384",
        "-m",
    ]);
    link.arg(made.emulation).arg(path(".o")).arg(archive).arg("-o").arg(path(".so"));
    run_quietly(&mut link)?;
    Ok(path(".so"))
}

/// Bytes of a library that are loaded from its file.
#[derive(Default)]
struct Loaded {
    code: u64,
    constants: u64,
    tables: u64,
    linking: u64,
}

impl Loaded {
    fn of(library: &Path) -> Outcome<Loaded> {
        let text = output_of(command("llvm-size").arg("-A").arg(library))?;
        let mut loaded = Loaded::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(name), Some(Ok(bytes))) = (words.next(), words.next().map(str::parse::<u64>)) else { continue };
            match name {
                ".text" | ".plt" => loaded.code += bytes,
                ".rodata" => loaded.constants += bytes,
                ".eh_frame" | ".eh_frame_hdr" | ".ARM.exidx" | ".ARM.extab" => loaded.tables += bytes,
                // No bytes of the file, or none that are loaded.
                ".bss" | ".tbss" | ".comment" | ".ARM.attributes" | "Total" => {}
                name if name.starts_with('.') => loaded.linking += bytes,
                _ => {}
            }
        }
        if loaded.whole() == 0 { Err(format!("{}: nothing is loaded of it", library.display())) } else { Ok(loaded) }
    }

    fn less(&self, other: &Loaded) -> Loaded {
        Loaded {
            code: self.code - other.code,
            constants: self.constants.saturating_sub(other.constants),
            tables: self.tables.saturating_sub(other.tables),
            linking: self.linking.saturating_sub(other.linking),
        }
    }

    fn whole(&self) -> u64 {
        self.code + self.constants + self.tables + self.linking
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_of_the_header_are_found() {
        let names = super::functions().unwrap();
        assert!(super::FEW.iter().all(|few| names.iter().any(|name| name == few)), "{names:?}");
        assert!(names.len() > 35 && !names.iter().any(|name| name.ends_with("_fn")), "{names:?}");
    }
}
