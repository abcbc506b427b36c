//! What a loop's marks count: every dispatch, by its duration.
//!
//! The loop's own thread is the only writer, and never takes anything back: who reads keeps what was read before and
//! subtracts it (see `statistics`). So a mark needs plain loads and stores, and a count can be neither lost nor told
//! twice. All orderings are relaxed: words need not agree with each other, each is right by itself.
//!
//! The histogram is one dispatch behind. Its address depends on the duration, the duration on the clock, and nothing
//! else in a mark takes that long after the clock has been read. So a mark stores the duration and the next one counts
//! it, while it waits for the clock.

use super::buckets::{BUCKETS, bucket};
use crate::sys::clock::Ticks;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};

/// Dispatches longer than this are slow: two frames are shown where there could be three at 60 Hz. ns.
pub const SLOW_NS: u64 = 16_700_000;
/// Dispatches longer than this are frozen. ns.
pub const FROZEN_NS: u64 = 700_000_000;

/// A moment, and what had been waited before.
#[repr(C)]
pub struct Begin {
    at: AtomicU64,
    waited_ns: AtomicU64,
}

/// Slow dispatches that are remembered, and one that may just be written.
const REMEMBERED: usize = 4;

/// A slow dispatch, which may turn out to have been cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// When it ended.
    pub to: Ticks,
    /// What was counted.
    pub ns: u64,
    /// The longest one before it, ns.
    pub longest_before_ns: u64,
}

#[repr(C)]
struct SlowWords {
    to: AtomicU64,
    ns: AtomicU64,
    longest_before_ns: AtomicU64,
}

/// Words that marks write. The first ones are touched by each dispatch.
#[repr(C)]
pub struct Tally {
    /// The last dispatch's duration and one, until the next mark that ends something counts it; 0 for none.
    behind: AtomicU64,
    /// Durations above this are looked at closely: the longest one so far, but not above `SLOW_NS`.
    remarkable_ns: AtomicU64,
    /// Time in outermost dispatches, less waiting.
    busy_ns: AtomicU64,
    /// Time that the loop has waited in polls.
    waited_ns: AtomicU64,
    /// How often the longest duration has been asked for; by whoever reads.
    asked: AtomicU32,
    /// What that was when `longest_ns` was begun.
    answered: AtomicU32,
    longest_ns: AtomicU64,
    slow: AtomicU64,
    frozen: AtomicU64,
    /// Dispatches without a duration.
    untimed: AtomicU64,
    /// Frames that were missed.
    missed: AtomicU64,
    /// The last slow ones, by their number.
    remembered: [SlowWords; REMEMBERED],
    histogram: [AtomicU64; BUCKETS],
}

/// One reading of all words.
#[derive(Clone, Copy)]
pub struct Counts {
    /// Dispatches by duration.
    pub histogram: [u64; BUCKETS],
    /// Dispatches without a duration.
    pub untimed: u64,
    /// Frames that were missed.
    pub missed: u64,
    /// Those above `SLOW_NS`.
    pub slow: u64,
    /// Those above `FROZEN_NS`.
    pub frozen: u64,
    /// Time in outermost ones, ns.
    pub busy_ns: u64,
}

impl Counts {
    /// Nothing counted.
    pub const NONE: Counts = Counts { histogram: [0; BUCKETS], untimed: 0, missed: 0, slow: 0, frozen: 0, busy_ns: 0 };

    /// What has been counted since.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut new = *self;
        new.for_each_with(earlier, |now, before| *now = now.saturating_sub(before));
        new
    }

    /// One more, which was slow.
    pub fn add(&mut self, ns: u64, is_outermost: bool) {
        *self = self.with(Some(bucket(ns)));
        self.slow = self.slow.wrapping_add(1);
        self.frozen = self.frozen.wrapping_add(u64::from(ns > FROZEN_NS));
        self.busy_ns = self.busy_ns.wrapping_add(if is_outermost { ns } else { 0 });
    }

    /// Takes over what is higher.
    pub fn rise_to(&mut self, other: &Counts) {
        self.for_each_with(other, |mine, its| *mine = its.max(*mine));
    }

    fn for_each_with(&mut self, other: &Counts, change: impl Fn(&mut u64, u64)) {
        for (mine, its) in self.histogram.iter_mut().zip(&other.histogram) {
            change(mine, *its);
        }
        change(&mut self.untimed, other.untimed);
        change(&mut self.missed, other.missed);
        change(&mut self.slow, other.slow);
        change(&mut self.frozen, other.frozen);
        change(&mut self.busy_ns, other.busy_ns);
    }

    /// And the last dispatch.
    pub fn with(mut self, behind: Option<u8>) -> Counts {
        if let Some(count) = behind.and_then(|bucket| self.histogram.get_mut(usize::from(bucket))) {
            *count = count.wrapping_add(1);
        }
        self
    }
}

