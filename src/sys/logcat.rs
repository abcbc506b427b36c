//! Android's log, found at run time: no program has to be linked with it.
#![allow(unsafe_code)]

use super::fork;
use crate::abi::bc_log_level;
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// `__android_log_write`, which every Android has; null where it is not.
static WRITE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks for it. Takes the loader's lock, so it is done at install. Only where it is loaded: on Android it always is, and
/// another system has none, or one that nobody reads.
pub fn look_up() {
    // A child of fork makes do with what its parent has found.
    if is_there() || fork::is_child() {
        return;
    }
    // SAFETY: strings that end in a NUL. The handle is kept, so that what is found stays.
    unsafe {
        let library = libc::dlopen(c"liblog.so".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if !library.is_null() {
            WRITE.store(libc::dlsym(library, c"__android_log_write".as_ptr()), Release);
        }
    }
}

/// Is there one?
pub fn is_there() -> bool {
    !WRITE.load(Acquire).is_null()
}

/// Writes one line. `text` ends in a NUL, which is checked.
pub fn write(level: bc_log_level, text: &[u8]) {
    let function = WRITE.load(Acquire);
    if function.is_null() || text.last() != Some(&0) {
        return;
    }
    let priority = match level {
        bc_log_level::BC_LOG_ERROR => 6,
        bc_log_level::BC_LOG_WARN => 5,
        bc_log_level::BC_LOG_INFO => 4,
        bc_log_level::BC_LOG_DEBUG => 3,
    };
    // SAFETY: the NDK's function of this name has this type; both texts end in a NUL.
    unsafe {
        type Write = unsafe extern "C" fn(c_int, *const c_char, *const c_char) -> c_int;
        transmute::<*mut c_void, Write>(function)(priority, c"blockcanary".as_ptr(), text.as_ptr().cast());
    }
}
