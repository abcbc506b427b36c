//! The rules that Prefab and the Gradle plugin for Android hold a package to, as far as they concern one like ours.

use crate::abis::ABIS;
use crate::run::Outcome;
use crate::zipped::{self, Files};
use serde_json::Value;
use std::collections::BTreeSet;

/// Java 8's classes.
const NEWEST_CLASS: u16 = 52;
const STLS: [&str; 4] = ["c++_shared", "c++_static", "none", "system"];

/// Fails with one line on the first rule that is broken.
pub fn check(package: &[u8]) -> Outcome {
    let files = zipped::unpack(package)?;
    for needed in ["AndroidManifest.xml", "R.txt", "classes.jar", "proguard.txt", "prefab/prefab.json"] {
        if !files.contains_key(needed) {
            return Err(format!("there is no {needed}"));
        }
    }
    classes(&files)?;
    let about = object(&files, "prefab/prefab.json", &["schema_version", "name", "version", "dependencies"])?;
    if about["schema_version"] != 2 {
        return Err(format!("schema_version is {}, which does not know static libraries", about["schema_version"]));
    }
    let version = about["version"].as_str().unwrap_or_default();
    let parts: Vec<&str> = version.split('.').collect();
    if parts.len() > 4 || parts.iter().any(|part| part.is_empty() || part.bytes().any(|byte| !byte.is_ascii_digit())) {
        return Err(format!("version {version} is none for CMake: numbers with dots between them"));
    }
    if about["dependencies"] != Value::Array(Vec::new()) || !about["name"].is_string() {
        return Err("prefab.json has a dependency, or no name".to_string());
    }

    let modules: BTreeSet<&str> =
        files.keys().filter_map(|path| path.strip_prefix("prefab/modules/")?.split('/').next()).collect();
    let mut abis = None;
    let mut known = BTreeSet::from(["prefab/prefab.json".to_string()]);
    for name in &modules {
        let found = module(&files, name, &modules, &mut known)?;
        if abis.get_or_insert_with(|| found.clone()) != &found {
            return Err(format!("module {name} is for {found:?}, and another one for {abis:?}"));
        }
    }
    if let Some(path) = files.keys().find(|path| path.starts_with("prefab/") && !known.contains(*path)) {
        return Err(format!("nobody knows what {path} is for"));
    }
    Ok(())
}

/// One module; gives the ABIs that it is for, and adds its files to those that are known.
fn module(
    files: &Files,
    name: &str,
    modules: &BTreeSet<&str>,
    known: &mut BTreeSet<String>,
) -> Outcome<BTreeSet<String>> {
    let folder = format!("prefab/modules/{name}");
    let path = format!("{folder}/module.json");
    let about = object(files, &path, &["export_libraries", "library_name"])?;
    for library in about["export_libraries"].as_array().into_iter().flatten() {
        let library = library.as_str().unwrap_or_default();
        let is_known = match library.strip_prefix(':') {
            Some(other) => other != name && modules.contains(other),
            None => library.starts_with('-'),
        };
        if !is_known {
            return Err(format!("{path}: {library} is neither a module nor an argument for the linker"));
        }
    }
    let library = about["library_name"].as_str().unwrap_or_default();
    known.insert(path);
    let headers: Vec<&String> = files.keys().filter(|path| path.starts_with(&format!("{folder}/include/"))).collect();
    if headers.is_empty() {
        return Err(format!("{folder} has no headers, and CMake refuses a folder that is not there"));
    }
    known.extend(headers.into_iter().cloned());

    let mut abis = BTreeSet::new();
    let places = format!("{folder}/libs/android.");
    for abi in files.keys().filter_map(|path| path.strip_prefix(&places)?.split('/').next()) {
        if !abis.insert(abi.to_string()) {
            continue;
        }
        let path = format!("{places}{abi}/abi.json");
        if !ABIS.iter().any(|known| known.name == abi) {
            return Err(format!("{path}: there is no such ABI"));
        }
        let about = object(files, &path, &["abi", "api", "ndk", "stl", "static"])?;
        if about["abi"] != abi {
            return Err(format!("{path} speaks of {}", about["abi"]));
        }
        if !about["api"].is_u64() || !about["ndk"].is_u64() {
            return Err(format!("{path}: api {} or ndk {} is no number", about["api"], about["ndk"]));
        }
        if !STLS.iter().any(|stl| about["stl"] == *stl) {
            return Err(format!("{path}: stl is {}", about["stl"]));
        }
        if about["static"] != true {
            return Err(format!("{path}: static is {}, and the library is an archive", about["static"]));
        }
        let archive = format!("{places}{abi}/{library}.a");
        if !files.get(&archive).is_some_and(|bytes| bytes.starts_with(b"!<arch>\n")) {
            return Err(format!("{archive} is missing, or no archive"));
        }
        known.extend([path, archive]);
    }
    if abis.is_empty() { Err(format!("module {name} is for no ABI")) } else { Ok(abis) }
}

/// A file with a JSON object in it that has these keys, and no others.
fn object(files: &Files, path: &str, keys: &[&str]) -> Outcome<Value> {
    let bytes = files.get(path).ok_or_else(|| format!("there is no {path}"))?;
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("{path}: {error}"))?;
    let Some(object) = value.as_object() else { return Err(format!("{path} is no object")) };
    if let Some(key) = object.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(format!("{path}: a strict reader does not know {key}"));
    }
    match keys.iter().find(|key| !object.contains_key(**key)) {
        Some(key) => Err(format!("{path} has no {key}")),
        None => Ok(value),
    }
}

/// Code for Java is classes, not what Android makes of them, of a version that all its tools take; and those that a
/// shrinker has to leave alone are among them.
fn classes(files: &Files) -> Outcome {
    let jar = files.get("classes.jar").map(Vec::as_slice).unwrap_or_default();
    let inside = zipped::unpack(jar).map_err(|error| format!("classes.jar: {error}"))?;
    for (path, bytes) in &inside {
        let version = bytes.strip_prefix(b"\xca\xfe\xba\xbe").and_then(|rest| rest.get(2..4));
        match version {
            _ if !path.ends_with(".class") => return Err(format!("classes.jar: {path} is no class")),
            Some(version) if version <= NEWEST_CLASS.to_be_bytes().as_slice() => {}
            _ => return Err(format!("classes.jar: {path} is no class of Java 8's or before")),
        }
    }
    let rules = String::from_utf8_lossy(files.get("proguard.txt").map(Vec::as_slice).unwrap_or_default()).into_owned();
    for rule in rules.lines().filter(|line| line.starts_with("-keep")) {
        let name = rule.split_whitespace().skip_while(|word| *word != "class").nth(1).unwrap_or_default();
        if !inside.contains_key(&format!("{}.class", name.replace('.', "/"))) {
            return Err(format!("proguard.txt: there is no class {name} to keep"));
        }
    }
    Ok(())
}
