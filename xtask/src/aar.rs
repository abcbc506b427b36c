//! `cargo xtask aar`: a package for Gradle with the archives of all ABIs, as Prefab hands them to CMake and ndk-build.
//!
//! Two modules: `blockcanary` is the library; `interpose` sends a program's own `ALooper_*` calls through it, by flags for
//! the linker and the functions that it puts in their place. Who takes such a package has an app of Java's: so the library
//! has the feature `jni`, its Java face comes as classes, and the native half of that as a source to be included.

pub mod consumer;
pub mod hooks;
mod rules;

use crate::abis::{self, Abi};
use crate::run::{Outcome, root};
use crate::zipped::{self, Files};
use crate::{android, java, tools};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The oldest system that the library runs on.
const MIN_SDK: u32 = 21;
/// Prefab asks for it, and compares it only where the C++ library is not `none`.
const NDK: u32 = 27;

/// A module, and what is linked where it is used.
struct Module {
    name: &'static str,
    library: &'static str,
    exports: &'static [&'static str],
}

const BLOCKCANARY: Module = Module { name: "blockcanary", library: "libblockcanary", exports: &["-ldl"] };
const INTERPOSE: Module = Module {
    name: "interpose",
    library: "libblockcanary_interpose",
    exports: &[
        ":blockcanary",
        "-landroid",
        "-Wl,--wrap=ALooper_addFd",
        "-Wl,--wrap=ALooper_removeFd",
        "-Wl,--wrap=ALooper_pollOnce",
        "-Wl,--wrap=ALooper_pollAll",
    ],
};

/// An archive of each kind for an ABI.
pub struct Archives {
    /// Whose they are.
    pub abi: &'static Abi,
    /// The library.
    pub library: Vec<u8>,
    /// What takes the place of the looper's calls.
    pub hooks: Vec<u8>,
}

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    println!("{} written", make()?.0.display());
    Ok(())
}

/// Makes it, and checks it by Prefab's rules and by a program for each ABI; gives its path, and where the archives in it
/// come from.
pub fn make() -> Outcome<(PathBuf, PathBuf)> {
    tools::ensure_packages(&[tools::ANDROID])?;
    let from = android::with_features(&["jni"])?;
    let found = abis::archives_in(&from)?;
    let folder = root().join("target/aar");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut archives = Vec::new();
    for (abi, library) in found {
        archives.push(Archives { abi, library, hooks: hooks::build(abi, &folder)? });
    }
    let bytes = pack(&archives, &java::classes()?)?;
    rules::check(&bytes)?;
    let files = zipped::unpack(&bytes)?;
    consumer::check(&files, &folder)?;
    consumer::check_classes(&files, &folder)?;
    let path = folder.join(format!("blockcanary-{}.aar", version()?));
    std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((path, from))
}

