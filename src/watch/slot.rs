//! The static places of loops: everything that a mark or a late end touches, never unmapped.

use super::frames::Frames;
use super::late::LateEnd;
use super::marks::{Marks, Seen};
use super::probe::{self, Probe};
use super::token::{SLOTS, Token};
use crate::ring::queue::Queue;
use crate::sample::case::NAME;
use crate::sys::lock::Lock;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Late ends that wait for the monitor.
pub const LATE_ENDS: usize = 32;

/// Nobody's.
pub const FREE: u32 = 0;
/// A thread's loop, watched.
pub const WATCHED: u32 = 1;
/// Given up; the monitor has yet to take a last look and to close its files.
pub const CLOSING: u32 = 2;
/// Given up by another thread than its own. That one may be inside a mark or a frame callback right now, with the token
/// already checked, so the words stay its own until it watches again or is gone.
pub const QUARANTINED: u32 = 3;

/// One loop. `token`, `owner` and `limit_ns` stand beside the marks because each mark reads them.
#[repr(C, align(128))]
pub struct Slot {
    /// The valid token, 0 for none. Stored last when a slot is taken (release), cleared first when it is given up.
    pub token: AtomicUsize,
    /// `pthread_self` of the loop's thread.
    pub owner: AtomicUsize,
    /// Limit of the stretches that begin from now on, ns.
    pub limit_ns: AtomicU64,
    /// What marks write.
    pub marks: Marks,
    /// The heartbeat, for a loop without marks.
    pub probe: Probe,
    /// The frames, for a loop of frames, which has a heartbeat, too.
    pub frames: Frames,
    /// From the loop's thread to the monitor.
    pub late_ends: Queue<LateEnd, LATE_ENDS>,
    /// Blocks seen.
    pub blocks: AtomicU64,
    /// FREE, WATCHED, CLOSING or QUARANTINED. To FREE and QUARANTINED by the monitor, to others under the registry's lock.
    pub phase: AtomicU32,
    /// The loop's thread.
    pub tid: AtomicI32,
    /// An address in the thread's stack, taken when it began to be watched.
    pub stack_hint: AtomicU64,
    /// When it was given up.
    pub closed_at: AtomicU64,
    /// 1: given up by the loop's own thread, which has posted what was late.
    pub closed_by_owner: AtomicU32,
    /// The thread's CPU clock then.
    pub closed_cpu_ns: AtomicU64,
    /// It is watched by a heartbeat, not by marks.
    pub is_probed: AtomicBool,
    /// The looper that the thread polls, 0 for none that we know of.
    pub looper: AtomicUsize,
    /// The last token, whose generation counts on when the slot is taken again.
    pub last_token: AtomicUsize,
    /// The name, ending in a NUL.
    pub name: Lock<[u8; NAME + 1]>,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        token: AtomicUsize::new(0),
        owner: AtomicUsize::new(0),
        limit_ns: AtomicU64::new(0),
        marks: Marks::new(),
        probe: Probe::new(),
        frames: Frames::new(),
        late_ends: Queue::new(),
        blocks: AtomicU64::new(0),
        phase: AtomicU32::new(FREE),
        tid: AtomicI32::new(0),
        stack_hint: AtomicU64::new(0),
        closed_at: AtomicU64::new(0),
        closed_by_owner: AtomicU32::new(0),
        closed_cpu_ns: AtomicU64::new(0),
        is_probed: AtomicBool::new(false),
        looper: AtomicUsize::new(0),
        last_token: AtomicUsize::new(0),
        name: Lock::new([0; NAME + 1]),
    }
}; SLOTS];

/// One more than the highest slot that was ever taken: looks need not go further.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The slot of a number. Any number is one.
#[inline(always)]
pub fn slot(number: u8) -> &'static Slot {
    // The table has as many places as a u8 has values: no bounds check is left.
    &TABLE[number as usize]
}

/// The slots that were ever taken, with their numbers.
pub fn used() -> impl Iterator<Item = (u8, &'static Slot)> + Clone {
    (0..=u8::MAX).zip(TABLE.iter()).take(USED.load(Acquire))
}

/// All slots, with their numbers.
pub fn all() -> impl Iterator<Item = (u8, &'static Slot)> {
    (0..=u8::MAX).zip(TABLE.iter())
}

impl Slot {
    /// The slot is about to be taken.
    pub fn mark_used(number: u8) {
        USED.fetch_max(usize::from(number) + 1, AcqRel);
    }

    /// Is this its valid token?
    #[inline(always)]
    pub fn is(&self, token: Token) -> bool {
        self.token.load(Relaxed) == token.raw()
    }

    /// What its words say now; `None` when they are being written.
    pub fn look(&self) -> Option<Seen> {
        if self.probe.is_used() { probe::look(self) } else { self.marks.look() }
    }

    /// The word that names its stretch.
    pub fn stretch(&self) -> &AtomicUsize {
        if self.probe.is_used() { self.probe.stretch() } else { self.marks.stretch() }
    }

    /// Its phase.
    pub fn phase(&self) -> u32 {
        self.phase.load(Acquire)
    }

    /// The name, without what follows the NUL.
    pub fn copy_name(&self, out: &mut [u8; NAME + 1]) {
        *out = *self.name.lock();
    }
}
