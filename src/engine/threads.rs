//! The three threads, and a fourth for those who interpose modules.
#![allow(unsafe_code)]

use crate::report::reporter::Reporter;
use crate::report::writer::Writer;
use crate::sys::own_threads;
use crate::sys::thread::{self, Thread};
use crate::watch::ledger::WITNESS;
use crate::watch::monitor::Monitor;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

/// The monitor's and the writer's: an unwinding step and the reading of maps take some tens of KiB.
const OWN_STACK: usize = 256 * 1024;
/// The reporter's, which the program's listener runs on.
const LISTENER_STACK: usize = 512 * 1024;

/// How long a new thread is waited for.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Starts bc-monitor, or gives its state back.
pub fn start_monitor(monitor: &'static mut Monitor) -> Result<Thread, &'static mut Monitor> {
    start(c"bc-monitor", OWN_STACK, monitor, run_monitor)
}

/// Starts bc-writer, or gives its state back.
pub fn start_writer(writer: &'static mut Writer) -> Result<Thread, &'static mut Writer> {
    start(c"bc-writer", OWN_STACK, writer, run_writer)
}

/// Starts bc-reporter, or gives its state back.
pub fn start_reporter(reporter: &'static mut Reporter) -> Result<Thread, &'static mut Reporter> {
    start(c"bc-reporter", LISTENER_STACK, reporter, run_reporter)
}

/// Starts bc-keeper, whose work nothing else waits for but an uninstall. `None`: it cannot be had.
pub fn start_keeper(body: extern "C" fn(*mut c_void) -> *mut c_void) -> Option<Thread> {
    let no_state: &'static mut [u8; 0] = &mut [];
    start(c"bc-keeper", OWN_STACK, no_state, body).ok()
}

fn start<T: Send>(
    name: &'static CStr,
    stack_bytes: usize,
    state: &'static mut T,
    body: extern "C" fn(*mut c_void) -> *mut c_void,
) -> Result<Thread, &'static mut T> {
    let place = ptr::from_mut(state);
    let before = own_threads::entered();
    // SAFETY: if there is no thread, nobody else has the state.
    let started = thread::spawn(name, stack_bytes, state, body).map_err(|_| unsafe { &mut *place });
    if started.is_ok() {
        // On a busy machine it may be long until it runs, and a dump is to know it for ours before.
        own_threads::wait_until_more(before, PATIENCE_NS);
    }
    started
}

extern "C" fn run_monitor(state: *mut c_void) -> *mut c_void {
    own_threads::enter();
    // SAFETY: `start` was given this type, for this thread alone.
    unsafe { &mut *state.cast::<Monitor>() }.run();
    own_threads::leave();
    ptr::null_mut()
}

extern "C" fn run_writer(state: *mut c_void) -> *mut c_void {
    own_threads::enter();
    // SAFETY: as above.
    unsafe { &mut *state.cast::<Writer>() }.run();
    own_threads::leave();
    ptr::null_mut()
}

extern "C" fn run_reporter(state: *mut c_void) -> *mut c_void {
    own_threads::enter();
    WITNESS.store(thread::tid(), Relaxed);
    // SAFETY: as above.
    unsafe { &mut *state.cast::<Reporter>() }.run();
    WITNESS.store(0, Relaxed);
    own_threads::leave();
    ptr::null_mut()
}
