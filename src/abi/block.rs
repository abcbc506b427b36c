//! `bc_block` and what it points to; the callbacks.

use super::{bc_block_state, bc_cause, bc_log_level, bc_sample_method};
use core::ffi::{c_char, c_int, c_void};

/// A watched loop. A token, never dereferenced: any value is safe to pass, a stale one is counted and ignored.
pub struct bc_loop {
    _opaque: [u8; 0],
}

/// Android's looper, as in `<android/looper.h>`.
pub struct ALooper {
    _opaque: [u8; 0],
}

/// One frame of a stack. Strings are NULL where unknown.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bc_frame {
    /// Address as found: the interrupted instruction of the innermost frame, return addresses of the outer ones.
    pub pc: u64,
    /// The same address relative to the module, as `addr2line -e module` takes it.
    pub module_offset: u64,
    /// Distance from the begin of the symbol; without a symbol from that of the function, 0 where that is not known either.
    /// Bytes.
    pub symbol_offset: u64,
    /// Full path of the module; its base name with `redact_paths`.
    pub module: *const c_char,
    /// GNU build id of the module, lower-case hexadecimal.
    pub build_id: *const c_char,
    /// Name from the module's own symbol table, as it stands there (C++ names mangled).
    pub symbol: *const c_char,
}

/// One look at the blocked thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bc_sample {
    /// When. Nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// How it was taken.
    pub method: bc_sample_method,
    /// Frames left out because of `max_stack_depth`.
    pub frames_cut: u32,
    /// Frames in `frames`.
    pub frame_count: usize,
    /// Innermost first; the distance between two is `bc_block.frame_size`.
    pub frames: *const bc_frame,
    /// State letter as in `/proc`: R running, S sleeping, D waiting for a device; 0 unknown.
    pub thread_state: c_char,
    /// The root of the thread was not reached, or frames were cut.
    pub truncated: bool,
    /// Some step of the walk could not be verified.
    pub approximate: bool,
}

/// One block, as listeners get it. All memory belongs to the library and is valid until the listener returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bc_block {
    /// Size of this structure as the library knows it, in bytes.
    pub struct_size: usize,
    /// Names the block in all its states; random start per install, below 2^53.
    pub id: u64,
    /// What has become of it.
    pub state: bc_block_state,
    /// Why.
    pub cause: bc_cause,
    /// The blocked thread.
    pub tid: i32,
    /// How often it came again, where reports are merged.
    pub repeats: u32,
    /// The `tag` of the innermost open dispatch.
    pub tag: u64,
    /// Begin. Milliseconds since 1970.
    pub start_unix_ms: i64,
    /// Begin. Nanoseconds of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Duration; so far, while it goes on. Nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the thread in it. Nanoseconds.
    pub cpu_ns: u64,
    /// The limit it has passed. Nanoseconds.
    pub threshold_ns: u64,
    /// Name of the loop.
    pub loop_name: *const c_char,
    /// The `what` of the innermost open dispatch, or NULL.
    pub what: *const c_char,
    /// The cause in words, or NULL.
    pub cause_detail: *const c_char,
    /// The stored report (text, if both are stored), or NULL.
    pub report_path: *const c_char,
    /// Samples in `samples`.
    pub sample_count: usize,
    /// Distance between two samples. Bytes.
    pub sample_size: usize,
    /// Distance between two frames of a sample. Bytes.
    pub frame_size: usize,
    /// Oldest first.
    pub samples: *const bc_sample,
}

/// Takes a block. Runs on the library's own `bc-reporter` thread, one at a time; must not throw or `longjmp`.
pub type bc_block_listener = Option<unsafe extern "C" fn(block: *const bc_block, user_data: *mut c_void)>;
/// Says whether a block is wanted.
pub type bc_block_filter = Option<unsafe extern "C" fn(block: *const bc_block, user_data: *mut c_void) -> bool>;
/// Takes the path of a stored report; `false` ends the visit.
pub type bc_report_visitor = Option<unsafe extern "C" fn(path: *const c_char, user_data: *mut c_void) -> bool>;
/// Takes a zip of reports; `true` when it has been handed on.
pub type bc_uploader = Option<unsafe extern "C" fn(zip_path: *const c_char, user_data: *mut c_void) -> bool>;
/// Takes a log message. May run on any thread that calls the library and on the library's own.
pub type bc_log_handler =
    Option<unsafe extern "C" fn(level: bc_log_level, message: *const c_char, user_data: *mut c_void)>;
/// A looper's callback for a descriptor, as `ALooper_callbackFunc`: 1 keeps it, 0 removes it.
pub type bc_looper_callback = Option<unsafe extern "C" fn(fd: c_int, events: c_int, data: *mut c_void) -> c_int>;
