//! Every chore of the project as a command: `cargo xtask <command>`.

mod aar;
mod aarch64;
mod abis;
mod bench;
mod bionic;
mod cmake;
mod contract;
mod demo;
mod dist;
mod documents;
mod elsewhere;
mod header;
mod reports;
mod run;
mod test;
mod tools;
mod tsan;
mod zipped;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  demo      build and run the example engine, show what is reported of it
  test      all tests: format, lints, header, Rust, C, those of `aarch64` (without: --no-aarch64); with those of
            `bionic`: --bionic ROOTFS
  aarch64   the tests for 64-bit ARM alone, under qemu
  bionic    C tests on Android's own C library, natively: bionic ROOTFS, a folder with system/bin/linker64
  tsan      C tests of what threads share, under ThreadSanitizer
  aar       a package for Gradle in target/aar, from target/android/<abi>/libblockcanary.a
  dist      what is handed out, in target/dist: package of CMake, archives, that package, with checksums
  bench     what a mark and a watched looper round cost
  reports   are all reports below a folder what they should be: reports FOLDER
  header    write include/blockcanary.h; with --verify: fail if it is not up to date";

fn main() -> ExitCode {
    let mut args = pico_args::Arguments::from_env();
    let outcome = match args.subcommand() {
        Ok(Some(command)) => match command.as_str() {
            "demo" => demo::main(args),
            "dist" => dist::main(args),
            "aar" => aar::main(args),
            "aarch64" => aarch64::main(args),
            "bionic" => bionic::main(args),
            "test" => test::main(args),
            "tsan" => tsan::main(args),
            "bench" => bench::main(args),
            "reports" => reports::main(args),
            "header" => header::main(args),
            _ => Err(format!("no command `{command}`\n\n{USAGE}")),
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
