//! The fixed store of cases and samples, shared by the monitor, which fills it, and the writer, which empties it.
//!
//! Samples are shared fairly: a case may hold its part of the capacity, and when it has that it is thinned to every
//! second one, evenly over its whole length. A case below its part that finds nothing free thins the largest case.

use super::case::{Case, Phase};
use super::cpu::CpuTick;
use super::doing::Doing;
use super::short::Short;
use crate::abi::bc_sample_method;
use crate::sys::clock::Ticks;
use crate::sys::counters::{BLOCKS_DROPPED, SAMPLES_LOST};
use crate::unwind::walk::MOST_SIGNALS;

/// Samples that each late case may hold whatever the others do.
pub const FEWEST: u32 = 4;

/// Places for samples of other threads, beside those for the loops' own.
pub const OTHERS: usize = 32;

/// What another thread may have to do with a block, in words.
pub const ROLES: [&str; 3] = ["lock holder", "awaited thread", INTERNAL];
/// The role of the library's own threads.
pub const INTERNAL: &str = "internal";

/// A thread that has to do with a block and is not its loop's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherThread {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: Short<15>,
    /// What it has to do with it: one of `ROLES`; `None`: nothing that is known.
    pub role: Option<&'static str>,
    /// It is another loop's.
    pub is_watched: bool,
}

/// One sample but for its frames.
#[derive(Clone, Copy)]
pub struct Sample {
    /// When.
    pub at: Ticks,
    /// It belongs to the block's samples; otherwise it is there for the CPU load alone.
    pub is_listed: bool,
    /// How it was taken.
    pub method: bc_sample_method,
    /// State letter, 0 unknown.
    pub thread_state: u8,
    /// What the thread did, and in which system call.
    pub doing: Doing,
    /// See `bc_sample`.
    pub truncated: bool,
    /// See `bc_sample`.
    pub approximate: bool,
    /// See `bc_sample`.
    pub frames_cut: u32,
    /// Frames.
    pub frame_count: u32,
    /// The table of modules that its frames were named by.
    pub table: u32,
    /// The frames, but for the innermost, whose pc is where a signal interrupted them; 0 for none.
    pub interrupted: [u16; MOST_SIGNALS],
    /// CPU load at this time.
    pub cpu: Option<CpuTick>,
    /// Another thread than the loop's, that has to do with the block.
    pub other: Option<OtherThread>,
    /// The next sample of the case, or the next free one.
    next: Option<u32>,
}

impl Sample {
    /// No stack.
    pub const EMPTY: Sample = Sample {
        at: Ticks(0),
        is_listed: true,
        method: bc_sample_method::BC_SAMPLE_NO_STACK,
        thread_state: 0,
        doing: Doing::Unknown,
        truncated: false,
        approximate: false,
        frames_cut: 0,
        frame_count: 0,
        table: 0,
        interrupted: [0; MOST_SIGNALS],
        cpu: None,
        other: None,
        next: None,
    };

    /// The frame's pc is a return address.
    pub fn is_outer(&self, frame: usize) -> bool {
        frame > 0 && !self.interrupted.iter().any(|interrupted| usize::from(*interrupted) == frame)
    }
}

/// See above.
pub struct Evidence {
    cases: &'static mut [Case],
    samples: &'static mut [Sample],
    frames: &'static mut [u64],
    depth: usize,
    free: Option<u32>,
    /// Samples for the loops' own threads; those behind are for others.
    own: usize,
    free_others: Option<u32>,
    order: u64,
}

impl Evidence {
    /// Empty. `frames` has `depth` places for each of `samples`, of which the last `others` are for other threads.
    pub fn new(
        cases: &'static mut [Case],
        samples: &'static mut [Sample],
        frames: &'static mut [u64],
        depth: usize,
        others: usize,
    ) -> Evidence {
        let own = samples.len().saturating_sub(others);
        let mut evidence = Evidence { cases, samples, frames, depth, free: None, own, free_others: None, order: 0 };
        (0..evidence.samples.len()).for_each(|number| evidence.give_free(number as u32));
        evidence
    }

    /// All cases.
    pub fn cases(&self) -> &[Case] {
        self.cases
    }

    /// Does the block of this id go on, or wait to be stored? One that waits for nothing but the listeners does not.
    pub fn is_open(&self, id: u64) -> bool {
        self.cases.iter().any(|case| case.id == id && case.is_open())
    }

    /// Is a report with this id the one of a block that `is_open`, its own or one that it shares?
    pub fn needs_report(&self, id: u64) -> bool {
        id != 0 && self.cases.iter().any(|case| (case.id == id || case.shares == id) && case.is_open())
    }

    /// A case.
    pub fn case(&self, number: usize) -> Option<&Case> {
        self.cases.get(number)
    }

