//! A thread's frames: what its frame callbacks write. The time from one callback to the next is a stretch, and counts in
//! the statistics by the display's own time.
//!
//! Once asked for, a frame callback cannot be taken back. It names the life that it was asked for in, which may be over
//! when it comes.

use super::bell;
use super::cadence::{self, Cadence, Frame};
use super::gate::GATE;
use super::probe;
use super::slot::{self, Slot};
use super::tally::Begin;
use crate::sys::clock::Ticks;
use crate::sys::procfs::{ProcFile, ThreadStat, open_of_thread};
use crate::sys::{loaded, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Written by the loop's own thread, but for the begin of a life, when nobody else looks.
pub struct Frames {
    /// The loop is one of frames.
    is_used: AtomicBool,
    /// The token of the life in which a callback was asked for that is still to come, or is running; 0: none is. Also by
    /// who takes the slot for another life.
    asked: AtomicUsize,
    /// When it was asked for.
    asked_at: AtomicU64,
    /// When the thread last answered the monitor.
    answered_at: AtomicU64,
    /// The display's time of the last frame; 0: none since frames were asked for anew.
    vsync: AtomicU64,
    period_ns: AtomicU64,
    /// A period that the system has told since the last frame, ns; 0: none.
    told_ns: AtomicU64,
    is_told: AtomicBool,
    candidate_ns: AtomicU64,
    begin: Begin,
}

/// Callbacks to come whose slots have begun another life.
static ORPHANS: AtomicU32 = AtomicU32::new(0);

impl Frames {
    /// Of a loop that has none.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Frames {
        Frames {
            is_used: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            asked_at: AtomicU64::new(0),
            answered_at: AtomicU64::new(0),
            vsync: AtomicU64::new(0),
            period_ns: AtomicU64::new(0),
            told_ns: AtomicU64::new(0),
            is_told: AtomicBool::new(false),
            candidate_ns: AtomicU64::new(0),
            begin: Begin::new(),
        }
    }

    /// A loop's life begins, with frames or without; `tid` is the thread of the one before.
    pub fn begin(&self, is_used: bool, tid: i32) {
        if self.asked.swap(0, AcqRel) != 0 && thread::exists(tid) {
            ORPHANS.fetch_add(1, AcqRel);
        }
        self.answered_at.store(0, Relaxed);
        self.vsync.store(0, Relaxed);
        self.told_ns.store(0, Relaxed);
        self.put(Cadence::default());
        self.is_used.store(is_used, Release);
    }

    /// Is the loop one of frames?
    pub fn is_used(&self) -> bool {
        self.is_used.load(Acquire)
    }

    /// Is a callback to come?
    pub fn is_asked(&self) -> bool {
        self.asked.load(Acquire) != 0
    }

    /// A callback of a life that may be over has nothing left to do but to return.
    pub fn returns(&self, token: usize) {
        if self.asked.compare_exchange(token, 0, AcqRel, Relaxed).is_err() {
            let _ = ORPHANS.fetch_update(AcqRel, Acquire, |orphans| orphans.checked_sub(1));
        }
    }

    /// The display's period, ns; 0: not known.
    pub fn period_ns(&self) -> u64 {
        self.period_ns.load(Relaxed)
    }

    /// The display's time of the last frame.
    pub fn vsync(&self) -> u64 {
        self.vsync.load(Relaxed)
    }

    /// The system tells the display's period, from the next frame on or from the last.
    pub fn tell_period(&self, period_ns: u64) {
        self.told_ns.store(period_ns, Relaxed);
    }

    /// The display's time of a frame of which the system tells only the low half.
    pub fn whole(&self, low: u32) -> u64 {
        cadence::whole(low, self.asked_at.load(Relaxed))
    }

    fn get(&self) -> Cadence {
        Cadence {
            period_ns: self.period_ns(),
            is_told: self.is_told.load(Relaxed),
            candidate_ns: self.candidate_ns.load(Relaxed),
        }
    }

    fn put(&self, cadence: Cadence) {
        self.period_ns.store(cadence.period_ns, Relaxed);
        self.is_told.store(cadence.is_told, Relaxed);
        self.candidate_ns.store(cadence.candidate_ns, Relaxed);
    }
}

