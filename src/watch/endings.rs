//! The ends of stretches, as the monitor learns of them: posted by their own threads, brought about by a pause, a stop or
//! an unwatch, or only seen to be over.

use super::gate::GATE;
use super::late::LateEnd;
use super::looks::Looks;
use super::marks::Seen;
use super::registry;
use super::slot::{self, Slot};
use super::track::Track;
use crate::sample::case::Case;
use crate::sample::case::Phase;
use crate::sample::cpu::Reading;
use crate::sys::clock::{self, Ticks};
use crate::sys::counters::{BLOCKS_DROPPED, BLOCKS_SEEN};
use core::sync::atomic::Ordering::*;

impl Looks {
    /// Takes what the loop's thread has posted.
    pub(super) fn drain(&mut self, number: u8, slot: &Slot) {
        while let Some(end) = slot.late_ends.take() {
            self.ended(number, slot, &end);
        }
    }

    /// A stretch longer than its limit has ended, as its own thread or we have measured.
    fn ended(&mut self, number: u8, slot: &Slot, end: &LateEnd) {
        let track = self.track(number);
        if track.token != end.token || track.posted == (end.stretch, end.from) {
            return;
        }
        track.posted = (end.stretch, end.from);
        let before = track.reading;
        let queue_wait_ns = track.queue_wait_ns();
        let last = Reading { at: end.to, cpu_ns: end.cpu_ns, queue_wait_ns };
        if last.at > before.at {
            track.reading = last;
        }
        let found = {
            let evidence = self.evidence.lock();
            let found = evidence.find(number);
            found.filter(|found| evidence.case(*found).is_some_and(|c| (c.stretch, c.from) == (end.stretch, end.from)))
        };
        // Without the time in which the process did not run it may be none, and under a debugger it is nobody's.
        let excused_ns = self.ledger.stopped_within(end.from, end.to);
        let wall_ns = end.to.since(end.from).saturating_sub(excused_ns);
        let phase = found.and_then(|found| self.evidence.lock().case(found).map(|case| case.phase));
        let is_told = phase == Some(Phase::Open);
        if !is_told && (wall_ns <= end.limit_ns || phase == Some(Phase::Excused) || self.is_traced(number)) {
            if let Some(found) = found {
                self.evidence.lock().close_case(found);
            }
            return;
        }
        let case = found.or_else(|| {
            let mut case = self.new_case(number, slot, end.from, end.limit_ns);
            (case.stretch, case.phase) = (end.stretch, Phase::Late);
            (case.cpu_before, case.cpu_first) = (before, last);
            self.evidence.lock().open_case(case)
        });
        let Some(case_number) = case else {
            slot.blocks.fetch_add(1, Relaxed);
            BLOCKS_SEEN.add_one();
            BLOCKS_DROPPED.add_one();
            return;
        };
        self.find_busiest(case_number, end.from);
        let table = self.name_callback(&end.what, end.tag);
        let mut evidence = self.evidence.lock();
        evidence.end_samples(case_number, end.to);
        let Some(case) = evidence.case_mut(case_number) else { return };
        let is_first = case.phase == Phase::Late;
        if is_first {
            case.id = self.next_id;
            self.next_id += 1;
        }
        case.phase = Phase::Ended;
        case.due.ended = true;
        self.want_threads_at_end(case_number, case, is_first);
        (case.wall_ns, case.excused_ns) = (wall_ns, excused_ns);
        case.cpu_last = last;
        case.tag = end.tag;
        // Who brings the end about may come too late for the text, which was read before.
        if is_first || end.what.is_some {
            (case.what, case.table) = (end.what, table);
        }
        if is_first {
            slot.blocks.fetch_add(1, Relaxed);
            evidence.becomes_block(case_number);
        }
        drop(evidence);
        self.writer.ring();
    }

    /// A case of a stretch that is over and was not posted: it ended below its limit. One that was told as a block all the
    /// same ended in the very moment it was judged; it is closed with what is known.
    pub(super) fn drop_stale_case(&mut self, number: u8, seen: &Seen) {
        let mut evidence = self.evidence.lock();
        let Some(found) = evidence.find(number) else { return };
        let Some(case) = evidence.case(found).copied() else { return };
        let is_over = case.stretch != seen.stretch || !seen.open;
        if !is_over {
            return;
        }
        if case.phase != Phase::Open {
            evidence.close_case(found);
            return;
        }
        drop(evidence);
        self.end_open_case(number, &case, case.from.plus(case.wall_ns.max(case.limit_ns)));
    }

    fn end_open_case(&mut self, number: u8, case: &Case, to: Ticks) {
        let end = LateEnd {
            token: self.track(number).token,
            stretch: case.stretch,
            from: case.from,
            to,
            cpu_ns: clock::thread_cpu(case.tid).unwrap_or(case.cpu_last.cpu_ns),
            limit_ns: case.limit_ns,
            tag: case.tag,
            what: case.what,
        };
        self.ended(number, slot::slot(number), &end);
    }

    /// Pause or stop has ended the time that counts: so has a stretch that is open.
    pub(super) fn close_by_gate(&mut self, number: u8, slot: &Slot, seen: &Seen) {
        let closings = GATE.closings();
        if core::mem::replace(&mut self.track(number).closings, closings) == closings {
            return;
        }
        let last = GATE.before_last_closing();
        self.close_at(number, slot, seen, seen.at.max(last.from), last.to);
    }

    /// The open stretch from `from` ends at `to`, by other means than a mark.
    fn close_at(&mut self, number: u8, slot: &Slot, seen: &Seen, from: Ticks, to: Ticks) {
        if seen.open && to.since(from) > seen.limit_ns {
            let end = LateEnd {
                token: self.track(number).token,
                stretch: seen.stretch,
                from,
                to,
                cpu_ns: clock::thread_cpu(slot.tid.load(Relaxed)).unwrap_or(self.track(number).reading.cpu_ns),
                limit_ns: seen.limit_ns,
                tag: seen.tag,
                what: self.read_what(slot, seen),
            };
            self.ended(number, slot, &end);
        }
        let mut evidence = self.evidence.lock();
        if let Some(found) = evidence.find(number) {
            match evidence.case(found).copied() {
                Some(case) if case.phase == Phase::Open => {
                    drop(evidence);
                    self.end_open_case(number, &case, to.max(case.from.plus(case.wall_ns)));
                }
                _ => evidence.close_case(found),
            }
        }
    }

    /// The last look at a loop that was given up.
    pub(super) fn close(&mut self, number: u8, slot: &'static Slot, seen: &Seen) {
        let closed_at = Ticks(slot.closed_at.load(Relaxed));
        match GATE.clip(seen.at, closed_at) {
            Some((from, to)) => self.close_at(number, slot, seen, from, to),
            None => self.close_at(number, slot, seen, closed_at, closed_at),
        }
        *self.track(number) = Track::NONE;
        registry::release(slot);
    }
}
