//! Signals that a thread gets for what it writes, and which end the program where they are not expected: SIGPIPE without a
//! reader, SIGXFSZ beyond `RLIMIT_FSIZE`. The library's own threads block all signals; this is for calls on a thread of the
//! program's.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;

/// While this lives, the calling thread's writes fail and no such signal comes of it. They end in the reverse order of their
/// begin.
pub struct Shield {
    signal: c_int,
    before: libc::sigset_t,
    /// It waits, and is not ours to take.
    stays: bool,
}

impl Shield {
    /// From now on.
    pub fn from(signal: c_int) -> Shield {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: live places for sets of bits, zeroed at least.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), signal);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            libc::sigpending(pending.as_mut_ptr());
            let stays = libc::sigismember(pending.as_ptr(), signal) == 1;
            Shield { signal, before: before.assume_init(), stays }
        }
    }

    /// Ends it. A signal that waits by now is taken only if one `was_raised`: else somebody else has sent it.
    pub fn end(mut self, was_raised: bool) {
        self.stays |= !was_raised;
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        if !self.stays {
            // As the kernel has sets of signals; the C library's call for this is not in every Android.
            let set = 1u64 << (self.signal - 1);
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
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
        // SAFETY: the mask that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}
