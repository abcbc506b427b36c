//! How the monitor sleeps and is woken.
//!
//! Invariant: a stretch that begins is seen by a look that comes at most one sample interval later, although a mark wakes
//! nobody. While marks come the monitor looks on its own, at least that often. When none has come for a second it parks
//! in two steps: it says so in `PARKED`, sleeps one short interval, looks at all marks once more, and only then sleeps
//! for good. A mark stores its words first and then looks at `PARKED`. If it sees the parking, it rings. If it does not,
//! its look came before the store of `PARKED` could reach it; by the second look, milliseconds later, its own stores have
//! long left its processor, so that look sees them. Hence neither side needs a fence.

use crate::sys::bell::Bell;
use core::sync::atomic::{AtomicU32, Ordering::*};

/// The monitor's bell. Static, because marks ring it.
pub static MONITOR: Bell = Bell::new();

/// 1 while the monitor is parking or parked: the next mark that opens a stretch rings, once. 0 otherwise.
static PARKED: AtomicU32 = AtomicU32::new(0);

/// First step of parking.
pub fn park() {
    PARKED.store(1, Release);
}

/// Takes the parking back; `true` if no mark has rung since.
pub fn unpark() -> bool {
    PARKED.swap(0, AcqRel) == 1
}

/// Has nobody rung since `park`? By a mark, or by the monitor, whose own stores it sees.
#[inline(always)]
pub fn is_parked() -> bool {
    PARKED.load(Relaxed) == 1
}

/// What a mark does after it has opened a stretch.
#[inline(always)]
pub fn notice() {
    if is_parked() {
        ring_once();
    }
}

#[cold]
#[inline(never)]
fn ring_once() {
    if unpark() {
        MONITOR.ring();
    }
}
