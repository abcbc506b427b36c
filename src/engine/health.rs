//! The library's account of itself.

use crate::abi::bc_health;
use crate::sample::sampler::{SIGNAL_AVAILABLE, SIGNAL_FREE_AVAILABLE, SIGNAL_TAKEN_OVER};
use crate::sys::counters::*;
use crate::watch::registry;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Address space that the installation has taken.
pub static MEMORY_BYTES: AtomicU64 = AtomicU64::new(0);
/// `/proc/stat` can be read.
pub static SYSTEM_CPU_AVAILABLE: AtomicBool = AtomicBool::new(false);

/// All of it, now.
pub fn health() -> bc_health {
    bc_health {
        struct_size: size_of::<bc_health>(),
        loops_watched: registry::watched_alive() as u64,
        loops_refused: LOOPS_REFUSED.get(),
        calls_misused: CALLS_MISUSED.get(),
        blocks_seen: BLOCKS_SEEN.get(),
        blocks_delivered: BLOCKS_DELIVERED.get(),
        blocks_dropped: BLOCKS_DROPPED.get(),
        blocks_filtered: BLOCKS_FILTERED.get(),
        samples_taken: SAMPLES_TAKEN.get(),
        samples_lost: SAMPLES_LOST.get(),
        samples_unanswered: SAMPLES_UNANSWERED.get(),
        signals_sent: SIGNALS_SENT.get(),
        waits_cut: WAITS_CUT.get(),
        reports_written: REPORTS_WRITTEN.get(),
        reports_failed: REPORTS_FAILED.get(),
        reports_merged: REPORTS_MERGED.get(),
        listener_overruns: LISTENER_OVERRUNS.get(),
        monitor_late: MONITOR_LATE.get(),
        dumpable_windows: DUMPABLE_WINDOWS.get(),
        memory_bytes: MEMORY_BYTES.load(Relaxed),
        signal_free_available: SIGNAL_FREE_AVAILABLE.load(Relaxed),
        signal_available: SIGNAL_AVAILABLE.load(Relaxed),
        signal_taken_over: SIGNAL_TAKEN_OVER.load(Relaxed),
        system_cpu_available: SYSTEM_CPU_AVAILABLE.load(Relaxed),
    }
}
