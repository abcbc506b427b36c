//! `cargo xtask reports FOLDER`: are all reports below a folder what they should be?
//!
//! Each JSON keeps to `docs/report.schema.json`, each log is read by the rules of BlockCanary's reader, and where both are
//! there and of the same state of their block, they say the same.

// The tests' own, so that there is one reader.
#[path = "../../tests/report_common/pair.rs"]
mod pair;
#[path = "../../tests/report_common/reader.rs"]
mod reader;

use crate::run::{Outcome, root};
use jsonschema::Validator;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    match args.finish().as_slice() {
        [folder] => check(Path::new(folder)),
        _ => Err("usage: cargo xtask reports FOLDER".to_string()),
    }
}

/// Fails on the first report that is not what it should be, or if there is none.
pub fn check(folder: &Path) -> Outcome {
    let schema = read_json(&root().join("docs/report.schema.json"))?;
    let schema = jsonschema::draft202012::new(&schema).map_err(|error| format!("the schema: {error}"))?;
    let mut files = Vec::new();
    reports_below(folder, &mut files)?;
    let (mut objects, mut logs, mut pairs, mut stacks) = (0, 0, 0, 0);
    for path in &files {
        let told = |error: String| format!("{}: {error}", path.display());
        if path.extension().is_some_and(|extension| extension == "json") {
            judge(&schema, &read_json(path)?).map_err(told)?;
            objects += 1;
            continue;
        }
        let log = std::fs::read(path).map_err(|error| told(error.to_string()))?;
        let read = reader::read_as_block_canary(&log).map_err(told)?;
        logs += 1;
        let beside = path.with_extension("json");
        if !beside.exists() {
            continue;
        }
        let json = read_json(&beside)?;
        let state = format!("\r\nblock-state = {}\r\n", json["state"].as_str().unwrap_or_default());
        if String::from_utf8_lossy(&log).contains(&state) {
            stacks += pair::agree(&read, &json).map_err(told)?;
            pairs += 1;
        }
    }
    println!(
        "{objects} JSON reports keep to the schema, {logs} logs can be read, {pairs} pairs with {stacks} stacks agree"
    );
    if objects == 0 || pairs == 0 || stacks == 0 {
        Err(format!("no reports below {}", folder.display()))
    } else {
        Ok(())
    }
}

/// Removes the folders, at any depth, that the C tests have made for reports, so that those of an older version are not judged.
pub fn clear(folder: &Path) -> Outcome {
    for path in entries(folder)? {
        let number = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() && number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            std::fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        } else if path.is_dir() && !path.is_symlink() {
            clear(&path)?;
        }
    }
    Ok(())
}

fn judge(schema: &Validator, report: &Value) -> Outcome {
    match schema.iter_errors(report).next() {
        Some(error) => Err(format!("{}: {error}", error.instance_path())),
        None => Ok(()),
    }
}

fn reports_below(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    for path in entries(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_report = name.starts_with("looper-") && (name.ends_with(".json") || name.ends_with(".log"));
        // Tests plant files of such names; a real one names a living process and a block.
        if path.is_dir() && !path.is_symlink() {
            reports_below(&path, files)?;
        } else if is_report && path.metadata().is_ok_and(|data| data.len() > PLANTED) {
            files.push(path);
        }
    }
    Ok(())
}

/// Longer than what tests plant, shorter than any report.
const PLANTED: u64 = 64;

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::read_dir(folder).map_err(told)?.map(|entry| entry.map(|entry| entry.path()).map_err(told)).collect()
}

fn read_json(path: &Path) -> Outcome<Value> {
    let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}
