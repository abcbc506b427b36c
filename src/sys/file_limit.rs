//! The signal that a thread gets who writes more than `RLIMIT_FSIZE` lets a file hold, and which ends the program where it
//! is not expected. The library's own threads block all signals; this is for calls on a thread of the program's.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ptr;

/// While this lives, the calling thread's writes fail with EFBIG and nothing else.
pub struct Shield {
    before: libc::sigset_t,
    /// It waited before us, and is not ours to take.
    was_pending: bool,
}

impl Shield {
    /// From now on.
    pub fn new() -> Shield {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: live places for sets of bits, zeroed at least.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            libc::sigpending(pending.as_mut_ptr());
            let was_pending = libc::sigismember(pending.as_ptr(), libc::SIGXFSZ) == 1;
            Shield { before: before.assume_init(), was_pending }
        }
    }
}

impl Default for Shield {
    fn default() -> Shield {
        Shield::new()
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        if !self.was_pending {
            // As the kernel has sets of signals; the C library's call for this is not in every Android.
            let set = 1u64 << (libc::SIGXFSZ - 1);
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
