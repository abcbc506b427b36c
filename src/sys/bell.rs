//! A bell: one thread sleeps until others ring.

use super::futex;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// A word that one thread sleeps on. Counts the rings.
pub struct Bell(AtomicU32);

impl Bell {
    /// Silent.
    pub const fn new() -> Bell {
        Bell(AtomicU32::new(0))
    }

    /// Wakes who sleeps, or keeps from sleeping who is about to. A system call.
    #[inline(never)]
    pub fn ring(&self) {
        self.0.fetch_add(1, Release);
        futex::wake_all(&self.0);
    }

    /// The count of rings, to be read before the look that decides to sleep.
    pub fn heard(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Sleeps until it rings after `heard` was read, or this long. May return early.
    pub fn sleep(&self, heard: u32, timeout_ns: Option<u64>) {
        futex::wait(&self.0, heard, timeout_ns);
    }
}

impl Default for Bell {
    fn default() -> Bell {
        Bell::new()
    }
}
