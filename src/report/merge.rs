//! Blocks that share a report: which reports were stored lately, and what came again of each.
//!
//! A block of the same loop whose leading stack is the same joins such a report instead of making one of its own, from
//! its first state on. That has few samples yet, so that any of its stacks may be the one. It may leave again: when it
//! becomes a hang, or when another stack leads it in the end.

use super::block::Repeats;
use super::module_list::{ModuleList, is_language_library};
use super::names::Name;
use super::view::{Frame, Sample, Samples};
use crate::abi::bc_sample_method;
use crate::sys::clock::Ticks;

/// Reports remembered, the latest.
pub const REMEMBERED: usize = 64;
/// A report is written again at the latest so long after something joined it, however much else there is to do.
const PATIENCE_NS: u64 = 200_000_000;

/// A report that blocks may join.
#[derive(Clone, Copy)]
pub struct Report {
    /// Its block; 0 for a free place.
    pub id: u64,
    /// Its files.
    pub name: Name,
    /// What came again.
    pub repeats: Repeats,
    /// Slot and thread of its loop.
    of: (u8, i32),
    /// The stack that led its first state, and the one that leads the last. 0 for none.
    first: u64,
    last: u64,
    stored: Ticks,
    /// How much of `repeats.wall_ns_total` is a block's that still goes on. A loop has one at a time.
    open_ns: u64,
    /// When it began to differ from its files; 0: it does not.
    differs: Ticks,
}

impl Report {
    const NONE: Report = Report {
        id: 0,
        name: Name { local_ms: 0, id: 0, pid: 0 },
        repeats: Repeats { count: 0, wall_ns_total: 0, last_unix_ms: 0 },
        of: (0, 0),
        first: 0,
        last: 0,
        stored: Ticks(0),
        open_ns: 0,
        differs: Ticks(0),
    };
}

/// One state of a block, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Slot and thread of its loop.
    pub of: (u8, i32),
    /// Its stacks.
    pub stacks: Stacks,
    /// Duration, ns.
    pub wall_ns: u64,
    /// Begin on the wall clock.
    pub start_unix_ms: i64,
    /// It is the last state.
    pub is_end: bool,
}

/// The reports that were stored lately.
pub struct Recent {
    reports: [Report; REMEMBERED],
    /// How long after its storing a report may be joined; `None`: never.
    window_ns: Option<u64>,
}

impl Recent {
    /// None yet.
    pub const fn new(window_ns: Option<u64>) -> Recent {
        Recent { reports: [Report::NONE; REMEMBERED], window_ns }
    }

    /// A block's report has been stored, for the first time or again.
    pub fn stored(&mut self, name: Name, state: &State, now: Ticks) {
        if let Some(report) = self.find(name.id) {
            (report.last, report.stored) = (state.stacks.leader(), now);
        } else if self.window_ns.is_some()
            && let Some(oldest) = self.reports.iter_mut().min_by_key(|report| report.stored)
        {
            let (first, last) = (state.stacks.leader(), state.stacks.leader());
            *oldest = Report { id: name.id, name, of: state.of, first, last, stored: now, ..Report::NONE };
        }
    }

    /// The report that a block in this state fits to, if it has joined none.
    pub fn candidate(&self, state: &State, now: Ticks) -> Option<&Report> {
        let window_ns = self.window_ns?;
        let near = |report: &&Report| report.id != 0 && report.of == state.of && now.since(report.stored) <= window_ns;
        self.reports.iter().filter(near).filter(|report| report.fits(state)).max_by_key(|report| report.stored)
    }

    /// The files of a report, if it is remembered.
    pub fn get(&self, id: u64) -> Option<Name> {
        self.reports.iter().find(|report| report.id == id && id != 0).map(|report| report.name)
    }

    /// Does a block that has joined this report still fit to it?
    pub fn still_fits(&self, id: u64, state: &State) -> bool {
        self.reports.iter().any(|report| report.id == id && id != 0 && report.fits(state))
    }

    /// A block joins a report, or, if it `has_joined` before, goes on or ends there. What the report tells now.
    pub fn join(&mut self, id: u64, has_joined: bool, state: &State, now: Ticks) -> Option<Report> {
        let report = self.find(id)?;
        let repeats = &mut report.repeats;
        if !has_joined {
            repeats.count = repeats.count.saturating_add(1);
            report.open_ns = 0;
        }
        repeats.wall_ns_total = repeats.wall_ns_total.saturating_sub(report.open_ns).saturating_add(state.wall_ns);
        repeats.last_unix_ms = state.start_unix_ms;
        report.open_ns = if state.is_end { 0 } else { state.wall_ns };
        report.differs(now);
        Some(*report)
    }

