//! The library's own threads: which they are.

use super::clock::Ticks;
use super::{futex, thread};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::*};

/// How many there are at most: three of an installation, one that waits for the loader, one that waits for a Java VM.
const MOST: usize = if cfg!(feature = "jni") { 5 } else { 4 };

/// By their handles.
static OWN: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// Their ids, for others that look at them.
static OWN_IDS: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];

/// Counts the threads that have entered.
static ENTERED: AtomicU32 = AtomicU32::new(0);

/// How many threads have entered, for `wait_until_more`.
pub fn entered() -> u32 {
    ENTERED.load(Acquire)
}

/// Waits until another one has, at most this long: from then on it is known as the library's own.
pub fn wait_until_more(before: u32, patience_ns: u64) {
    let end = Ticks::now().plus(patience_ns);
    // A signal ends a wait, too.
    while entered() == before && Ticks::now() < end {
        futex::wait(&ENTERED, before, Some(end.since(Ticks::now())));
    }
}

/// The calling thread is the library's own, from now until `leave`.
pub fn enter() {
    let free = |place: &&AtomicUsize| place.compare_exchange(0, thread::handle(), AcqRel, Relaxed).is_ok();
    let _ = OWN.iter().find(free);
    let own = thread::tid();
    let _ = OWN_IDS.iter().find(|place| place.compare_exchange(0, own, AcqRel, Relaxed).is_ok());
    ENTERED.fetch_add(1, Release);
    futex::wake_all(&ENTERED);
}

/// It ends.
pub fn leave() {
    for place in &OWN {
        let _ = place.compare_exchange(thread::handle(), 0, AcqRel, Relaxed);
    }
    let own = thread::tid();
    for place in &OWN_IDS {
        let _ = place.compare_exchange(own, 0, AcqRel, Relaxed);
    }
}

/// In a child of fork the own threads are gone.
pub fn forget_threads() {
    OWN.iter().for_each(|place| place.store(0, Release));
    OWN_IDS.iter().for_each(|place| place.store(0, Release));
}

/// Is the calling thread the library's own?
pub fn is_own_thread() -> bool {
    OWN.iter().any(|place| place.load(Acquire) == thread::handle())
}

/// Is this the id of a thread of the library's own?
pub fn is_own(tid: i32) -> bool {
    OWN_IDS.iter().any(|place| place.load(Acquire) == tid)
}