impl Begin {
    /// No moment.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Begin {
        Begin { at: AtomicU64::new(0), waited_ns: AtomicU64::new(0) }
    }

    /// The moment.
    pub fn at(&self) -> Ticks {
        Ticks(self.at.load(Relaxed))
    }

    /// The words, for `put`.
    pub fn get(&self) -> (u64, u64) {
        (self.at.load(Relaxed), self.waited_ns.load(Relaxed))
    }

    /// Puts back what `get` gave.
    pub fn put(&self, words: (u64, u64)) {
        self.at.store(words.0, Relaxed);
        self.waited_ns.store(words.1, Relaxed);
    }

    /// Something begins.
    #[inline(always)]
    pub fn set(&self, now: Ticks, tally: &Tally) {
        self.at.store(now.0, Relaxed);
        self.waited_ns.store(tally.waited_ns.load(Relaxed), Relaxed);
    }
}

impl Tally {
    /// Nothing counted.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Tally {
        Tally {
            behind: AtomicU64::new(0),
            remarkable_ns: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            asked: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            longest_ns: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            frozen: AtomicU64::new(0),
            untimed: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            remembered: [const {
                SlowWords { to: AtomicU64::new(0), ns: AtomicU64::new(0), longest_before_ns: AtomicU64::new(0) }
            }; REMEMBERED],
            histogram: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }

    /// What began at `begin` ends. What began before `undisturbed` is counted without its duration. Answers
    /// the duration, for `look_at`, or 0.
    #[inline(always)]
    pub fn ends(&self, begin: &Begin, now: Ticks, undisturbed: Ticks, is_outermost: bool) -> u64 {
        self.catch_up();
        let at = begin.at.load(Relaxed);
        if at < undisturbed.0 {
            return self.ends_cut();
        }
        let waited_ns = self.waited_ns.load(Relaxed).wrapping_sub(begin.waited_ns.load(Relaxed));
        let ns = now.0.wrapping_sub(at.wrapping_add(waited_ns));
        if is_outermost {
            add(&self.busy_ns, ns);
        }
        self.behind.store(ns.wrapping_add(1), Relaxed);
        ns
    }

    /// Something ends of which the duration is not known.
    #[cold]
    #[inline(never)]
    pub fn ends_untimed(&self) -> u64 {
        self.catch_up();
        self.ends_cut()
    }

    /// After `catch_up`.
    #[cold]
    #[inline(never)]
    fn ends_cut(&self) -> u64 {
        self.behind.store(0, Relaxed);
        add(&self.untimed, 1);
        0
    }

    /// Is a duration that has just been counted the longest, or slow?
    #[inline(always)]
    pub fn look_at(&self, ns: u64) {
        if ns > self.remarkable_ns.load(Relaxed) || self.asked.load(Relaxed) != self.answered.load(Relaxed) {
            self.remark(ns);
        }
    }

    /// Frames were missed.
    pub fn missed(&self, frames: u64) {
        add(&self.missed, frames);
    }

    /// The loop has waited.
    #[inline(always)]
    pub fn waited(&self, ns: u64) {
        add(&self.waited_ns, ns);
    }

