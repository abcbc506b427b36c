//! A configuration that has been checked, defaults filled in.

use crate::abi::{BC_FORMAT_JSON, BC_FORMAT_TEXT};
use crate::sample::sampler::Method;
use core::ffi::CStr;

/// See above. Strings are the caller's, valid during install only.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Limit of a stretch. ns.
    pub limit_ns: u64,
    /// Sample interval, 0 for a quarter of the limit. ns.
    pub interval_ns: u64,
    /// Hang threshold. ns.
    pub hang_ns: u64,
    /// Loops watched at a time.
    pub max_loops: usize,
    /// Frames of a stack.
    pub depth: usize,
    /// Samples.
    pub samples: usize,
    /// How stacks are taken.
    pub method: Method,
    /// The process may be made dumpable for a moment.
    pub dumpable_window: bool,
    /// Measure CPU load.
    pub cpu: bool,
    /// Take the stacks of all threads with each block.
    pub all_threads: bool,
    /// Tell of blocks that go on.
    pub report_ongoing: bool,
    /// Tell of blocks although a debugger is attached.
    pub while_debugging: bool,
    /// Base names only.
    pub redact_paths: bool,
    /// Signal, 0 for any.
    pub signal: i32,
    /// `BC_FORMAT_…`, or-ed.
    pub formats: u32,
    /// Blocks kept in the directory.
    pub max_reports: u32,
    /// Bytes of all reports.
    pub max_report_bytes: u64,
    /// Age from which reports go. s.
    pub report_max_age_s: u32,
    /// How long after its storing blocks may share a report; `None`: they never do. ns.
    pub merge_window_ns: Option<u64>,
    /// How long watching goes on after a start, 0 for ever. ns.
    pub duration_ns: u64,
    /// The directory.
    pub report_dir: Option<&'a CStr>,
    /// Qualifier, version name, version code, user id, network type.
    pub words: [Option<&'a CStr>; 5],
    /// Modules that lead reports.
    pub concern_modules: Option<&'a CStr>,
    /// Modules whose blocks nobody wants.
    pub ignore_modules: Option<&'a CStr>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            limit_ns: 1_000_000_000,
            interval_ns: 0,
            hang_ns: 4_000_000_000,
            max_loops: 16,
            depth: 128,
            samples: 256,
            method: Method::Auto,
            dumpable_window: true,
            cpu: true,
            all_threads: false,
            report_ongoing: true,
            while_debugging: false,
            redact_paths: false,
            signal: 0,
            formats: BC_FORMAT_TEXT | BC_FORMAT_JSON,
            max_reports: 500,
            max_report_bytes: 32 << 20,
            report_max_age_s: 172_800,
            merge_window_ns: Some(60_000_000_000),
            duration_ns: 0,
            report_dir: None,
            words: [None; 5],
            concern_modules: None,
            ignore_modules: None,
        }
    }
}
