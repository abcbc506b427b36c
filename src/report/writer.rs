//! The writer: makes a parcel of each state of a block, asks whether it is wanted, files it, and hands it to the reporter.

use super::delivery::Delivery;
use super::filing::Filing;
use super::filter::{Judge, Verdict};
use super::lent;
use super::parcel::Parcel;
use super::remark;
use super::resolve::Resolver;
use super::upload::Seal;
use crate::abi::bc_block_state::{self, BC_BLOCK_ENDED, BC_BLOCK_HANG, BC_BLOCK_ONGOING};
use crate::sample::case::Due;
use crate::sample::evidence::Evidence;
use crate::sys::bell::Bell;
use crate::sys::counters::{BLOCKS_FILTERED, BLOCKS_SEEN};
use crate::sys::lock::Lock;
use crate::sys::log;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// The thread's state.
pub struct Writer {
    /// Where cases come from.
    pub evidence: &'static Lock<Evidence>,
    /// Where parcels go.
    pub delivery: &'static Delivery,
    /// Names frames.
    pub resolver: Resolver,
    /// Says which blocks are wanted.
    pub judge: Judge,
    /// Where reports go.
    pub filing: Filing,
    /// Wakes this thread.
    pub bell: &'static Bell,
    /// It shall end.
    pub quit: &'static AtomicBool,
    /// Reports that are too old shall go.
    pub tidy: &'static AtomicBool,
    /// Reports shall stay as they are.
    pub seal: &'static Seal,
}

impl Writer {
    /// Writes until it is told to quit and nothing is left.
    pub fn run(&mut self) {
        loop {
            let heard = self.bell.heard();
            let quit = self.quit.load(Acquire);
            lent::during(self, log::tell_deferred);
            if self.tidy.swap(false, AcqRel) {
                self.filing.tidy();
            }
            while self.write_next() || self.tell_next() || self.recover_next() {
                self.filing.amend(false);
                self.seal();
            }
            self.filing.amend(true);
            self.seal();
            if self.delivery.owes.swap(false, AcqRel) {
                self.delivery.progress.ring();
            }
            if quit {
                return self.close();
            }
            self.bell.sleep(heard, None);
        }
    }

    fn seal(&mut self) {
        if let Some(question) = self.seal.question() {
            self.filing.seal();
            self.seal.answer(question);
            self.delivery.progress.ring();
        }
    }

    /// Closes its files.
    pub fn close(&mut self) {
        self.filing.close();
    }

    /// Deals with one state of one block; `false`: nothing is due.
    fn write_next(&mut self) -> bool {
        let Some(parcel) = self.delivery.empty() else { return false };
        let Some((number, is_for_record)) = self.take_next(parcel) else {
            self.delivery.give_back(parcel);
            return false;
        };
        if parcel.case.is_wanted != Some(false) {
            parcel.resolve(&mut self.resolver);
            self.filing.look(parcel);
        }
        let is_end = parcel.state == BC_BLOCK_ENDED;
        let judge = self.judge;
        let verdict = lent::during(self, || judge.judge(parcel, is_end));
        parcel.case.is_wanted = match verdict {
            Verdict::Wanted => Some(true),
            Verdict::Refused => Some(false),
            Verdict::Held => None,
        };
        let is_wanted = verdict == Verdict::Wanted;
        if is_wanted && !is_end {
            self.filing.record(parcel);
        }
        if is_wanted && !is_for_record && self.filing.file(parcel) {
            self.delivery.owes.store(true, Release);
        }
        if is_end {
            self.filing.forget_record(parcel.case.id);
            BLOCKS_SEEN.add_one();
        }
        self.note(number, parcel, is_end);
        let mut is_posted = true;
        if is_wanted && !is_for_record {
            lent::during(self, || remark::block(parcel));
            is_posted = self.post(parcel);
        } else {
            if is_end {
                BLOCKS_FILTERED.add_one();
            }
            self.delivery.give_back(parcel);
        }
        if is_end {
            let mut evidence = self.evidence.lock();
            match evidence.case_mut(number).filter(|_| !is_posted) {
                Some(case) => case.due = Due { telling: true, ..Due::default() },
                None => evidence.close_case(number),
            }
        }
        self.delivery.progress.ring();
        true
    }

