//! One look at all loops: what has ended, what is late, what has to be sampled.

use super::gate::GATE;
use super::judge::{Look, Verdict, interval_ns, judge};
use super::ledger::Ledger;
use super::marks::Seen;
use super::monitor::Outlook;
use super::pinging::ping_if_due;
use super::registry;
use super::saturation::{self, Full};
use super::slot::{self, CLOSING, Slot, WATCHED};
use super::surveys::Rounds;
use super::token::{SLOTS, Token};
use super::track::{self, Track};
use crate::log_warn;
use crate::sample::case::{Case, NAME, Phase};
use crate::sample::census::Census;
use crate::sample::cpu::{Meter, Reading};
use crate::sample::evidence::Evidence;
#[cfg(feature = "jni")]
use crate::sample::java;
use crate::sample::sampler::{self, Sampler, Taken};
use crate::sample::what::{Kind, What};
use crate::sys::bell::Bell;
use crate::sys::clock::{self, Ticks};
use crate::sys::counters::MARKS_MISUSED;
use crate::sys::lock::Lock;
use crate::sys::memory::OwnMemory;
use crate::sys::thread;
use core::sync::atomic::Ordering::*;

/// The flight recorder hears of a block once in so long, at first more often.
const RECORD_NS: u64 = 100_000_000;

/// A stretch that ends while it is judged is looked at again after so long.
const ENDING_NS: u64 = 1_000_000;

/// What the configuration says about judging.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Sample interval, 0 for a quarter of the limit. ns.
    pub interval_ns: u64,
    /// The configured limit. ns.
    pub limit_ns: u64,
    /// Hang threshold. ns.
    pub hang_ns: u64,
    /// Tell of blocks that go on.
    pub report_ongoing: bool,
    /// There is a flight recorder, which is to know of them.
    pub records: bool,
    /// The process may be made dumpable for a moment.
    pub dumpable_window: bool,
    /// Tell of blocks although a debugger is attached.
    pub while_debugging: bool,
}

/// The monitor's means.
pub struct Looks {
    /// What it keeps of each loop from look to look.
    pub tracks: &'static mut [Track; SLOTS],
    /// Where cases and samples go.
    pub evidence: &'static Lock<Evidence>,
    /// Takes samples.
    pub sampler: Sampler,
    /// Measures process and machine, where wanted.
    pub meter: Option<Meter>,
    /// Knows which threads are busy.
    pub census: Census,
    /// Rung when a block has something to be written.
    pub writer: &'static Bell,
    /// See `Terms`.
    pub terms: Terms,
    /// When the process did not run.
    pub ledger: Ledger,
    /// The next block's id.
    pub next_id: u64,
    /// Takes the stacks of all threads for blocks, where that is wanted.
    pub rounds: Option<Rounds>,
    /// The log has said that calls are misused.
    pub has_told_misuse: bool,
}

impl Looks {
    /// Looks at all loops once.
    pub fn look(&mut self) -> Outlook {
        if MARKS_MISUSED.get() > 0 && !core::mem::replace(&mut self.has_told_misuse, true) {
            log_warn!(
                "marks do not fit and are ignored (bc_health.calls_misused counts them): a dispatch on another thread than \
                 the loop's, an end without a begin, or a token that is not valid any more"
            );
        }
        let mut outlook = Outlook::new(self.terms.interval_ns, self.terms.limit_ns);
        for (number, slot) in slot::used() {
            let phase = slot.phase();
            if phase == WATCHED || phase == CLOSING {
                self.look_at(number, slot, phase, &mut outlook);
            }
        }
        outlook
    }

    /// Finds out what can be done here.
    pub fn probe(&self) {
        sampler::probe_signal_free(track::open(thread::tid(), self.terms.dumpable_window).as_ref());
    }

    /// The first mark after a moment of a stretch that is open now.
    pub fn first_mark_after(&self, moment: Ticks) -> Option<Ticks> {
        let open = slot::used().filter_map(|(_, slot)| slot.look()).filter(|seen| seen.open);
        open.map(|seen| seen.at).filter(|at| *at > moment).min()
    }

    /// Closes all files.
    pub fn close_files(&mut self) {
        self.meter = None;
        self.ledger.close();
        self.tracks.iter_mut().for_each(|track| *track = Track::NONE);
    }

    pub(super) fn track(&mut self, number: u8) -> &mut Track {
        // As many tracks as a u8 has values.
        &mut self.tracks[usize::from(number)]
    }

