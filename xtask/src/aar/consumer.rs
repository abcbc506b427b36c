//! A library of somebody else's for each ABI of a package, linked as a build by Prefab links it, and an app's Java code.

use super::hooks::compiler;
use crate::abis::{ABIS, Abi};
use crate::java;
use crate::run::{Outcome, command, output_of, root, run};
use crate::zipped::Files;
use serde_json::Value;
use std::path::Path;

/// Polls a looper, and has itself watched.
const SOURCE: &str = "\
#include <blockcanary.h>
int ALooper_pollOnce(int timeout_ms, int *fd, int *events, void **data);
int game(void);
int game(void) {
  bc_install((const bc_config *)0);
  return ALooper_pollOnce(-1, (int *)0, (int *)0, (void **)0);
}
";

/// Fails with one line if one cannot be linked, or is not what it has to be.
pub fn check(files: &Files, folder: &Path) -> Outcome {
    let folder = folder.join("consumer");
    let _ = std::fs::remove_dir_all(&folder);
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("prefab/")) {
        write(&folder.join(path), bytes)?;
    }
    write(&folder.join("game.c"), SOURCE.as_bytes())?;
    let is_there =
        |abi: &&Abi| folder.join("prefab/modules/blockcanary/libs").join(format!("android.{}", abi.name)).exists();
    for abi in ABIS.iter().filter(is_there) {
        for module in ["blockcanary", "interpose"] {
            let symbols = link(abi, module, &folder)?;
            let is_defined = |name: &str| {
                symbols.lines().any(|line| {
                    let mut words = line.split_whitespace();
                    words.next_back() == Some(name)
                        && words.next_back().is_some_and(|kind| kind.eq_ignore_ascii_case("t"))
                })
            };
            let wrong = match module {
                _ if !is_defined("bc_install") => Some("has no bc_install"),
                "interpose" if !is_defined("__wrap_ALooper_pollOnce") => Some("polls by itself"),
                "blockcanary" if is_defined("__wrap_ALooper_pollOnce") => Some("is interposed without having asked"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                return Err(format!("a library for {} that links blockcanary::{module} {wrong}", abi.name));
            }
        }
    }
    Ok(())
}

/// Fails with one line if an app's code does not compile with the package's classes.
pub fn check_classes(files: &Files, folder: &Path) -> Outcome {
    let jar = folder.join("consumer/classes.jar");
    write(&jar, files.get("classes.jar").map(Vec::as_slice).unwrap_or_default())?;
    java::compile_sample(&jar, &folder.join("consumer/classes"))
        .map_err(|error| format!("java/sample does not compile with the package's classes.jar: {error}"))
}

/// Links one; gives its symbols.
fn link(abi: &Abi, module: &str, folder: &Path) -> Outcome<String> {
    let work = folder.join(abi.name);
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let object = work.join("game.o");
    run(compiler(abi).args(["-O2", "-c"]).arg(folder.join("game.c")).arg("-o").arg(&object))?;
    // The system's libraries, with nothing in them: what a library lacks is looked for when it is loaded.
    for library in ["dl", "android"] {
        let mut stub = linker(abi);
        run(stub.args(["-x", "c", "/dev/null", "-o"]).arg(work.join(format!("lib{library}.so"))))?;
    }
    let game = work.join(format!("libgame_{module}.so"));
    let mut linking = linker(abi);
    linking.args(["-Wl,--gc-sections", "-Wl,-z,max-page-size=16384", "-L"]).arg(&work).arg(&object);
    arguments(abi, module, folder, &mut linking)?;
    run(linking.arg("-o").arg(&game))?;
    output_of(command("llvm-nm").arg(&game))
}

fn linker(abi: &Abi) -> std::process::Command {
    let mut clang = command("clang");
    clang.arg(abi.target()).args(["-fuse-ld=lld", "-shared", "-nostdlib"]);
    clang
}

/// What a module adds to a link: its archive, and what it exports.
fn arguments(abi: &Abi, module: &str, folder: &Path, linking: &mut std::process::Command) -> Outcome {
    let place = folder.join("prefab/modules").join(module);
    let path = place.join("module.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let about: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let library = about["library_name"].as_str().unwrap_or_default();
    linking.arg(place.join("libs").join(format!("android.{}", abi.name)).join(format!("{library}.a")));
    for export in about["export_libraries"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        match export.strip_prefix(':') {
            Some(other) => arguments(abi, other, folder, linking)?,
            None => drop(linking.arg(export)),
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let folder = path.parent().unwrap_or(root().as_path()).to_path_buf();
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aar::{Archives, hooks, pack};
    use crate::tools;
    use crate::zipped;

    /// Of the library, as much as the link wants.
    const LIBRARY: &str = "\
int bc_install(void); int bc_install(void) { return 0; }
int bc_looper_add_fd(void); int bc_looper_add_fd(void) { return 0; }
int bc_looper_remove_fd(void); int bc_looper_remove_fd(void) { return 0; }
int bc_looper_poll_once(void); int bc_looper_poll_once(void) { return 0; }
int bc_looper_poll_all(void); int bc_looper_poll_all(void) { return 0; }
";

    fn library(abi: &Abi, folder: &Path) -> Vec<u8> {
        let folder = folder.join(abi.name);
        write(&folder.join("library.c"), LIBRARY.as_bytes()).unwrap();
        let (object, archive) = (folder.join("library.o"), folder.join("library.a"));
        run(compiler(abi).arg("-c").arg(folder.join("library.c")).arg("-o").arg(&object)).unwrap();
        run(command("llvm-ar").arg("rcsD").arg(&archive).arg(&object)).unwrap();
        std::fs::read(archive).unwrap()
    }

    #[test]
    fn a_library_for_each_abi_links_and_is_interposed_if_it_asks() {
        tools::ensure_packages(&[tools::ANDROID]).unwrap();
        let folder = std::env::temp_dir().join(format!("blockcanary-consumer-{}", std::process::id()));
        let archives = ABIS.iter().map(|abi| Archives {
            abi,
            library: library(abi, &folder),
            hooks: hooks::build(abi, &folder).unwrap(),
        });
        let files = pack(&archives.collect::<Vec<_>>(), &Files::new()).unwrap();
        let files = zipped::unpack(&files).unwrap();
        check(&files, &folder).unwrap();

        // Without the flags, and without the library's archive for one ABI.
        let module = "prefab/modules/interpose/module.json";
        let mut without = files.clone();
        let text = String::from_utf8(without[module].clone()).unwrap();
        without.insert(module.to_string(), text.replace("--wrap=ALooper_pollOnce", "--gc-sections").into_bytes());
        assert!(check(&without, &folder).unwrap_err().contains("polls by itself"));
        let mut empty = files;
        empty.insert("prefab/modules/blockcanary/libs/android.x86/libblockcanary.a".to_string(), b"!<arch>\n".to_vec());
        let message = check(&empty, &folder).unwrap_err();
        assert!(message.contains("x86 that links blockcanary::blockcanary has no bc_install"), "{message}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
