//! What version this is, and what its codes say.

use crate::abi::bc_status_value;
use core::ffi::{CStr, c_char};

/// The library's version, for example "0.1.0".
///
/// Units: none. Ownership: a constant of the library's. Threads: any, before install too.
/// Async-signal-safe: yes.
#[unsafe(no_mangle)]
pub extern "C" fn bc_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// A code in English words. Any value is safe to pass.
///
/// Units: none. Ownership: a constant of the library's. Threads: any, before install too.
/// Async-signal-safe: yes.
#[unsafe(no_mangle)]
pub extern "C" fn bc_status_str(status: bc_status_value) -> *const c_char {
    words(status.0).as_ptr()
}

// A caller may pass any number, so what arrives is looked at as one.
fn words(status: u32) -> &'static CStr {
    match status {
        0 => c"ok",
        1 => c"invalid argument",
        2 => c"invalid state: not installed, installed already, or a call that does not fit now",
        3 => c"limit reached",
        4 => c"not supported here",
        5 => c"wrong thread",
        6 => c"file or directory cannot be used",
        7 => c"no memory or no thread to be had",
        8 => c"internal fault: the library has switched itself off",
        9 => c"timeout",
        _ => c"unknown status",
    }
}
