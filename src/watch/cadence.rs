//! How many frames were missed between two frame callbacks, and what the display's period is where nobody tells it:
//! functions of a few moments, apart from all machinery.

/// Shortest and longest period that a display is believed to have, ns.
const PERIODS: core::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000;

/// Stands for the period while that is not known, ns.
const USUAL_NS: u64 = 16_666_667;

/// A wait for a frame that takes longer than so many periods, by a thread that answers meanwhile, is the system's.
const PATIENCE: u64 = 3;

/// What is known of a display from frame to frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cadence {
    /// The display's period, ns; 0: not known.
    pub period_ns: u64,
    /// The system tells the period.
    pub is_told: bool,
    /// Another period that one frame alone speaks for, ns; 0: none.
    pub candidate_ns: u64,
}

/// One frame callback and the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The display's time of the frame before, ns.
    pub before: u64,
    /// When this one was asked for: at once when the one before had come, ns.
    pub asked: u64,
    /// When the thread was last seen alive without a frame, 0 for never, ns.
    pub alive: u64,
    /// The display's time of this frame, ns.
    pub vsync: u64,
}

impl Frame {
    fn interval(&self) -> u64 {
        self.vsync.saturating_sub(self.before)
    }
}

impl Cadence {
    /// The system tells the period.
    pub fn tell(&mut self, period_ns: u64) {
        if PERIODS.contains(&period_ns) {
            *self = Cadence { period_ns, is_told: true, candidate_ns: 0 };
        }
    }

    /// Was there no frame to be had for a while: the display was off, or the system late?
    pub fn is_pause(&self, frame: &Frame) -> bool {
        let usual = if self.period_ns == 0 { USUAL_NS } else { self.period_ns };
        let waited = frame.vsync.saturating_sub(frame.asked);
        frame.alive > frame.asked && frame.vsync > frame.alive && waited > usual.saturating_mul(PATIENCE)
    }

    /// Periods that have gone by without a frame. One that is told meanwhile may have been in force already, or not yet; 0:
    /// none is. Learns the period where it is not told: a frame that is asked for at once comes one period later. Another
    /// one is believed when a second frame says the same: the system leaves frames out, and where it changes the rate, one
    /// interval may be anything.
    pub fn missed(&mut self, frame: &Frame, told_ns: u64) -> u64 {
        let interval = frame.interval();
        if !self.is_told && PERIODS.contains(&interval) {
            let is_prompt = frame.asked.saturating_sub(frame.before) < interval / 2;
            let is_other = self.period_ns != 0 && interval.abs_diff(self.period_ns) > self.period_ns / 4;
            if is_prompt && (!is_other || is_near(interval, self.candidate_ns)) {
                (self.period_ns, self.candidate_ns) = (interval, 0);
            } else {
                self.candidate_ns = if is_prompt { interval } else { 0 };
            }
        }
        if self.period_ns == 0 {
            return 0;
        }
        let period_ns = if PERIODS.contains(&told_ns) { told_ns.max(self.period_ns) } else { self.period_ns };
        let periods = interval.saturating_add(period_ns / 2) / period_ns;
        periods.saturating_sub(1)
    }
}

fn is_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= one / 10
}

