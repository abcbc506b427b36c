//! Processes, ours and others.
#![allow(unsafe_code)]

use super::errno::{Errno, check};

/// Our own id.
pub fn id() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getpid() }
}

/// Whether there is a process of this id. One that we may not signal is there, too.
pub fn is_alive(pid: i32) -> bool {
    // 0 and negative numbers would name groups of processes.
    // SAFETY: signal 0 is not sent, only checked.
    pid > 0 && check(unsafe { libc::kill(pid, 0) }.into()) != Err(Errno(libc::ESRCH))
}