/// A frame callback has come, of the frame that the display began at `vsync`.
pub fn comes(slot: &Slot, vsync: u64) {
    let frames = &slot.frames;
    let now = Ticks::now();
    // Nothing before the display's first moment, and nothing that has not been yet.
    let vsync = vsync.clamp(1, now.0);
    let frame = Frame {
        before: frames.vsync(),
        asked: frames.asked_at.load(Relaxed),
        alive: frames.answered_at.load(Relaxed),
        vsync,
    };
    let mut cadence = frames.get();
    let is_pause = cadence.is_pause(&frame);
    probe::ends(slot, now);
    if frame.before != 0 && frame.before < vsync {
        let undisturbed = if is_pause { Ticks(u64::MAX) } else { GATE.undisturbed() };
        let tally = slot.marks.tally();
        tally.look_at(tally.ends(&frames.begin, Ticks(vsync), undisturbed, false));
        if undisturbed.0 <= frame.before {
            tally.missed(cadence.missed(&frame, frames.told_ns.load(Relaxed)));
        }
    }
    cadence.tell(frames.told_ns.swap(0, Relaxed));
    frames.put(cadence);
    frames.vsync.store(vsync, Relaxed);
    frames.begin.set(Ticks(vsync), slot.marks.tally());
}

/// The thread is about to ask for a frame callback: the time until that comes is a stretch.
pub fn asks(slot: &Slot) {
    let now = Ticks::now();
    slot.frames.asked_at.store(now.0, Relaxed);
    slot.probe.pings(now);
    slot.frames.asked.store(slot.last_token.load(Relaxed), Release);
    bell::notice();
}

/// It asks for no more.
pub fn rests(slot: &Slot) {
    slot.frames.vsync.store(0, Relaxed);
}

/// The thread answers the monitor, in a time without frames.
pub fn answers(slot: &Slot) {
    let now = Ticks::now();
    probe::ends(slot, now);
    slot.frames.answered_at.store(now.0, Relaxed);
    if slot.frames.is_asked() {
        // It still waits for a frame, but has been seen not to be late.
        slot.probe.pings(now);
    }
}

/// Is no callback to come but the calling thread's own, which cannot while it waits for this, and has each thread left those
/// that have come? Asked when frames are asked for no more.
pub fn are_at_rest() -> bool {
    let own = thread::tid();
    ORPHANS.load(Acquire) == 0
        && used().all(|slot| {
            let tid = slot.tid.load(Relaxed);
            tid == own || !is_to_come(slot) && (!loaded::is_kept() || is_outside(tid))
        })
}

/// Is any callback to come?
pub fn are_to_come() -> bool {
    ORPHANS.load(Acquire) != 0 || used().any(is_to_come)
}

fn used() -> impl Iterator<Item = &'static Slot> {
    slot::used().map(|(_, slot)| slot).filter(|slot| slot.frames.is_used())
}

/// What a thread that has ended had asked for never comes.
fn is_to_come(slot: &Slot) -> bool {
    slot.frames.is_asked() && thread::exists(slot.tid.load(Relaxed))
}

/// In a child of fork nothing is to come.
pub fn reset_after_fork() {
    ORPHANS.store(0, Release);
    slot::all().for_each(|(_, slot)| slot.frames.asked.store(0, Release));
}

/// A thread that waits is not about to return from a callback of ours: what those do last waits for nothing.
fn is_outside(tid: i32) -> bool {
    let mut text = [0; 512];
    let Ok(file) = open_of_thread(tid, "stat", ProcFile::open) else { return true };
    file.read(&mut text).ok().and_then(ThreadStat::parse).is_none_or(|stat| stat.state != b'R')
}
