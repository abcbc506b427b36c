//! The main Looper of a Java app.

use super::status;
use crate::abi::bc_loop;
use crate::abi::bc_status::{self, *};
use crate::engine::life;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;

/// Watches the main thread of a Java app: the one whose Looper is `Looper.getMainLooper()`. It is watched as
/// `bc_looper_probe` does it, by a heartbeat on its ALooper, and reports have its Java stack beside the native one. With
/// the class `dev.blockcanary.Hook` in the app and its field `precise` set, a Printer of the main Looper marks each message
/// instead, and a block is called by its message; a Printer that was there before is called by it, and one that replaces it
/// too, when that is noticed (within some seconds, counted in `calls_misused`). From another thread than the main one,
/// which may be attached to the VM or not, that class is needed to send the main thread a message, and is waited for 2 s.
/// A second call renames the loop. `name` is copied; NULL: "main". There is a thread "bc-java" afterwards, attached to the
/// VM as a daemon, until uninstall.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`java_vm` or `loop` is NULL), BC_ERROR_UNSUPPORTED (built without the
/// feature `jni`, no ALooper, no main Looper, or the class is needed and not there), BC_ERROR_INVALID_STATE (not
/// installed), BC_ERROR_LIMIT_REACHED, BC_ERROR_WRONG_THREAD (from a callback), BC_ERROR_NO_MEMORY (no thread),
/// BC_ERROR_TIMEOUT (the main thread did not run the message; nothing is watched), BC_ERROR_INTERNAL. `*loop` is NULL
/// unless BC_OK.
///
/// Units: none. Ownership: `java_vm` is the process's JavaVM, which stays. Threads: any but in callbacks. A Java exception
/// that is pending stays so. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_java_watch(
    java_vm: *mut c_void,
    name: *const c_char,
    r#loop: *mut *mut bc_loop,
) -> bc_status {
    if r#loop.is_null() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: null, or the caller's string.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
    let result = if java_vm.is_null() { Err(BC_ERROR_INVALID_ARGUMENT) } else { watch(java_vm, name) };
    let token = result.map_or(ptr::null_mut(), ptr::without_provenance_mut);
    // SAFETY: not null, so the caller's place for a token.
    unsafe { r#loop.write(token) };
    result.err().unwrap_or(BC_OK)
}

#[cfg(feature = "jni")]
fn watch(java_vm: *mut c_void, name: Option<&[u8]>) -> Result<usize, bc_status> {
    use crate::hook::java::{self, Failure};
    use crate::hook::probe;
    use crate::watch::registry::Refusal;
    life::check_installed().map_err(|refusal| status(Err(refusal)))?;
    if life::is_in_callback() {
        return Err(BC_ERROR_WRONG_THREAD);
    }
    // SAFETY: the caller vouches for the VM.
    let token = unsafe { java::watch(java_vm, name) }.map_err(|failure| match failure {
        Failure::Unsupported | Failure::Probe(probe::Failure::Unsupported | probe::Failure::Looper) => {
            BC_ERROR_UNSUPPORTED
        }
        Failure::Probe(probe::Failure::Refused(Refusal::NotInstalled)) => BC_ERROR_INVALID_STATE,
        Failure::Probe(probe::Failure::Refused(Refusal::Full)) => BC_ERROR_LIMIT_REACHED,
        Failure::Thread => BC_ERROR_NO_MEMORY,
        Failure::Timeout => BC_ERROR_TIMEOUT,
    })?;
    Ok(token.raw())
}

#[cfg(not(feature = "jni"))]
fn watch(_: *mut c_void, _: Option<&[u8]>) -> Result<usize, bc_status> {
    life::check_installed().map_err(|refusal| status(Err(refusal)))?;
    Err(BC_ERROR_UNSUPPORTED)
}