    /// Notes with a case what has become of a state of it. After its end nothing is to be written of it any more.
    fn note(&self, number: usize, parcel: &Parcel, is_end: bool) {
        let told = &parcel.case;
        let mut evidence = self.evidence.lock();
        if let Some(case) = evidence.case_mut(number).filter(|case| case.id == told.id) {
            (case.is_wanted, case.is_stored, case.shares) = (told.is_wanted, told.is_stored, told.shares);
            case.repeat = parcel.repeats.count;
            if is_end {
                case.due = Due::default();
            }
        }
    }

    /// Writes all that is due, for a process that ends in a callback on this thread. No listener is told any more.
    pub fn finish(&mut self) {
        loop {
            while let Some(parcel) = self.delivery.next() {
                self.delivery.delivered(parcel);
            }
            if !self.write_next() {
                return self.filing.amend(true);
            }
        }
    }

    /// Hands a parcel to the reporter; an end only when those before it have been. `false`: it has to wait.
    fn post(&self, parcel: &'static mut Parcel) -> bool {
        let is_end = parcel.state == BC_BLOCK_ENDED;
        let is_posted = if is_end && self.delivery.waits.load(Relaxed) {
            self.delivery.give_back(parcel);
            false
        } else {
            self.delivery.post(parcel)
        };
        if !is_posted {
            self.delivery.waits.store(true, Release);
        }
        is_posted
    }

    /// Tells the listeners of a block that has had to wait; `false`: there is none, or still no room.
    fn tell_next(&mut self) -> bool {
        if !self.delivery.waits.load(Relaxed) || !self.delivery.has_room() {
            return false;
        }
        let Some(parcel) = self.delivery.empty() else { return false };
        let number = {
            let mut evidence = self.evidence.lock();
            let number = evidence.next_to_tell();
            match number.and_then(|number| evidence.case_mut(number)) {
                Some(case) => {
                    // Now it gives way to no other any more.
                    case.due = Due::default();
                    let case = *case;
                    parcel.copy(&evidence, &case, BC_BLOCK_ENDED);
                }
                None => self.delivery.waits.store(false, Release),
            }
            number
        };
        let Some(number) = number else {
            self.delivery.give_back(parcel);
            return false;
        };
        parcel.resolve(&mut self.resolver);
        self.filing.look(parcel);
        self.filing.tell(parcel);
        self.delivery.post(parcel);
        self.evidence.lock().close_case(number);
        self.delivery.progress.ring();
        true
    }

    /// Files and posts a block that an earlier process was killed in; `false`: there is none, or it has to wait.
    fn recover_next(&mut self) -> bool {
        self.delivery.is_recovering.store(true, SeqCst);
        let is_found = self.delivery.recovers.load(SeqCst) && !self.quit.load(Acquire) && self.recover();
        self.delivery.is_recovering.store(false, SeqCst);
        is_found
    }

    fn recover(&mut self) -> bool {
        // What was taken out of a recorder is told by this process or never. So there is one on its way at a time: should
        // this process end meanwhile, the next one tells the others. The reporter rings when it is through with it.
        if self.delivery.holds_up_to(0) || !self.delivery.has_room() {
            return false;
        }
        let Some(parcel) = self.delivery.empty() else { return false };
        let is_news = self.filing.recover(parcel);
        if is_news == Some(true) {
            BLOCKS_SEEN.add_one();
            lent::during(self, || remark::block(parcel));
            self.delivery.post(parcel);
        } else {
            self.delivery.give_back(parcel);
        }
        if is_news.is_none() {
            self.delivery.recovers.store(false, Release);
            self.delivery.progress.ring();
        }
        is_news.is_some()
    }

    /// Copies the next case that has something due. Says which it was, and whether only the flight recorder is to know.
    fn take_next(&mut self, parcel: &mut Parcel) -> Option<(usize, bool)> {
        let mut evidence = self.evidence.lock();
        let number = evidence.next_due()?;
        let case = evidence.case_mut(number)?;
        let mut is_for_record = false;
        let has_record = core::mem::take(&mut case.due.record);
        let state: bc_block_state = if case.due.ended {
            // What the block was on its way to its end is nobody's interest any more.
            case.due = Due { ended: true, ..Due::default() };
            BC_BLOCK_ENDED
        } else if core::mem::take(&mut case.due.ongoing) {
            BC_BLOCK_ONGOING
        } else if core::mem::take(&mut case.due.hang) {
            BC_BLOCK_HANG
        } else {
            is_for_record = has_record;
            BC_BLOCK_ONGOING
        };
        let case = *case;
        parcel.copy(&evidence, &case, state);
        Some((number, is_for_record))
    }
}
