//! Listeners and the filter.

use super::status;
use crate::abi::bc_status::{self, *};
use crate::abi::{bc_block_filter, bc_block_listener};
use crate::engine::life;
use crate::report::filter::FILTER;
use crate::report::listeners;
use core::ffi::c_void;

/// Sets the listener for blocks, in the place of the one that was set before; NULL: none. Those that `bc_add_listener`
/// has added stay, and are told after it. When this returns, the one before is not running (unless this is called from
/// it) and will not run again. `bc_uninstall` resets it.
///
/// For each block the listener gets at most one BC_BLOCK_ONGOING, at most one BC_BLOCK_HANG and exactly one
/// BC_BLOCK_ENDED, in this order. It runs on a thread that does nothing else, one at a time.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: `user_data` is handed back only. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_set_listener(listener: bc_block_listener, user_data: *mut c_void) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    listeners::set(listener, user_data);
    BC_OK
}

/// Adds a listener beside the one that is set; it is told what that one is, after those that were added before it, on the
/// same thread. Added again with the same `user_data`, it is still told once. `bc_uninstall` removes it.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL), BC_ERROR_LIMIT_REACHED (eight are there), BC_ERROR_INVALID_STATE (not
/// installed), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: `user_data` is handed back only. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_add_listener(listener: bc_block_listener, user_data: *mut c_void) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    if listener.is_none() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    listeners::add(listener, user_data).map_or(BC_ERROR_LIMIT_REACHED, |()| BC_OK)
}

/// Removes the listener that was added, or set, with this `user_data`. When this returns, it is not running (unless this
/// is called from it) and will not run again.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL, or it is not there), BC_ERROR_INVALID_STATE (not installed),
/// BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: `user_data` is the caller's again. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_remove_listener(listener: bc_block_listener, user_data: *mut c_void) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    if listener.is_some() && listeners::remove(listener, user_data) { BC_OK } else { BC_ERROR_INVALID_ARGUMENT }
}

/// Sets the filter, in the place of the one before; NULL: every block is wanted. It is asked once for each block, when
/// that passes its limit or when it is first told of, before anything of it is on disk. `false`: the block is neither
/// stored nor delivered, and is counted in `blocks_filtered` at its end. When this returns, the filter before is not
/// running (unless this is called from it) and will not run again. `bc_uninstall` resets it.
///
/// The filter runs on the library's `bc-writer` thread. While it does not return, nothing is stored or delivered; watching
/// goes on, and blocks for which there is no room any more are counted in `blocks_dropped`. What may be called from it is
/// what may be called from a listener.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: `user_data` is handed back only. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_set_filter(filter: bc_block_filter, user_data: *mut c_void) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    FILTER.replace(filter, user_data);
    BC_OK
}
