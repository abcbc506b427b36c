//! The reporter: runs the listeners, one block at a time, and the uploader, and nothing else. It may be stuck there; nobody waits for it.

use super::delivery::Delivery;
use super::listeners;
use super::parcel::Parcel;
use super::shown::{self, To};
use super::upload::Uploads;
use crate::abi::bc_block_listener;
use crate::sample::case::Phase;
use crate::sample::evidence::Evidence;
use crate::sys::bell::Bell;
use crate::sys::counters::BLOCKS_DELIVERED;
use crate::sys::lock::Lock;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// Counts what the reporter had to do. While this stands, it has slept, and has run only if something woke all threads.
pub static WORK: AtomicU32 = AtomicU32::new(0);

/// The thread's state.
pub struct Reporter {
    /// Where parcels come from.
    pub delivery: &'static Delivery,
    /// Tells whether a block still goes on.
    pub evidence: &'static Lock<Evidence>,
    /// Wakes the writer.
    pub writer: &'static Bell,
    /// Reports that are to be sent, if there are reports.
    pub uploads: Option<Uploads>,
    /// It shall begin no callback.
    pub hold: &'static AtomicBool,
    /// It shall end.
    pub quit: &'static AtomicBool,
}

impl Reporter {
    /// Delivers until it is told to quit.
    pub fn run(&mut self) {
        if let Some(uploads) = &self.uploads {
            uploads.finish_interrupted();
        }
        loop {
            let heard = self.delivery.reporter.heard();
            while self.may_call() {
                self.upload();
                let Some(parcel) = self.delivery.next() else { break };
                WORK.fetch_add(1, Relaxed);
                self.deliver(parcel);
                self.delivery.delivered(parcel);
                if self.delivery.waits.load(Acquire) || self.delivery.recovers.load(Acquire) {
                    self.writer.ring();
                }
            }
            if self.quit.load(Acquire) {
                return;
            }
            self.delivery.reporter.sleep(heard, None);
        }
    }

    fn may_call(&self) -> bool {
        !self.quit.load(Acquire) && !self.hold.load(Acquire)
    }

    fn upload(&self) {
        if let Some(uploads) = &self.uploads
            && uploads.is_wanted.swap(false, AcqRel)
        {
            uploads.run(&|| self.may_call());
        }
    }

    fn deliver(&self, parcel: &Parcel) {
        if !parcel.is_last() {
            let id = parcel.case.id;
            let goes_on = self.evidence.lock().cases().iter().any(|case| case.id == id && case.phase == Phase::Open);
            if !goes_on {
                return;
            }
        }
        shown::show(parcel, To::Listeners, |block| {
            listeners::each(|listener, user_data| call(listener, block, user_data));
        });
        if parcel.is_last() {
            BLOCKS_DELIVERED.add_one();
        }
    }
}

#[allow(unsafe_code)]
fn call(listener: bc_block_listener, block: &crate::abi::bc_block, user_data: *mut core::ffi::c_void) {
    if let Some(listener) = listener {
        // SAFETY: the program gave the listener for this, with this user data; the block's memory is the parcel's.
        unsafe { listener(block, user_data) };
    }
}
