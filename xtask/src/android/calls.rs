//! The system calls that the library makes itself. Since Android 8 a program is killed for one that its filter does not list,
//! so each must be in the filters of all versions.

use crate::run::{Outcome, root};
use std::path::Path;

/// In the filter for programs of every version from Android 8 on, on all processors. Before that there was no filter, and a
/// call that the kernel lacks says so.
const ALLOWED: [&str; 12] = [
    "futex",
    "getdents64",
    "gettid",
    "nanosleep",
    "process_vm_readv",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigtimedwait",
    "tgkill",
    "timer_create",
    "timer_delete",
    "timer_settime",
];

/// Fails on the first call that is not listed.
pub fn check() -> Outcome {
    let mut found = 0;
    below(&root().join("src"), &mut |path, text| {
        for name in made(text) {
            found += 1;
            if !ALLOWED.contains(&name) {
                return Err(format!("{}: the system call {name} may not be allowed on Android", path.display()));
            }
        }
        Ok(())
    })?;
    if found == 0 { Err("no system call found in src".to_string()) } else { Ok(()) }
}

/// Names of the calls in a source text, but for its tests; one that cannot be read gives a name that no call has.
fn made(text: &str) -> impl Iterator<Item = &str> {
    let product = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    product.split("libc::syscall(").skip(1).map(|after| {
        let number = after.trim_start().strip_prefix("libc::SYS_").unwrap_or("whose number is not a constant");
        number.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next().unwrap_or_default()
    })
}

fn below(folder: &Path, each: &mut dyn FnMut(&Path, &str) -> Outcome) -> Outcome {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.is_dir() {
            below(&path, each)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&path, &std::fs::read_to_string(&path).map_err(told)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_calls_are_allowed() {
        check().unwrap();
    }

    #[test]
    fn calls_are_found_in_text() {
        let text = "libc::syscall(libc::SYS_gettid); libc::syscall(\n  libc::SYS_openat2, 1); libc::syscall(number)\n#[cfg(test)]\nlibc::syscall(libc::SYS_x)";
        assert_eq!(made(text).collect::<Vec<_>>(), ["gettid", "openat2", "whose"]);
        assert!(!ALLOWED.contains(&"openat2"));
    }
}
