//! Who holds the lock behind a futex, as far as the C library's own lock keeps it.
//!
//! A futex is only an address. glibc's mutex keeps its owner two words behind the lock word; bionic's only where it is
//! recursive or checks errors; a lock with priority inheritance has the owner in the lock word, by the kernel's rule. A
//! join waits for the word that the kernel clears when the thread ends, and that holds its id. What any other lock keeps
//! there is not known, so that an owner counts only if it is a living thread of this process.

use super::calls::{self, Kind};
use crate::sys::procfs::SystemCall;
use crate::unwind::memory::Memory;

/// What a thread that waits on a futex waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The thread that has to go on.
    pub tid: i32,
    /// By ending, not by giving up a lock.
    pub is_join: bool,
}

/// Bits of a lock word that hold a thread id, where it holds one.
const TID: u32 = 0x3fff_ffff;
/// The bit that says that others wait.
const WAITERS: u32 = 0x8000_0000;
/// Operations of the call.
const WAIT: u64 = 0;
const WAIT_BITSET: u64 = 9;
const LOCK_PI: [u64; 2] = [6, 13];
/// The bit of the operation that says that no other process takes part. A thread's end is told to all processes.
const PRIVATE: u64 = 128;

/// Finds the owner, if the call waits on a futex. `is_thread` says whether there is a living thread of this process with an id.
pub fn of(call: &SystemCall, memory: &impl Memory, is_thread: impl Fn(i32) -> bool) -> Option<Owner> {
    if calls::find(call.0)?.kind != Kind::Futex {
        return None;
    }
    let [address, operation, expected, timeout, ..] = call.1;
    let (is_private, operation, expected) = (operation & PRIVATE != 0, operation & 0x7f, expected as u32);
    let word = memory.u32(address)?;
    let owner = |tid: u32| i32::try_from(tid & TID).ok().filter(|tid| *tid > 0 && is_thread(*tid));
    if LOCK_PI.contains(&operation) {
        return owner(word).map(|tid| Owner { tid, is_join: false });
    }
    // What was waited for has come already.
    if operation != WAIT && operation != WAIT_BITSET || word != expected {
        return None;
    }
    // A robust mutex.
    if word & WAITERS != 0 {
        return owner(word).map(|tid| Owner { tid, is_join: false });
    }
    if let Some(tid) = owner(word).filter(|_| word > 2) {
        return Some(Owner { tid, is_join: !is_private });
    }
    // With a bit set the C library waits for locks with a time limit only; other libraries' locks do without.
    let is_mutex = operation == WAIT || timeout != 0;
    let tid = if is_mutex { owner(mutex_owner(memory, address, word)?)? } else { return None };
    Some(Owner { tid, is_join: false })
}

#[cfg(target_env = "gnu")]
fn mutex_owner(memory: &impl Memory, address: u64, word: u32) -> Option<u32> {
    // 2 is: locked, and others wait.
    if word != 2 { None } else { memory.u32(address.checked_add(8)?) }
}

#[cfg(target_os = "android")]
fn mutex_owner(memory: &impl Memory, address: u64, word: u32) -> Option<u32> {
    // Bits 0 and 1 say whether it is locked, 14 and 15 of which type it is: 1 recursive, 2 error-checking.
    if word & 3 == 0 || !matches!(word >> 14 & 3, 1 | 2) {
        return None;
    }
    if cfg!(target_pointer_width = "64") { memory.u32(address.checked_add(4)?) } else { Some(word >> 16) }
}

#[cfg(not(any(target_env = "gnu", target_os = "android")))]
fn mutex_owner(_: &impl Memory, _: u64, _: u32) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::memory::Copied;

    struct Nothing;
    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    fn owner(words: [u32; 3], operation: u64, expected: u32, timeout: u64) -> Option<Owner> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let memory = Copied { base: 0x1000, bytes: &bytes, rest: Nothing };
        of(&(libc::SYS_futex as u32, [0x1000, operation, expected.into(), timeout, 0, 0]), &memory, |tid| tid == 77)
    }

    #[test]
    fn owners() {
        let holds = Some(Owner { tid: 77, is_join: false });
        // Priority inheritance, with and without waiters.
        assert_eq!(owner([77, 0, 0], 6 | 128, 0, 0), holds);
        assert_eq!(owner([77 | WAITERS, 0, 0], 13 | 128, 0, 0), holds);
        assert_eq!(owner([78, 0, 0], 6, 0, 0), None);
        // Robust.
        assert_eq!(owner([77 | WAITERS, 0, 0], 128, 77 | WAITERS, 0), holds);
        // A join.
        assert_eq!(owner([77, 0, 0], 9 | 256, 77, 0), Some(Owner { tid: 77, is_join: true }));
        // The word has changed; another operation; no memory.
        assert_eq!(owner([0, 0, 77], 128, 2, 0), None);
        assert_eq!(owner([2, 0, 77], 1, 2, 0), None);
        assert_eq!(of(&(libc::SYS_futex as u32, [0x5000, 0, 2, 0, 0, 0]), &Nothing, |_| true), None);
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn a_mutex_of_glibc() {
        let holds = Some(Owner { tid: 77, is_join: false });
        assert_eq!(owner([2, 1, 77], 128, 2, 0), holds);
        assert_eq!(owner([2, 1, 78], 128, 2, 0), None);
        // With a time limit it waits by a bit set, and so does much else without one.
        assert_eq!(owner([2, 1, 77], 9 | 128 | 256, 2, 0x7000), holds);
        assert_eq!(owner([2, 1, 77], 9 | 128, 2, 0), None);
        // A semaphore or a condition.
        assert_eq!(owner([0, 1, 77], 9 | 128, 0, 0), None);
    }
}
