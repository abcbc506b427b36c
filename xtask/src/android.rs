//! `cargo xtask android`: the archive for each processor of Android, as programs link it: one object in which only the
//! functions of the header are global, and which asks of Android no more than the oldest version has that runs on it.
//!
//! Nothing is linked to a program here, so no NDK is needed; where `ANDROID_NDK` names one, its linker and objcopy are taken.

mod calls;
mod symbols;

use crate::abis::{self, ABIS, Abi, Made};
use crate::elsewhere::Standard;
use crate::run::{Outcome, at_once, cargo, command, output_of, root, run};
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command: all of them, or those named.
pub fn main(mut args: pico_args::Arguments) -> Outcome {
    let features: &[&str] = if args.contains("--jni") { &["jni"] } else { &[] };
    let names: Option<Vec<String>> = args.finish().into_iter().map(|name| name.into_string().ok()).collect();
    build(&chosen(&names.ok_or("an ABI's name is no text")?)?, features)
}

/// The archive of one, as all are made.
pub fn archive(abi: &'static Abi, made: &'static Made) -> Outcome<PathBuf> {
    Tools::find()?.archive(abi, made, &standard(&(abi, made))?, &[])
}

/// Builds and checks all with the features named; gives the folder that they are in.
pub fn with_features(features: &[&str]) -> Outcome<PathBuf> {
    build(&all().collect::<Vec<_>>(), features)?;
    Ok(folder(features))
}

/// What is made with other features does not get into the way of what is made without.
fn folder(features: &[&str]) -> PathBuf {
    features.iter().fold(abis::folder(), |folder, feature| folder.join(feature))
}

/// A processor whose archive is made here.
type Known = (&'static Abi, &'static Made);

/// All of them.
pub fn all() -> impl Iterator<Item = Known> {
    ABIS.iter().map(|abi| (abi, &abi.made))
}

fn chosen(names: &[String]) -> Outcome<Vec<Known>> {
    if names.is_empty() {
        return Ok(all().collect());
    }
    names.iter().map(|name| all().find(|(abi, _)| abi.name == name).ok_or_else(|| unknown(name))).collect()
}

fn unknown(name: &str) -> String {
    let known = all().map(|(abi, _)| abi.name).collect::<Vec<_>>().join(", ");
    format!("no ABI `{name}`: there are {known}")
}

fn build(abis: &[Known], features: &[&str]) -> Outcome {
    calls::check()?;
    let tools = Tools::find()?;
    // What is installed is installed by one after the other.
    let ready = abis.iter().map(|known| Ok((*known, standard(known)?))).collect::<Outcome<Vec<_>>>()?;
    let lines = at_once(&ready, |((abi, made), standard)| {
        let archive = tools.archive(abi, made, standard, features)?;
        tools.exports(&archive)?;
        let undefined = output_of(command(&tools.nm).arg("--undefined-only").arg(&archive))?;
        let checked = symbols::check(&undefined, made.processor, abi.api);
        let (strong, weak) = checked.map_err(|error| format!("{}: {error}", abi.name))?;
        let bytes = std::fs::metadata(&archive).map_err(|error| format!("{}: {error}", archive.display()))?.len();
        Ok(format!("{} {bytes} bytes, needs {strong} symbols of API {}, {weak} newer\n", archive.display(), abi.api))
    })?;
    print!("{}", lines.concat());
    Ok(())
}

/// What is there of Rust for one.
fn standard((abi, made): &Known) -> Outcome<Standard> {
    let lacks = format!("{}: `rustup target add {}` brings what Rust lacks for it", abi.name, made.triple);
    Standard::of(made.triple).map_err(|error| format!("{lacks}, or: {error}"))
}

/// What takes archives apart and makes them anew.
struct Tools {
    ld: PathBuf,
    objcopy: PathBuf,
    ar: PathBuf,
    nm: PathBuf,
}

