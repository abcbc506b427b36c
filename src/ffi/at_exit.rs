//! The end of the process by `exit` or a return of `main`.
#![allow(unsafe_code)]

use crate::engine::life;

/// Called after the handlers of `atexit` and the destructors of C++, and when a library that contains us is unloaded: not
/// registered at run time, so that nothing is left behind.
// SAFETY: the section holds addresses of functions without arguments or result, which this is.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    life::at_exit();
}
