//! What a stretch is at a moment: a function of a few numbers, apart from all machinery.

use crate::sys::clock::Ticks;

/// What is known of a loop at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The moment.
    pub now: Ticks,
    /// A dispatch is open and the loop does not wait in a poll.
    pub open: bool,
    /// The last mark.
    pub at: Ticks,
    /// When time began to count, a moment after all others while it does not.
    pub gate_opened: Ticks,
    /// Time of the stretch in which the process did not run, ns.
    pub excused_ns: u64,
    /// A debugger is attached to the thread, and that matters.
    pub is_traced: bool,
    /// The stretch's limit, ns.
    pub limit_ns: u64,
    /// The configured hang threshold, ns.
    pub hang_ns: u64,
    /// Age from which a stretch is sampled, ns.
    pub interval_ns: u64,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No stretch, or its time does not count.
    Idle,
    /// A stretch too young for a sample.
    Running,
    /// Old enough to be sampled, not over its limit.
    Late,
    /// Over its limit.
    Block,
    /// Over the hang threshold.
    Hang,
    /// Over its limit, with a debugger attached: nobody's fault.
    Excused,
}

/// Begin of the stretch as far as it counts, and what it is.
pub fn judge(look: &Look) -> (Ticks, Verdict) {
    let from = look.at.max(look.gate_opened);
    if !look.open || from > look.now {
        return (from, Verdict::Idle);
    }
    let age = look.now.since(from).saturating_sub(look.excused_ns);
    let verdict = if age > look.limit_ns && look.is_traced {
        Verdict::Excused
    } else if age > look.hang_ns.max(look.limit_ns) {
        Verdict::Hang
    } else if age > look.limit_ns {
        Verdict::Block
    } else if age >= look.interval_ns {
        Verdict::Late
    } else {
        Verdict::Running
    };
    (from, verdict)
}

