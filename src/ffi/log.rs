//! The log handler.

use crate::abi::bc_log_handler;
use crate::abi::bc_status::{self, *};
use crate::engine::life;
use crate::sys::log;
use core::ffi::c_void;

/// Hands the library's messages to `handler`. NULL, as at first: they go to Android's log with the tag "blockcanary", which
/// is found at run time, and elsewhere to nobody. When this returns, the handler before is not running on another thread and
/// will not run again. Outlasts `bc_uninstall`.
///
/// Returns BC_OK.
///
/// Units: none. Ownership: `user_data` is handed back only. Threads: any, before install too; the handler may run on any
/// thread that calls the library and on the library's own.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_set_log_handler(handler: bc_log_handler, user_data: *mut c_void) -> bc_status {
    life::adopt();
    log::set_handler(handler, user_data);
    BC_OK
}
