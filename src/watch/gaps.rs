//! Times in which the whole process did not run: stopped, frozen, or its machine suspended. They belong to no stretch.
//!
//! They show as the monitor's own lateness. So does a machine that has too much to do, but then the kernel has counted the
//! monitor's time in the run queue.

use crate::sys::clock::Ticks;

/// Gaps remembered: a stretch that saw more of them is none that anybody would blame.
const MOST: usize = 16;

/// Lateness from which on a stop is thought of.
const SHORTEST_NS: u64 = 20_000_000;

/// See above.
pub struct Gaps {
    gaps: [(Ticks, Ticks); MOST],
    next: usize,
}

/// Did the process stop, when the monitor came so late? `queued_ns` is what its time in the run queue grew by meanwhile,
/// `None` where the kernel does not count it: then a machine with too much to do is assumed, and judged.
pub fn was_stopped(late_ns: u64, queued_ns: Option<u64>) -> bool {
    late_ns >= SHORTEST_NS && queued_ns.is_some_and(|queued| queued < late_ns / 2)
}

impl Gaps {
    /// None.
    pub const NONE: Gaps = Gaps { gaps: [(Ticks(0), Ticks(0)); MOST], next: 0 };

    /// One more; the oldest is forgotten.
    pub fn add(&mut self, from: Ticks, to: Ticks) {
        if let Some(place) = self.gaps.get_mut(self.next % MOST) {
            *place = (from, to);
            self.next = self.next.wrapping_add(1);
        }
    }

    /// How much of a time they take.
    pub fn within(&self, from: Ticks, to: Ticks) -> u64 {
        let part = |gap: &(Ticks, Ticks)| gap.1.min(to).since(gap.0.max(from));
        self.gaps.iter().map(part).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_within_counts() {
        let mut gaps = Gaps::NONE;
        let t = Ticks;
        assert_eq!(gaps.within(t(0), t(u64::MAX)), 0);
        gaps.add(t(100), t(200));
        gaps.add(t(300), t(350));
        assert_eq!(gaps.within(t(0), t(1000)), 150);
        assert_eq!(gaps.within(t(150), t(320)), 70);
        assert_eq!(gaps.within(t(200), t(300)), 0);
        assert_eq!(gaps.within(t(120), t(130)), 10);
        for n in 0..20 {
            gaps.add(t(1000 + n), t(1001 + n));
        }
        assert_eq!(gaps.within(t(0), t(2000)), 16);
    }

    #[test]
    fn a_starved_monitor_is_not_a_stopped_one() {
        let ms = 1_000_000;
        assert!(was_stopped(1000 * ms, Some(ms / 5)));
        assert!(!was_stopped(1000 * ms, Some(990 * ms)));
        assert!(!was_stopped(1000 * ms, None));
        assert!(!was_stopped(10 * ms, Some(0)));
    }
}
