//! Opening files of `/proc` that belong to root because the process is not dumpable, as release apps are.
#![allow(unsafe_code)]

use super::counters::DUMPABLE_WINDOWS;
use super::errno::Errno;
use super::procfs::ProcFile;
use core::ffi::CStr;

/// Opens a file as things are; where that is refused because the process is not dumpable, and `may_change`, makes it
/// dumpable for the moment of the opening. The descriptor keeps working afterwards.
///
/// Whatever others do meanwhile, 0 is what is put back, because 0 is what was read: two threads that each restored what
/// they had read would restore each other's 1. A value of 2 is never touched.
pub fn open(path: &CStr, may_change: bool) -> Result<ProcFile, Errno> {
    for _ in 0..3 {
        match ProcFile::open(path) {
            Err(Errno(libc::EACCES)) => {}
            other => return other,
        }
        match get() {
            0 if may_change => {
                set(1);
                let opened = ProcFile::open(path);
                set(0);
                DUMPABLE_WINDOWS.add_one();
                return opened;
            }
            // Somebody else's window has just been open, or is.
            1 => {}
            _ => break,
        }
    }
    Err(Errno(libc::EACCES))
}

fn get() -> i32 {
    // SAFETY: takes a number.
    unsafe { libc::prctl(libc::PR_GET_DUMPABLE) }
}

fn set(value: libc::c_ulong) {
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, value) };
}
