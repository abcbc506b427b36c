//! Counts since install that marks and other places without an installation at hand add to.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One count. Static, because a mark with a stale token adds to it.
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// One more.
    pub fn add_one(&self) {
        self.add(1);
    }

    /// One more. Is it the first?
    pub fn add_first(&self) -> bool {
        self.0.fetch_add(1, Relaxed) == 0
    }

    /// Some more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])* pub static $name: Counter = Counter::new();)*

        /// An installation begins to count.
        pub fn reset() {
            $($name.0.store(0, Relaxed);)*
        }
    };
}

counters! {
    /// Loops and looper callbacks that found no place.
    LOOPS_REFUSED
    /// Calls that do not fit: stale token, wrong thread, end without begin, a name beyond the depth kept.
    CALLS_MISUSED
    /// Marks among them.
    MARKS_MISUSED
    /// Blocks that have ended.
    BLOCKS_SEEN
    /// Blocks handed to the listener.
    BLOCKS_DELIVERED
    /// Blocks lost on the way to the listener.
    BLOCKS_DROPPED
    /// Blocks that nobody wanted.
    BLOCKS_FILTERED
    /// Samples taken.
    SAMPLES_TAKEN
    /// Samples thinned out or without a place.
    SAMPLES_LOST
    /// Samples that the thread did not answer.
    SAMPLES_UNANSWERED
    /// Signals sent.
    SIGNALS_SENT
    /// Waits of the program that a signal of ours cut short.
    WAITS_CUT
    /// Times the process was made dumpable for a moment.
    DUMPABLE_WINDOWS
    /// Report files written.
    REPORTS_WRITTEN
    /// Report files that could not be written.
    REPORTS_FAILED
    /// Blocks that share a report.
    REPORTS_MERGED
    /// Deliveries that found the queue full.
    LISTENER_OVERRUNS
    /// Looks of the monitor that came late by more than a sample interval.
    MONITOR_LATE
}