    /// The block that has joined last leaves.
    pub fn leave(&mut self, id: u64, now: Ticks) {
        let Some(report) = self.find(id) else { return };
        let repeats = &mut report.repeats;
        repeats.count = repeats.count.saturating_sub(1);
        repeats.wall_ns_total = repeats.wall_ns_total.saturating_sub(report.open_ns);
        report.open_ns = 0;
        report.differs(now);
    }

    /// A report is no more.
    pub fn forget(&mut self, id: u64) {
        if let Some(report) = self.find(id) {
            *report = Report::NONE;
        }
    }

    /// Of all reports, only these are joined any more.
    pub fn keep(&mut self, is_kept: impl Fn(u64) -> bool) {
        for report in self.reports.iter_mut().filter(|report| report.id != 0 && !is_kept(report.id)) {
            *report = Report::NONE;
        }
    }

    /// A report that differs from its files and is to be written now; it counts as written from here on. Without other
    /// work it is always time.
    pub fn take_different(&mut self, is_idle: bool, now: Ticks) -> Option<Report> {
        let waits = |report: &&mut Report| report.id != 0 && report.differs != Ticks(0);
        let report = self.reports.iter_mut().filter(waits).min_by_key(|report| report.differs)?;
        if !is_idle && now.since(report.differs) < PATIENCE_NS {
            return None;
        }
        report.differs = Ticks(0);
        Some(*report)
    }

    fn find(&mut self, id: u64) -> Option<&mut Report> {
        self.reports.iter_mut().find(|report| report.id == id && id != 0)
    }
}

impl Report {
    fn fits(&self, state: &State) -> bool {
        let (first, last) = (state.stacks.samples(self.first), state.stacks.samples(self.last));
        // Which of two stacks that are seen about as often leads is chance.
        if state.is_end { last > 0 && last * 2 >= state.stacks.most() } else { first > 0 || last > 0 }
    }

    fn differs(&mut self, now: Ticks) {
        if self.differs == Ticks(0) {
            self.differs = now;
        }
    }
}

/// Stacks that are told apart in one block.
const GROUPS: usize = 16;

/// The stacks of a block, each with its number of samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stacks([(u64, u32); GROUPS]);

impl Stacks {
    /// Of all samples that touch modules of concern; of all, if none does or nothing is of concern.
    pub fn of(samples: Samples, concern: &ModuleList) -> Stacks {
        let with_stack = || samples.iter().filter(|sample| !sample.frames.is_empty());
        let mut stacks = Stacks::default();
        if !concern.is_empty() {
            let touching = with_stack().filter(|sample| concern.is_touched_by(sample.frames));
            touching.for_each(|sample| stacks.add(name(&sample)));
        }
        if stacks.is_empty() {
            with_stack().for_each(|sample| stacks.add(name(&sample)));
        }
        stacks
    }

