//! What happens when the library finds a fault of its own.
#![allow(unsafe_code)]

/// No panic can be reached from a mark or the signal handler. What is left happens on the library's own threads or in
/// a configuration call.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort takes nothing and does not return.
    unsafe { libc::abort() }
}

/// The prebuilt `core` refers to this name; with panics that abort nobody calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
