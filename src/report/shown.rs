//! The blocks that the program has before its eyes: those that a callback was given and has not returned from.
//!
//! A `bc_block` says less than a report. Of one that is shown the whole is at hand, known by the structure's address.
#![allow(unsafe_code)]

use super::parcel::Parcel;
use crate::abi::bc_block;
use crate::sys::lock::Lock;
use core::ptr::NonNull;

/// One for each thread that shows blocks: bc-reporter to the listeners, bc-writer to the filter.
static PLACES: [Lock<Option<Shown>>; 2] = [const { Lock::new(None) }; 2];

struct Shown {
    /// The structure's address.
    at: usize,
    parcel: NonNull<Parcel>,
}

// SAFETY: the parcel is read only, and stays as it is while it is shown.
unsafe impl Send for Shown {}

/// Who shows it.
#[derive(Clone, Copy)]
pub enum To {
    /// The listeners.
    Listeners,
    /// The filter.
    Filter,
}

/// Shows a block for as long as `run` takes.
pub fn show(parcel: &Parcel, to: To, run: impl FnOnce(&bc_block)) {
    let place = match to {
        To::Listeners => &PLACES[0],
        To::Filter => &PLACES[1],
    };
    let block = parcel.c_block();
    *place.lock() = Some(Shown { at: (&raw const block).addr(), parcel: NonNull::from(parcel) });
    run(&block);
    // Waits for whoever still reads.
    *place.lock() = None;
}

/// Calls `read` with the parcel of a block that is shown; `None` if this one is not.
pub fn with<T>(block: *const bc_block, read: impl FnOnce(&Parcel) -> T) -> Option<T> {
    for place in &PLACES {
        let shown = place.lock();
        if let Some(shown) = shown.as_ref().filter(|shown| shown.at == block.addr()) {
            // SAFETY: `show` borrows it until it has taken it out of here, which waits for this lock.
            return Some(read(unsafe { shown.parcel.as_ref() }));
        }
    }
    None
}

/// In a child of fork: the threads that showed something are gone.
pub fn forget() {
    for place in &PLACES {
        place.free_after_fork();
        *place.lock() = None;
    }
}
