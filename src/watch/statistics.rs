//! A loop's statistics: what its marks have counted since it was watched, or since they were taken last.
//!
//! Marks only ever count up (see `tally`). What was there when counting began is kept here and subtracted. A reading that
//! comes in the middle of a mark may lack that dispatch, but never counts one twice; so what is kept is, word by word,
//! the highest that was read, and what one reading lacks the next one has.

use super::buckets::{self, BUCKETS};
use super::gate::GATE;
use super::slot::Slot;
use super::tally::Counts;
use super::token::{SLOTS, Token};
use crate::sys::clock::Ticks;
use crate::sys::lock::Lock;
use core::sync::atomic::Ordering::Relaxed;

/// What there was when a loop's counting began.
struct Base {
    counts: Counts,
    blocks: u64,
    counted_ns: u64,
    /// Slow dispatches before this number are not to be looked at again.
    slow_seen: u64,
    /// Dispatches that turned out to have been cut.
    cut: u64,
    /// The longest of those whose `longest_ns` was given up for one of them.
    longest_ns: u64,
}

static BASES: Lock<[Base; SLOTS]> = Lock::new(
    [const { Base { counts: Counts::NONE, blocks: 0, counted_ns: 0, slow_seen: 0, cut: 0, longest_ns: 0 } }; SLOTS],
);

/// What a loop's dispatches took.
pub struct Statistics {
    /// All that have ended, and those whose duration does not count.
    pub dispatches: u64,
    /// Blocks seen.
    pub blocks: u64,
    /// Dispatches above `SLOW_NS`.
    pub slow: u64,
    /// Dispatches above `FROZEN_NS`.
    pub frozen: u64,
    /// Frames that were missed.
    pub missed: u64,
    /// Time in outermost dispatches, less waiting.
    pub busy_ns: u64,
    /// Time in which the loop was watched and time counted.
    pub observed_ns: u64,
    /// The longest dispatch.
    pub max_ns: u64,
    /// Dispatches by duration.
    pub histogram: [u64; BUCKETS],
}

/// A loop's counting begins: it is about to be watched. Under the registry's lock.
pub fn begin(number: u8, slot: &Slot) {
    let mut bases = BASES.lock();
    let base = &mut bases[usize::from(number)];
    restart(base, slot, &slot.marks.counts(), GATE.counted_ns());
    base.slow_seen = slot.marks.tally().slow();
}

/// Reads a loop's statistics, whose slot stays its own meanwhile; `takes`: and begins anew.
pub fn read(token: Token, slot: &Slot, takes: bool) -> Statistics {
    let mut bases = BASES.lock();
    // As many as a u8 has values.
    let base = &mut bases[usize::from(token.slot())];
    let counted_ns = GATE.counted_ns();
    let counts = slot.marks.counts();
    let new = counts.since(&base.counts);
    let statistics = Statistics {
        dispatches: new
            .histogram
            .iter()
            .fold(new.untimed.saturating_add(base.cut), |sum, count| sum.saturating_add(*count)),
        blocks: slot.blocks.load(Relaxed).saturating_sub(base.blocks),
        slow: new.slow,
        frozen: new.frozen,
        missed: new.missed,
        busy_ns: new.busy_ns,
        observed_ns: counted_ns.saturating_sub(base.counted_ns),
        max_ns: longest(&new.histogram, slot.marks.tally().longest_ns().max(base.longest_ns)),
        histogram: new.histogram,
    };
    if takes {
        restart(base, slot, &counts, counted_ns);
    }
    statistics
}

/// The process did not run from `from` to `to`, as the monitor has found out only now. Dispatches that were open then and
/// have ended already were counted with their durations, which is taken back. Under the registry's lock.
pub fn take_back(number: u8, slot: &Slot, from: Ticks, to: Ticks) {
    let mut bases = BASES.lock();
    let base = &mut bases[usize::from(number)];
    let tally = slot.marks.tally();
    let seen = core::mem::replace(&mut base.slow_seen, tally.slow());
    // The last one that was cut is the outermost, unless one around it is open still.
    let mut is_outermost = !slot.marks.is_inside_since(from);
    for slow in tally.slow_since(seen).filter(|slow| slow.to > from && slow.to.0.saturating_sub(slow.ns) < to.0) {
        base.counts.add(slow.ns, core::mem::replace(&mut is_outermost, false));
        base.cut = base.cut.saturating_add(1);
        if tally.longest_ns().max(base.longest_ns) == slow.ns {
            tally.begin_longest_anew();
            base.longest_ns = slow.longest_before_ns;
        }
    }
}

/// In a child of fork, where whoever held the lock is not.
pub fn reset_after_fork() {
    BASES.free_after_fork();
}

