//! Processes, ours and others.
#![allow(unsafe_code)]

use super::errno::{Errno, check};
use super::procfs::{ProcFile, ThreadStat};
use arrayvec::ArrayString;
use core::ffi::CStr;
use core::fmt::Write;

/// Our own id.
pub use super::thread::pid as id;

/// Whether there is a process of this id. One that we may not signal is there, too.
pub fn is_alive(pid: i32) -> bool {
    // 0 and negative numbers would name groups of processes.
    // SAFETY: signal 0 is not sent, only checked.
    pid > 0 && check(unsafe { libc::kill(pid, 0) }.into()) != Err(Errno(libc::ESRCH))
}

/// When the process of this id began, in clock ticks since the machine did, where that can be read.
pub fn started(pid: i32) -> Option<u64> {
    let mut path = ArrayString::<32>::new();
    write!(path, "/proc/{pid}/stat\0").ok()?;
    let file = ProcFile::open(CStr::from_bytes_with_nul(path.as_bytes()).ok()?).ok()?;
    let mut text = [0; 1024];
    ThreadStat::parse(file.read(&mut text).ok()?).map(|stat| stat.start_time)
}

/// Whether there is a process of this id that began then. One whose begin cannot be read is taken for it.
pub fn lives_since(pid: i32, started_at: u64) -> bool {
    is_alive(pid) && started(pid).is_none_or(|started| started == started_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_begin() {
        let began = started(id()).unwrap();
        assert!(began > 0 && lives_since(id(), began) && !lives_since(id(), began + 1));
        assert!(!lives_since(0, began) && !lives_since(i32::MAX, began));
    }
}
