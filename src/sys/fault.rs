//! A fault of the library's own: it switches itself off and leaves the program alone.

use core::sync::atomic::{AtomicBool, Ordering::*};

static DISABLED: AtomicBool = AtomicBool::new(false);

/// From now on calls do nothing and say so.
pub fn disable() {
    DISABLED.store(true, Release);
}

/// Has a fault been found?
pub fn is_disabled() -> bool {
    DISABLED.load(Acquire)
}
