//! Am I the process that installed the library, or a child of it?
//!
//! Two marks tell, without a handler of `pthread_atfork`. A page that the kernel wipes in a child: it holds even for a
//! late descendant that was given the installer's process id again. And the process id: a kernel before 4.14 cannot
//! wipe, and an emulator of another processor says that it will and does not. The page is static, so that a late look at
//! it is harmless.
#![allow(unsafe_code)]

use super::thread;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering::*};

// Twice the largest page there is, so that one whole page lies inside wherever the loader puts it: loaders of old
// systems do not honour an alignment above 4 KiB. It costs address space, not memory.
const LARGEST_PAGE: usize = 1 << 16;
static AREA: [AtomicU32; 2 * LARGEST_PAGE / 4] = [const { AtomicU32::new(0) }; _];

static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
static INSTALLER: AtomicI32 = AtomicI32::new(0);

fn page() -> (*mut AtomicU32, usize) {
    // SAFETY: sysconf takes a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let size = usize::try_from(size).unwrap_or(4096).clamp(4096, LARGEST_PAGE);
    let start = AREA.as_ptr().cast_mut();
    (start.map_addr(|address| address.next_multiple_of(size)), size)
}

/// From now on this process is the one.
pub fn claim() {
    let (word, size) = page();
    // SAFETY: the page lies within AREA, which nothing else uses.
    unsafe {
        libc::madvise(word.cast(), size, libc::MADV_WIPEONFORK);
        (*word).store(1, Relaxed);
    }
    INSTALLER.store(thread::pid(), Relaxed);
    WORD.store(word, Release);
}

/// This process is a child of one that used the library.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// It has been found out that it is.
pub fn note_child() {
    IS_CHILD.store(true, Relaxed);
}

/// Is it known to be one? Locks of the C library may be held for ever in such a process.
pub fn is_child() -> bool {
    IS_CHILD.load(Relaxed)
}

/// Nobody is.
pub fn release() {
    let (word, size) = page();
    // SAFETY: as in `claim`.
    unsafe {
        (*word).store(0, Relaxed);
        libc::madvise(word.cast(), size, libc::MADV_KEEPONFORK);
    }
    INSTALLER.store(0, Relaxed);
}

/// Is this the process that claimed it?
pub fn is_claimant() -> bool {
    let word = WORD.load(Acquire);
    if word.is_null() {
        return false;
    }
    // SAFETY: it points into AREA, which is static.
    let kept = unsafe { (*word).load(Relaxed) } == 1;
    kept && INSTALLER.load(Relaxed) == thread::pid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_from_its_parent() {
        claim();
        assert!(is_claimant());
        // SAFETY: the child calls nothing but async-signal-safe functions.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(is_claimant())) };
        }
        let mut status = -1;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0);
        assert!(is_claimant());
        release();
        assert!(!is_claimant());
    }
}