    /// A case.
    pub fn case_mut(&mut self, number: usize) -> Option<&mut Case> {
        self.cases.get_mut(number)
    }

    /// The late or open case of a loop.
    pub fn find(&self, slot: u8) -> Option<usize> {
        self.cases
            .iter()
            .position(|case| case.slot == slot && matches!(case.phase, Phase::Late | Phase::Open | Phase::Excused))
    }

    /// Puts a new case in; `None` when all places are taken. What waits for nothing but the listeners gives way.
    pub fn open_case(&mut self, case: Case) -> Option<usize> {
        let free = self.cases.iter().position(|case| case.phase == Phase::Free);
        let number = free.or_else(|| {
            let oldest = self.next_to_tell()?;
            self.close_case(oldest);
            BLOCKS_DROPPED.add_one();
            Some(oldest)
        })?;
        *self.cases.get_mut(number)? = case;
        Some(number)
    }

    /// The case becomes a block: gives it its place in the order.
    pub fn becomes_block(&mut self, number: usize) {
        self.order += 1;
        if let Some(case) = self.cases.get_mut(number) {
            case.order = self.order;
        }
    }

    /// The order of the latest block.
    pub fn last_order(&self) -> u64 {
        self.order
    }

    /// Is there a block up to this order that has ended and is not written yet?
    pub fn has_ended_up_to(&self, order: u64) -> bool {
        self.cases.iter().any(|case| case.phase == Phase::Ended && case.order <= order)
    }

    /// Is there a block up to this order that has ended and is not stored yet? Others may wait for the listeners still.
    pub fn has_unstored_up_to(&self, order: u64) -> bool {
        self.cases.iter().any(|case| case.due.ended && case.order <= order)
    }

    /// The next case that the writer has something to do with, oldest block first.
    pub fn next_due(&self) -> Option<usize> {
        let due = self.cases.iter().enumerate().filter(|(_, case)| case.due.any() && case.held.is_none());
        due.min_by_key(|(_, case)| case.order).map(|(number, _)| number)
    }

    /// The next block that the listeners are still to be told of, the oldest.
    pub fn next_to_tell(&self) -> Option<usize> {
        let waiting = self.cases.iter().enumerate().filter(|(_, case)| case.due.telling);
        waiting.min_by_key(|(_, case)| case.order).map(|(number, _)| number)
    }

    /// Frees a case and its samples.
    pub fn close_case(&mut self, number: usize) {
        let first = self.cases.get(number).and_then(|case| case.first_sample);
        self.give_all_free(first);
        self.forget_others(number);
        if let Some(case) = self.cases.get_mut(number) {
            *case = Case::FREE;
        }
    }

    fn give_all_free(&mut self, first: Option<u32>) {
        let mut next = first;
        while let Some(sample) = next {
            next = self.samples.get(sample as usize).and_then(|sample| sample.next);
            self.give_free(sample);
        }
    }

    /// Frees a case's samples of other threads.
    pub fn forget_others(&mut self, number: usize) {
        let first = self.cases.get_mut(number).and_then(|case| case.first_other.take());
        self.give_all_free(first);
    }

    /// Adds a sample of another thread to a case, behind those that it has. `false`: there was no place for it.
    pub fn add_other(&mut self, number: usize, mut sample: Sample, frames: &[u64]) -> bool {
        let Some(place) = self.free_others.filter(|_| number < self.cases.len()) else {
            SAMPLES_LOST.add_one();
            return false;
        };
        self.free_others = self.samples.get(place as usize).and_then(|sample| sample.next);
        sample.next = None;
        self.fill(place, sample, frames);
        let mut last = None;
        let mut next = self.cases.get(number).and_then(|case| case.first_other);
        while let Some(there) = next {
            last = next;
            next = self.samples.get(there as usize).and_then(|sample| sample.next);
        }
        match last.and_then(|last| self.samples.get_mut(last as usize)) {
            Some(last) => last.next = Some(place),
            None => self.cases.iter_mut().skip(number).take(1).for_each(|case| case.first_other = Some(place)),
        }
        true
    }

    fn fill(&mut self, place: u32, mut sample: Sample, frames: &[u64]) {
        let room = self.frames.get_mut(place as usize * self.depth..).and_then(|rest| rest.get_mut(..self.depth));
        let kept = room.map_or(0, |room| room.iter_mut().zip(frames).map(|(to, from)| *to = *from).count());
        sample.frame_count = kept as u32;
        if let Some(to) = self.samples.get_mut(place as usize) {
            *to = sample;
        }
    }

