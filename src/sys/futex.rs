//! Waiting for a word to change, and telling its waiters.
#![allow(unsafe_code)]

use super::clock::KernelTime;
use core::ptr;
use core::sync::atomic::AtomicU32;

/// Sleeps while `word` is `expected`, at most this long; may return early. `None`: no limit.
pub fn wait(word: &AtomicU32, expected: u32, timeout_ns: Option<u64>) {
    let limit = timeout_ns.map(KernelTime::of);
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is live for the call; the kernel reads it and the limit.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, expected, limit)
    };
}

/// Wakes all who wait for `word`.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: waking takes the address as a name only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX) };
}
