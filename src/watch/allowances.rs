//! Allowances of a loop: operations that are expected to take longer, each with a time limit of its own.

use crate::sys::clock::Ticks;
use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Allowances open at a time.
pub const MOST: usize = 8;

/// No limit.
const NEVER: u64 = u64::MAX;

struct Entry {
    begin: AtomicU64,
    deadline: AtomicU64,
    why: AtomicPtr<c_char>,
    /// Dispatches that were open when it began: it ends with the innermost of them.
    depth: AtomicU32,
}

/// Words that marks write, like those of `Marks`, and inside the same version.
pub struct Allowances {
    count: AtomicU32,
    entries: [Entry; MOST],
}

/// One allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Its place, which tells it from the others that are open.
    pub place: usize,
    /// Its begin.
    pub begin: Ticks,
    /// Begin and allowed time, a moment after all others where there is no limit.
    pub deadline: Ticks,
    /// What the program says it is for.
    pub why: *const c_char,
}

impl Allowance {
    /// The limit of a stretch that begins at `from` under it, never below the loop's own.
    pub fn limit_ns(&self, from: Ticks, own_limit_ns: u64) -> u64 {
        if self.deadline.0 == NEVER { NEVER } else { self.deadline.since(from).max(own_limit_ns) }
    }
}

impl Allowances {
    /// None.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Allowances {
        Allowances {
            count: AtomicU32::new(0),
            entries: [const {
                Entry {
                    begin: AtomicU64::new(0),
                    deadline: AtomicU64::new(0),
                    why: AtomicPtr::new(ptr::null_mut()),
                    depth: AtomicU32::new(0),
                }
            }; MOST],
        }
    }

    fn open(&self) -> impl DoubleEndedIterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate().take(self.count.load(Relaxed) as usize)
    }

    /// How many are open.
    pub fn count(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// The one that counts: of the latest deadline, of equal ones the outermost.
    pub fn latest(&self) -> Option<Allowance> {
        let mut latest: Option<Allowance> = None;
        for (place, entry) in self.open() {
            let deadline = Ticks(entry.deadline.load(Relaxed));
            if latest.is_none_or(|latest| deadline > latest.deadline) {
                let begin = Ticks(entry.begin.load(Relaxed));
                latest = Some(Allowance { place, begin, deadline, why: entry.why.load(Relaxed).cast_const() });
            }
        }
        latest
    }

    /// One more. `false`: as many as there may be are open.
    pub fn begin(&self, now: Ticks, allowance_ns: Option<u64>, why: *const c_char, depth: u32) -> bool {
        let count = self.count.load(Relaxed);
        let Some(entry) = self.entries.get(count as usize) else { return false };
        entry.begin.store(now.0, Relaxed);
        entry.deadline.store(allowance_ns.map_or(NEVER, |ns| now.plus(ns).0), Relaxed);
        entry.why.store(why.cast_mut(), Relaxed);
        entry.depth.store(depth, Relaxed);
        self.count.store(count + 1, Relaxed);
        true
    }

    /// The innermost ends.
    pub fn end(&self) {
        self.count.store(self.count.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// Those that began deeper than this end with their dispatches; answers how many.
    pub fn end_above(&self, depth: u32) -> u32 {
        let kept = self.open().take_while(|(_, entry)| entry.depth.load(Relaxed) <= depth).count() as u32;
        let count = self.count.load(Relaxed);
        self.count.store(kept, Relaxed);
        count.saturating_sub(kept)
    }

    /// Would `end_above` end the one that counts?
    pub fn ends_latest_above(&self, depth: u32) -> bool {
        let entry = self.latest().and_then(|latest| self.entries.get(latest.place));
        entry.is_some_and(|entry| entry.depth.load(Relaxed) > depth)
    }

    /// The thread has waited in a poll: that time is nobody's.
    pub fn shift(&self, waited_ns: u64) {
        for (_, entry) in self.open() {
            entry.begin.store(entry.begin.load(Relaxed).saturating_add(waited_ns), Relaxed);
            entry.deadline.store(entry.deadline.load(Relaxed).saturating_add(waited_ns), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(allowances: &Allowances, now: u64, ns: Option<u64>, depth: u32) -> bool {
        allowances.begin(Ticks(now), ns, ptr::null(), depth)
    }

    #[test]
    fn the_latest_deadline_counts() {
        let allowances = Allowances::new();
        assert_eq!(allowances.latest(), None);
        begin(&allowances, 10, Some(100), 0);
        begin(&allowances, 20, Some(50), 1);
        assert_eq!(allowances.latest().unwrap().deadline, Ticks(110));
        begin(&allowances, 30, None, 2);
        let endless = allowances.latest().unwrap();
        assert_eq!((endless.place, endless.limit_ns(Ticks(30), 5)), (2, u64::MAX));
        allowances.end();
        let outer = allowances.latest().unwrap();
        assert_eq!((outer.place, outer.limit_ns(Ticks(30), 5), outer.limit_ns(Ticks(30), 500)), (0, 80, 500));
        // Past its deadline the loop's own limit is left.
        assert_eq!(outer.limit_ns(Ticks(400), 5), 5);
    }

    #[test]
    fn a_ninth_is_refused_and_dispatches_take_theirs_along() {
        let allowances = Allowances::new();
        assert!((0..8).all(|depth| begin(&allowances, 1, Some(1), depth)));
        assert!(!begin(&allowances, 1, Some(1), 9));
        assert_eq!(allowances.end_above(5), 2);
        assert_eq!(allowances.end_above(5), 0);
        assert_eq!(allowances.count(), 6);
    }

    #[test]
    fn waiting_is_nobodys_time() {
        let allowances = Allowances::new();
        begin(&allowances, 10, Some(100), 0);
        begin(&allowances, 10, None, 0);
        allowances.shift(1000);
        assert_eq!(allowances.latest().unwrap().deadline, Ticks(u64::MAX));
        allowances.end();
        assert_eq!(
            (allowances.latest().unwrap().begin, allowances.latest().unwrap().deadline),
            (Ticks(1010), Ticks(1110))
        );
    }
}
