//! Listeners and the filter; blocks as text.

use super::status;
use crate::abi::bc_status::{self, *};
use crate::abi::{bc_block, bc_block_filter, bc_block_listener};
use crate::engine::{format as blocks, life};
use crate::report::filter::FILTER;
use crate::report::listeners;
use crate::report::names::Format;
use core::ffi::{c_char, c_void};
use core::slice;

/// Sets the listener for blocks, in the place of the one that was set before; NULL: none. Those that `bc_add_listener`
/// has added stay, and are told after it. When this returns, the one before is not running (unless this is called from
/// it) and will not run again. `bc_uninstall` resets it.
///
/// For each block the listener gets at most one BC_BLOCK_ONGOING, at most one BC_BLOCK_HANG and exactly one
/// BC_BLOCK_ENDED, in this order; or, after a kill, one BC_BLOCK_KILLED in the next process that starts with the same
/// `report_dir`. Those are told as soon as `bc_start` has been called, so set the listener before that. It runs on a thread
/// that does nothing else, one at a time, in which all signals are blocked, also for programs that it starts.
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

/// Writes a block as BlockCanary's log into `buffer`, as `snprintf` does: as much as fits, and a NUL behind it unless
/// `size` is 0, when `buffer` may be NULL. Returns the length of the whole, without the NUL.
///
/// Of a block that a listener or the filter is being given, this is what the stored report says, and the length is the
/// same each time. A copy that was kept says what `bc_block` has, and its length may differ by some bytes from call to
/// call, because the report also tells the state of library and device.
///
/// Returns 0, and leaves `buffer` empty, if `block` is NULL or its size, state or cause is none that there is, and while
/// the library is not installed.
///
/// Units: bytes. Ownership: both are the caller's. Threads: any. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_block_format_text(block: *const bc_block, buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: the caller's promise, as above.
    unsafe { format(block, Format::Text, buffer, size) }
}

/// Writes a block as one JSON object, as `docs/report.schema.json` has it. Else as `bc_block_format_text`.
///
/// Returns the length of the whole, without the NUL; 0 where that gives 0.
///
/// Units: bytes. Ownership: both are the caller's. Threads: any. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_block_format_json(block: *const bc_block, buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: the caller's promise, as above.
    unsafe { format(block, Format::Json, buffer, size) }
}

unsafe fn format(block: *const bc_block, format: Format, buffer: *mut c_char, size: usize) -> usize {
    let memory: &mut [u8] = match buffer.is_null() || size == 0 {
        true => &mut [],
        // SAFETY: the caller says that so many bytes are its own. They are only written.
        false => unsafe { slice::from_raw_parts_mut(buffer.cast(), size.min(isize::MAX as usize)) },
    };
    if block.is_null() {
        memory.iter_mut().take(1).for_each(|first| *first = 0);
        return 0;
    }
    // SAFETY: the caller vouches for the block.
    unsafe { blocks::block(block, format, memory) }
}
