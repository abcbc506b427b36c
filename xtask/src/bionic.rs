//! The C tests on Android's own C library, natively: its x86_64 build runs on this kernel as it is.
//!
//! The root file system (a folder with `system/bin/linker64` and `system/lib64/libc.so`, of Android 7 or newer) is bound
//! on `/system` in a mount namespace of each program's own: nothing of this machine changes but that an empty `/system`
//! is made. There is no NDK here. The library is built for Android; the test programs are compiled with this system's
//! headers, and `tests/c/bionic/start.c` brings what is named otherwise. On x86_64 the types that they use are laid out
//! the same in both C libraries, but for those of `sigaction` and for the numbers that `sysconf` takes: tests that use
//! these run elsewhere, and so do those of fibers, for which Android has no functions.

mod prebuilt;

use crate::elsewhere::{PATIENCE_S, Program, Standard, World};
use crate::run::{Outcome, command, root, run};
use crate::tools;
use std::path::Path;

const SIGACTION: &str = "reads actions of signals by the other library's layout";
const LOOPER: &str = "a root file system need not have a looper";

const PROGRAMS: &[Program] = &[
    Program::of("arguments"),
    Program::of("directories"),
    Program::of("states"),
    Program::of("dispatches"),
    Program::of("listeners"),
    Program::of("reports"),
    Program::of("racing"),
    Program::of("chained"),
    Program::of("long_names"),
    Program::of("no_looper"),
    Program::of("main_gone"),
    Program::of("many_keys"),
    Program::of("big_tls"),
    Program::of("stopped"),
    Program { source: "cycles", more: &[], cannot: &[("leave_nothing", SIGACTION), ("masked_signals", SIGACTION)] },
    Program { source: "precision", more: &[], cannot: &[("spinning", "the other one is the short one")] },
    Program::of("stacks/methods"),
    Program::of("stacks/hot"),
    Program {
        source: "stacks/waits",
        more: &["stacks/chain_odd", "stacks/chain_even", "bionic/looper"],
        cannot: &[("looper", LOOPER)],
    },
];

/// The command that runs nothing else.
pub fn main(mut args: pico_args::Arguments) -> Outcome {
    let root: String = args.free_from_str().map_err(|_| "usage: cargo xtask bionic ROOTFS".to_string())?;
    crate::nothing_left(args)?;
    check(&root)
}

/// Builds and runs them on the C library below `rootfs`.
pub fn check(rootfs: &str) -> Outcome {
    let rootfs = std::path::absolute(rootfs).map_err(|error| format!("{rootfs}: {error}"))?;
    let libraries = rootfs.join("system/lib64");
    for file in [rootfs.join("system/bin/linker64"), libraries.join("libc.so")] {
        if !file.exists() {
            return Err(format!("no root file system of Android for x86_64: there is no {}", file.display()));
        }
    }
    tools::ensure_packages(&[tools::PACKAGES, tools::LINKER, tools::RUST_SOURCE, tools::BIONIC])?;
    std::fs::create_dir_all("/system").map_err(|error| format!("needs an empty folder /system: {error}"))?;
    let world = World {
        triple: "x86_64-linux-android",
        standard: Standard::Made,
        name: "bionic",
        compiler: compiler(),
        libraries: link_with(&libraries),
        runner: runner(&rootfs)?,
        flags: "",
        patience_s: PATIENCE_S,
    };
    world.build_archive()?;
    PROGRAMS.iter().try_for_each(|program| world.test(program))?;
    prebuilt::check(world)
}

fn link_with(libraries: &Path) -> Vec<String> {
    let mut arguments = vec![format!("-L{}", libraries.display())];
    arguments.extend(["-lc", "-ldl", "-lm"].map(str::to_owned));
    arguments
}

fn compiler() -> Vec<String> {
    let start = root().join("tests/c/bionic/start.c").display().to_string();
    // Headers of this system; functions of <ctype.h> instead of its tables.
    let words = "clang --target=x86_64-linux-android21 -fuse-ld=lld -nostdlib -fPIE -pie \
        -isystem /usr/include -isystem /usr/include/x86_64-linux-gnu -isystem /usr/include/android -D__NO_CTYPE \
        -Wl,-dynamic-linker,/system/bin/linker64 -Wl,--hash-style=both -Wl,--gc-sections -Wl,--allow-shlib-undefined \
        -Wl,--no-undefined -Wl,--eh-frame-hdr -Wl,--build-id";
    words.split_whitespace().map(str::to_owned).chain([start]).collect()
}

/// A mount namespace of its own, in which the root file system's `/system` is the system's. Without root, a user
/// namespace goes with it.
fn runner(rootfs: &Path) -> Outcome<Vec<String>> {
    let script = "mount --bind \"$0/system\" /system && export ANDROID_ROOT=/system ANDROID_DATA=/data && exec \"$@\"";
    for flags in ["-m", "-rm"] {
        let mut words = vec!["unshare".to_owned(), flags.to_owned(), "sh".to_owned(), "-c".to_owned()];
        words.extend([script.to_owned(), rootfs.display().to_string()]);
        if run(command(&words[0]).args(&words[1..]).arg("true")).is_ok() {
            return Ok(words);
        }
    }
    Err("may not make a mount namespace here: run as root, or where unshare -rm works".to_string())
}
