//! What happens when the library finds a fault of its own.
#![allow(unsafe_code)]

use crate::sys::fault;
use crate::sys::futex;
use crate::sys::own_threads;
use core::sync::atomic::AtomicU32;

/// No panic can be reached from a mark or the signal handler. One on a thread of the library's own switches the library
/// off and parks that thread; what is left is a configuration call of the program's, which cannot go on.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    fault::disable();
    if !own_threads::is_own_thread() {
        // SAFETY: abort takes nothing and does not return.
        unsafe { libc::abort() }
    }
    static NEVER: AtomicU32 = AtomicU32::new(0);
    loop {
        futex::wait(&NEVER, 0, None);
    }
}

/// The prebuilt `core` refers to this name; with panics that abort nobody calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
