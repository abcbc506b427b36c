//! Android's looper, bracketed.

use crate::abi::{ALooper, bc_looper_callback};
use crate::hook::{alooper, brackets};
use core::ffi::{c_int, c_void};

/// `ALooper_addFd`, and each call of `callback` is a dispatch of the thread that polls. Parameters and results are
/// `ALooper_addFd`'s. -1 where the system has no ALooper.
///
/// Units: none. Ownership: `data` is handed back only. Threads: any, before install too (then straight through).
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_looper_add_fd(
    looper: *mut ALooper,
    fd: c_int,
    ident: c_int,
    events: c_int,
    callback: bc_looper_callback,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the caller keeps to the rules of the function that this one stands for.
    unsafe { brackets::add_fd(looper, fd, ident, events, callback, data) }
}

/// `ALooper_removeFd`. -1 where the system has no ALooper.
///
/// Units: none. Ownership: none. Threads: any, before install too.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_looper_remove_fd(looper: *mut ALooper, fd: c_int) -> c_int {
    // SAFETY: the caller keeps to the rules of the function that this one stands for.
    unsafe { brackets::remove_fd(looper, fd) }
}

/// `ALooper_pollOnce`, and the time from its return to the thread's next poll is a dispatch. A thread that polls this way
/// while watching is on is watched from its first poll, under its own name. Parameters and results are
/// `ALooper_pollOnce`'s. `ALOOPER_POLL_ERROR` (-4) where the system has no ALooper.
///
/// Units: milliseconds, -1 for no limit. Ownership: the out-pointers may be NULL. Threads: the looper's own, before
/// install too. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_looper_poll_once(
    timeout_ms: c_int,
    out_fd: *mut c_int,
    out_events: *mut c_int,
    out_data: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller keeps to the rules of the function that this one stands for.
    unsafe { brackets::poll(alooper::Poll::Once, timeout_ms, out_fd, out_events, out_data) }
}

/// `ALooper_pollAll`, as `bc_looper_poll_once`.
///
/// Units: milliseconds, -1 for no limit. Ownership: the out-pointers may be NULL. Threads: the looper's own, before
/// install too. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_looper_poll_all(
    timeout_ms: c_int,
    out_fd: *mut c_int,
    out_events: *mut c_int,
    out_data: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller keeps to the rules of the function that this one stands for.
    unsafe { brackets::poll(alooper::Poll::All, timeout_ms, out_fd, out_events, out_data) }
}
