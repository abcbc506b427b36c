//! Beats, idleness and allowances.

use super::status;
use crate::abi::bc_loop;
use crate::abi::bc_status::{self, *};
use crate::engine::life;
use crate::watch::mark::{self, Refusal};
use core::ffi::c_char;

/// The loop beats: from the first beat on, the time from one beat to the next is a stretch and may be a block. For loops
/// without dispatches, such as one that renders frames. Anything but a valid token of the calling thread's is counted in
/// `calls_misused` and ignored.
///
/// Units: none. Ownership: none. Threads: the loop's own.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_loop_beat(r#loop: *mut bc_loop) {
    mark::beat(r#loop.addr());
}

/// The loop has nothing to do: its open dispatches are closed, and it neither beats nor is judged from poll to poll until
/// its next begin, beat or poll.
///
/// Units: none. Ownership: none. Threads: the loop's own.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_loop_idle(r#loop: *mut bc_loop) {
    mark::idle(r#loop.addr());
}

/// An operation begins that may take `allowance_ms`, for example loading a level. While allowances are open, marks do not
/// restart the time: it is judged against the latest of their ends, and never more strictly than by the loop's own limit.
/// One that is exceeded is one block, from its begin to its `bc_allow_end`, named `why`. `UINT32_MAX`: no limit.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (0, or `loop` is NULL or stale), BC_ERROR_LIMIT_REACHED (eight are open),
/// BC_ERROR_WRONG_THREAD, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: milliseconds. Ownership: `why` stays the caller's and must stay valid until the matching `bc_allow_end` has
/// returned; NULL: no name. Threads: the loop's own. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_allow_begin(r#loop: *mut bc_loop, allowance_ms: u32, why: *const c_char) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    if allowance_ms == 0 {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    let allowance_ns = (allowance_ms != u32::MAX).then(|| u64::from(allowance_ms) * 1_000_000);
    answer(mark::allow_begin(r#loop.addr(), allowance_ns, why))
}

/// The innermost open allowance of the loop ends.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (none is open, or not installed), BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or
/// stale), BC_ERROR_WRONG_THREAD, BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: the loop's own.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_allow_end(r#loop: *mut bc_loop) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    answer(mark::allow_end(r#loop.addr()))
}

fn answer(result: Result<(), Refusal>) -> bc_status {
    match result {
        Ok(()) => BC_OK,
        Err(Refusal::Stale) => BC_ERROR_INVALID_ARGUMENT,
        Err(Refusal::Thread) => BC_ERROR_WRONG_THREAD,
        Err(Refusal::Full) => BC_ERROR_LIMIT_REACHED,
        Err(Refusal::None) => BC_ERROR_INVALID_STATE,
    }
}
