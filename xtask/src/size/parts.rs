//! Which part of the library how much of the code is.

use crate::run::{Outcome, command, output_of};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Bytes of code by part: a folder of `src`, or where it comes from otherwise.
pub type Parts = BTreeMap<&'static str, u64>;

const FOLDERS: [&str; 8] = ["ffi", "engine", "report", "hook", "watch", "sample", "unwind", "sys"];
const GIMLI: &str = "gimli";
const REST: &str = "Rust's core, other crates";

/// Of a library with names.
pub fn of(library: &Path) -> Outcome<Parts> {
    let names = output_of(command("llvm-nm").args(["--print-size", "--demangle"]).arg(library))?;
    let parts = sum(&names);
    if parts.len() < FOLDERS.len() { Err(format!("{}: has no names", library.display())) } else { Ok(parts) }
}

/// Lines of nm: address, size, kind, name.
fn sum(names: &str) -> Parts {
    let mut parts = Parts::new();
    for line in names.lines() {
        let mut words = line.splitn(4, ' ');
        let (_, size, kind, name) = (words.next(), words.next(), words.next(), words.next());
        let (Some(Ok(bytes)), Some("t" | "T"), Some(name)) =
            (size.map(|size| u64::from_str_radix(size, 16)), kind, name)
        else {
            continue;
        };
        *parts.entry(part(name)).or_default() += bytes;
    }
    parts
}

/// The first path in a name is the type or the function itself; what else is in it are types that it is made for.
fn part(name: &str) -> &'static str {
    if name.starts_with("bc_") {
        return "ffi";
    }
    let ours = name.find("blockcanary::").map(|at| (at, &name[at + "blockcanary::".len()..]));
    let gimli = name.find("gimli::");
    match (ours, gimli) {
        (Some((at, path)), gimli) if gimli.is_none_or(|other| at < other) => {
            let folder = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
            FOLDERS.into_iter().find(|known| folder == Some(known)).unwrap_or(REST)
        }
        (_, Some(_)) => GIMLI,
        _ => REST,
    }
}

/// Both side by side, largest first.
pub fn table(abi: &str, all: &Parts, few: &Parts) -> String {
    let mut table = format!("Code of {abi} by part, KiB. What is inlined counts where it is used.\n\n");
    table += "| part | all | few |\n| --- | --- | --- |\n";
    let mut parts: Vec<_> = all.iter().collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    for (part, bytes) in parts {
        let few = few.get(part).copied().unwrap_or_default();
        let _ = writeln!(table, "| {part} | {:.1} | {:.1} |", *bytes as f64 / 1024.0, few as f64 / 1024.0);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_the_folder_they_are_written_in() {
        let names = "\
0000000000001000 0000000000000010 t <blockcanary::watch::looks::Looks>::enter
0000000000001010 0000000000000100 T bc_install
0000000000001110 0000000000000020 t <gimli::read::cfi::UnwindTable<_, blockcanary::unwind::cfi::Storage>>::next_row
0000000000001130 0000000000000040 t <blockcanary::unwind::cfi::Stepper>::step::<gimli::Something>
0000000000001170 0000000000000008 t core::fmt::write
0000000000001178 0000000000000001 t <[u8]>::copy_within::<core::ops::range::Range<usize>>
0000000000002000 0000000000001000 b blockcanary::watch::REGISTRY
                 U malloc
";
        let expected = [("watch", 0x10), ("ffi", 0x100), (GIMLI, 0x20), ("unwind", 0x40), (REST, 9)];
        assert_eq!(sum(names), Parts::from(expected));
    }
}
