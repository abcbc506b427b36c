//! The main Looper of a Java app.

use super::watching;
use crate::abi::bc_loop;
use crate::abi::bc_status::{self, *};
use crate::log_error;
use crate::watch::token::Token;
use core::ffi::{c_char, c_void};

/// Watches the main thread of a Java app: the one whose Looper is `Looper.getMainLooper()`. It is watched as
/// `bc_looper_probe` does it, by a heartbeat on its ALooper, and reports have its Java stack beside the native one. With
/// the class `dev.blockcanary.Hook` in the app and its field `precise` set, a Printer of the main Looper marks each message
/// instead, and a block is called by its message; a Printer that was there before is called by it, and one that replaces
/// it too, when that is noticed (within some seconds, counted in `calls_misused`). It goes within a second of
/// `bc_loop_unwatch`. From another thread than the main one, which may be attached to the VM or not, the main thread is
/// sent a message and waited for 2 s; before Android 8 (API 26) that class is needed for it.
/// A second call renames the loop, which stays watched the way that it is. `name` is copied; NULL: "main". There is a
/// thread "bc-java" afterwards, attached to the VM as a daemon, until uninstall.
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
    // SAFETY: the caller's name and place, and its VM.
    unsafe { watching::begin(r#loop, name, !java_vm.is_null(), |name| watch(java_vm, name)) }
}

/// # Safety
/// `java_vm` is the process's.
#[cfg(feature = "jni")]
unsafe fn watch(java_vm: *mut c_void, name: Option<&[u8]>) -> Result<Token, bc_status> {
    use super::looper::of_failure;
    use crate::hook::java::{self, Failure};
    // SAFETY: the caller vouches for the VM.
    unsafe { java::watch(java_vm, name) }.map_err(|failure| match failure {
        Failure::Probe(failure) => of_failure(failure, "bc_java_watch"),
        Failure::NoLooper => {
            log_error!("bc_java_watch: Java's main thread has no ALooper");
            BC_ERROR_UNSUPPORTED
        }
        // It was told where it was found.
        Failure::NotSent => BC_ERROR_UNSUPPORTED,
        Failure::Thread => BC_ERROR_NO_MEMORY,
        Failure::Timeout => {
            log_error!("bc_java_watch: the main thread has not come to its message within 2 s");
            BC_ERROR_TIMEOUT
        }
    })
}

/// # Safety
/// None to keep.
#[cfg(not(feature = "jni"))]
unsafe fn watch(_: *mut c_void, _: Option<&[u8]>) -> Result<Token, bc_status> {
    log_error!("bc_java_watch: this library is built without the feature `jni`");
    Err(BC_ERROR_UNSUPPORTED)
}
