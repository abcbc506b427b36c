//! Event descriptors.
#![allow(unsafe_code)]

use super::descriptors;
use super::errno::{Errno, check};

/// A new one; the caller closes it.
pub fn open() -> Result<i32, Errno> {
    // SAFETY: takes numbers.
    let fd = check(i64::from(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }))? as i32;
    descriptors::opened(fd);
    Ok(fd)
}

/// Rings it.
pub fn ring(fd: i32) {
    let one = 1u64;
    // SAFETY: eight bytes of ours.
    unsafe { libc::write(fd, (&raw const one).cast(), size_of::<u64>()) };
}

/// Takes what has been rung.
pub fn take(fd: i32) {
    let mut count = 0u64;
    // SAFETY: eight bytes of ours.
    unsafe { libc::read(fd, (&raw mut count).cast(), size_of::<u64>()) };
}

/// Closes it.
pub fn close(fd: i32) {
    if !descriptors::closes(fd) {
        return;
    }
    // SAFETY: the caller has it from `open` and does not use it after this.
    unsafe { libc::close(fd) };
}

/// Is a system call one that waits for an epoll descriptor, its first argument?
pub fn is_epoll_wait(number: u32) -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm"))]
    const WAITS: [libc::c_long; 2] = [libc::SYS_epoll_wait, libc::SYS_epoll_pwait];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm")))]
    const WAITS: [libc::c_long; 1] = [libc::SYS_epoll_pwait];
    WAITS.contains(&(number as libc::c_long))
}
