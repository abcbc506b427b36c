//! The writer, lent to a function of the program's while that runs: should it end the process by `exit`, what the writer
//! owes is written from within it, because the writer's thread will not come back.
#![allow(unsafe_code)]

use super::writer::Writer;
use crate::sys::thread;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::Relaxed};

/// Who has it: the thread that it was lent on, 0 for nobody. Others compare it with themselves, so that all of this is
/// that thread's own.
static BORROWER: AtomicI32 = AtomicI32::new(0);
static WRITER: AtomicPtr<Writer> = AtomicPtr::new(ptr::null_mut());

/// Lends the writer while `run` runs, which therefore has nothing that belongs to it.
pub fn during<T>(writer: &mut Writer, run: impl FnOnce() -> T) -> T {
    // It may be lent again by who has it.
    let before = (WRITER.swap(writer, Relaxed), BORROWER.swap(thread::tid(), Relaxed));
    let result = run();
    WRITER.store(before.0, Relaxed);
    BORROWER.store(before.1, Relaxed);
    result
}

/// Uses the writer, if the calling thread has it.
pub fn with(make_use: impl FnOnce(&mut Writer)) {
    if BORROWER.load(Relaxed) != thread::tid() {
        return;
    }
    // SAFETY: made by `during` of a reference that lives on below this call on the same stack, and is not used until `run`
    // has returned; that has nothing of the writer's.
    if let Some(writer) = unsafe { WRITER.load(Relaxed).as_mut() } {
        make_use(writer);
    }
}
