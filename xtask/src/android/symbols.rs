//! What an archive needs of Android's C library, held against what that has (`xtask/data/bionic.txt`).
//!
//! A library with a strong reference to what is younger than the system is not loaded at all there.

use crate::run::Outcome;

static TABLE: &str = include_str!("../../data/bionic.txt");

/// Fails on the first symbol that Android lacks at this API level, by the output of `nm --undefined-only`. A weak one may be
/// younger, but there must be such. Gives how many are there, and how many are younger.
pub fn check(undefined: &str, processor: &str, oldest: u32) -> Outcome<(usize, usize)> {
    let (mut there, mut younger) = (0, 0);
    for line in undefined.lines() {
        let mut words = line.split_whitespace().rev();
        let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
        let is_weak = match kind {
            "U" => false,
            "w" | "v" => true,
            _ => continue,
        };
        // Made by the linker that links the program.
        if name == "_GLOBAL_OFFSET_TABLE_" {
            continue;
        }
        match level(name, processor) {
            Some(level) if level <= oldest => there += 1,
            Some(_) if is_weak => younger += 1,
            Some(level) => return Err(format!("{name} comes with API {level} and must be weak or found by dlsym")),
            None => return Err(format!("{name} is nothing that Android's C library has on {processor}")),
        }
    }
    if there == 0 {
        Err("nothing undefined: this is no archive of the library".to_string())
    } else {
        Ok((there, younger))
    }
}

/// The API level from which on a symbol is there.
fn level(name: &str, processor: &str) -> Option<u32> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (level, processors) = (words.next()?.parse().ok()?, words.next()?);
            let is_here = processors == "all" || processors.split(',').any(|known| known == processor);
            (is_here && words.any(|known| known == name)).then_some(level)
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(line: &str) -> Outcome<(usize, usize)> {
        check(&format!("blockcanary.o:\n                 U write\n{line}\n"), "arm", 21)
    }

    #[test]
    fn what_is_old_enough_passes() {
        assert_eq!(checked("                 U pthread_create"), Ok((2, 0)));
        assert_eq!(checked("                 w getrandom"), Ok((1, 1)));
        assert_eq!(checked("                 w gettid"), Ok((2, 0)));
    }

    #[test]
    fn what_is_young_or_unknown_fails() {
        for (line, told) in [
            ("U getrandom", "getrandom comes with API 28 and must be weak or found by dlsym"),
            ("U process_vm_readv", "process_vm_readv comes with API 23 and must be weak or found by dlsym"),
            ("U rust_eh_personality", "rust_eh_personality is nothing that Android's C library has on arm"),
            ("w no_such_thing", "no_such_thing is nothing that Android's C library has on arm"),
        ] {
            assert_eq!(checked(line), Err(told.to_string()));
        }
        assert!(check("", "arm", 21).is_err());
    }

    #[test]
    fn levels_depend_on_the_processor() {
        assert_eq!((level("prlimit", "arm64"), level("prlimit", "arm")), (Some(21), Some(24)));
        assert_eq!((level("__aeabi_memcpy", "arm"), level("__aeabi_memcpy", "x86")), (Some(24), None));
        assert_eq!((level("ns_get16", "riscv64"), level("ns_get16", "x86")), (Some(22), None));
        assert_eq!(level("dl_iterate_phdr", "x86"), Some(21));
    }
}