/// The project's version, which stands in Cargo.toml.
pub fn version() -> Outcome<String> {
    let manifest =
        std::fs::read_to_string(root().join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.map(str::to_string).ok_or("Cargo.toml has no version".to_string())
}

/// The package's bytes.
fn pack(archives: &[Archives], classes: &Files) -> Outcome<Vec<u8>> {
    let mut files = Files::new();
    let mut put = |path: &str, bytes: Vec<u8>| files.insert(path.to_string(), bytes);
    let read = |path: &str| {
        let path = root().join(path);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    put("AndroidManifest.xml", manifest().into_bytes());
    put("R.txt", Vec::new());
    put("classes.jar", zipped::pack(classes)?);
    put("proguard.txt", read("java/proguard.txt")?);
    let package = json!({"schema_version": 2, "name": "blockcanary", "version": version()?, "dependencies": []});
    put("prefab/prefab.json", text(&package));
    for module in [&BLOCKCANARY, &INTERPOSE] {
        let folder = format!("prefab/modules/{}", module.name);
        let about = json!({"export_libraries": module.exports, "library_name": module.library});
        put(&format!("{folder}/module.json"), text(&about));
        for archive in archives {
            let (name, api) = (archive.abi.name, archive.abi.api.max(MIN_SDK));
            let place = format!("{folder}/libs/android.{name}");
            let about = json!({"abi": name, "api": api, "ndk": NDK, "stl": "none", "static": true});
            put(&format!("{place}/abi.json"), text(&about));
            let bytes = if module.name == BLOCKCANARY.name { &archive.library } else { &archive.hooks };
            put(&format!("{place}/{}.a", module.library), bytes.clone());
        }
    }
    for header in ["include/blockcanary.h", "include/blockcanary.hpp", "java/jni/blockcanary_jni.c"] {
        let bytes = read(header)?;
        let name = header.rsplit('/').next().unwrap_or(header);
        // Both, because CMake refuses a module whose folder of headers is not there.
        for module in [&BLOCKCANARY, &INTERPOSE] {
            put(&format!("prefab/modules/{}/include/{name}", module.name), bytes.clone());
        }
    }
    zipped::pack(&files)
}

fn text(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

fn manifest() -> String {
    format!(
        "<manifest xmlns:android=\"http://schemas.android.com/apk/res/android\" package=\"dev.blockcanary\">\n    \
         <uses-sdk android:minSdkVersion=\"{MIN_SDK}\" />\n</manifest>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abis::ABIS;

    /// Classes that hold nothing.
    fn face() -> Files {
        let class = b"\xca\xfe\xba\xbe\0\0\0\x34".to_vec();
        ["BlockCanary", "Hook"].map(|name| (format!("dev/blockcanary/{name}.class"), class.clone())).into()
    }

    /// A package of archives that hold nothing.
    fn package() -> Vec<u8> {
        let archive = |kind: &str, abi: &Abi| format!("!<arch>\n{kind} {}", abi.name).into_bytes();
        let archives: Vec<Archives> = ABIS
            .iter()
            .map(|abi| Archives { abi, library: archive("library", abi), hooks: archive("hooks", abi) })
            .collect();
        pack(&archives, &face()).unwrap()
    }

    /// What the rules say of it when `change` has been made.
    fn changed(change: impl Fn(&mut Files)) -> Outcome {
        let mut files = zipped::unpack(&package()).unwrap();
        change(&mut files);
        rules::check(&zipped::pack(&files).unwrap())
    }

    fn replaced(path: &str, from: &str, to: &str) -> Outcome {
        changed(|files| {
            let file = files.get_mut(path).unwrap();
            let before = String::from_utf8(file.clone()).unwrap();
            let after = before.replace(from, to);
            assert_ne!(before, after, "the change has changed nothing");
            *file = after.into_bytes();
        })
    }

    #[test]
    fn a_package_keeps_the_rules_and_is_always_the_same() {
        assert_eq!(package(), package());
        rules::check(&package()).unwrap();
        changed(|_| {}).unwrap();
    }

    #[test]
    fn a_package_that_breaks_a_rule_is_told() {
        const PACKAGE: &str = "prefab/prefab.json";
        const MODULE: &str = "prefab/modules/interpose/module.json";
        const ABI: &str = "prefab/modules/blockcanary/libs/android.x86/abi.json";
        const ARCHIVE: &str = "prefab/modules/blockcanary/libs/android.x86/libblockcanary.a";
        let version = version().unwrap();
        let said = |outcome: Outcome| outcome.unwrap_err();
        assert!(said(replaced(PACKAGE, &version, "0.1.0-alpha")).contains("version"));
        assert!(said(replaced(PACKAGE, "\"schema_version\": 2", "\"schema_version\": 1")).contains("schema_version"));
        assert!(said(replaced(PACKAGE, "\"name\"", "\"nam\"")).contains("nam"));
        assert!(said(replaced(MODULE, ":blockcanary", ":black")).contains(":black"));
        assert!(said(replaced(MODULE, "-landroid", "android")).contains("android"));
        assert!(said(replaced(MODULE, "library_name", "library")).contains("library"));
        assert!(said(replaced(ABI, "\"x86\"", "\"x86_64\"")).contains("x86"));
        assert!(said(replaced(ABI, "\"none\"", "\"libc++\"")).contains("libc++"));
        assert!(said(replaced(ABI, "true", "false")).contains("static"));
        assert!(said(replaced(ABI, "\"api\": 21", "\"api\": \"21\"")).contains("api"));
        assert!(said(replaced(ABI, "\"ndk\"", "\"ndc\"")).contains("ndc"));
        assert!(said(replaced(ARCHIVE, "!<arch>", "?<arch>")).contains("libblockcanary.a"));
        assert!(said(changed(|files| drop(files.remove(ARCHIVE)))).contains("libblockcanary.a"));
        assert!(said(changed(|files| drop(files.remove("classes.jar")))).contains("classes.jar"));
        assert!(said(changed(|files| drop(files.remove("proguard.txt")))).contains("proguard.txt"));
        assert!(said(replaced("proguard.txt", "dev.blockcanary.Hook", "dev.blockcanary.Look")).contains("Look"));
        let classes = |change: fn(&mut Files)| {
            let mut classes = face();
            change(&mut classes);
            changed(|files| drop(files.insert("classes.jar".to_string(), zipped::pack(&classes).unwrap())))
        };
        const HOOK: &str = "dev/blockcanary/Hook.class";
        assert!(said(classes(|classes| drop(classes.remove(HOOK)))).contains("dev.blockcanary.Hook"));
        assert!(said(classes(|classes| classes.get_mut(HOOK).unwrap()[7] = 61)).contains("Hook.class"));
        assert!(said(classes(|classes| drop(classes.insert("classes.dex".to_string(), Vec::new())))).contains("dex"));
        let more = |path: &'static str| move |files: &mut Files| drop(files.insert(path.to_string(), Vec::new()));
        assert!(said(changed(more("prefab/modules/blockcanary/libs/android.mips/abi.json"))).contains("mips"));
        assert!(said(changed(more("prefab/modules/blockcanary/libs/android.x86/more.a"))).contains("more.a"));
        assert!(said(changed(more("prefab/more.json"))).contains("more.json"));
        for module in ["blockcanary", "interpose"] {
            let without = |files: &mut Files| files.retain(|path, _| !path.contains(&format!("{module}/include")));
            assert!(said(changed(without)).contains(module));
        }
        assert!(
            said(changed(|files| files.retain(|path, _| !path.contains("interpose/libs/android.x86/"))))
                .contains("x86")
        );
    }

    #[test]
    fn the_manifest_names_the_oldest_system() {
        assert!(manifest().contains("minSdkVersion=\"21\"") && manifest().starts_with("<manifest"));
    }
}