/// The sample interval of a stretch: the configured one, or a quarter of its limit, at least 10 ms.
pub fn interval_ns(configured_ns: u64, limit_ns: u64) -> u64 {
    if configured_ns != 0 { configured_ns } else { (limit_ns / 4).max(10_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::*;

    #[test]
    fn verdicts() {
        let t = Ticks;
        let closed = t(u64::MAX);
        #[rustfmt::skip]
        let table = [
            // open, at, gate, now, limit, hang -> from, verdict
            (false, t(100), t(0),   t(9000), 1000, 4000, t(100), Idle),
            (true,  t(100), t(0),   t(100),  1000, 4000, t(100), Running),
            (true,  t(100), t(0),   t(349),  1000, 4000, t(100), Running),
            (true,  t(100), t(0),   t(350),  1000, 4000, t(100), Late),
            (true,  t(100), t(0),   t(1100), 1000, 4000, t(100), Late),
            (true,  t(100), t(0),   t(1101), 1000, 4000, t(100), Block),
            (true,  t(100), t(0),   t(4100), 1000, 4000, t(100), Block),
            (true,  t(100), t(0),   t(4101), 1000, 4000, t(100), Hang),
            // A hang is never told before the limit is passed.
            (true,  t(100), t(0),   t(5000), 6000, 4000, t(100), Late),
            (true,  t(100), t(0),   t(6101), 6000, 4000, t(100), Hang),
            // Opened in the middle of a dispatch: counts from there.
            (true,  t(100), t(900), t(1800), 1000, 4000, t(900), Late),
            (true,  t(100), t(900), t(1901), 1000, 4000, t(900), Block),
            (true,  t(100), closed, t(9000), 1000, 4000, closed, Idle),
            // A mark just after the moment of the look.
            (true,  t(100), t(0),   t(90),   1000, 4000, t(100), Idle),
        ];
        for (row, (open, at, gate_opened, now, limit_ns, hang_ns, from, verdict)) in table.into_iter().enumerate() {
            let plain = Look {
                now,
                open,
                at,
                gate_opened,
                excused_ns: 0,
                is_traced: false,
                limit_ns,
                hang_ns,
                interval_ns: 250,
            };
            assert_eq!(judge(&plain), (from, verdict), "row {row}");
            // Time in which the process did not run moves everything by as much.
            let stopped = Look { now: now.plus(777), excused_ns: 777, ..plain };
            if verdict != Idle {
                assert_eq!(judge(&stopped), (from, verdict), "row {row}, stopped");
            }
            let traced = if matches!(verdict, Block | Hang) { Excused } else { verdict };
            assert_eq!(judge(&Look { is_traced: true, ..plain }), (from, traced), "row {row}, traced");
        }
    }

    #[test]
    fn a_stretch_only_ever_gets_worse() {
        let mut last = 0;
        for now in 0..10_000 {
            let look = Look {
                now: Ticks(now),
                open: true,
                at: Ticks(500),
                gate_opened: Ticks(0),
                excused_ns: 0,
                is_traced: false,
                limit_ns: 2000,
                hang_ns: 6000,
                interval_ns: 500,
            };
            let rank = [Idle, Running, Late, Block, Hang].iter().position(|v| *v == judge(&look).1).unwrap();
            assert!(rank >= last);
            last = rank;
        }
        assert_eq!(last, 4);
    }

    /// Numbers of all sizes, near each other as often as far apart.
    fn random_look(next: &mut impl FnMut(u32) -> u64) -> Look {
        let bits = 1 + next(6) as u32 % 40;
        let base = if next(1) == 1 { next(60) } else { 0 };
        let near = |next: &mut dyn FnMut(u32) -> u64| Ticks(base.saturating_add(next(bits)));
        Look {
            now: near(next),
            open: next(3) != 0,
            at: near(next),
            gate_opened: match next(2) {
                0 => Ticks(u64::MAX),
                1 => near(next),
                _ => Ticks(0),
            },
            excused_ns: if next(1) == 1 { next(bits) } else { 0 },
            is_traced: next(2) == 0,
            limit_ns: next(bits),
            hang_ns: next(bits),
            interval_ns: next(bits),
        }
    }

    #[test]
    fn what_holds_of_any_look() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |bits: u32| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed >> (64 - bits)
        };
        let mut seen = [0; 6];
        for _ in 0..200_000 {
            let look = random_look(&mut next);
            let (from, verdict) = judge(&look);
            seen[[Idle, Running, Late, Block, Hang, Excused].iter().position(|v| *v == verdict).unwrap()] += 1;

            // Nothing counts that is not open, was paused, or began after the look.
            assert_eq!(from, look.at.max(look.gate_opened), "{look:?}");
            assert_eq!(verdict == Idle, !look.open || from > look.now, "{look:?}");
            // A block is one above its limit, whatever else there is, and a hang one above both.
            let age = i128::from(look.now.0) - i128::from(from.0) - i128::from(look.excused_ns);
            let (limit, hang) = (i128::from(look.limit_ns), i128::from(look.hang_ns));
            if verdict != Idle {
                assert_eq!(matches!(verdict, Block | Hang | Excused), age > limit, "{look:?}");
                assert_eq!(verdict == Hang, age > limit && age > hang && !look.is_traced, "{look:?}");
                assert_eq!(verdict == Late, age <= limit && age.max(0) >= i128::from(look.interval_ns), "{look:?}");
            }
            // A debugger excuses blocks and changes nothing else.
            let (_, free) = judge(&Look { is_traced: false, ..look });
            assert_eq!(verdict == Excused, look.is_traced && matches!(free, Block | Hang), "{look:?}");
            assert!(verdict == free || verdict == Excused, "{look:?}");
            // Time that passes while the process is stopped makes no difference.
            let by = next(30);
            let stopped = Look { now: look.now.plus(by), excused_ns: look.excused_ns + by, ..look };
            if verdict != Idle {
                assert_eq!(judge(&stopped), (from, verdict), "{look:?}");
            }
            // Only durations count: the same a while later is the same.
            let closed = look.gate_opened.0 == u64::MAX;
            let gate_opened = if closed { look.gate_opened } else { look.gate_opened.plus(by) };
            let later = Look { now: look.now.plus(by), at: look.at.plus(by), gate_opened, ..look };
            assert_eq!(judge(&later).1, verdict, "{look:?}");
            // More time never makes it better, nor a higher limit worse.
            let rank =
                |verdict| [Idle, Running, Late, Excused, Block, Hang].iter().position(|v| *v == verdict).unwrap();
            assert!(rank(judge(&Look { now: look.now.plus(by), ..look }).1) >= rank(verdict), "{look:?}");
            let lenient = Look { limit_ns: look.limit_ns + by, ..look };
            assert!(rank(judge(&lenient).1) <= rank(verdict), "{look:?}");
        }
        assert!(seen.iter().all(|times| *times > 1000), "{seen:?}");
    }

    #[test]
    fn intervals() {
        assert_eq!(interval_ns(0, 1_000_000_000), 250_000_000);
        assert_eq!(interval_ns(0, 1_000_000), 10_000_000);
        assert_eq!(interval_ns(1_000_000, 1_000_000_000), 1_000_000);
    }
}
