//! What a loop's dispatches took.

use super::status;
use crate::abi::bc_status::{self, *};
use crate::abi::{bc_loop, bc_loop_stats};
use crate::engine::life;
use crate::watch::registry;
use crate::watch::token::Token;
use core::ptr;

/// Reads what a loop's dispatches took since it was watched or since `bc_loop_stats_take`, while they go on. The caller
/// sets `stats->struct_size`; at most so many bytes are written, and none unless BC_OK. `bc_loop_stats` says what counts.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale, `stats` is NULL, or a size below the first
/// version's), BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: counts and nanoseconds. Ownership: the caller's memory. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_loop_stats_get(r#loop: *mut bc_loop, stats: *mut bc_loop_stats) -> bc_status {
    // SAFETY: handed on.
    unsafe { read(r#loop, stats, false) }
}

/// The same, and begins anew. Each dispatch is told by exactly one take, also if it ends at the same time; its `max_ns` is
/// then as exact as its bucket.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL or stale, `stats` is NULL, or a size below the first
/// version's), BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: counts and nanoseconds. Ownership: the caller's memory. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_loop_stats_take(r#loop: *mut bc_loop, stats: *mut bc_loop_stats) -> bc_status {
    // SAFETY: handed on.
    unsafe { read(r#loop, stats, true) }
}

/// # Safety
/// `stats` is null or points to as many bytes as its first word says.
unsafe fn read(r#loop: *mut bc_loop, stats: *mut bc_loop_stats, takes: bool) -> bc_status {
    if stats.is_null() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    // SAFETY: the caller's structure begins with its size.
    let given = unsafe { stats.cast::<usize>().read_unaligned() };
    if given < size_of::<bc_loop_stats>() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    let Some(known) = Token::from_raw(r#loop.addr()).and_then(|token| registry::statistics(token, takes)) else {
        return BC_ERROR_INVALID_ARGUMENT;
    };
    let known = bc_loop_stats {
        struct_size: given,
        dispatches: known.dispatches,
        blocks: known.blocks,
        slow_count: known.slow,
        frozen_count: known.frozen,
        missed_frames: known.missed,
        busy_ns: known.busy_ns,
        observed_ns: known.observed_ns,
        max_ns: known.max_ns,
        p50_ns: known.percentile(50),
        p90_ns: known.percentile(90),
        p99_ns: known.percentile(99),
        histogram: known.histogram,
    };
    // SAFETY: the caller has at least as many bytes as we write.
    unsafe { ptr::copy_nonoverlapping((&raw const known).cast::<u8>(), stats.cast(), size_of::<bc_loop_stats>()) };
    BC_OK
}