    /// Adds a sample to a case, thinning where needed. `false`: there was no place for it.
    pub fn add_sample(&mut self, number: usize, mut sample: Sample, frames: &[u64]) -> bool {
        let Some(case) = self.cases.get(number) else { return false };
        if case.sample_count >= self.fair_part() {
            self.thin(number);
            // What the new stride leaves out is left out from here on.
            if self.cases.get(number).is_none_or(|case| case.ticks % case.stride != 0) {
                SAMPLES_LOST.add_one();
                return true;
            }
        } else if self.free.is_none() {
            let largest = self.cases.iter().enumerate().max_by_key(|(_, case)| case.sample_count);
            if let Some((largest, _)) = largest {
                self.thin(largest);
            }
        }
        let Some(place) = self.free else {
            SAMPLES_LOST.add_one();
            return false;
        };
        self.free = self.samples.get(place as usize).and_then(|sample| sample.next);
        sample.next = None;
        self.fill(place, sample, frames);
        let last = self.cases.get(number).and_then(|case| case.last_sample);
        if let Some(last) = last.and_then(|last| self.samples.get_mut(last as usize)) {
            last.next = Some(place);
        }
        if let Some(case) = self.cases.get_mut(number) {
            case.first_sample = case.first_sample.or(Some(place));
            case.last_sample = Some(place);
            case.sample_count += 1;
        }
        true
    }

    /// A case's samples with their frames, oldest first.
    pub fn samples(&self, case: &Case) -> impl Iterator<Item = (&Sample, &[u64])> {
        self.samples_from(case.first_sample)
    }

    /// A case's samples of other threads with their frames.
    pub fn others(&self, case: &Case) -> impl Iterator<Item = (&Sample, &[u64])> {
        self.samples_from(case.first_other)
    }

    fn samples_from(&self, first: Option<u32>) -> impl Iterator<Item = (&Sample, &[u64])> {
        let mut next = first;
        core::iter::from_fn(move || {
            let place = next? as usize;
            let sample = self.samples.get(place)?;
            next = sample.next;
            let frames = self.frames.get(place * self.depth..).and_then(|rest| rest.get(..sample.frame_count as usize));
            Some((sample, frames.unwrap_or(&[])))
        })
    }

    /// Samples that a case may hold: the capacity in equal parts for all that are late.
    fn fair_part(&self) -> u32 {
        let late = self.cases.iter().filter(|case| matches!(case.phase, Phase::Late | Phase::Open)).count();
        ((self.own / late.max(1)) as u32).max(FEWEST)
    }

    /// Frees every second sample of a case, the second first, and lets every second tick go by from now on.
    fn thin(&mut self, number: usize) {
        let Some(case) = self.cases.get_mut(number) else { return };
        case.stride = case.stride.saturating_mul(2);
        let mut keep = case.first_sample;
        while let Some(kept) = keep {
            let dropped = self.samples.get(kept as usize).and_then(|sample| sample.next);
            let after = dropped.and_then(|dropped| self.samples.get(dropped as usize)).and_then(|sample| sample.next);
            if let Some(sample) = self.samples.get_mut(kept as usize) {
                sample.next = after;
            }
            if let Some(case) = self.cases.get_mut(number) {
                case.last_sample = Some(kept);
                case.sample_count -= u32::from(dropped.is_some());
            }
            if let Some(dropped) = dropped {
                self.give_free(dropped);
                SAMPLES_LOST.add_one();
            }
            keep = after;
        }
    }

    /// Frees samples that were taken after the end of a case. Its thread reads the clock first and tells then: in between it
    /// may have lost its processor for a while, and is found ending the stretch.
    pub fn end_samples(&mut self, number: usize, end: Ticks) {
        let Some(case) = self.cases.get_mut(number) else { return };
        let (mut next, mut kept) = (case.first_sample, None);
        case.sample_count = 0;
        while let Some(sample) =
            next.and_then(|place| self.samples.get(place as usize)).filter(|sample| sample.at <= end)
        {
            (kept, next) = (next, sample.next);
            case.sample_count += 1;
        }
        case.last_sample = kept;
        match kept.and_then(|kept| self.samples.get_mut(kept as usize)) {
            Some(kept) => kept.next = None,
            None => case.first_sample = None,
        }
        while let Some(place) = next {
            next = self.samples.get(place as usize).and_then(|sample| sample.next);
            self.give_free(place);
            SAMPLES_LOST.add_one();
        }
    }

