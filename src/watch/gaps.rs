//! Times in which the whole process did not run: stopped, frozen, or its machine suspended. They belong to no stretch.
//!
//! They show as time of the monitor's own that nothing explains. A machine that has too much to do makes it late, too, but
//! then the kernel has counted its time in the run queue. So does a virtual processor that its host takes away, or a page
//! that has to be read, but that happens to one thread; a stop happens to all: it wakes each one that sleeps, so that a
//! thread of ours that has nothing to do has run all the same.

use crate::sys::clock::Ticks;

/// Gaps remembered: a stretch that saw more of them is none that anybody would blame.
const MOST: usize = 16;

/// Time without an explanation from which on a stop is thought of.
pub const SHORTEST_NS: u64 = 20_000_000;

/// The same, when no other thread has noticed: the kernel can freeze those that sleep without waking them, and one that
/// was on a processor stops without leaving a trace.
const UNWITNESSED_NS: u64 = 200_000_000;

/// See above.
pub struct Gaps {
    gaps: [(Ticks, Ticks); MOST],
    next: usize,
}

/// What is known of a time in the monitor's life.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Its length, ns.
    pub wall_ns: u64,
    /// Sleep that was meant, ns.
    pub meant_ns: u64,
    /// Time on a processor, ns.
    pub cpu_ns: u64,
    /// Time in the run queue, ns; `None` where the kernel does not count it: then a machine with too much to do is assumed,
    /// and judged.
    pub queued_ns: Option<u64>,
    /// A thread that has nothing to do has run; `None` if that is not known.
    pub witnessed: Option<bool>,
}

/// For how long did the process stop? 0: it did not. On a busy machine threads stop and go on one after the other; what the
/// monitor waits for its own processor then is not counted.
pub fn stopped_ns(passed: &Passed) -> u64 {
    let Some(queued_ns) = passed.queued_ns else { return 0 };
    let late_ns = passed.wall_ns.saturating_sub(passed.meant_ns);
    let unexplained_ns = late_ns.saturating_sub(passed.cpu_ns).saturating_sub(queued_ns);
    let least_ns = match passed.witnessed {
        Some(true) | None => SHORTEST_NS,
        Some(false) => UNWITNESSED_NS,
    };
    if unexplained_ns < least_ns { 0 } else { unexplained_ns }
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
        const MS: u64 = 1_000_000;
        #[rustfmt::skip]
        let table = [
            // wall, meant, cpu, queued, witnessed -> stopped
            (1020, 20, 0,   Some(0),    Some(true),  1000),
            (1020, 20, 0,   Some(0),    None,        1000),
            // Nobody else has noticed: one thread's trouble, if it is short.
            (1020, 20, 0,   Some(0),    Some(false), 1000),
            (219,  20, 0,   Some(0),    Some(false), 0),
            // In the middle of a look.
            (1020, 5,  15,  Some(0),    Some(true),  1000),
            (1020, 0,  1020, Some(0),   Some(true),  0),
            // Starved, with and without a stop beside.
            (1020, 20, 0,   Some(990),  Some(true),  0),
            (1020, 20, 0,   Some(100),  Some(true),  900),
            (1020, 20, 0,   Some(600),  Some(true),  400),
            (1020, 20, 0,   None,       Some(true),  0),
            // Too short.
            (39,   20, 0,   Some(0),    Some(true),  0),
            (40,   20, 0,   Some(0),    Some(true),  20),
            (5,    20, 9,   Some(9),    None,        0),
        ];
        for (row, (wall, meant, cpu, queued, witnessed, stopped)) in table.into_iter().enumerate() {
            let passed = Passed {
                wall_ns: wall * MS,
                meant_ns: meant * MS,
                cpu_ns: cpu * MS,
                queued_ns: queued.map(|queued: u64| queued * MS),
                witnessed,
            };
            assert_eq!(stopped_ns(&passed), stopped * MS, "row {row}");
        }
    }
}
