//! Which signals a thread holds back, and which wait for it, as the kernel has them: 64 bits, bit 0 is signal 1.
//!
//! Not by the C library's sets: on 32-bit Android those have room for the first 32 signals only, so a mask that was taken
//! and put back by them would let all others through.
#![allow(unsafe_code)]

use core::ptr;

/// A set of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask(pub u64);

impl Mask {
    /// One signal.
    pub fn of(number: i32) -> Mask {
        Mask(u32::try_from(number - 1).ok().and_then(|bit| 1u64.checked_shl(bit)).unwrap_or(0))
    }

    /// All that programs may hold back. Those below SIGRTMIN are the C library's own, which it does without badly.
    pub fn everything() -> Mask {
        Mask(Mask::real_time().0 | u64::from(u32::MAX >> 1))
    }

    /// SIGRTMIN to SIGRTMAX.
    pub fn real_time() -> Mask {
        (libc::SIGRTMIN()..=libc::SIGRTMAX()).fold(Mask(0), |all, number| Mask(all.0 | Mask::of(number).0))
    }

    /// Is it one of them?
    pub fn has(self, number: i32) -> bool {
        self.0 & Mask::of(number).0 != 0
    }
}

/// What the calling thread holds back.
pub fn blocked() -> Mask {
    change(libc::SIG_BLOCK, None)
}

/// The calling thread holds these back, too; gives what it did before.
pub fn block(more: Mask) -> Mask {
    change(libc::SIG_BLOCK, Some(more))
}

/// The calling thread holds these back and no others.
pub fn put_back(before: Mask) {
    change(libc::SIG_SETMASK, Some(before));
}

fn change(how: i32, new: Option<Mask>) -> Mask {
    let mut before = 0u64;
    let new = new.map(|mask| mask.0);
    let new = new.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the new set is live or null, the old one is ours.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, how as libc::c_long, new, &raw mut before, size_of::<u64>());
    }
    Mask(before)
}

/// What waits to be let through, for the calling thread or the process.
pub fn pending() -> Mask {
    let mut pending = 0u64;
    // SAFETY: the set is ours.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut pending, size_of::<u64>()) };
    Mask(pending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;

    #[test]
    fn a_late_signal_is_held_back_and_let_through_again() {
        // An emulator has fewer than it says.
        let last = libc::SIGRTMAX() - 3;
        let before = blocked();
        assert!(!before.has(last));
        assert_eq!(block(Mask::of(last)), before);
        assert_eq!(blocked(), Mask(before.0 | 1 << 60));
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: a live place; the mask is only asked for.
        let told = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), set.as_mut_ptr());
            libc::sigismember(set.as_ptr(), last)
        };
        assert_eq!(told, 1, "the C library sees another mask");
        // SAFETY: it is sent to this thread, which holds it back, and taken at once.
        unsafe {
            libc::pthread_kill(libc::pthread_self(), last);
            assert!(pending().has(last));
            libc::sigaddset(set.as_mut_ptr(), last);
            let mut taken = 0;
            libc::sigwait(set.as_ptr(), &mut taken);
            assert_eq!(taken, last);
        }
        put_back(before);
        assert_eq!((blocked(), pending()), (before, Mask(0)));
    }

    #[test]
    fn everything_is_all_but_the_c_librarys_own() {
        let everything = Mask::everything();
        assert!((1..32).all(|number| everything.has(number)) && everything.has(libc::SIGRTMAX()));
        assert!((32..libc::SIGRTMIN()).all(|number| !everything.has(number)));
        assert!(!everything.has(0) && !everything.has(65));
    }
}
