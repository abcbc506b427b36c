//! The marks: what the watched thread runs with every dispatch. No lock, no allocation, no system call, nobody woken.

use super::allowances::MOST;
use super::bell;
use super::gate::GATE;
use super::late::LateEnd;
use super::marks::Outer;
use super::slot::{LATE_ENDS, Slot, slot};
use super::token::Token;
use crate::sample::what::{CALLBACK, What};
use crate::sys::clock::{self, Ticks};
use crate::sys::counters::{CALLS_MISUSED, MARKS_MISUSED};
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
    // The monitor tells of it, once: where all marks are misused, nothing else would wake it.
    CALLS_MISUSED.add_one();
    if MARKS_MISUSED.add_first() {
        bell::MONITOR.ring();
    }
}

/// A dispatch begins. `what` is null or a text that stays valid until the matching end has returned.
///
/// Here and in `end` whatever is rare is the last thing that is called, if at all: nothing has to be kept across it.
#[inline(always)]
pub fn begin(raw: usize, what: *const c_char, tag: u64) {
    let Some(slot) = own(raw) else { return misused() };
    let now = Ticks::now_inlined();
    if late_stretch(slot, now, GATE.opened()).is_some() {
        return begin_slowly(slot, now, what, tag);
    }
    begin_quickly(slot, now, what, tag);
}

#[inline(always)]
fn begin_quickly(slot: &Slot, now: Ticks, what: *const c_char, tag: u64) {
    let is_named = slot.marks.begin(now, slot.limit_ns.load(Relaxed), what, tag);
    if !is_named || bell::is_parked() {
        begun(is_named);
    }
}

#[cold]
#[inline(never)]
fn begin_slowly(slot: &Slot, now: Ticks, what: *const c_char, tag: u64) {
    close_stretch(slot, now);
    begin_quickly(slot, now, what, tag);
}

#[cold]
#[inline(never)]
fn begun(is_named: bool) {
    if !is_named {
        misused();
    }
    bell::notice();
}

/// The innermost dispatch ends.
#[inline(always)]
pub fn end(raw: usize) {
    let Some(slot) = own(raw) else { return misused() };
    let now = Ticks::now_inlined();
    if late_stretch(slot, now, GATE.opened()).is_some() || slot.marks.is_allowed() {
        return end_slowly(slot, now);
    }
    end_quickly(slot, now);
}

#[inline(always)]
fn end_quickly(slot: &Slot, now: Ticks) {
    match slot.marks.end(now, GATE.undisturbed(), slot.limit_ns.load(Relaxed)) {
        Some(ns) => slot.marks.tally().look_at(ns),
        None => misused(),
    }
}

#[cold]
#[inline(never)]
fn end_slowly(slot: &Slot, now: Ticks) {
    close_stretch(slot, now);
    if slot.marks.is_allowed() {
        end_allowances_of_dispatch(slot, now);
    }
    end_quickly(slot, now);
}

/// The loop beats: from the first beat on, the time from beat to beat is a stretch.
#[inline(always)]
pub fn beat(raw: usize) {
    let Some(slot) = own(raw) else { return misused() };
    let now = Ticks::now_inlined();
    close_stretch(slot, now);
    slot.marks.beat(now, GATE.undisturbed(), slot.limit_ns.load(Relaxed));
    bell::notice();
}

/// The loop has nothing to do: all its dispatches are closed, and it does not beat.
pub fn idle(raw: usize) {
    let Some(slot) = own(raw) else { return misused() };
    let now = Ticks::now_inlined();
    close_stretch(slot, now);
    if slot.marks.is_allowed() {
        end_allowances_above(slot, now, 0);
    }
    slot.marks.idle(now, GATE.undisturbed(), slot.limit_ns.load(Relaxed));
}

/// Why an allowance was not opened or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is not valid.
    Stale,
    /// The loop is another thread's.
    Thread,
    /// As many as there may be are open.
    Full,
    /// None is open.
    None,
}

fn own_or_why(raw: usize) -> Result<&'static Slot, Refusal> {
    if let Some(slot) = own(raw) {
        return Ok(slot);
    }
    misused();
    let is_valid = Token::from_raw(raw).is_some_and(|token| slot(token.slot()).is(token));
    Err(if is_valid { Refusal::Thread } else { Refusal::Stale })
}

/// An allowance of so many ns, or without limit, begins. `why` stays valid until its end.
pub fn allow_begin(raw: usize, allowance_ns: Option<u64>, why: *const c_char) -> Result<(), Refusal> {
    let slot = own_or_why(raw)?;
    if slot.marks.allowances().count() as usize >= MOST {
        return Err(Refusal::Full);
    }
    let now = Ticks::now_inlined();
    close_stretch(slot, now);
    slot.marks.change_allowances(now, slot.limit_ns.load(Relaxed), |allowances, depth| {
        allowances.begin(now, allowance_ns, why, depth);
    });
    bell::notice();
    Ok(())
}

