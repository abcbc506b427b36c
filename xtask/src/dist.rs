//! `cargo xtask dist`: the folder that is handed out, with the checksum of each file in it.
//!
//! Below `target/dist/blockcanary-<version>`: the installed package of CMake for this machine with the localised archive,
//! archives for Android, with and without Java, with `Android.mk`, the package for Gradle, and the documents.

use crate::run::{Outcome, command, root, run_quietly};
use crate::{aar, abis, android, documents, tools};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The documents and what they lead to, and what `Android.mk` needs.
const FILES: [&str; 13] = [
    "ARCHITECTURE.md",
    "Android.mk",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "c/interpose/looper.c",
    "c/noop/looper.c",
    "c/noop/noop.c",
    "cmake",
    "docs",
    "examples-c",
    "include",
    "java",
];

/// Names of the sums.
const SUMS: &str = "SHA256SUMS";

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    println!("{} written", make()?.display());
    Ok(())
}

/// Makes it anew; gives its path.
pub fn make() -> Outcome<PathBuf> {
    tools::ensure_packages(&[tools::PACKAGES, tools::ANDROID])?;
    // Made anew where they are older than the source.
    let plain = android::with_features(&[])?;
    let (package, with_java) = aar::make()?;
    let folder = root().join("target/dist").join(format!("blockcanary-{}", aar::version()?));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    install(&folder.join(format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)))?;
    for (from, to) in [(plain, "android"), (with_java, "android/jni")] {
        for (abi, bytes) in abis::archives_in(&from)? {
            is_localised(&abi.archive_in(&from), "llvm-nm")?;
            write(&abi.archive_in(&folder.join(to)), &bytes)?;
        }
    }
    for name in FILES {
        copy(&root().join(name), &folder.join(name))?;
    }
    let name = package.file_name().unwrap_or_default();
    copy(&package, &folder.join(name))?;
    documents::check_links(&folder)?;
    write(&folder.join(SUMS), sums(&folder)?.as_bytes())?;
    Ok(folder)
}

/// What `cmake --install` gives on this machine.
fn install(prefix: &Path) -> Outcome {
    let build = root().join("target/dist/build");
    let mut configure = command("cmake");
    configure.arg("-S").arg(root()).arg("-B").arg(&build);
    configure.args(["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INSTALL_LIBDIR=lib"]);
    configure.args(["-DBLOCKCANARY_BUILD_TESTS=OFF", "-DBLOCKCANARY_BUILD_EXAMPLES=OFF"]);
    run_quietly(&mut configure)?;
    run_quietly(command("cmake").arg("--build").arg(&build))?;
    run_quietly(command("cmake").arg("--install").arg(&build).arg("--prefix").arg(prefix))?;
    is_localised(&prefix.join("lib/libblockcanary.a"), "nm")
}

/// One that is not takes others' symbols with it.
fn is_localised(archive: &Path, nm: &str) -> Outcome {
    let define = |name: &str, value: &Path| format!("-D{name}={}", value.display());
    let mut check = command("cmake");
    check.arg(format!("-DNM={nm}")).arg(define("ARCHIVE", archive));
    check.arg(define("HEADER", &root().join("include/blockcanary.h"))).arg("-P");
    run_quietly(check.arg(root().join("tests/c/exports.cmake")))
        .map_err(|_| format!("{} is not localised (see above)", archive.display()))
}

/// The checksums of all files below a folder, as `sha256sum -c` reads them.
fn sums(folder: &Path) -> Outcome<String> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut text = String::new();
    for path in files {
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.strip_prefix(folder).unwrap_or(&path);
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{digest}  {}\n", name.display());
    }
    Ok(text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.file_name().is_some_and(|name| name != SUMS) {
            files.push(path);
        }
    }
    Ok(())
}

/// A file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Outcome {
    if !from.is_dir() {
        let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
        return write(to, &bytes);
    }
    let mut files = Vec::new();
    collect(from, &mut files)?;
    files.iter().try_for_each(|path| copy(path, &to.join(path.strip_prefix(from).unwrap_or(path))))
}

fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run;

    #[test]
    fn sums_are_those_that_others_find() {
        let folder = std::env::temp_dir().join(format!("blockcanary-sums-{}", std::process::id()));
        write(&folder.join("b/c"), b"second").unwrap();
        write(&folder.join("a"), b"first").unwrap();
        write(&folder.join(SUMS), sums(&folder).unwrap().as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(folder.join(SUMS)).unwrap().lines().count(), 2);
        let check = || run(command("sha256sum").args(["--check", "--strict", "--quiet", SUMS]).current_dir(&folder));
        check().unwrap();
        write(&folder.join("b/c"), b"seconds").unwrap();
        assert!(check().is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
