//! A loop that always has something to do, without one dispatch that would be worth telling: its queue is never empty.

use crate::sys::clock::Ticks;

/// Time over which it is judged, at least. ns.
const LONG_NS: u64 = 5 * STEP_NS;
/// Between two readings that are kept. ns.
const STEP_NS: u64 = 1_000_000_000;
/// Readings that span that time.
const KEPT: usize = 6;

/// Busy from this share on.
const FULL_PERCENT: u64 = 95;
/// Told again after it was less.
const EASED_PERCENT: u64 = 80;

/// What is known of a loop at a moment.
#[derive(Clone, Copy)]
pub struct Reading {
    /// The moment.
    pub at: Ticks,
    /// Time in dispatches so far, ns.
    pub busy_ns: u64,
    /// Frozen dispatches so far.
    pub frozen: u64,
    /// How often time had ceased to count.
    pub closings: u64,
}

/// The last readings, the oldest first, and whether it was told.
pub struct Saturation {
    readings: [Reading; KEPT],
    count: usize,
    is_told: bool,
}

/// A finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The busy share.
    pub percent: u64,
    /// The time over which.
    pub over_ns: u64,
}

impl Saturation {
    /// Nothing known.
    pub const NEW: Saturation = Saturation {
        readings: [Reading { at: Ticks(0), busy_ns: 0, frozen: 0, closings: 0 }; KEPT],
        count: 0,
        is_told: false,
    };

    /// One more reading; answers a finding once.
    pub fn add(&mut self, now: Reading) -> Option<Full> {
        if let Some(last) = self.count.checked_sub(1).and_then(|last| self.readings.get(last)) {
            if last.closings != now.closings {
                self.count = 0;
            } else if now.at.since(last.at) < STEP_NS {
                return None;
            }
        }
        if self.count == KEPT {
            self.readings.rotate_left(1);
            self.count -= 1;
        }
        *self.readings.get_mut(self.count)? = now;
        self.count += 1;
        let [first, ..] = self.readings;
        let over_ns = now.at.since(first.at);
        if over_ns < LONG_NS {
            return None;
        }
        let percent = now.busy_ns.saturating_sub(first.busy_ns).saturating_mul(100) / over_ns;
        // A dispatch that began before is counted whole when it ends.
        let full = Full { percent: percent.min(100), over_ns };
        if percent < EASED_PERCENT {
            self.is_told = false;
        }
        let is_full = percent >= FULL_PERCENT && now.frozen == first.frozen;
        if !is_full || self.is_told {
            return None;
        }
        self.is_told = true;
        Some(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Quarters of a second of these busy shares; answers in which ones there were findings.
    fn findings(percents: impl IntoIterator<Item = (u64, u64)>) -> Vec<usize> {
        let mut saturation = Saturation::NEW;
        let mut now = Reading { at: Ticks(77), busy_ns: 0, frozen: 0, closings: 0 };
        let mut found = Vec::new();
        for (quarter, (percent, frozen)) in percents.into_iter().enumerate() {
            now.at = now.at.plus(SECOND / 4);
            now.busy_ns += SECOND / 400 * percent;
            now.frozen += frozen;
            found.extend(saturation.add(now).map(|_| quarter));
        }
        found
    }

    #[test]
    fn told_once_until_it_has_eased() {
        let phase = |percent| std::iter::repeat_n((percent, 0), 40);
        assert_eq!(findings(phase(94)), []);
        assert_eq!(findings(phase(96)), [20]);
        assert_eq!(findings(phase(99).chain(phase(85)).chain(phase(99))), [20]);
        let twice = findings(phase(99).chain(phase(70)).chain(phase(99)));
        assert_eq!(twice.len(), 2);
        assert!((90..=104).contains(&twice[1]), "{twice:?}");
    }

    #[test]
    fn long_dispatches_are_another_matter() {
        assert_eq!(findings((0..80).map(|quarter| (100, u64::from(quarter % 8 == 0)))), []);
    }

    #[test]
    fn a_pause_begins_anew() {
        let mut saturation = Saturation::NEW;
        let mut tell = |second: u64, closings| {
            let busy_ns = second * SECOND;
            saturation.add(Reading { at: Ticks(1 + second * SECOND), busy_ns, frozen: 0, closings }).is_some()
        };
        assert!(!(0..5).any(|second| tell(second, 0)));
        assert!(!(5..10).any(|second| tell(second, 1)));
        assert!(tell(10, 1));
    }
}
