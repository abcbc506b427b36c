//! Every chore of the project as a command: `cargo xtask <command>`.

mod aar;
mod abis;
mod android;
mod bench;
mod beside;
mod bionic;
mod cmake;
mod contract;
mod demo;
mod dist;
mod documents;
mod elsewhere;
mod header;
mod java;
mod machines;
mod reports;
mod run;
mod size;
mod test;
mod tools;
mod tsan;
mod zipped;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  demo      build and run the example engine, show what is reported of it
  test      all tests: format, lints, header, Rust, C, those of `java` (without: --no-java), what `dist` makes
            (without: --no-android), those for other processors (without: --no-machines); with those of `bionic`: --bionic ROOTFS
  aarch64   the tests for 64-bit ARM alone, under qemu; --quick: as a part of `test`; so for the next two
  armv7     the tests for 32-bit ARM alone, under qemu
  i686      the tests for 32-bit x86 alone, natively
  riscv64   the tests for 64-bit RISC-V, under qemu; no part of `test`
  bionic    C tests on Android's own C library, natively: bionic ROOTFS, a folder with system/bin/linker64
  android   archives for Android below target/android: android [--jni] [ABI...], all without; --jni: with bc_java_watch,
            below target/android/jni; ANDROID_NDK may name an NDK
  java      tests with the feature jni, on a Java VM with Android's own Looper; fetches Android's classes and R8 by Maven;
            with --dex: write src/hook/java/hook.dex
  beside    programs with other Rust libraries in them, of two compilers, by three linkers
  tsan      C tests of what threads share, under ThreadSanitizer
  aar       a package for Gradle in target/aar: archives for Android with the feature jni, and the Java face
  dist      what is handed out, in target/dist: package of CMake, archives, that package, with checksums
  bench     what a mark and a watched looper round cost; with --java: what a message of Java's costs
  size      what a library for Android grows by: writes docs/size.md
  reports   are all reports below a folder what they should be: reports FOLDER
  header    write include/blockcanary.h; with --verify: fail if it is not up to date";

fn main() -> ExitCode {
    let mut args = pico_args::Arguments::from_env();
    let outcome = match args.subcommand() {
        Ok(Some(command)) => match command.as_str() {
            "java" => java::main(args),
            "demo" => demo::main(args),
            "android" => android::main(args),
            "dist" => dist::main(args),
            "aar" => aar::main(args),
            "beside" => beside::main(args),
            "bionic" => bionic::main(args),
            "test" => test::main(args),
            "tsan" => tsan::main(args),
            "size" => size::main(args),
            "bench" => bench::main(args),
            "reports" => reports::main(args),
            "header" => header::main(args),
            other => match machines::named(other) {
                Some(machine) => machine.main(args),
                None => Err(format!("no command `{command}`\n\n{USAGE}")),
            },
        },
        _ => Err(USAGE.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Fails when arguments are left that no one has asked for.
fn nothing_left(args: pico_args::Arguments) -> run::Outcome {
    let rest = args.finish();
    if rest.is_empty() { Ok(()) } else { Err(format!("what is {rest:?}?\n\n{USAGE}")) }
}
