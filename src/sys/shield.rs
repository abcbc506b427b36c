//! Signals that a thread gets for what it writes, and which end the program where they are not expected: SIGPIPE without a
//! reader, SIGXFSZ beyond `RLIMIT_FSIZE`. The library's own threads block all signals; this is for calls on a thread of the
//! program's.
#![allow(unsafe_code)]

use super::clock::KernelTime;
use super::mask::{self, Mask};
use core::ffi::c_int;
use core::ptr;

/// While this lives, the calling thread's writes fail and no such signal comes of it. They end in the reverse order of their
/// begin.
pub struct Shield {
    signal: c_int,
    before: Mask,
    /// It waits, and is not ours to take.
    stays: bool,
}

impl Shield {
    /// From now on.
    pub fn from(signal: c_int) -> Shield {
        let before = mask::block(Mask::of(signal));
        Shield { signal, before, stays: mask::pending().has(signal) }
    }

    /// Ends it. A signal that waits by now is taken only if one `was_raised`: else somebody else has sent it.
    pub fn end(mut self, was_raised: bool) {
        self.stays |= !was_raised;
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        if !self.stays {
            // The C library's call for this is not in every Android.
            let set = Mask::of(self.signal).0;
            let at_once = KernelTime::of(0);
            // SAFETY: takes the signal if it waits; set and time are live, nothing is written.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_sigtimedwait,
                    &raw const set,
                    ptr::null_mut::<libc::siginfo_t>(),
                    &raw const at_once,
                    size_of::<u64>(),
                )
            };
        }
        mask::put_back(self.before);
    }
}