    fn give_free(&mut self, number: u32) {
        let free = if (number as usize) < self.own { &mut self.free } else { &mut self.free_others };
        if let Some(sample) = self.samples.get_mut(number as usize) {
            sample.next = free.replace(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(capacity: usize) -> Evidence {
        let leak = |count: usize| vec![0u64; count].leak();
        let all = capacity + 2;
        Evidence::new(vec![Case::FREE; 8].leak(), vec![Sample::EMPTY; all].leak(), leak(all * 4), 4, 2)
    }

    fn late(slot: u8) -> Case {
        Case { phase: Phase::Late, slot, ..Case::FREE }
    }

    fn feed(evidence: &mut Evidence, case: usize, ticks: core::ops::RangeInclusive<u64>) {
        for tick in ticks {
            let now = evidence.case_mut(case).unwrap();
            now.ticks = tick;
            if tick % now.stride == 0 {
                evidence.add_sample(case, Sample { at: Ticks(tick), ..Sample::EMPTY }, &[tick, tick + 1]);
            }
        }
    }

    fn times(evidence: &Evidence, case: usize) -> Vec<u64> {
        evidence.samples(evidence.case(case).unwrap()).map(|(sample, _)| sample.at.0).collect()
    }

    #[test]
    fn a_long_block_is_thinned_evenly() {
        let mut evidence = evidence(16);
        let case = evidence.open_case(late(1)).unwrap();
        feed(&mut evidence, case, 1..=1000);
        let times = times(&evidence, case);
        assert!((8..=16).contains(&times.len()), "{times:?}");
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(most - least <= gaps[gaps.len() - 1], "{times:?}");
        assert!(times[times.len() - 1] > 900, "{times:?}");
        let (_, frames) = evidence.samples(evidence.case(case).unwrap()).last().unwrap();
        assert_eq!(frames, [times[times.len() - 1], times[times.len() - 1] + 1]);
    }

    #[test]
    fn samples_after_the_end_do_not_count() {
        let mut evidence = evidence(16);
        for (end, left) in [(16, 16), (10, 10), (1, 1), (0, 0)] {
            let case = evidence.open_case(late(1)).unwrap();
            feed(&mut evidence, case, 1..=16);
            evidence.end_samples(case, Ticks(end));
            assert_eq!(times(&evidence, case), (1..=left).collect::<Vec<_>>());
            assert_eq!(evidence.case(case).unwrap().sample_count, left as u32);
            // Their places are there again.
            feed(&mut evidence, case, left + 1..=16);
            assert_eq!(times(&evidence, case), (1..=16).collect::<Vec<_>>());
            evidence.close_case(case);
        }
    }

    #[test]
    fn each_late_case_gets_its_part() {
        let mut evidence = evidence(16);
        let first = evidence.open_case(late(0)).unwrap();
        feed(&mut evidence, first, 1..=16);
        assert_eq!(times(&evidence, first).len(), 16);
        for slot in 1..4 {
            let case = evidence.open_case(late(slot)).unwrap();
            feed(&mut evidence, case, 1..=4);
            assert_eq!(times(&evidence, case), [1, 2, 3, 4]);
        }
        assert!(times(&evidence, first).len() >= 4);
    }

    #[test]
    fn a_closed_case_gives_everything_back() {
        let mut evidence = evidence(16);
        for _ in 0..100 {
            let case = evidence.open_case(late(0)).unwrap();
            feed(&mut evidence, case, 1..=16);
            assert_eq!(times(&evidence, case).len(), 16);
            evidence.close_case(case);
        }
        assert_eq!(evidence.find(0), None);
    }

    #[test]
    fn other_threads_have_places_of_their_own() {
        let mut evidence = evidence(16);
        for _ in 0..10 {
            let case = evidence.open_case(late(0)).unwrap();
            feed(&mut evidence, case, 1..=16);
            for tid in 1..=2 {
                let other = Some(OtherThread { tid, name: Short::EMPTY, role: Some("holder"), is_watched: false });
                assert!(evidence.add_other(case, Sample { other, ..Sample::EMPTY }, &[tid as u64]));
            }
            assert!(!evidence.add_other(case, Sample::EMPTY, &[]));
            let others = |evidence: &Evidence| -> Vec<(i32, u64)> {
                let others = evidence.others(evidence.case(case).unwrap());
                others.map(|(sample, frames)| (sample.other.unwrap().tid, frames[0])).collect()
            };
            assert_eq!(others(&evidence), [(1, 1), (2, 2)]);
            assert_eq!(times(&evidence, case).len(), 16);
            evidence.forget_others(case);
            assert_eq!(others(&evidence), []);
            assert!(evidence.add_other(case, Sample::EMPTY, &[]));
            evidence.close_case(case);
        }
    }

    #[test]
    fn frames_beyond_the_depth_are_not_kept() {
        let mut evidence = evidence(16);
        let case = evidence.open_case(late(0)).unwrap();
        evidence.add_sample(case, Sample::EMPTY, &[1, 2, 3, 4, 5, 6]);
        let (_, frames) = evidence.samples(evidence.case(case).unwrap()).next().unwrap();
        assert_eq!(frames, [1, 2, 3, 4]);
    }
}
