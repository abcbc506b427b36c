//! The heartbeat of a looper's thread that leaves no marks of its own: a descriptor of its looper is pinged, and the time
//! until the thread answers is a stretch. For a loop of frames it is the display that pings.

use super::gate::GATE;
use super::late::LateEnd;
use super::marks::Seen;
use super::slot::Slot;
use crate::sample::what::{FRAME, What};
use crate::sys::clock::{self, Ticks};
use crate::sys::thread;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::*};

/// The words of a heartbeat. `stretch` is set by the monitor with a ping, after `pinged_at` (release), and cleared by the
/// looper's thread with its answer; the others are each written by one side only. Of a loop of frames the thread itself
/// writes what the monitor does otherwise, when it asks for a frame.
pub struct Probe {
    /// Names the ping that is out; 0: none is.
    stretch: AtomicUsize,
    pinged_at: AtomicU64,
    /// Pings so far, the monitor's.
    pings: AtomicUsize,
    /// Answers so far, the thread's.
    answers: AtomicU64,
    /// The event descriptor and one, so that slots begin as zeros, which a program's file need not hold; 0 for a loop that
    /// leaves marks.
    fd: AtomicI32,
}

impl Probe {
    /// Of no looper.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Probe {
        Probe {
            stretch: AtomicUsize::new(0),
            pinged_at: AtomicU64::new(0),
            pings: AtomicUsize::new(0),
            answers: AtomicU64::new(0),
            fd: AtomicI32::new(0),
        }
    }

    /// Is the loop watched by a heartbeat?
    pub fn is_used(&self) -> bool {
        self.fd.load(Acquire) > 0
    }

    /// Begins with this descriptor.
    pub fn begin(&self, fd: i32) {
        self.stretch.store(0, Relaxed);
        self.answers.store(0, Relaxed);
        self.fd.store(fd.saturating_add(1), Release);
    }

    /// The event descriptor, -1 for none.
    pub fn fd(&self) -> i32 {
        self.fd.load(Relaxed) - 1
    }

    /// Ends; gives the event descriptor, -1 for none.
    pub fn end(&self) -> i32 {
        self.fd.swap(0, AcqRel) - 1
    }

    /// A ping is about to be sent, or a frame asked for.
    pub fn pings(&self, now: Ticks) {
        let ping = self.pings.load(Relaxed).wrapping_add(1).max(1);
        self.pings.store(ping, Relaxed);
        self.pinged_at.store(now.0, Relaxed);
        self.stretch.store(ping, Release);
    }

    /// Is a ping out?
    pub fn is_out(&self) -> bool {
        self.stretch.load(Acquire) != 0
    }

    /// Answers so far.
    pub fn answers(&self) -> u64 {
        self.answers.load(Acquire)
    }

    /// The word that names the stretch.
    pub fn stretch(&self) -> &AtomicUsize {
        &self.stretch
    }
}

/// The looper's thread answers, by its looper's callback. Its first answer tells who it is.
pub fn answers(slot: &Slot) {
    let now = Ticks::now();
    let probe = &slot.probe;
    if slot.tid.load(Relaxed) == 0 {
        let here = 0u8;
        slot.stack_hint.store((&raw const here).addr() as u64, Relaxed);
        slot.owner.store(thread::handle(), Relaxed);
        slot.tid.store(thread::tid(), Release);
    }
    ends(slot, now);
    probe.answers.store(probe.answers.load(Relaxed).wrapping_add(1), Release);
}

/// The stretch ends, if one is open; by the looper's thread.
pub fn ends(slot: &Slot, now: Ticks) {
    let probe = &slot.probe;
    let stretch = probe.stretch.load(Acquire);
    if stretch == 0 {
        return;
    }
    let limit_ns = slot.limit_ns.load(Relaxed);
    let late = GATE.clip(Ticks(probe.pinged_at.load(Relaxed)), now).filter(|(from, to)| to.since(*from) > limit_ns);
    if let Some((from, to)) = late {
        let (what, tag) = name(slot);
        // A full queue means that the monitor has seen this stretch long ago.
        slot.late_ends.put(|| LateEnd {
            token: slot.last_token.load(Relaxed),
            stretch,
            from,
            to,
            cpu_ns: clock::own_cpu(),
            limit_ns,
            tag,
            what: what.map_or(What::NONE, |what| What::from_bytes(what.as_ptr(), what.to_bytes())),
        });
    }
    probe.stretch.store(0, Release);
}

/// What a stretch is called, and its tag.
fn name(slot: &Slot) -> (Option<&'static CStr>, u64) {
    if slot.frames.is_used() { (Some(FRAME), slot.frames.vsync()) } else { (None, 0) }
}

/// What the words say at a moment, as of a loop with marks.
pub fn look(slot: &Slot) -> Option<Seen> {
    let probe = &slot.probe;
    let stretch = probe.stretch.load(Acquire);
    let at = Ticks(probe.pinged_at.load(Relaxed));
    let (what, tag) = name(slot);
    (probe.stretch.load(Acquire) == stretch).then(|| Seen {
        version: stretch.wrapping_add(probe.answers() as usize),
        stretch,
        at,
        open: stretch != 0,
        limit_ns: slot.limit_ns.load(Relaxed),
        what: what.map_or(ptr::null(), CStr::as_ptr),
        tag,
    })
}