fn restart(base: &mut Base, slot: &Slot, counts: &Counts, counted_ns: u64) {
    base.counts.rise_to(counts);
    (base.cut, base.longest_ns) = (0, 0);
    base.blocks = slot.blocks.load(Relaxed);
    base.counted_ns = counted_ns;
    slot.marks.tally().begin_longest_anew();
}

/// The longest of these dispatches, of which `noted_ns` was noted as such. One that ended while the statistics were taken
/// may have been noted just before: then its bucket tells.
fn longest(histogram: &[u64; BUCKETS], noted_ns: u64) -> u64 {
    match (0..=u8::MAX).zip(histogram).rev().find(|(_, count)| **count > 0) {
        Some((bucket, _)) if noted_ns < buckets::begin(bucket) => buckets::middle(bucket),
        Some(_) => noted_ns,
        None => 0,
    }
}

impl Statistics {
    /// The duration that so many of a hundred dispatches do not exceed, as exact as the buckets are.
    pub fn percentile(&self, percent: u64) -> u64 {
        let timed = self.histogram.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let rank = (u128::from(timed) * u128::from(percent)).div_ceil(100) as u64;
        let mut below = 0u64;
        for (bucket, count) in (0..=u8::MAX).zip(&self.histogram) {
            below = below.saturating_add(*count);
            if below >= rank && below > 0 {
                return buckets::middle(bucket).min(self.max_ns);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(durations: &[(u64, u64)]) -> Statistics {
        let mut histogram = [0; BUCKETS];
        let mut max_ns = 0;
        for (ns, count) in durations {
            histogram[usize::from(buckets::bucket(*ns))] += count;
            max_ns = max_ns.max(*ns);
        }
        let dispatches = histogram.iter().sum();
        Statistics {
            dispatches,
            blocks: 0,
            slow: 0,
            frozen: 0,
            missed: 0,
            busy_ns: 0,
            observed_ns: 0,
            max_ns,
            histogram,
        }
    }

    fn is_near(found: u64, expected: u64) {
        assert!((found as f64 / expected as f64 - 1.0).abs() <= 0.06, "{found} for {expected}");
    }

    #[test]
    fn percentiles_of_known_durations() {
        let ms = 1_000_000;
        let statistics = of(&[(2 * ms, 500), (20 * ms, 450), (800 * ms, 50)]);
        is_near(statistics.percentile(50), 2 * ms);
        is_near(statistics.percentile(51), 20 * ms);
        is_near(statistics.percentile(95), 20 * ms);
        is_near(statistics.percentile(96), 800 * ms);
        assert!(statistics.percentile(100) <= statistics.max_ns);
        assert_eq!(of(&[]).percentile(50), 0);
        is_near(of(&[(3000, 1)]).percentile(1), 3000);
    }

    #[test]
    fn a_stop_that_is_found_out_late_takes_durations_back() {
        let number = 250;
        let slot = crate::watch::slot::slot(number);
        let token = Token::new(number, 1);
        let ms = 1_000_000;
        let now = Ticks::now();
        let before = |duration_ms: u64| Ticks(now.0 - duration_ms * ms);
        let begin = |at| slot.marks.begin(at, ms, core::ptr::null(), 0);
        let end = |at| slot.marks.tally().look_at(slot.marks.end(at, Ticks(0), ms).unwrap());
        begin(before(4000));
        end(before(3900));
        super::begin(number, slot);
        begin(before(3500));
        end(before(3440));
        begin(before(3400));
        begin(before(3300));
        begin(before(3200));
        end(before(3100));
        end(before(10));
        end(before(0));
        // The tally reads the clock itself: to it, all of them have ended just now.
        let all = read(token, slot, false);
        assert_eq!((all.dispatches, all.slow, all.frozen, all.max_ns), (4, 4, 2, 3400 * ms));
        assert_eq!(all.busy_ns, 3460 * ms);
        take_back(number, slot, Ticks(now.0 - 3000 * ms), before(100));
        let rest = read(token, slot, true);
        assert_eq!((rest.dispatches, rest.slow, rest.frozen), (4, 2, 0));
        assert_eq!((rest.busy_ns, rest.max_ns), (60 * ms, 100 * ms));
        assert_eq!(rest.histogram.iter().sum::<u64>(), 2);
        let nothing = read(token, slot, false);
        assert_eq!((nothing.dispatches, nothing.busy_ns, nothing.max_ns), (0, 0, 0));
    }

    #[test]
    fn the_longest_is_exact_where_it_was_noted() {
        let histogram = of(&[(1000, 5), (70_000, 1)]).histogram;
        assert_eq!(longest(&histogram, 70_000), 70_000);
        is_near(longest(&histogram, 1000), 70_000);
        assert_eq!(longest(&of(&[]).histogram, 5), 0);
    }
}