/// The whole of a moment of which the low 32 bits are known, and that it is the first such one not before `asked`, but for
/// half a second: a frame may have been due when it was asked for.
pub fn whole(low: u32, asked: u64) -> u64 {
    const EARLIER: u64 = 500_000_000;
    let begin = asked.saturating_sub(EARLIER);
    begin.saturating_add(u64::from(low.wrapping_sub(begin as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Frames asked for so long after the one before, and coming so long after that one; gives what was missed.
    fn run(cadence: &mut Cadence, frames: &[(u64, u64)]) -> Vec<u64> {
        let mut vsync = 1000 * MS;
        let mut missed = Vec::new();
        for (asked, interval) in frames {
            let frame = Frame { before: vsync, asked: vsync + asked, alive: 0, vsync: vsync + interval };
            missed.push(cadence.missed(&frame, 0));
            vsync += interval;
        }
        missed
    }

    #[test]
    fn missed_frames_at_a_told_period() {
        for hertz in [60, 90, 120] {
            let period = 1_000_000_000 / hertz;
            let mut cadence = Cadence::default();
            cadence.tell(period);
            let jitter = period / 5;
            let frames = [(0, period), (0, period + jitter), (0, 2 * period), (5 * period, 6 * period - jitter)];
            assert_eq!(run(&mut cadence, &frames), [0, 0, 1, 5], "{hertz} Hz");
        }
        let mut cadence = Cadence::default();
        cadence.tell(0);
        cadence.tell(2_000_000_000);
        assert_eq!(cadence, Cadence::default());
    }

    #[test]
    fn a_told_change_of_the_rate_misses_nothing() {
        let mut cadence = Cadence::default();
        cadence.tell(8 * MS);
        assert_eq!(run(&mut cadence, &[(0, 8 * MS)]), [0]);
        let frame = Frame { before: 1000 * MS, asked: 1000 * MS, alive: 0, vsync: 1016 * MS };
        assert_eq!(
            (cadence.missed(&frame, 0), cadence.missed(&frame, 16 * MS), cadence.missed(&frame, 4 * MS)),
            (1, 0, 1)
        );
        cadence.tell(16 * MS);
        assert_eq!(run(&mut cadence, &[(0, 16 * MS), (0, 32 * MS)]), [0, 1]);
    }

    #[test]
    fn the_period_is_learnt_from_frames_asked_for_at_once() {
        let mut cadence = Cadence::default();
        // Not from one that was asked for late.
        assert_eq!(run(&mut cadence, &[(40 * MS, 48 * MS)]), [0]);
        assert_eq!(cadence.period_ns, 0);
        assert_eq!(run(&mut cadence, &[(MS, 16 * MS), (40 * MS, 48 * MS), (0, 16 * MS)]), [0, 2, 0]);
        assert_eq!(cadence.period_ns, 16 * MS);
        // One that the system left out, and then a slower display.
        assert_eq!(run(&mut cadence, &[(0, 32 * MS), (0, 16 * MS), (0, 33 * MS), (0, 33 * MS)]), [1, 0, 1, 0]);
        assert_eq!(cadence.period_ns, 33 * MS);
        // A faster one.
        assert_eq!(run(&mut cadence, &[(0, 8 * MS), (0, 8 * MS), (14 * MS, 16 * MS)]), [0, 0, 1]);
    }

    #[test]
    fn one_odd_interval_is_no_period() {
        let mut cadence = Cadence::default();
        assert_eq!(run(&mut cadence, &[(0, 33 * MS), (0, 33 * MS), (0, MS), (0, 16 * MS), (0, 16 * MS)]), [0; 5]);
        assert_eq!(cadence.period_ns, 16 * MS);
        assert_eq!(run(&mut cadence, &[(0, 2 * MS), (0, 16 * MS), (0, 2 * MS), (0, 16 * MS)]), [0; 4]);
        assert_eq!(cadence.period_ns, 16 * MS);
    }

    #[test]
    fn a_display_that_was_off_is_a_pause() {
        let mut cadence = Cadence::default();
        cadence.tell(16 * MS);
        let off = Frame { before: 1000 * MS, asked: 1001 * MS, alive: 1250 * MS, vsync: 3000 * MS };
        assert!(cadence.is_pause(&off) && Cadence::default().is_pause(&off));
        // The thread was busy, and answered when it was no more: the frame had been due long before, or just then.
        assert!(!cadence.is_pause(&Frame { alive: 3000 * MS, ..off }));
        assert!(!cadence.is_pause(&Frame { vsync: 1016 * MS, ..off }));
        // It answered between two frames as usual.
        assert!(!cadence.is_pause(&Frame { alive: 1010 * MS, vsync: 1016 * MS, ..off }));
        assert!(!cadence.is_pause(&Frame { alive: 0, ..off }) && !cadence.is_pause(&Frame { alive: 900 * MS, ..off }));
    }

    #[test]
    fn the_upper_half_of_a_moment() {
        for vsync in [5_000_000_000_u64, 0x1_0000_0003, 0xffff_fff0, 0x7_ffff_ffff] {
            for asked in [vsync - 4_000_000_000 + 600_000_000, vsync - 16 * MS, vsync - 1, vsync, vsync + 400 * MS] {
                assert_eq!(whole(vsync as u32, asked), vsync, "{vsync} asked at {asked}");
            }
        }
    }
}
