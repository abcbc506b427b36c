//! The listener.

use super::status;
use crate::abi::bc_block_listener;
use crate::abi::bc_status::{self, *};
use crate::engine::life;
use crate::report::reporter::LISTENER;
use core::ffi::c_void;

/// Sets the listener for blocks, in the place of the one before; NULL: none. When this returns, the one before is not
/// running (unless this is called from it) and will not run again. `bc_uninstall` resets it.
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
    LISTENER.replace(listener, user_data);
    BC_OK
}
