//! Install, start, stop, uninstall, pause, resume, flush.

use super::{config, status};
use crate::abi::{bc_config, bc_status};
use crate::engine::install::Failure;
use crate::engine::life::{self, Refusal};
use crate::hook::{alooper, attended};
use crate::log_error;
use crate::report::sink::Lossy;
use crate::sys::logcat;

/// Reserves all memory, makes the library's threads and opens what must be open. Watching begins with `bc_start`.
/// `config` may be NULL for the defaults; it and its strings are copied. The report directory is made if it is missing. It
/// takes at most 64 KiB of the caller's stack.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (a value out of range), BC_ERROR_UNSUPPORTED (a feature that is not there),
/// BC_ERROR_INVALID_STATE (installed already: nothing changed), BC_ERROR_IO (the report directory cannot be used: nothing
/// installed), BC_ERROR_NO_MEMORY.
///
/// Units: as in `bc_config`. Ownership: nothing is kept of the caller's memory. Threads: any, one at a time.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_install(config: *const bc_config) -> bc_status {
    life::adopt();
    logcat::look_up();
    // SAFETY: the caller filled the structure by the contract.
    match unsafe { config::read(config) } {
        Ok(settings) => {
            attended::adopt();
            alooper::look_up();
            let result = life::install(&settings);
            if let Err(Refusal::Failed(Failure::Directory(error))) = result {
                let path = settings.report_dir.unwrap_or_default().to_bytes();
                log_error!("bc_config.report_dir: {}: {error}", Lossy(path));
            }
            status(result)
        }
        Err(error) => error,
    }
}

/// Begins watching. Does nothing if it has begun. Dispatches that are open count from now. Blocks in `report_dir` in which
/// an earlier process was killed are told to the listeners that are set now, and are not told again. A report of one that
/// could not be stored is stored by a later start.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any, listeners included.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_start() -> bc_status {
    status(attended::start())
}

/// Ends watching, within 200 ms even if a listener is stuck. Blocks that are open end with it, and are stored and
/// delivered. Does nothing if it has ended.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any, listeners included.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_stop() -> bc_status {
    status(attended::stop())
}

/// Stops, waits up to two seconds for a running callback, and gives back threads, descriptors, memory and signal.
/// Afterwards nothing of the library runs any more, all tokens are stale, and `bc_install` works again.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_TIMEOUT (a
/// callback is still running: stopped, still installed, may be called again), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any but in callbacks.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_uninstall() -> bc_status {
    status(attended::uninstall())
}

/// Is watching on: started and not stopped? A pause does not matter. `false` in a child of fork.
///
/// Units: none. Ownership: none. Threads: any, before install too.
/// Async-signal-safe: yes.
#[unsafe(no_mangle)]
pub extern "C" fn bc_is_running() -> bool {
    life::is_running()
}

/// Time counts no more until as many `bc_resume` have followed: for the background, or while a dialog of the system's is
/// shown. Blocks that are open end. Outlasts stop and start; an install clears it.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_pause() -> bc_status {
    status(life::pause())
}

/// Takes one `bc_pause` back. Dispatches that are open count from the last one on.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed, or one too many: no effect), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_resume() -> bc_status {
    status(life::resume())
}

/// Waits until every block that has ended by now is stored and has been handed to the listeners, and every one in which an
/// earlier process was killed, too, if watching has begun.
///
/// Returns BC_OK, BC_ERROR_TIMEOUT, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_WRONG_THREAD (from a callback),
/// BC_ERROR_INTERNAL.
///
/// Units: milliseconds. Ownership: none. Threads: any but in callbacks.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_flush(timeout_ms: u32) -> bc_status {
    status(life::flush(u64::from(timeout_ms) * 1_000_000))
}
