//! Android's looper, bracketed.

use super::{of_refusal, watching};
use crate::abi::bc_status::{self, *};
use crate::abi::{ALooper, bc_loop, bc_looper_callback};
use crate::hook::alooper::{self, SYSTEM};
use crate::hook::brackets;
use crate::hook::probe::{self, Failure};
use crate::log_error;
use core::ffi::{c_char, c_int, c_void};

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
    unsafe { brackets::add_fd(&SYSTEM, looper, fd, ident, events, callback, data) }
}

/// `ALooper_removeFd`. -1 where the system has no ALooper.
///
/// Units: none. Ownership: none. Threads: any, before install too.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_looper_remove_fd(looper: *mut ALooper, fd: c_int) -> c_int {
    // SAFETY: the caller keeps to the rules of the function that this one stands for.
    unsafe { brackets::remove_fd(&SYSTEM, looper, fd) }
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
    unsafe { brackets::poll(&SYSTEM, alooper::Poll::Once, timeout_ms, out_fd, out_events, out_data) }
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
    unsafe { brackets::poll(&SYSTEM, alooper::Poll::All, timeout_ms, out_fd, out_events, out_data) }
}

/// Watches the thread that owns `looper` by a heartbeat: a descriptor of its own in that looper, pinged every quarter of
/// the threshold; the thread has to answer in time. Finds what marks cannot see, such as work on Java's main thread, whose
/// looper it is meant for. A thread that waits in its poll, or has not run since its last answer, is not woken. A ping can
/// make a native poll of that thread return `ALOOPER_POLL_CALLBACK`. A block that is longer than the threshold and one
/// period is found, one below the threshold never is. A second call renames the loop and gives the same token. `name` is
/// copied; NULL: "looper".
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`looper` or `loop` is NULL), BC_ERROR_UNSUPPORTED (the system has no ALooper,
/// or the looper does not take the descriptor), BC_ERROR_INVALID_STATE (not installed), BC_ERROR_LIMIT_REACHED,
/// BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_INTERNAL. `*loop` is NULL unless BC_OK.
///
/// Units: none. Ownership: the looper is acquired until the watch ends. Threads: any but in callbacks.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_looper_probe(
    looper: *mut ALooper,
    name: *const c_char,
    r#loop: *mut *mut bc_loop,
) -> bc_status {
    // SAFETY: the caller vouches for the looper.
    let watch = |name: Option<&[u8]>| unsafe { probe::watch(looper, name) };
    let watch = |name: Option<&[u8]>| watch(name).map_err(|failure| of_failure(failure, "bc_looper_probe"));
    // SAFETY: the caller's name and place.
    unsafe { watching::begin(r#loop, name, !looper.is_null(), watch) }
}

/// Says why `call` cannot be done, where its code has more than one reason.
pub(super) fn of_failure(failure: Failure, call: &str) -> bc_status {
    match failure {
        Failure::Unsupported => log_error!("{call}: the system has no ALooper"),
        Failure::Looper => log_error!("{call}: the looper takes no descriptor, or there is none to be had"),
        Failure::Refused(refusal) => return of_refusal(refusal),
    }
    BC_ERROR_UNSUPPORTED
}