    fn look_at(&mut self, number: u8, slot: &'static Slot, phase: u32, outlook: &mut Outlook) {
        let token = slot.last_token.load(Acquire);
        let is_probe = slot.probe.is_used();
        if self.track(number).token != token || (is_probe && self.track(number).learns_thread(slot)) {
            *self.track(number) = Track::new(token, slot, self.terms.dumpable_window);
        }
        let Some(seen) = slot.look() else {
            // A mark is being written. The thread may be kept from finishing it, so come again soon, but not at once.
            self.drain(number, slot);
            outlook.is_active = true;
            if phase == CLOSING {
                outlook.due(Ticks::now().plus(1_000_000));
            }
            return;
        };
        // After the look: what the look has seen closed was posted before.
        self.drain(number, slot);
        if GATE.is_open() {
            self.look_for_saturation(number, slot);
        }
        let track = self.track(number);
        let is_new = core::mem::replace(&mut track.version, seen.version) != seen.version;
        self.drop_stale_case(number, &seen);
        self.close_by_gate(number, slot, &seen);
        if phase == CLOSING {
            self.close(number, slot, &seen);
            return;
        }
        let interval = interval_ns(self.terms.interval_ns, slot.limit_ns.load(Relaxed));
        outlook.interval_ns = outlook.interval_ns.min(interval);
        // A heartbeat has to be thought of, or nothing would tell when its thread begins to work.
        outlook.is_active |= is_new || ((seen.open || is_probe) && GATE.is_open());
        if is_probe && let Some(next) = ping_if_due(slot, self.track(number), Ticks::now(), interval) {
            outlook.due(next);
        }
        if slot.tid.load(Acquire) == 0 {
            return;
        }
        if !outlook.is_active && registry::hears_of_ends() {
            return;
        }
        let before = self.track(number).reading;
        let now = Ticks::now();
        let Some(cpu_ns) = clock::thread_cpu(slot.tid.load(Relaxed)) else {
            if let Some(token) = Token::from_raw(token) {
                registry::thread_is_gone(token, now);
                outlook.due(now);
            }
            return;
        };
        let reading = Reading { at: now, cpu_ns, queue_wait_ns: self.track(number).queue_wait_ns() };
        self.track(number).reading = reading;
        self.judge(number, slot, &seen, before, reading, outlook);
    }

    /// A loop that never rests, though nothing that it does takes long.
    fn look_for_saturation(&mut self, number: u8, slot: &Slot) {
        let (at, tally) = (Ticks::now(), slot.marks.tally());
        let reading =
            saturation::Reading { at, busy_ns: tally.busy_ns(), frozen: tally.frozen(), closings: GATE.closings() };
        if let Some(Full { percent, over_ns }) = self.track(number).saturation.add(reading) {
            let mut name = [0; NAME + 1];
            slot.copy_name(&mut name);
            let name = name.split(|byte| *byte == 0).next().and_then(|name| name.utf8_chunks().next());
            let (name, seconds) = (name.map_or("", |name| name.valid()), over_ns / 1_000_000_000);
            log_warn!("loop {name:?} was busy {percent} % of {seconds} s: its queue is never empty");
        }
    }

