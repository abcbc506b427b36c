//! The marks: what the watched thread runs with every dispatch. No lock, no allocation, no system call, nobody woken.

use super::bell;
use crate::sys::counters::CALLS_MISUSED;
use super::gate::GATE;
use super::late::LateEnd;
use super::marks::Outer;
use super::slot::{LATE_ENDS, Slot, slot};
use super::token::Token;
use crate::sample::what::{CALLBACK, What};
use crate::sys::clock::{self, Ticks};
use crate::sys::thread;
use core::ffi::c_char;
use core::sync::atomic::Ordering::Relaxed;

/// The slot of a token, if it is valid and the calling thread's own.
#[inline(always)]
fn own(raw: usize) -> Option<&'static Slot> {
    let token = Token::from_raw(raw)?;
    let slot = slot(token.slot());
    (slot.is(token) && slot.owner.load(Relaxed) == thread::handle()).then_some(slot)
}

#[cold]
#[inline(never)]
fn misused() {
    CALLS_MISUSED.add_one();
}

/// A dispatch begins. `what` is null or a text that stays valid until the matching end has returned.
#[inline(always)]
pub fn begin(raw: usize, what: *const c_char, tag: u64) {
    let Some(slot) = own(raw) else { return misused() };
    let now = Ticks::now();
    close_stretch(slot, now);
    if !slot.marks.begin(now, slot.limit_ns.load(Relaxed), what, tag) {
        misused();
    }
    bell::notice();
}

/// The innermost dispatch ends.
#[inline(always)]
pub fn end(raw: usize) {
    let Some(slot) = own(raw) else { return misused() };
    let now = Ticks::now();
    close_stretch(slot, now);
    if !slot.marks.end(now, slot.limit_ns.load(Relaxed)) {
        misused();
    }
}

/// A poll begins: the time from the last one's return is over, and the thread waits.
#[inline]
pub fn poll_begins(slot: &Slot) {
    let now = Ticks::now();
    close_stretch(slot, now);
    slot.marks.poll_begins(now);
}

/// A poll has returned `result`; `from_callback`: straight from a callback, whose end then is the begin of this stretch.
#[inline]
pub fn poll_returns(slot: &Slot, result: i32, from_callback: bool) {
    let now = if from_callback { None } else { Some(Ticks::now()) };
    slot.marks.poll_returns(now, slot.limit_ns.load(Relaxed), i64::from(result) as u64);
    bell::notice();
}

/// A looper's callback begins inside a poll (or outside of any that we know).
#[inline]
pub fn callback_begins(slot: &Slot, address: u64) -> Outer {
    let now = Ticks::now();
    close_stretch(slot, now);
    let outer = slot.marks.callback_begins(now, slot.limit_ns.load(Relaxed), CALLBACK.as_ptr(), address);
    bell::notice();
    outer
}

/// It ends.
#[inline]
pub fn callback_ends(slot: &Slot, outer: Outer) {
    let now = Ticks::now();
    close_stretch(slot, now);
    slot.marks.callback_ends(now, slot.limit_ns.load(Relaxed), outer);
}

/// The loop is given up by its own thread.
pub fn close_all(slot: &Slot, now: Ticks) {
    close_stretch(slot, now);
    slot.marks.close_all(now);
}

/// Ends the open stretch, if there is one: a late one is posted.
///
/// A closed gate has opened after all moments, so the difference wraps to a large one and the slow path finds out.
#[inline(always)]
fn close_stretch(slot: &Slot, now: Ticks) {
    if let Some((at, limit_ns)) = slot.marks.open_stretch() {
        let from = at.max(GATE.opened());
        if now.0.wrapping_sub(from.0) > limit_ns {
            perhaps_late(slot, at, now, limit_ns);
        }
    }
}

/// The slow path, once a block: the thread has just lost more than its limit, a microsecond more does not count.
#[cold]
#[inline(never)]
#[allow(unsafe_code)]
fn perhaps_late(slot: &Slot, at: Ticks, now: Ticks, limit_ns: u64) {
    let Some((from, to)) = GATE.clip(at, now) else { return };
    if to.since(from) <= limit_ns {
        return;
    }
    let posted = slot.late_ends.put(|| {
        let (what, tag) = slot.marks.innermost();
        // SAFETY: the text is valid until the matching end has returned, and this is that end or comes before it.
        let what = unsafe { What::copy(what) };
        LateEnd {
            token: slot.last_token.load(Relaxed),
            version: slot.marks.version().current(),
            from,
            to,
            cpu_ns: clock::own_cpu(),
            limit_ns,
            tag,
            what,
        }
    });
    if !posted {
        // The monitor has not come by for as many blocks as there are places: what cannot be kept is counted.
        crate::sys::counters::BLOCKS_SEEN.add_one();
        crate::sys::counters::BLOCKS_DROPPED.add_one();
    }
    if slot.late_ends.len() > LATE_ENDS / 2 {
        bell::MONITOR.ring();
    }
}