    fn add(&mut self, name: u64) {
        // Who comes when all places are taken is no leader.
        let known = self.0.iter_mut().find(|(known, samples)| *known == name || *samples == 0);
        if let Some((known, samples)) = known {
            (*known, *samples) = (name, samples.saturating_add(1));
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.most() == 0
    }

    fn most(&self) -> u32 {
        self.0.iter().map(|(_, samples)| *samples).max().unwrap_or(0)
    }

    fn leader(&self) -> u64 {
        let most = self.most();
        self.0.iter().find(|(_, samples)| *samples == most && most > 0).map_or(0, |(name, _)| *name)
    }

    fn samples(&self, name: u64) -> u32 {
        self.0.iter().find(|(known, samples)| *known == name && *samples > 0).map_or(0, |(_, samples)| *samples)
    }
}

/// Names a stack within this process: two that pass through the same functions have the same name. A function is where it
/// begins; where that is not known a return address stands for itself, and the innermost frame for its module.
///
/// Of a thread that runs, what the C library was just doing for it is left out: that changes from moment to moment.
fn name(sample: &Sample) -> u64 {
    let runs = sample.method == Some(bc_sample_method::BC_SAMPLE_SIGNAL);
    let in_library = |frame: &Frame| frame.module.is_some_and(is_language_library);
    let inner = if runs { sample.frames.iter().take_while(in_library).count() } else { 0 };
    let skipped = if inner < sample.frames.len() { inner } else { 0 };
    sample.frames.iter().enumerate().skip(skipped).fold(0x9e37_79b9_7f4a_7c15, |name, (depth, frame)| {
        let place = match (frame.module, frame.symbol) {
            (Some(_), symbol) if symbol.is_some() || frame.symbol_offset != 0 => {
                frame.pc.wrapping_sub(frame.symbol_offset)
            }
            (Some(_), None) if depth == 0 => frame.pc.wrapping_sub(frame.module_offset),
            (None, _) if depth == 0 => 0,
            _ => frame.pc,
        };
        mix(name ^ mix(place))
    })
}

/// The finaliser of SplitMix64, as for the ids.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn state(stack: u64, wall_ns: u64, is_end: bool) -> State {
        State { of: (1, 10), stacks: stacks(&[stack]), wall_ns, start_unix_ms: wall_ns as i64, is_end }
    }

    fn stacks(names: &[u64]) -> Stacks {
        let mut stacks = Stacks::default();
        names.iter().for_each(|name| stacks.add(*name));
        stacks
    }

    fn name(id: u64) -> Name {
        Name { local_ms: 0, id, pid: 1 }
    }

    fn candidate(recent: &Recent, state: &State, at: u64) -> Option<u64> {
        recent.candidate(state, Ticks(at)).map(|report| report.id)
    }

    #[test]
    fn the_same_loop_and_stack_within_the_window() {
        let mut recent = Recent::new(Some(60 * SECOND));
        recent.stored(name(7), &state(5, 100, false), Ticks(1));
        recent.stored(name(7), &state(6, 200, true), Ticks(2));
        assert_eq!(candidate(&recent, &state(6, 1, true), 60 * SECOND), Some(7));
        assert_eq!(candidate(&recent, &state(6, 1, true), 61 * SECOND), None);
        assert_eq!(candidate(&recent, &state(5, 1, false), 3), Some(7));
        assert_eq!(candidate(&recent, &state(5, 1, true), 3), None, "another stack leads it in the end");
        // Near ties are chance, and a block that has only begun may yet come to look like it.
        let mixed = |names: &[u64], is_end| State { stacks: stacks(names), ..state(0, 1, is_end) };
        assert_eq!(candidate(&recent, &mixed(&[9, 6, 9], true), 3), Some(7));
        assert_eq!(candidate(&recent, &mixed(&[9, 6, 9, 9], true), 3), None);
        assert_eq!(candidate(&recent, &mixed(&[9, 6, 9, 9], false), 3), Some(7));
        assert_eq!(candidate(&recent, &mixed(&[9, 8], false), 3), None);
        assert_eq!(candidate(&recent, &State { of: (1, 11), ..state(6, 1, true) }, 3), None, "another loop");
        assert_eq!(candidate(&Recent::new(None), &state(0, 1, true), 3), None);
    }

    #[test]
    fn what_joins_is_counted_once_and_may_leave() {
        let mut recent = Recent::new(Some(60 * SECOND));
        recent.stored(name(7), &state(5, 100, true), Ticks(1));
        assert!(recent.take_different(true, Ticks(1)).is_none());
        let repeats = |report: Option<Report>| report.map(|r| (r.repeats.count, r.repeats.wall_ns_total)).unwrap();
        assert_eq!(repeats(recent.join(7, false, &state(5, 110, false), Ticks(2))), (1, 110));
        assert_eq!(repeats(recent.join(7, true, &state(5, 150, true), Ticks(3))), (1, 150));
        assert_eq!(repeats(recent.join(7, false, &state(5, 70, false), Ticks(4))), (2, 220));
        recent.leave(7, Ticks(5));
        assert!(recent.take_different(false, Ticks(6)).is_none());
        let written = recent.take_different(false, Ticks(2 + PATIENCE_NS));
        assert_eq!(repeats(written), (1, 150));
        assert!(recent.take_different(true, Ticks(9)).is_none());
        recent.forget(7);
        assert!(recent.join(7, false, &state(5, 1, true), Ticks(9)).is_none());
    }

    #[test]
    fn the_latest_are_remembered() {
        let mut recent = Recent::new(Some(60 * SECOND));
        (1..=100).for_each(|id| recent.stored(name(id), &state(id, 1, true), Ticks(id)));
        assert_eq!(candidate(&recent, &state(36, 1, true), 100), None);
        assert!((37..=100).all(|id| candidate(&recent, &state(id, 1, true), 100) == Some(id)));
    }
}