    fn judge(
        &mut self,
        number: u8,
        slot: &'static Slot,
        seen: &Seen,
        before: Reading,
        reading: Reading,
        outlook: &mut Outlook,
    ) {
        let interval_ns = interval_ns(self.terms.interval_ns, seen.limit_ns);
        let excused_ns = self.ledger.stopped_within(seen.at.max(GATE.opened()), reading.at);
        let mut look = Look {
            now: reading.at,
            open: seen.open,
            at: seen.at,
            gate_opened: GATE.opened(),
            excused_ns,
            is_traced: false,
            limit_ns: seen.limit_ns,
            hang_ns: self.terms.hang_ns,
            interval_ns,
        };
        let (from, mut verdict) = judge(&look);
        // Asked only where it matters: a debugger may come and go.
        if matches!(verdict, Verdict::Block | Verdict::Hang) && self.is_traced(number) {
            look.is_traced = true;
            (_, verdict) = judge(&look);
        }
        // Posted already, its thread on the way to the mark that says so.
        if self.track(number).posted == (seen.stretch, from) {
            return;
        }
        let case = match verdict {
            Verdict::Idle => return,
            Verdict::Running => return outlook.due(from.plus(interval_ns)),
            Verdict::Late | Verdict::Block | Verdict::Hang | Verdict::Excused => {
                let found = self.evidence.lock().find(number);
                match found.or_else(|| self.open_case(number, slot, seen, from, interval_ns, before, reading)) {
                    Some(case) => case,
                    // All places are taken by blocks that wait for the writer: try again soon.
                    None => return outlook.due(reading.at.plus(interval_ns)),
                }
            }
        };
        match verdict {
            Verdict::Block | Verdict::Hang
                if !self.passes_limit(case, slot, seen, reading, verdict == Verdict::Hang) =>
            {
                outlook.due(reading.at.plus(ENDING_NS));
            }
            Verdict::Excused => self.excuse(case),
            _ => {}
        }
        self.sample_if_due(number, case, slot, reading.at);
        let evidence = self.evidence.lock();
        let Some(case) = evidence.case(case) else { return };
        outlook.due(case.next_tick());
        if verdict == Verdict::Late {
            outlook.due(from.plus(seen.limit_ns).plus(1));
        } else if verdict == Verdict::Block {
            outlook.due(from.plus(self.terms.hang_ns.max(seen.limit_ns)).plus(1));
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn open_case(
        &mut self,
        number: u8,
        slot: &Slot,
        seen: &Seen,
        from: Ticks,
        interval_ns: u64,
        before: Reading,
        first: Reading,
    ) -> Option<usize> {
        self.sampler.new_stretch();
        self.track(number).look_at_stack(slot);
        self.census.begin(first.at);
        if let Some(meter) = &mut self.meter {
            meter.begin(first.at);
        }
        let mut case = self.new_case(number, slot, from, seen.limit_ns);
        case.phase = Phase::Late;
        case.stretch = seen.stretch;
        case.interval_ns = interval_ns;
        case.cpu_before = before;
        case.cpu_first = first;
        case.cpu_last = first;
        case.account.begin(from, self.track(number).scheduling(case.tid));
        self.evidence.lock().open_case(case)
    }

    /// A case but for what only its maker knows.
    pub(super) fn new_case(&mut self, number: u8, slot: &Slot, from: Ticks, limit_ns: u64) -> Case {
        let mut case = Case::FREE;
        let age_ms = (Ticks::now().since(from) / 1_000_000) as i64;
        case.slot = number;
        case.tid = slot.tid.load(Relaxed);
        slot.copy_name(&mut case.loop_name);
        case.from = from;
        case.start_unix_ms = clock::unix_ms().saturating_sub(age_ms);
        case.limit_ns = limit_ns;
        case.interval_ns = interval_ns(self.terms.interval_ns, limit_ns);
        case
    }

    /// A stretch is over its limit, or over the hang threshold. `false`: it has ended meanwhile, or is about to. It is told
    /// as what it was by its end alone then, because its text may be gone.
    fn passes_limit(&mut self, number: usize, slot: &Slot, seen: &Seen, reading: Reading, is_hang: bool) -> bool {
        let what = self.read_what(slot, seen);
        if !is_still(slot, seen) {
            return false;
        }
        let table = self.name_callback(&what, seen.tag);
        if self.is_news(number, is_hang) {
            #[cfg(feature = "jni")]
            java::want(slot.token.load(Relaxed), seen.stretch);
            if self.rounds.is_some() {
                // All are taken anew.
                self.evidence.lock().forget_others(number);
            }
            self.look_closer(number);
        }
        let Some(from) = self.evidence.lock().case(number).map(|case| case.from) else { return true };
        let excused_ns = self.ledger.stopped_within(from, reading.at);
        let mut evidence = self.evidence.lock();
        let Some(case) = evidence.case_mut(number) else { return true };
        if case.phase == Phase::Excused {
            return true;
        }
        case.excused_ns = excused_ns;
        case.wall_ns = reading.at.since(case.from).saturating_sub(case.excused_ns);
        case.cpu_last = reading;
        let is_first = case.phase == Phase::Late;
        if is_first {
            case.phase = Phase::Open;
            (case.what, case.tag, case.table) = (what, seen.tag, table);
            case.id = self.next_id;
            self.next_id += 1;
            case.due.ongoing = self.terms.report_ongoing && !is_hang;
            (case.due.record, case.recorded) = (self.terms.records, reading.at);
        }
        let tells_hang = is_hang && !core::mem::replace(&mut case.is_hang, is_hang);
        case.due.hang |= tells_hang;
        if is_first || tells_hang {
            self.want_threads(case);
        }
        if is_first {
            slot.blocks.fetch_add(1, Relaxed);
            evidence.becomes_block(number);
        }
        if is_first || tells_hang {
            drop(evidence);
            self.writer.ring();
        }
        true
    }

    /// Will something be told of a case that has not been?
    fn is_news(&self, number: usize, is_hang: bool) -> bool {
        let evidence = self.evidence.lock();
        evidence.case(number).is_some_and(|case| case.phase == Phase::Late || (is_hang && !case.is_hang))
    }

    /// A debugger is attached to the loop's thread now, and blocks are not told then.
    pub(super) fn is_traced(&mut self, number: u8) -> bool {
        #[cfg(feature = "jni")]
        if !self.terms.while_debugging && java::is_debugged(self.track(number).token) {
            return true;
        }
        !self.terms.while_debugging && self.track(number).is_traced()
    }

    /// A stretch passes its limit under a debugger: it will not be told, whatever becomes of it.
    fn excuse(&self, number: usize) {
        let mut evidence = self.evidence.lock();
        if let Some(case) = evidence.case_mut(number).filter(|case| case.phase == Phase::Late) {
            case.phase = Phase::Excused;
        }
    }

    /// The caller's text, which its thread may free at any moment: read by the kernel, and believed only if the
    /// dispatch was still open afterwards.
    pub(super) fn read_what(&self, slot: &Slot, seen: &Seen) -> What {
        if seen.what.is_null() {
            return What::NONE;
        }
        let mut bytes = [0; crate::sample::what::WHAT];
        let length = OwnMemory::new().copy(seen.what.addr() as u64, &mut bytes);
        let what = What::from_bytes(seen.what, bytes.get(..length).unwrap_or(&[]));
        if is_still(slot, seen) { what } else { What::NONE }
    }

    /// A looper's callback is called by its function's name: finds it, and says by which table of modules.
    pub(super) fn name_callback(&mut self, what: &What, tag: u64) -> u32 {
        if what.kind == Kind::Callback { self.sampler.name_function(tag) } else { 0 }
    }

    fn sample_if_due(&mut self, number: u8, case: usize, slot: &'static Slot, now: Ticks) {
        let (keeps, stretch) = {
            let mut evidence = self.evidence.lock();
            let Some(case) = evidence.case_mut(case) else { return };
            if now < case.next_tick() {
                return;
            }
            case.ticks = now.since(case.from) / case.interval_ns.max(1);
            (case.ticks % case.stride == 0, case.stretch)
        };
        if !keeps {
            return;
        }
        #[cfg(feature = "jni")]
        java::want(slot.token.load(Relaxed), stretch);
        let track = &mut self.tracks[usize::from(number)];
        let scheduling = track.scheduling(slot.tid.load(Relaxed));
        let mut subject = track.subject(slot, stretch);
        let taken = self.sampler.sample(&mut subject);
        if let Taken::Sample(mut sample) = taken {
            self.enter(case, sample.doing, sample.thread_state, scheduling);
            sample.cpu = self.meter.as_mut().and_then(|meter| meter.tick(Ticks::now()));
            let frames = self.sampler.frames().get(..sample.frame_count as usize).unwrap_or(&[]);
            let mut evidence = self.evidence.lock();
            evidence.add_sample(case, sample, frames);
            let records = self.terms.records && evidence.case_mut(case).is_some_and(|case| record_if_due(case, now));
            drop(evidence);
            if records {
                self.writer.ring();
            }
        }
    }
}

/// Tells the flight recorder of a block that goes on: whenever it has become longer by a quarter, because the first samples
/// tell most, or by `RECORD_NS`, which is so seldom that it costs nothing.
fn record_if_due(case: &mut Case, now: Ticks) -> bool {
    let patience_ns = (case.recorded.since(case.from) / 4).min(RECORD_NS);
    let is_due = case.phase == Phase::Open && now.since(case.recorded) >= patience_ns;
    if is_due {
        (case.due.record, case.recorded) = (true, now);
    }
    is_due
}

/// Does the stretch that was seen still go on?
fn is_still(slot: &Slot, seen: &Seen) -> bool {
    slot.look().is_some_and(|now| now.open && now.stretch == seen.stretch)
}
