//! Whether time counts: open between start and stop, closed while paused.
//!
//! `opened` is one word for both questions that a mark asks, "does it count?" and "since when?", so that no mark can see
//! the one without the other. Only calls that hold the life-cycle lock write.

use crate::sys::clock::Ticks;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// `opened` while the gate is closed: a moment after all others, so nothing has lasted since.
const CLOSED: u64 = u64::MAX;

/// In `counted`, while the gate is open.
const IS_OPEN: u64 = 1 << 63;

/// The gate of the process.
pub struct Gate {
    /// When it was opened last, or CLOSED.
    opened: AtomicU64,
    /// When it was closed last. Valid while it is closed: written before `opened` says so.
    closed_at: AtomicU64,
    /// When it had been opened before that.
    opened_before: AtomicU64,
    /// How often it was closed.
    closings: AtomicU64,
    /// Since when nothing has disturbed what is going on: `opened`, or the end of a later time in which the process did not
    /// run. Also by the monitor.
    undisturbed: AtomicU64,
    /// For how long it has been open, ns. While it is open: IS_OPEN, and what has to be added to a moment to get that, so
    /// that one word answers.
    counted: AtomicU64,
}

/// The one gate.
pub static GATE: Gate = Gate {
    opened: AtomicU64::new(CLOSED),
    closed_at: AtomicU64::new(0),
    opened_before: AtomicU64::new(CLOSED),
    closings: AtomicU64::new(0),
    undisturbed: AtomicU64::new(CLOSED),
    counted: AtomicU64::new(0),
};

/// The last time the gate was open, while it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastOpen {
    /// Begin of that time.
    pub from: Ticks,
    /// Its end.
    pub to: Ticks,
}

impl Gate {
    /// Time counts from now on. Nothing, if it does already.
    pub fn open(&self, now: Ticks) {
        if self.opened.compare_exchange(CLOSED, now.0, AcqRel, Relaxed).is_ok() {
            let counted_ns = self.counted.load(Relaxed);
            self.undisturbed.store(now.0, Relaxed);
            self.counted.store(counted_ns.wrapping_sub(now.0) | IS_OPEN, Release);
        }
    }

    /// Time counts no more. Nothing, if it does not already.
    pub fn close(&self, now: Ticks) {
        let opened = self.opened.load(Acquire);
        if opened != CLOSED {
            self.opened_before.store(opened, Relaxed);
            self.closed_at.store(now.0, Relaxed);
            self.closings.fetch_add(1, Relaxed);
            self.counted.store(self.counted_until(now), Relaxed);
            self.undisturbed.store(CLOSED, Relaxed);
            self.opened.store(CLOSED, Release);
        }
    }

    /// The process did not run until now. By the monitor.
    pub fn disturbed(&self, now: Ticks) {
        let before = self.undisturbed.load(Relaxed);
        if before < now.0 {
            // If it was closed meanwhile, that counts.
            let _ = self.undisturbed.compare_exchange(before, now.0, Relaxed, Relaxed);
        }
    }

    /// What has begun before this moment was cut: by a pause, a stop or a time in which the process did not run. A moment
    /// after all others while the gate is closed.
    #[inline]
    pub fn undisturbed(&self) -> Ticks {
        Ticks(self.undisturbed.load(Relaxed))
    }

    /// When it was opened; a moment after all others while it is closed.
    #[inline]
    pub fn opened(&self) -> Ticks {
        Ticks(self.opened.load(Acquire))
    }

    /// Is it open?
    pub fn is_open(&self) -> bool {
        self.opened().0 != CLOSED
    }

    /// How often it was closed: a look that finds another number than the last one has something to close.
    pub fn closings(&self) -> u64 {
        self.closings.load(Acquire)
    }

    /// For how long it has been open altogether, ns.
    pub fn counted_ns(&self) -> u64 {
        let counted = self.counted.load(Acquire);
        // Not before the word is read: a moment before the opening that it speaks of would be none of its.
        Gate::counted(counted, Ticks::now())
    }

    fn counted_until(&self, now: Ticks) -> u64 {
        Gate::counted(self.counted.load(Relaxed), now)
    }

    fn counted(counted: u64, now: Ticks) -> u64 {
        if counted & IS_OPEN == 0 { counted } else { counted.wrapping_add(now.0) & !IS_OPEN }
    }

    /// The time before it was closed; `None` while it is open.
    pub fn last_open(&self) -> Option<LastOpen> {
        if self.is_open() {
            return None;
        }
        let last = self.before_last_closing();
        core::sync::atomic::fence(Acquire);
        (!self.is_open() && last.from.0 != CLOSED).then_some(last)
    }

    /// The time before it was closed last, whether it has been opened again or not.
    pub fn before_last_closing(&self) -> LastOpen {
        LastOpen { from: Ticks(self.opened_before.load(Relaxed)), to: Ticks(self.closed_at.load(Relaxed)) }
    }

    /// The part of the time from `at` to `now` that counts: since the gate opened, or before it closed.
    pub fn clip(&self, at: Ticks, now: Ticks) -> Option<(Ticks, Ticks)> {
        let (opened, end) = match self.last_open() {
            Some(last) => (last.from, last.to.min(now)),
            None => (self.opened(), now),
        };
        let from = at.max(opened);
        (from < end).then_some((from, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate {
            opened: AtomicU64::new(CLOSED),
            closed_at: AtomicU64::new(0),
            opened_before: AtomicU64::new(CLOSED),
            closings: AtomicU64::new(0),
            undisturbed: AtomicU64::new(CLOSED),
            counted: AtomicU64::new(0),
        }
    }

    #[test]
    fn the_time_it_was_open() {
        let gate = gate();
        let t = Ticks;
        assert_eq!(gate.counted_until(t(9)), 0);
        gate.open(t(10));
        assert_eq!(gate.counted_until(t(10)), 0);
        assert_eq!(gate.counted_until(t(15)), 5);
        gate.close(t(40));
        assert_eq!(gate.counted_until(t(90)), 30);
        gate.open(t(100));
        assert_eq!(gate.counted_until(t(101)), 31);
    }

    #[test]
    fn what_is_cut() {
        let gate = gate();
        let t = Ticks;
        gate.disturbed(t(5));
        assert_eq!(gate.undisturbed(), t(CLOSED));
        gate.open(t(10));
        assert_eq!(gate.undisturbed(), t(10));
        gate.disturbed(t(30));
        gate.disturbed(t(20));
        assert_eq!((gate.undisturbed(), gate.opened()), (t(30), t(10)));
        gate.close(t(40));
        assert_eq!(gate.undisturbed(), t(CLOSED));
    }

    #[test]
    fn only_open_time_counts() {
        let gate = gate();
        let t = Ticks;
        assert_eq!(gate.clip(t(1), t(9)), None);
        gate.open(t(10));
        assert_eq!(gate.clip(t(5), t(30)), Some((t(10), t(30))));
        assert_eq!(gate.clip(t(20), t(30)), Some((t(20), t(30))));
        gate.close(t(40));
        assert_eq!(gate.clip(t(20), t(90)), Some((t(20), t(40))));
        assert_eq!(gate.clip(t(50), t(90)), None);
        gate.close(t(45));
        assert_eq!(gate.last_open(), Some(LastOpen { from: t(10), to: t(40) }));
        gate.open(t(100));
        gate.open(t(110));
        assert_eq!(gate.clip(t(20), t(130)), Some((t(100), t(130))));
        assert_eq!(gate.closings(), 1);
    }
}
