//! `bc_health` and `bc_loop_stats`: what the library tells of itself and of its loops.

/// Buckets of a histogram of `bc_loop_stats`.
pub const BC_HISTOGRAM_BUCKETS: usize = 256;

/// The library's account of itself. `loops_watched` and the flags are of now, the rest counts since install.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bc_health {
    /// Size of this structure as the caller knows it, in bytes; set by the caller.
    pub struct_size: usize,
    /// Loops watched now.
    pub loops_watched: u64,
    /// Loops and looper callbacks that were not watched because a table was full.
    pub loops_refused: u64,
    /// Calls with a stale token, on the wrong thread, an end without a begin, names lost beyond depth 16.
    pub calls_misused: u64,
    /// Blocks that have ended, each once; and those recovered from processes that were killed in them.
    pub blocks_seen: u64,
    /// Of these, those handed to the listeners.
    pub blocks_delivered: u64,
    /// Of these, those lost on their way to the listeners; their reports were written all the same.
    pub blocks_dropped: u64,
    /// Of these, those that the filter or `ignore_modules` refused.
    pub blocks_filtered: u64,
    /// Samples taken.
    pub samples_taken: u64,
    /// Samples thinned out or not kept because the capacity was used up.
    pub samples_lost: u64,
    /// Samples that the thread did not answer in time.
    pub samples_unanswered: u64,
    /// Signals sent.
    pub signals_sent: u64,
    /// Waits of the watched program that a signal of ours cut short.
    pub waits_cut: u64,
    /// Report files written, each state of a block and each format.
    pub reports_written: u64,
    /// Report files that could not be written.
    pub reports_failed: u64,
    /// Blocks that share an earlier report.
    pub reports_merged: u64,
    /// Deliveries that found the queue to the listeners full.
    pub listener_overruns: u64,
    /// Times the monitor itself came late by more than it can excuse.
    pub monitor_late: u64,
    /// Times the process was made dumpable for a moment.
    pub dumpable_windows: u64,
    /// Memory reserved by the library, bytes of address space.
    pub memory_bytes: u64,
    /// Waiting threads can be sampled without a signal.
    pub signal_free_available: bool,
    /// A signal is there to sample with.
    pub signal_available: bool,
    /// Somebody else has taken our signal; none is sent any more.
    pub signal_taken_over: bool,
    /// The system's CPU load can be read.
    pub system_cpu_available: bool,
}

/// What a loop's dispatches took, from `bc_loop_stats_get` and `bc_loop_stats_take`.
///
/// Dispatches are what `bc_dispatch_begin` and `bc_dispatch_end` enclose, a looper's callbacks, the time from one poll to
/// the next, and the gap between two beats. Each counts when it ends, by its own time from begin to end, nested ones too,
/// less what the loop waited in polls meanwhile. One that was cut by a pause or a stop, or was nested more than 32 deep,
/// counts in `dispatches` only.
///
/// Of a loop of `bc_frames_watch` each time from one frame to the next, by the display's clock, counts as a dispatch. One
/// in which the display had no frame for a thread that waited, because it was off, counts in `dispatches` only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bc_loop_stats {
    /// Size of this structure as the caller knows it, in bytes; set by the caller.
    pub struct_size: usize,
    /// Dispatches ended.
    pub dispatches: u64,
    /// Blocks seen.
    pub blocks: u64,
    /// Dispatches above 16.7 ms.
    pub slow_count: u64,
    /// Dispatches above 700 ms.
    pub frozen_count: u64,
    /// Periods of the display that went by between two frames, of a loop of `bc_frames_watch`; 0 of others.
    pub missed_frames: u64,
    /// Time spent in outermost dispatches that have ended, less waiting, and without gaps between beats, of which nobody
    /// knows how much was work. Nanoseconds.
    pub busy_ns: u64,
    /// Time watched, without pauses and stops. Nanoseconds.
    pub observed_ns: u64,
    /// The longest dispatch. Nanoseconds.
    pub max_ns: u64,
    /// Half of the dispatches took no longer. From the histogram, so within 6 %. Nanoseconds.
    pub p50_ns: u64,
    /// Nine of ten dispatches took no longer. Nanoseconds.
    pub p90_ns: u64,
    /// 99 of 100 dispatches took no longer. Nanoseconds.
    pub p99_ns: u64,
    /// Dispatches by duration. Bucket 0 counts those below 256 ns. Above, each power of two has seven buckets: bucket
    /// 1 + 7 q + r, for r from 0 to 6, begins at 256 ns times 2^q times 8, 9, 10, 11, 12, 13.5 or 15 eighths and ends where
    /// the next one begins; the last, 255, begins at 6.1 hours and has no end. The harmonic mean of a bucket's two ends is
    /// at most 5.9 % from any duration in it.
    pub histogram: [u64; BC_HISTOGRAM_BUCKETS],
}