impl Tools {
    /// The NDK's, or the system's.
    fn find() -> Outcome<Tools> {
        tools::ensure_packages(&[tools::CMAKE])?;
        let folder = match std::env::var_os("ANDROID_NDK").filter(|ndk| !ndk.is_empty()) {
            Some(ndk) => ndk_tools(Path::new(&ndk))?,
            None => {
                tools::ensure_packages(&[tools::LLVM])?;
                PathBuf::new()
            }
        };
        let [ld, objcopy, ar, nm] = ["ld.lld", "llvm-objcopy", "llvm-ar", "llvm-nm"].map(|tool| folder.join(tool));
        Ok(Tools { ld, objcopy, ar, nm })
    }

    /// Built by the toolchain or another compiler, then localised by what CMake does it with.
    fn archive(&self, abi: &Abi, made: &Made, standard: &Standard, features: &[&str]) -> Outcome<PathBuf> {
        let archive = abi.archive_in(&self::folder(features));
        let mut build = command("cmake");
        standard.prepare(&mut build);
        build.env("RUSTFLAGS", "-Cforce-frame-pointers=yes");
        let define = |build: &mut Command, name: &str, value: &Path| {
            build.arg(format!("-D{name}={}", value.display()));
        };
        define(&mut build, "CARGO", Path::new(standard.cargo().unwrap_or(cargo().get_program())));
        let mut arguments = standard.arguments("core").unwrap_or_default().to_string();
        if !features.is_empty() {
            arguments += &format!(" --features {}", features.join(","));
        }
        build.arg(format!("-DCARGO_ARGS={arguments}"));
        build.arg(format!("-DTRIPLE={}", made.triple)).arg(format!("-DEMULATION={}", made.emulation));
        define(&mut build, "MANIFEST", &root().join("Cargo.toml"));
        define(&mut build, "HEADER", &header());
        define(&mut build, "TARGET_DIR", &abis::folder().join("cargo").join(abi.name));
        define(&mut build, "ARCHIVE", &archive);
        define(&mut build, "LINKER", &self.ld);
        define(&mut build, "OBJCOPY", &self.objcopy);
        define(&mut build, "AR", &self.ar);
        run(build.arg("-P").arg(root().join("cmake/build-archive.cmake")))?;
        Ok(archive)
    }

    /// Fails unless exactly the header's functions are global.
    fn exports(&self, archive: &Path) -> Outcome {
        let mut check = command("cmake");
        check.arg(format!("-DNM={}", self.nm.display())).arg(format!("-DARCHIVE={}", archive.display()));
        run(check.arg(format!("-DHEADER={}", header().display())).arg("-P").arg(root().join("tests/c/exports.cmake")))
    }
}

fn header() -> PathBuf {
    root().join("include/blockcanary.h")
}

/// Where an NDK has them.
fn ndk_tools(ndk: &Path) -> Outcome<PathBuf> {
    let hosts = ndk.join("toolchains/llvm/prebuilt");
    let folders =
        std::fs::read_dir(&hosts).map_err(|_| format!("ANDROID_NDK is {}: no NDK is there", ndk.display()))?;
    let found = folders.filter_map(|host| Some(host.ok()?.path().join("bin"))).find(|bin| bin.join("ld.lld").exists());
    found.ok_or_else(|| format!("ANDROID_NDK is {}, an NDK without ld.lld: needs r23 or newer", ndk.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_use_is_told() {
        let told = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            chosen(&names).map(|abis| abis.iter().map(|(abi, _)| abi.name).collect::<Vec<_>>())
        };
        assert_eq!(told(&[]).unwrap(), ["arm64-v8a", "armeabi-v7a", "x86_64", "x86", "riscv64"]);
        assert_eq!(told(&["x86"]).unwrap(), ["x86"]);
        assert_eq!(
            told(&["x86", "mips"]).unwrap_err(),
            "no ABI `mips`: there are arm64-v8a, armeabi-v7a, x86_64, x86, riscv64"
        );
        assert_eq!(ndk_tools(Path::new("/none")).unwrap_err(), "ANDROID_NDK is /none: no NDK is there");
    }
}
