//! The words that a loop's marks write.

use crate::ring::version::Version;
use crate::sys::clock::Ticks;
use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Dispatches whose names are kept; deeper ones are counted only.
pub const NAMED_DEPTH: usize = 16;

/// The loop waits in a poll.
const WAITING: u32 = 1 << 31;
/// A poll has returned and the next one has not begun: that time is a dispatch of its own, below all callbacks.
const BETWEEN: u32 = 1 << 30;
/// The rest is the number of open dispatches.
const DEPTH: u32 = BETWEEN - 1;

/// What a dispatch is called.
struct Name {
    /// The caller's text, or one of the two in `sample::what`.
    what: AtomicPtr<c_char>,
    tag: AtomicU64,
}

/// Written by the loop's own thread only, inside `version`; read by the monitor, and by the signal handler on the loop's
/// own thread. All relaxed: `version` orders them.
pub struct Marks {
    version: Version,
    /// The last mark. While `state` is open, the begin of the stretch.
    at: AtomicU64,
    /// The stretch's limit, ns: fixed when it begins.
    limit_ns: AtomicU64,
    /// WAITING, BETWEEN and the depth.
    state: AtomicU32,
    /// The depth at which BETWEEN was set: dispatches above it are inside, those below are outside.
    between_depth: AtomicU32,
    between_tag: AtomicU64,
    names: [Name; NAMED_DEPTH],
}

/// What the words say at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Names this state of the words.
    pub version: usize,
    /// The last mark.
    pub at: Ticks,
    /// A dispatch is open and the loop does not wait.
    pub open: bool,
    /// The stretch's limit, ns.
    pub limit_ns: u64,
    /// The innermost open dispatch's text. Valid while `version` is current, so to be read with care.
    pub what: *const c_char,
    /// The innermost open dispatch's tag.
    pub tag: u64,
}

/// What a callback finds when it begins and puts back when it ends.
#[derive(Clone, Copy)]
pub struct Outer {
    state: u32,
    between_depth: u32,
}

