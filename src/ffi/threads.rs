//! All threads of the process.

use super::status;
use crate::abi::bc_status::{self, *};
use crate::engine::dump;
use crate::engine::life::{self, Refusal};
use crate::log_error;

/// Writes every thread of the process with name, state and stack to a descriptor: first the threads of watched loops, last
/// the library's own. Works from install on, also while watching is stopped or paused. The text is that of tombstones: a
/// line a frame with its pc relative to the ELF file, as `ndk-stack` reads it.
///
/// A thread that waits is left alone; one that runs gets the sampling signal, if `sampling_method` allows it, and has 20
/// ms to answer. The calling thread waits meanwhile, and is in the text, too; `bc-monitor`, which takes the stacks, has
/// none. Of more than 1024 threads the rest is counted. A second call waits for the first. `fd` may be anything that can
/// be written to; a pipe without a reader raises no signal.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`fd` is negative), BC_ERROR_IO (it is not open for writing, or writing to it
/// fails), BC_ERROR_TIMEOUT (nothing was taken for five seconds, or another dump has gone on for thirty),
/// BC_ERROR_INVALID_STATE (not installed, or no more), BC_ERROR_INTERNAL. What has been written by then stays.
///
/// Units: none. Ownership: `fd` stays the caller's. Threads: any, listeners included; some 32 KiB of stack.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_threads_dump(fd: i32) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    if fd < 0 {
        log_error!("bc_threads_dump: fd: {fd} is no descriptor");
        return BC_ERROR_INVALID_ARGUMENT;
    }
    let result = dump::dump(fd);
    match result {
        Err(Refusal::Output(error)) => log_error!("bc_threads_dump: fd {fd}: {error}"),
        Err(Refusal::Timeout) => log_error!("bc_threads_dump: fd {fd}: not done in time"),
        _ => {}
    }
    status(result)
}