/// The innermost allowance ends.
pub fn allow_end(raw: usize) -> Result<(), Refusal> {
    let slot = own_or_why(raw)?;
    let count = slot.marks.allowances().count();
    let Some(innermost) = count.checked_sub(1) else { return Err(Refusal::None) };
    let now = Ticks::now_inlined();
    if slot.marks.allowances().latest().is_some_and(|latest| latest.place == innermost as usize) {
        close_allowed_stretch(slot, now);
    }
    slot.marks.change_allowances(now, slot.limit_ns.load(Relaxed), |allowances, _| allowances.end());
    Ok(())
}

/// Allowances end with the dispatch that they began in.
#[cold]
#[inline(never)]
fn end_allowances_of_dispatch(slot: &Slot, now: Ticks) {
    if let Some(depth) = slot.marks.depth().checked_sub(1) {
        end_allowances_above(slot, now, depth);
    }
}

fn end_allowances_above(slot: &Slot, now: Ticks, depth: u32) {
    if slot.marks.allowances().ends_latest_above(depth) {
        close_allowed_stretch(slot, now);
    }
    let mut ended = 0;
    slot.marks.change_allowances(now, slot.limit_ns.load(Relaxed), |allowances, _| {
        ended = allowances.end_above(depth);
    });
    (0..ended).for_each(|_| misused());
}

/// An allowance that counts is over: was it exceeded?
fn close_allowed_stretch(slot: &Slot, now: Ticks) {
    if let Some((at, limit_ns)) = slot.marks.allowed_stretch() {
        perhaps_late(slot, at, now, limit_ns);
    }
}

/// A poll begins: the time from the last one's return is over, and the thread waits.
#[inline]
pub fn poll_begins(slot: &Slot) {
    let now = Ticks::now_inlined();
    close_stretch(slot, now);
    slot.marks.poll_begins(now, GATE.undisturbed());
}

/// A poll has returned `result`; `from_callback`: straight from a callback, whose end then is the begin of this stretch.
#[inline]
pub fn poll_returns(slot: &Slot, result: i32, from_callback: bool) {
    let now = if from_callback { None } else { Some(Ticks::now_inlined()) };
    slot.marks.poll_returns(now, slot.limit_ns.load(Relaxed), i64::from(result) as u64);
    bell::notice();
}

/// A looper's callback begins inside a poll (or outside of any that we know).
#[inline]
pub fn callback_begins(slot: &Slot, address: u64) -> Outer {
    let now = Ticks::now_inlined();
    close_stretch(slot, now);
    let outer = slot.marks.callback_begins(now, slot.limit_ns.load(Relaxed), CALLBACK.as_ptr(), address);
    bell::notice();
    outer
}

/// It ends.
#[inline]
pub fn callback_ends(slot: &Slot, outer: Outer) {
    let now = Ticks::now_inlined();
    close_stretch(slot, now);
    slot.marks.callback_ends(now, GATE.undisturbed(), slot.limit_ns.load(Relaxed), outer);
}

/// The loop is given up by its own thread.
pub fn close_all(slot: &Slot, now: Ticks) {
    close_stretch(slot, now);
    close_allowed_stretch(slot, now);
    slot.marks.close_all(now);
}

/// Ends the open stretch, if there is one: a late one is posted.
#[inline(always)]
fn close_stretch(slot: &Slot, now: Ticks) {
    if let Some((at, limit_ns)) = late_stretch(slot, now, GATE.opened()) {
        perhaps_late(slot, at, now, limit_ns);
    }
}

/// Begin and limit of the open stretch, if it looks as if it were late.
///
/// A closed gate has opened after all moments, so the difference wraps to a large one and the slow path finds out.
#[inline(always)]
fn late_stretch(slot: &Slot, now: Ticks, opened: Ticks) -> Option<(Ticks, u64)> {
    let (at, limit_ns) = slot.marks.open_stretch()?;
    let from = at.max(opened);
    (now.0.wrapping_sub(from.0) > limit_ns).then_some((at, limit_ns))
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
            stretch: slot.marks.stretch().load(Relaxed),
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
        slot.blocks.fetch_add(1, Relaxed);
        crate::sys::counters::BLOCKS_SEEN.add_one();
        crate::sys::counters::BLOCKS_DROPPED.add_one();
    }
    if slot.late_ends.len() > LATE_ENDS / 2 {
        bell::MONITOR.ring();
    }
}
