//! Loops and their marks.

use super::{of_refusal, status, watching};
use crate::abi::bc_loop;
use crate::abi::bc_status::{self, *};
use crate::engine::life;
use crate::watch::mark;
use crate::watch::registry;
use crate::watch::token::Token;
use core::ffi::c_char;

/// Watches the calling thread. A second call renames its loop and gives the same token. `name` is copied, at most 63
/// bytes of it; NULL: the thread's name. The watch ends with `bc_loop_unwatch`, with the thread, or with `bc_uninstall`.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL), BC_ERROR_INVALID_STATE (not installed),
/// BC_ERROR_LIMIT_REACHED (`max_loops` are watched), BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_INTERNAL. `*loop`
/// is NULL unless BC_OK.
///
/// Units: none. Ownership: the token is a value, there is nothing to free. Threads: any but in callbacks.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_loop_watch(name: *const c_char, r#loop: *mut *mut bc_loop) -> bc_status {
    // SAFETY: the caller's name and place.
    unsafe { watching::begin(r#loop, name, true, |name| registry::watch(name).map_err(of_refusal)) }
}

/// Ends a loop's watch; a block that is open ends with it. Afterwards only `bc_loop_watch` watches that thread again.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale), BC_ERROR_INVALID_STATE (not installed),
/// BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: the token is stale from now on. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_loop_unwatch(r#loop: *mut bc_loop) -> bc_status {
    with_token(r#loop, registry::unwatch)
}

/// Sets a loop's limit, from its next stretch on. 0: the configuration's `block_threshold_ms` again.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale, or more than 60,000), BC_ERROR_INVALID_STATE (not
/// installed), BC_ERROR_INTERNAL.
///
/// Units: milliseconds. Ownership: none. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_loop_set_threshold(r#loop: *mut bc_loop, threshold_ms: u32) -> bc_status {
    if threshold_ms > 60_000 {
        return life::check_installed().map_or_else(|refusal| status(Err(refusal)), |()| BC_ERROR_INVALID_ARGUMENT);
    }
    with_token(r#loop, |token| registry::set_limit(token, u64::from(threshold_ms) * 1_000_000))
}

fn with_token(r#loop: *mut bc_loop, act: impl FnOnce(Token) -> bool) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    match Token::from_raw(r#loop.addr()).map(act) {
        Some(true) => BC_OK,
        _ => BC_ERROR_INVALID_ARGUMENT,
    }
}

/// A dispatch begins: one unit of work of the loop. Dispatches nest; an inner one tells that the outer one makes progress.
/// `what` names it in reports, at most 127 bytes are kept; NULL: no name. Anything but a valid token of the calling
/// thread's is counted in `calls_misused` and ignored.
///
/// Takes no lock, allocates nothing, makes no system call (but one, if nothing was dispatched for a second).
///
/// Units: none. Ownership: `what` stays the caller's and must stay valid until the matching `bc_dispatch_end` has
/// returned. Threads: the loop's own. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_dispatch_begin(r#loop: *mut bc_loop, what: *const c_char, tag: u64) {
    mark::begin(r#loop.addr(), what, tag);
}

/// The innermost open dispatch of the loop ends.
///
/// Units: none. Ownership: none. Threads: the loop's own.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_dispatch_end(r#loop: *mut bc_loop) {
    mark::end(r#loop.addr());
}