    #[inline(always)]
    fn catch_up(&self) {
        if let Some(ns) = self.behind.load(Relaxed).checked_sub(1)
            && let Some(count) = self.histogram.get(usize::from(bucket(ns)))
        {
            add(count, 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn remark(&self, ns: u64) {
        let asked = self.asked.load(Relaxed);
        let before = if self.answered.load(Relaxed) == asked { self.longest_ns.load(Relaxed) } else { 0 };
        let longest_ns = before.max(ns);
        self.longest_ns.store(longest_ns, Relaxed);
        self.answered.store(asked, Relaxed);
        self.remarkable_ns.store(longest_ns.min(SLOW_NS), Relaxed);
        if ns > SLOW_NS {
            self.remember(&Slow { to: Ticks::now(), ns, longest_before_ns: before });
        }
        if ns > FROZEN_NS {
            add(&self.frozen, 1);
        }
    }

    /// The number of slow ones is stored after the words of the last (release).
    fn remember(&self, slow: &Slow) {
        let number = self.slow.load(Relaxed);
        if let Some(words) = self.remembered.get(number as usize % REMEMBERED) {
            words.to.store(slow.to.0, Relaxed);
            words.ns.store(slow.ns, Relaxed);
            words.longest_before_ns.store(slow.longest_before_ns, Relaxed);
        }
        self.slow.store(number.wrapping_add(1), Release);
    }

    /// Slow dispatches from this number on, the last first, as far as they are remembered.
    pub fn slow_since(&self, number: u64) -> impl Iterator<Item = Slow> {
        let count = self.slow.load(Acquire);
        let oldest = number.max(count.saturating_sub(REMEMBERED as u64));
        (oldest..count).rev().filter_map(move |number| {
            let words = self.remembered.get(number as usize % REMEMBERED)?;
            let slow = Slow {
                to: Ticks(words.to.load(Relaxed)),
                ns: words.ns.load(Relaxed),
                longest_before_ns: words.longest_before_ns.load(Relaxed),
            };
            fence(Acquire);
            // Else the words are, or may be, another's already.
            (self.slow.load(Relaxed) < number.saturating_add(REMEMBERED as u64)).then_some(slow)
        })
    }

    /// Slow dispatches so far.
    pub fn slow(&self) -> u64 {
        self.slow.load(Relaxed)
    }

    /// Time in outermost dispatches so far.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns.load(Relaxed)
    }

    /// Frozen dispatches so far.
    pub fn frozen(&self) -> u64 {
        self.frozen.load(Relaxed)
    }

    /// Reads all words but the last duration, which `last` gives.
    pub fn counts(&self) -> Counts {
        let mut histogram = [0; BUCKETS];
        for (to, from) in histogram.iter_mut().zip(&self.histogram) {
            *to = from.load(Relaxed);
        }
        Counts {
            histogram,
            untimed: self.untimed.load(Relaxed),
            missed: self.missed.load(Relaxed),
            slow: self.slow.load(Relaxed),
            frozen: self.frozen.load(Relaxed),
            busy_ns: self.busy_ns(),
        }
    }

    /// The bucket of the last duration, which the histogram lacks.
    pub fn behind(&self) -> Option<u8> {
        self.behind.load(Relaxed).checked_sub(1).map(bucket)
    }

    /// The longest duration since it was asked to begin anew.
    pub fn longest_ns(&self) -> u64 {
        let is_answered = self.answered.load(Relaxed) == self.asked.load(Relaxed);
        if is_answered { self.longest_ns.load(Relaxed) } else { 0 }
    }

    /// From now on the longest duration is that of what ends from now on. By one thread at a time.
    pub fn begin_longest_anew(&self) {
        self.asked.store(self.asked.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// One writer: no read-modify-write instruction is needed.
#[inline(always)]
fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Relaxed).wrapping_add(more), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(tally: &Tally, from: u64, to: u64, undisturbed: u64) {
        let begin = Begin::new();
        begin.set(Ticks(from), tally);
        tally.look_at(tally.ends(&begin, Ticks(to), Ticks(undisturbed), true));
    }

    fn all(tally: &Tally) -> Counts {
        tally.counts().with(tally.behind())
    }

    #[test]
    fn each_end_is_counted_once_whatever_comes_next() {
        let tally = Tally::new();
        ended(&tally, 1000, 2000, 0);
        assert_eq!(all(&tally).histogram.iter().sum::<u64>(), 1);
        ended(&tally, 3000, 4000, 3500);
        tally.ends_untimed();
        ended(&tally, 5000, 6000, 3500);
        let counts = all(&tally);
        assert_eq!((counts.histogram.iter().sum::<u64>(), counts.untimed), (2, 2));
        assert_eq!((counts.busy_ns, tally.longest_ns()), (2000, 1000));
    }

    #[test]
    fn waiting_is_taken_off() {
        let tally = Tally::new();
        let begin = Begin::new();
        tally.waited(77);
        begin.set(Ticks(1000), &tally);
        tally.waited(600);
        assert_eq!(tally.ends(&begin, Ticks(2000), Ticks(0), false), 400);
        assert_eq!(all(&tally).busy_ns, 0);
    }

    #[test]
    fn the_longest_begins_anew() {
        let tally = Tally::new();
        ended(&tally, 0, 20_000_000, 0);
        ended(&tally, 0, 10, 0);
        assert_eq!(tally.longest_ns(), 20_000_000);
        tally.begin_longest_anew();
        assert_eq!(tally.longest_ns(), 0);
        ended(&tally, 0, 300, 0);
        ended(&tally, 0, 200, 0);
        assert_eq!(tally.longest_ns(), 300);
    }

    #[test]
    fn slow_ones_are_counted_and_the_last_remembered() {
        let tally = Tally::new();
        ended(&tally, 0, SLOW_NS, 0);
        assert_eq!(tally.slow(), 0);
        for more in 1..=6 {
            ended(&tally, 0, FROZEN_NS - 3 + more, 0);
        }
        assert_eq!((tally.slow(), tally.frozen()), (6, 3));
        let last: Vec<_> = tally.slow_since(0).map(|slow| slow.ns - FROZEN_NS + 3).collect();
        assert_eq!(last, [6, 5, 4]);
        assert_eq!(tally.slow_since(5).map(|slow| slow.longest_before_ns).collect::<Vec<_>>(), [FROZEN_NS + 2]);
    }
}
