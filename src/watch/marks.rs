//! The words that a loop's marks write.

use super::allowances::Allowances;
use super::tally::{Begin, Counts, Tally};
use crate::ring::version::Version;
use crate::sys::clock::Ticks;
use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Dispatches whose names are kept; deeper ones are counted only.
pub const NAMED_DEPTH: usize = 16;

/// Dispatches whose durations are known; deeper ones are counted without.
const TIMED_DEPTH: usize = 32;

/// The loop waits in a poll.
const WAITING: u32 = 1 << 31;
/// An allowance is open: the stretch is the allowance's, and marks inside do not restart it.
const ALLOWED: u32 = 1 << 30;
/// A poll has returned and the next one has not begun: that time is a dispatch of its own, below all callbacks.
const BETWEEN: u32 = 1 << 29;
/// The loop beats: the time from beat to beat is a stretch.
const BEATING: u32 = 1 << 28;
/// The rest is the number of open dispatches.
const DEPTH: u32 = BEATING - 1;
/// What makes a loop busy, unless it waits.
const BUSY: u32 = BETWEEN | BEATING | DEPTH;

/// An open dispatch.
#[repr(C)]
struct Dispatch {
    begin: Begin,
    /// The caller's text, or one of the two in `sample::what`.
    what: AtomicPtr<c_char>,
    tag: AtomicU64,
}

/// Written by the loop's own thread only, inside `version`; read by the monitor, and by the signal handler on the loop's
/// own thread. All relaxed: `version` orders them.
///
/// The order is by use: a pair of marks touches the first words of this and of the tally, and one dispatch.
#[repr(C)]
pub struct Marks {
    version: Version,
    /// Names the stretch: the version that the words had when it began.
    stretch: AtomicUsize,
    /// The last mark. While `state` is open, the begin of the stretch.
    at: AtomicU64,
    /// The stretch's limit, ns: fixed when it begins.
    limit_ns: AtomicU64,
    /// WAITING, BETWEEN, BEATING, ALLOWED and the depth.
    state: AtomicU32,
    /// The depth at which BETWEEN was set: dispatches above it are inside, those below are outside.
    between_depth: AtomicU32,
    /// When WAITING was set.
    waits_since: AtomicU64,
    between_tag: AtomicU64,
    between_begin: Begin,
    beat: Begin,
    dispatches: [Dispatch; TIMED_DEPTH],
    tally: Tally,
    allowances: Allowances,
}

/// What the words say at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Names this state of the words.
    pub version: usize,
    /// Names the stretch.
    pub stretch: usize,
    /// The last mark.
    pub at: Ticks,
    /// A dispatch is open, or the loop beats, and it does not wait.
    pub open: bool,
    /// The stretch's limit, ns.
    pub limit_ns: u64,
    /// The innermost open dispatch's text, or the allowance's. Valid while the stretch goes on, so to be read with care.
    pub what: *const c_char,
    /// The innermost open dispatch's tag.
    pub tag: u64,
}

/// What a callback finds when it begins and puts back when it ends.
#[derive(Clone, Copy)]
pub struct Outer {
    state: u32,
    between_depth: u32,
    between_begin: (u64, u64),
}

