//! A thread of a hook's own, beside the three of an installation: it ends before the installation does.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicUsize, Ordering::*};

static HAS_ENDED: AtomicUsize = AtomicUsize::new(0);
static FORKED: AtomicUsize = AtomicUsize::new(0);

/// There may be one: `has_ended` asks it to end and says whether it has, `forked` is called in a child of fork.
pub fn set(has_ended: fn() -> bool, forked: fn()) {
    FORKED.store(forked as usize, Release);
    HAS_ENDED.store(has_ended as usize, Release);
}

/// Asks it to end, and says whether it has, or there is none.
pub fn has_ended() -> bool {
    let function = HAS_ENDED.load(Acquire);
    if function == 0 {
        return true;
    }
    // SAFETY: only `set` stores here, a function of this type.
    unsafe { core::mem::transmute::<usize, fn() -> bool>(function)() }
}

/// In a child of fork it is gone.
pub fn forked() {
    let function = FORKED.load(Acquire);
    if function != 0 {
        // SAFETY: only `set` stores here, a function of this type.
        unsafe { core::mem::transmute::<usize, fn()>(function)() }
    }
}
