//! `bc_config`: what an installation is told.

use super::{bc_sampling_method, bc_toggle};
use core::ffi::c_char;

/// Text reports are stored (`report_formats`).
pub const BC_FORMAT_TEXT: u32 = 1;
/// JSON reports are stored (`report_formats`).
pub const BC_FORMAT_JSON: u32 = 2;
/// Blocks with equal stacks are not merged (`merge_window_s`).
pub const BC_MERGE_OFF: u32 = u32::MAX;

/// What `bc_install` is told. Clear it with `bc_config_init`: 0 and NULL mean the default everywhere.
///
/// A value out of its range, or a field whose feature this version lacks set to something else than its default, makes
/// `bc_install` fail with the code that says so; nothing is silently changed. Strings are copied by `bc_install`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bc_config {
    /// Size of this structure as the caller knows it, in bytes; set by `bc_config_init`.
    pub struct_size: usize,
    /// A stretch longer than this is a block. Milliseconds, 1 to 60,000; default 1000.
    pub block_threshold_ms: u32,
    /// Time between two samples of a late stretch. Milliseconds, 1 to 60,000; default a quarter of the limit in force for
    /// the loop, at least 10.
    pub sample_interval_ms: u32,
    /// An open block longer than this is told as a hang. Milliseconds, 1 to 600,000; default 4000.
    pub hang_threshold_ms: u32,
    /// Loops watched at a time. 1 to 256; default 16.
    pub max_loops: u32,
    /// Frames kept of one stack. 8 to 1024; default 128.
    pub max_stack_depth: u32,
    /// Samples kept, shared by all open blocks. 16 to 65,536; default 256.
    pub sample_capacity: u32,
    /// Take stacks. Default on.
    pub stack_sampling: bc_toggle,
    /// Measure the CPU load of process and system with each sample. Default on.
    pub cpu_sampling: bc_toggle,
    /// Take the stacks of all threads when a loop is blocked, and put them into its report: 256 at most, what there is
    /// beyond is counted. The report of a block that goes on waits 60 ms for them, that of its end 420 ms. Default off.
    pub all_threads_on_block: bc_toggle,
    /// Deliver and store a block while it goes on. Default on.
    pub report_ongoing: bc_toggle,
    /// Report although a debugger is attached. Default off.
    pub while_debugging: bc_toggle,
    /// Make the process dumpable for the moment in which a watched thread's files are opened, where nothing else helps.
    /// Default on.
    pub dumpable_window: bc_toggle,
    /// Keep only the base names of paths, in reports and blocks; see `docs/privacy.md`. Default off.
    pub redact_paths: bc_toggle,
    /// How stacks are taken.
    pub sampling_method: bc_sampling_method,
    /// The signal to use, SIGRTMIN to SIGRTMAX; 0: a free one is chosen at each start.
    pub signal_number: i32,
    /// Stop watching by itself so long after `bc_start`, which begins it again. Seconds; 0: never.
    pub monitor_duration_s: u32,
    /// `BC_FORMAT_TEXT` and `BC_FORMAT_JSON`, or-ed; 0: both.
    pub report_formats: u32,
    /// Blocks kept in the report directory, the newest. 1 to 100,000; default 500.
    pub max_reports: u32,
    /// Age from which reports are removed, when watching begins and with each report. Seconds; default two days.
    pub report_max_age_s: u32,
    /// A block of the same loop with the same leading stack as a report that was stored within this time has no report of
    /// its own: that one tells how often it came again. Seconds; default 60; `BC_MERGE_OFF`: never.
    pub merge_window_s: u32,
    /// Bytes that all reports together may take, at least 65,536; default 32 MiB. The flight recorder is not counted.
    pub max_report_bytes: u64,
    /// Where reports are stored; made if missing. While a block goes on, the flight recorder is there, too, a file
    /// `recorder-….bcr` (128 KiB for each loop, what was never written takes no room). NULL: no files.
    pub report_dir: *const c_char,
    /// A name for the build or channel, for the reports.
    pub qualifier: *const c_char,
    /// The program's version, for the reports.
    pub version_name: *const c_char,
    /// The program's version number, for the reports.
    pub version_code: *const c_char,
    /// Whatever the program calls its user, for the reports.
    pub user_id: *const c_char,
    /// The kind of network, for the reports.
    pub network_type: *const c_char,
    /// Base names of modules, comma-separated: stacks that touch them lead the text report.
    pub concern_modules: *const c_char,
    /// Base names of modules, comma-separated: a block all of whose samples lie in them is filtered. A sample lies where its
    /// innermost frame does that is not in the C or C++ library.
    pub ignore_modules: *const c_char,
}