impl Marks {
    /// No dispatch.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Marks {
        Marks {
            version: Version::new(),
            stretch: AtomicUsize::new(0),
            at: AtomicU64::new(0),
            limit_ns: AtomicU64::new(0),
            state: AtomicU32::new(0),
            between_depth: AtomicU32::new(0),
            waits_since: AtomicU64::new(0),
            between_tag: AtomicU64::new(0),
            between_begin: Begin::new(),
            beat: Begin::new(),
            dispatches: [const {
                Dispatch { begin: Begin::new(), what: AtomicPtr::new(ptr::null_mut()), tag: AtomicU64::new(0) }
            }; TIMED_DEPTH],
            tally: Tally::new(),
            allowances: Allowances::new(),
        }
    }

    /// Begin of the open stretch that the next mark ends, and its limit; by the own thread. None under an allowance, which
    /// marks do not end.
    #[inline(always)]
    pub fn open_stretch(&self) -> Option<(Ticks, u64)> {
        let state = self.state.load(Relaxed);
        // Neither WAITING nor ALLOWED, which are the highest bits, and not nothing.
        let open = state.wrapping_sub(1) < ALLOWED - 1;
        open.then(|| (Ticks(self.at.load(Relaxed)), self.limit_ns.load(Relaxed)))
    }

    /// Is an allowance open?
    #[inline(always)]
    pub fn is_allowed(&self) -> bool {
        self.state.load(Relaxed) & ALLOWED != 0
    }

    /// Begin and limit of the stretch of an allowance that counts; by the own thread.
    pub fn allowed_stretch(&self) -> Option<(Ticks, u64)> {
        let state = self.state.load(Relaxed);
        let open = state & WAITING == 0 && state & ALLOWED != 0 && state & BUSY != 0;
        open.then(|| (Ticks(self.at.load(Relaxed)), self.limit_ns.load(Relaxed)))
    }

    /// A dispatch begins. `false`: too deep for its name to be kept.
    #[inline(always)]
    pub fn begin(&self, now: Ticks, limit_ns: u64, what: *const c_char, tag: u64) -> bool {
        let version = self.version.begin();
        let is_named = self.push(now, what, tag);
        self.restart(version, now, limit_ns);
        self.version.end(version);
        is_named
    }

    #[inline(always)]
    fn push(&self, now: Ticks, what: *const c_char, tag: u64) -> bool {
        let state = self.state.load(Relaxed);
        let depth = (state & DEPTH) as usize;
        if let Some(dispatch) = self.dispatches.get(depth) {
            dispatch.begin.set(now, &self.tally);
            dispatch.what.store(what.cast_mut(), Relaxed);
            dispatch.tag.store(tag, Relaxed);
        }
        self.state.store(state.wrapping_add(1), Relaxed);
        depth < NAMED_DEPTH
    }

    /// The innermost dispatch ends, after so many ns, which the tally wants to see; 0 where they do not count. `None`: there
    /// is none. Here and below what began before `undisturbed` was cut.
    #[inline(always)]
    pub fn end(&self, now: Ticks, undisturbed: Ticks, limit_ns: u64) -> Option<u64> {
        let state = self.state.load(Relaxed);
        if state & DEPTH == 0 {
            return None;
        }
        let version = self.version.begin();
        self.state.store(state.wrapping_sub(1), Relaxed);
        self.restart(version, now, limit_ns);
        let ns = self.count(state, now, undisturbed);
        self.version.end(version);
        Some(ns)
    }

    /// Counts the innermost dispatch of a state, which ends.
    #[inline(always)]
    fn count(&self, state: u32, now: Ticks, undisturbed: Ticks) -> u64 {
        let below = (state & DEPTH).wrapping_sub(1);
        match self.dispatches.get(below as usize) {
            Some(dispatch) => {
                let is_outermost = below == 0 && (state & BETWEEN == 0 || self.between_depth.load(Relaxed) != 0);
                self.tally.ends(&dispatch.begin, now, undisturbed, is_outermost)
            }
            None => self.tally.ends_untimed(),
        }
    }

    /// Counts the time between two polls, which ends.
    #[inline(always)]
    fn count_between(&self, now: Ticks, undisturbed: Ticks) {
        self.tally.look_at(self.tally.ends(
            &self.between_begin,
            now,
            undisturbed,
            self.between_depth.load(Relaxed) == 0,
        ));
    }

    /// Counts all dispatches of a state above a depth.
    #[cold]
    #[inline(never)]
    fn count_above(&self, depth: u32, mut state: u32, now: Ticks, undisturbed: Ticks) {
        if state & BETWEEN != 0 && self.between_depth.load(Relaxed) >= depth {
            self.count_between(now, undisturbed);
        }
        while state & DEPTH > depth {
            self.tally.look_at(self.count(state, now, undisturbed));
            state = state.wrapping_sub(1);
        }
    }

    /// The loop beats.
    #[inline(always)]
    pub fn beat(&self, now: Ticks, undisturbed: Ticks, limit_ns: u64) {
        self.version.write(|version| {
            let state = self.state.load(Relaxed);
            if state & BEATING != 0 {
                // Of which nobody knows how much it was busy.
                self.tally.look_at(self.tally.ends(&self.beat, now, undisturbed, false));
            }
            self.beat.set(now, &self.tally);
            self.state.store(state | BEATING, Relaxed);
            self.restart(version, now, limit_ns);
        });
    }

    /// A poll begins.
    #[inline(always)]
    pub fn poll_begins(&self, now: Ticks, undisturbed: Ticks) {
        self.version.write(|_| {
            let state = self.state.load(Relaxed);
            if state & BETWEEN != 0 {
                self.count_between(now, undisturbed);
            }
            self.state.store(state & !BETWEEN | WAITING, Relaxed);
            self.waits_since.store(now.0, Relaxed);
            if !self.is_allowed() {
                self.at.store(now.0, Relaxed);
            }
        });
    }

    /// A poll has returned. `now` is `None` where it returned straight from a callback: that one's end is the begin.
    #[inline(always)]
    pub fn poll_returns(&self, now: Option<Ticks>, limit_ns: u64, tag: u64) {
        let state = self.state.load(Relaxed);
        let now = now.unwrap_or(Ticks(self.waits_since.load(Relaxed)));
        self.version.write(|version| {
            self.between_depth.store(state & DEPTH, Relaxed);
            self.between_tag.store(tag, Relaxed);
            self.waited(now);
            self.between_begin.set(now, &self.tally);
            self.state.store(state & !WAITING | BETWEEN, Relaxed);
            self.restart(version, now, limit_ns);
        });
    }

    /// A callback begins inside a poll.
    #[inline(always)]
    pub fn callback_begins(&self, now: Ticks, limit_ns: u64, what: *const c_char, tag: u64) -> Outer {
        let outer = Outer {
            state: self.state.load(Relaxed),
            between_depth: self.between_depth.load(Relaxed),
            between_begin: self.between_begin.get(),
        };
        self.version.write(|version| {
            self.waited(now);
            self.state.store(outer.state & !(WAITING | BETWEEN), Relaxed);
            self.push(now, what, tag);
            self.restart(version, now, limit_ns);
        });
        outer
    }

    /// It ends, and with it whatever it has left open; allowances that it has opened or closed stay so.
    #[inline(always)]
    pub fn callback_ends(&self, now: Ticks, undisturbed: Ticks, limit_ns: u64, outer: Outer) {
        self.version.write(|version| {
            let state = self.state.load(Relaxed);
            let kept = state & (ALLOWED | BEATING);
            let is_tidy = state & (DEPTH | BETWEEN) == (outer.state & DEPTH).wrapping_add(1);
            if !is_tidy {
                self.count_above(outer.state & DEPTH, state, now, undisturbed);
            }
            self.between_depth.store(outer.between_depth, Relaxed);
            self.between_begin.put(outer.between_begin);
            if is_tidy {
                self.tally.look_at(self.count(state | outer.state & BETWEEN, now, undisturbed));
            }
            self.state.store(outer.state & !(ALLOWED | BEATING) | kept, Relaxed);
            self.waits_since.store(now.0, Relaxed);
            self.restart(version, now, limit_ns);
        });
    }

    /// All dispatches are closed, and the loop does not beat.
    pub fn idle(&self, now: Ticks, undisturbed: Ticks, limit_ns: u64) {
        self.version.write(|version| {
            let state = self.state.load(Relaxed);
            self.count_above(0, state, now, undisturbed);
            self.state.store(state & ALLOWED, Relaxed);
            self.restart(version, now, limit_ns);
        });
    }

    /// Nothing is open, as when a loop begins to be watched.
    pub fn close_all(&self, now: Ticks) {
        self.version.write(|version| {
            while self.allowances.count() > 0 {
                self.allowances.end();
            }
            self.state.store(0, Relaxed);
            self.restart(version, now, 0);
        });
    }

    /// Opens or ends allowances by `change`, after which the stretch is that of the one that counts then.
    pub fn change_allowances(&self, now: Ticks, limit_ns: u64, change: impl FnOnce(&Allowances, u32)) {
        let before = self.allowances.latest();
        self.version.write(|version| {
            let state = self.state.load(Relaxed);
            change(&self.allowances, state & DEPTH);
            let after = self.allowances.latest();
            if after.map(|after| (after.place, after.begin)) == before.map(|before| (before.place, before.begin)) {
                return;
            }
            // Without the flag, so that the stretch restarts.
            self.state.store(state & !ALLOWED, Relaxed);
            match after {
                Some(after) => {
                    self.restart(version, now, after.limit_ns(now, limit_ns));
                    self.state.store(state | ALLOWED, Relaxed);
                }
                None => self.restart(version, now, limit_ns),
            }
        });
    }

    /// Open dispatches.
    pub fn depth(&self) -> u32 {
        self.state.load(Relaxed) & DEPTH
    }

    /// The allowances.
    pub fn allowances(&self) -> &Allowances {
        &self.allowances
    }

    /// A new stretch, unless an allowance is open.
    #[inline(always)]
    fn restart(&self, version: usize, now: Ticks, limit_ns: u64) {
        if self.state.load(Relaxed) & ALLOWED == 0 {
            self.stretch.store(version, Relaxed);
            self.limit_ns.store(limit_ns, Relaxed);
            self.at.store(now.0, Relaxed);
        }
    }

    /// The time that was waited is no part of a dispatch or an allowance.
    #[inline(always)]
    fn waited(&self, now: Ticks) {
        let state = self.state.load(Relaxed);
        if state & WAITING == 0 {
            return;
        }
        let waited_ns = now.since(Ticks(self.waits_since.load(Relaxed)));
        self.tally.waited(waited_ns);
        if state & ALLOWED != 0 {
            self.at.store(self.at.load(Relaxed).saturating_add(waited_ns), Relaxed);
            self.allowances.shift(waited_ns);
        }
    }

    /// The name of what is open innermost; `what` is null where it was too deep.
    pub fn innermost(&self) -> (*const c_char, u64) {
        let (what, tag) = self.innermost_dispatch();
        match self.allowances.latest() {
            Some(allowance) => (allowance.why, tag),
            None => (what, tag),
        }
    }

    fn innermost_dispatch(&self) -> (*const c_char, u64) {
        let state = self.state.load(Relaxed);
        let depth = state & DEPTH;
        if state & BETWEEN != 0 && depth <= self.between_depth.load(Relaxed) {
            return (crate::sample::what::BETWEEN_POLLS.as_ptr(), self.between_tag.load(Relaxed));
        }
        let named = depth.checked_sub(1).filter(|place| (*place as usize) < NAMED_DEPTH);
        let dispatch = named.and_then(|place| self.dispatches.get(place as usize));
        dispatch.map_or((ptr::null(), 0), |it| (it.what.load(Relaxed).cast_const(), it.tag.load(Relaxed)))
    }

    /// What the words say; `None` when a mark came in between.
    pub fn look(&self) -> Option<Seen> {
        let read = self.version.read(|| {
            let (what, tag) = self.innermost();
            let state = self.state.load(Relaxed);
            Seen {
                version: 0,
                stretch: self.stretch.load(Relaxed),
                at: Ticks(self.at.load(Relaxed)),
                open: state & WAITING == 0 && state & BUSY != 0,
                limit_ns: self.limit_ns.load(Relaxed),
                what,
                tag,
            }
        });
        read.map(|(seen, version)| Seen { version, ..seen })
    }

    /// What has been counted. While marks come the last dispatch may be missing, never counted twice.
    pub fn counts(&self) -> Counts {
        let read = self.version.read(|| (self.tally.counts(), self.tally.behind()));
        match read {
            Some(((counts, behind), _)) => counts.with(behind),
            None => self.tally.counts(),
        }
    }

    /// Is a dispatch open that began before this moment?
    pub fn is_inside_since(&self, moment: Ticks) -> bool {
        let state = self.state.load(Relaxed);
        let outermost = self.dispatches.first().filter(|_| state & DEPTH != 0).map(|dispatch| dispatch.begin.at());
        let between = (state & BETWEEN != 0).then(|| self.between_begin.at());
        outermost.is_some_and(|at| at < moment) || between.is_some_and(|at| at < moment)
    }

    /// What the marks count.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The version now, odd while a mark is being written.
    pub fn version(&self) -> usize {
        self.version.current()
    }

    /// The word that names the stretch.
    pub fn stretch(&self) -> &AtomicUsize {
        &self.stretch
    }
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
