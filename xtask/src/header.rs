//! `cargo xtask header`: writes `include/blockcanary.h` from the Rust source, or checks that it is up to date.

use crate::run::{Outcome, root};
use std::path::PathBuf;

/// Where types and functions of the interface are; nothing else of the source reaches the header.
const SOURCES: [&str; 2] = ["src/abi", "src/ffi"];

/// What of the interface to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The header that users include.
    Whole,
    /// Everything but the functions.
    Types,
    /// The functions alone, without includes; for a file that has the types from elsewhere.
    Functions,
}

/// The command.
pub fn main(mut args: pico_args::Arguments) -> Outcome {
    let verify = args.contains("--verify");
    crate::nothing_left(args)?;
    if verify {
        return self::verify();
    }
    let path = path();
    std::fs::write(&path, generate(Part::Whole)?).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{} written", path.display());
    Ok(())
}

/// Fails unless the committed header is what the source gives.
pub fn verify() -> Outcome {
    let committed = std::fs::read_to_string(path()).unwrap_or_default();
    let generated = generate(Part::Whole)?;
    if committed == generated {
        return Ok(());
    }
    let differing = committed.lines().zip(generated.lines()).take_while(|(a, b)| a == b).count() + 1;
    Err(format!("include/blockcanary.h differs from the source in line {differing}: run `cargo xtask header`"))
}

/// The header's text.
pub fn generate(part: Part) -> Outcome<String> {
    let mut config = cbindgen::Config::from_file(root().join("cbindgen.toml"))?;
    let functions = cbindgen::ItemType::Functions;
    match part {
        Part::Whole => {}
        Part::Types => config.export.item_types.retain(|kind| *kind != functions),
        Part::Functions => {
            config.export.item_types = vec![functions];
            config.sys_includes.clear();
            config.include_guard = None;
            config.header = None;
        }
    }
    let mut builder = cbindgen::Builder::new().with_config(config);
    for path in sources()? {
        builder = builder.with_src(path);
    }
    let bindings = builder.generate().map_err(|error| format!("cbindgen: {error}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|error| format!("cbindgen: {error}"))?;
    Ok(text.lines().map(|line| unsigned(line) + "\n").collect())
}

/// All constants are unsigned in Rust; cbindgen writes their digits alone.
fn unsigned(line: &str) -> String {
    let digits_end = line.ends_with(|last: char| last.is_ascii_digit());
    if line.starts_with("#define BC_") && digits_end { format!("{line}u") } else { line.to_string() }
}

fn path() -> PathBuf {
    root().join("include/blockcanary.h")
}

/// The files in the order in which their folder's `mod.rs` names them, which is the order of the header.
fn sources() -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in SOURCES.map(|folder| root().join(folder)) {
        let index = folder.join("mod.rs");
        let Ok(text) = std::fs::read_to_string(&index) else { continue };
        for line in text.lines() {
            let name = line.trim_start_matches("pub ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            files.extend(name.map(|name| folder.join(format!("{name}.rs"))));
        }
    }
    if files.is_empty() { Err("no source of the interface found".to_string()) } else { Ok(files) }
}