impl Marks {
    /// No dispatch.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Marks {
        Marks {
            version: Version::new(),
            at: AtomicU64::new(0),
            limit_ns: AtomicU64::new(0),
            state: AtomicU32::new(0),
            between_depth: AtomicU32::new(0),
            between_tag: AtomicU64::new(0),
            names: [const { Name { what: AtomicPtr::new(ptr::null_mut()), tag: AtomicU64::new(0) } }; NAMED_DEPTH],
        }
    }

    /// Begin of the open stretch and its limit; by the own thread.
    #[inline(always)]
    pub fn open_stretch(&self) -> Option<(Ticks, u64)> {
        let state = self.state.load(Relaxed);
        let open = state & WAITING == 0 && state != 0;
        open.then(|| (Ticks(self.at.load(Relaxed)), self.limit_ns.load(Relaxed)))
    }

    /// A dispatch begins. `false`: too deep for its name to be kept.
    #[inline(always)]
    pub fn begin(&self, now: Ticks, limit_ns: u64, what: *const c_char, tag: u64) -> bool {
        let state = self.state.load(Relaxed);
        let name = self.names.get((state & DEPTH) as usize);
        self.version.write(|| {
            if let Some(name) = name {
                name.what.store(what.cast_mut(), Relaxed);
                name.tag.store(tag, Relaxed);
            }
            self.state.store(state.wrapping_add(1), Relaxed);
            self.stretch(now, limit_ns);
        });
        name.is_some()
    }

    /// The innermost dispatch ends. `false`: there is none.
    #[inline(always)]
    pub fn end(&self, now: Ticks, limit_ns: u64) -> bool {
        let state = self.state.load(Relaxed);
        if state & DEPTH == 0 {
            return false;
        }
        self.version.write(|| {
            self.state.store(state.wrapping_sub(1), Relaxed);
            self.stretch(now, limit_ns);
        });
        true
    }

    /// A poll begins.
    #[inline(always)]
    pub fn poll_begins(&self, now: Ticks) {
        self.version.write(|| {
            self.state.store(self.state.load(Relaxed) & !BETWEEN | WAITING, Relaxed);
            self.at.store(now.0, Relaxed);
        });
    }

    /// A poll has returned. `now` is `None` where it returned straight from a callback: that one's end is the begin.
    #[inline(always)]
    pub fn poll_returns(&self, now: Option<Ticks>, limit_ns: u64, tag: u64) {
        let state = self.state.load(Relaxed);
        self.version.write(|| {
            self.between_depth.store(state & DEPTH, Relaxed);
            self.between_tag.store(tag, Relaxed);
            self.state.store(state & !WAITING | BETWEEN, Relaxed);
            self.stretch(now.unwrap_or(Ticks(self.at.load(Relaxed))), limit_ns);
        });
    }

    /// A callback begins inside a poll.
    #[inline(always)]
    pub fn callback_begins(&self, now: Ticks, limit_ns: u64, what: *const c_char, tag: u64) -> Outer {
        let outer = Outer { state: self.state.load(Relaxed), between_depth: self.between_depth.load(Relaxed) };
        self.version.write(|| {
            self.state.store(outer.state & DEPTH, Relaxed);
            self.begin(now, limit_ns, what, tag);
        });
        outer
    }

    /// It ends, and with it whatever it has left open.
    #[inline(always)]
    pub fn callback_ends(&self, now: Ticks, limit_ns: u64, outer: Outer) {
        self.version.write(|| {
            self.state.store(outer.state, Relaxed);
            self.between_depth.store(outer.between_depth, Relaxed);
            self.stretch(now, limit_ns);
        });
    }

    /// All dispatches are closed.
    pub fn close_all(&self, now: Ticks) {
        self.version.write(|| {
            self.state.store(0, Relaxed);
            self.at.store(now.0, Relaxed);
        });
    }

    #[inline(always)]
    fn stretch(&self, now: Ticks, limit_ns: u64) {
        self.limit_ns.store(limit_ns, Relaxed);
        self.at.store(now.0, Relaxed);
    }

    /// The innermost open dispatch's name; `what` is null where it was too deep, or for the time between polls.
    pub fn innermost(&self) -> (*const c_char, u64) {
        let state = self.state.load(Relaxed);
        let depth = state & DEPTH;
        if state & BETWEEN != 0 && depth <= self.between_depth.load(Relaxed) {
            return (crate::sample::what::BETWEEN_POLLS.as_ptr(), self.between_tag.load(Relaxed));
        }
        let name = depth.checked_sub(1).and_then(|place| self.names.get(place as usize));
        name.map_or((ptr::null(), 0), |name| (name.what.load(Relaxed).cast_const(), name.tag.load(Relaxed)))
    }

    /// What the words say; `None` when a mark came in between.
    pub fn look(&self) -> Option<Seen> {
        let read = self.version.read(|| {
            let (what, tag) = self.innermost();
            let state = self.state.load(Relaxed);
            Seen {
                version: 0,
                at: Ticks(self.at.load(Relaxed)),
                open: state & WAITING == 0 && state != 0,
                limit_ns: self.limit_ns.load(Relaxed),
                what,
                tag,
            }
        });
        read.map(|(seen, version)| Seen { version, ..seen })
    }

    /// What names the state of the words.
    pub fn version(&self) -> &Version {
        &self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(marks: &Marks) -> Option<(u64, u64)> {
        let seen = marks.look().unwrap();
        assert_eq!(seen.open, marks.open_stretch().is_some());
        seen.open.then_some((seen.at.0, seen.tag))
    }

    #[test]
    fn an_inner_dispatch_restarts_the_stretch() {
        let marks = Marks::new();
        let begin = |now, tag| marks.begin(Ticks(now), 100, ptr::null(), tag);
        assert_eq!(open(&marks), None);
        begin(10, 1);
        begin(20, 2);
        assert_eq!(open(&marks), Some((20, 2)));
        marks.end(Ticks(30), 100);
        assert_eq!(open(&marks), Some((30, 1)));
        marks.end(Ticks(40), 100);
        assert_eq!(open(&marks), None);
        assert!(!marks.end(Ticks(50), 100));
    }

    #[test]
    fn depth_beyond_the_names_is_balanced() {
        let marks = Marks::new();
        for depth in 0..20 {
            assert_eq!(marks.begin(Ticks(depth), 100, ptr::null(), depth), depth < 16);
        }
        assert_eq!(open(&marks), Some((19, 0)));
        (0..19).for_each(|_| assert!(marks.end(Ticks(99), 100)));
        assert_eq!(open(&marks), Some((99, 0)));
        assert!(marks.end(Ticks(100), 100));
        assert_eq!(open(&marks), None);
    }

    #[test]
    fn a_poll_waits_however_many_dispatches_are_open() {
        let marks = Marks::new();
        marks.begin(Ticks(5), 100, ptr::null(), 1);
        marks.poll_begins(Ticks(10));
        assert_eq!(open(&marks), None);
        let outer = marks.callback_begins(Ticks(20), 100, ptr::null(), 7);
        assert_eq!(open(&marks), Some((20, 7)));
        // A nested loop inside the callback, left between two polls.
        marks.poll_begins(Ticks(22));
        assert_eq!(open(&marks), None);
        marks.poll_returns(Some(Ticks(25)), 100, 33);
        assert_eq!(open(&marks), Some((25, 33)));
        marks.callback_ends(Ticks(30), 100, outer);
        assert_eq!(open(&marks), None);
        marks.poll_returns(None, 100, 34);
        assert_eq!(open(&marks), Some((30, 34)));
        // An inner dispatch has its own name, then the poll's again.
        marks.begin(Ticks(40), 100, ptr::null(), 2);
        assert_eq!(open(&marks), Some((40, 2)));
        marks.end(Ticks(50), 100);
        assert_eq!(open(&marks), Some((50, 34)));
        marks.poll_begins(Ticks(60));
        marks.poll_returns(Some(Ticks(61)), 100, 35);
        marks.end(Ticks(62), 100);
        marks.poll_begins(Ticks(63));
        assert_eq!(open(&marks), None);
    }
}
