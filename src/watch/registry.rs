//! Which threads are watched: taking a slot, giving it up, and what happens when a thread ends.
#![allow(unsafe_code)]

use super::gate::GATE;
use super::slot::{self, CLOSING, FREE, QUARANTINED, Slot, WATCHED, slot};
use super::statistics::{self, Statistics};
use super::token::Token;
use super::{bell, frames, mark};
use crate::sample::case::NAME;
use crate::sys::clock::{self, Ticks};
use crate::sys::counters::{CALLS_MISUSED, LOOPS_REFUSED};
use crate::sys::fork;
use crate::sys::lock::Lock;
use crate::sys::thread::{self, ExitKey};
use core::ffi::c_void;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::*};

/// What an installation says of loops. The lock is the registry's: whoever changes who is watched holds it.
struct Terms {
    open: bool,
    max_loops: usize,
    limit_ns: u64,
}

static TERMS: Lock<Terms> = Lock::new(Terms { open: false, max_loops: 0, limit_ns: 0 });

/// `Terms::open`, for a glance without the lock.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Number of the key that tells when a thread ends, -1 for none. Its value in a thread is the thread's last token.
static KEY: AtomicI64 = AtomicI64::new(-1);

// Hooks are hidden from the compiler: who sees that there is but one calls it directly, and no program is linked without it.

/// What is called when a thread that polled a looper has ended; 0 for nothing.
static LOOPER_GONE: AtomicUsize = AtomicUsize::new(0);

/// `hook` is told the looper of each thread that polled one and ends.
pub fn on_looper_gone(hook: fn(usize)) {
    LOOPER_GONE.store(black_box(hook as usize), Release);
}

/// What is called with the slot of a heartbeat that is given up; 0 for nothing.
static PROBE_GONE: AtomicUsize = AtomicUsize::new(0);

/// `hook` ends a heartbeat at its looper.
pub fn on_probe_gone(hook: fn(&Slot)) {
    PROBE_GONE.store(black_box(hook as usize), Release);
}

/// Why a loop cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is installed.
    NotInstalled,
    /// As many loops as there may be are watched.
    Full,
}

/// An installation begins. Makes the key.
pub fn open(max_loops: usize, limit_ns: u64) {
    let mut terms = TERMS.lock();
    *terms = Terms { open: true, max_loops, limit_ns };
    OPEN.store(true, Release);
    KEY.store(ExitKey::new(thread_ends).map_or(-1, |key| key.number() as i64), Release);
}

/// An installation ends: gives all loops up, as if unwatched, and the key.
pub fn close() {
    let mut terms = TERMS.lock();
    terms.open = false;
    OPEN.store(false, Release);
    let now = Ticks::now();
    for (_, slot) in slot::used().filter(|(_, slot)| slot.phase() == WATCHED) {
        give_up(slot, now);
    }
    if let Some(key) = key() {
        KEY.store(-1, Release);
        key.delete();
    }
}

/// In a child of fork: all other threads are gone, and with them all loops.
pub fn reset_after_fork() {
    TERMS.free_after_fork();
    statistics::reset_after_fork();
    frames::reset_after_fork();
    OPEN.store(false, Release);
    KEY.store(-1, Release);
    for (_, slot) in slot::all() {
        slot.name.free_after_fork();
        slot.token.store(0, Release);
        while slot.late_ends.take().is_some() {}
        if slot.phase() != FREE {
            slot.marks.close_all(Ticks::now());
            slot.phase.store(FREE, Release);
        }
    }
}

/// Watches the calling thread, or renames its loop.
pub fn watch(name: Option<&[u8]>) -> Result<Token, Refusal> {
    let own = thread::handle();
    loop {
        let terms = TERMS.lock();
        if !terms.open {
            return Err(Refusal::NotInstalled);
        }
        if let Some((_, slot)) = slot::used().find(|(_, slot)| {
            slot.phase() == WATCHED && slot.owner.load(Relaxed) == own && !slot.is_probed.load(Relaxed)
        }) {
            if slot.tid.load(Relaxed) == thread::tid() {
                set_name(slot, name);
                return Token::from_raw(slot.token.load(Relaxed)).ok_or(Refusal::NotInstalled);
            }
            // A thread that is gone had the same handle.
            give_up(slot, Ticks::now());
        }
        if key().is_none() {
            reap();
        }
        if watched() >= terms.max_loops {
            LOOPS_REFUSED.add_one();
            return Err(Refusal::Full);
        }
        if let Some((number, slot)) = find_place(own) {
            return Ok(take(number, slot, own, name, terms.limit_ns));
        }
        let is_closing = slot::used().any(|(_, slot)| slot.phase() == CLOSING);
        drop(terms);
        if !is_closing {
            LOOPS_REFUSED.add_one();
            return Err(Refusal::Full);
        }
        // Places that the monitor is about to free.
        bell::MONITOR.ring();
        thread::yield_now();
    }
}

/// A slot for the calling thread, or for one that is not known yet (0): its own quarantined one, a free one, or a
/// quarantined one whose thread is gone.
fn find_place(own: usize) -> Option<(u8, &'static Slot)> {
    let quarantined = |slot: &Slot| slot.phase() == QUARANTINED;
    slot::used()
        .find(|(_, slot)| quarantined(slot) && slot.owner.load(Relaxed) == own)
        .or_else(|| slot::all().find(|(_, slot)| slot.phase() == FREE))
        .or_else(|| slot::used().find(|(_, slot)| quarantined(slot) && has_left_marks(slot)))
}

/// Is the thread of a quarantined slot surely not inside a mark of the time before? It is gone, or has run for longer
/// since than any mark takes.
fn has_left_marks(slot: &Slot) -> bool {
    const LONGER_NS: u64 = 10_000_000;
    let now = clock::thread_cpu(slot.tid.load(Relaxed));
    now.is_none_or(|now| now.saturating_sub(slot.closed_cpu_ns.load(Relaxed)) > LONGER_NS)
}

/// Gives up the loops of threads that have ended unheard, for want of a key.
fn reap() {
    let gone = |slot: &Slot| {
        let tid = slot.tid.load(Relaxed);
        slot.phase() == WATCHED && tid != 0 && !thread::exists(tid)
    };
    for (_, slot) in slot::used().filter(|(_, slot)| gone(slot)) {
        give_up(slot, Ticks::now());
    }
}

/// Tells whether thread ends are heard of; otherwise who wants to know asks for each thread.
pub fn hears_of_ends() -> bool {
    key().is_some()
}

/// Loops watched now, less those whose threads have ended unheard.
pub fn watched_alive() -> usize {
    if key().is_none() {
        let _terms = TERMS.lock();
        reap();
    }
    watched()
}

fn take(number: u8, slot: &'static Slot, own: usize, name: Option<&[u8]>, limit_ns: u64) -> Token {
    let token = next_token(number, slot);
    let here = 0u8;
    slot.marks.close_all(Ticks::now());
    slot.frames.begin(false, slot.tid.load(Relaxed));
    statistics::begin(number, slot);
    slot.owner.store(own, Relaxed);
    slot.tid.store(thread::tid(), Relaxed);
    slot.limit_ns.store(limit_ns, Relaxed);
    slot.stack_hint.store((&raw const here).addr() as u64, Relaxed);
    slot.closed_by_owner.store(0, Relaxed);
    slot.is_probed.store(false, Relaxed);
    slot.last_token.store(token.raw(), Relaxed);
    set_name(slot, name);
    Slot::mark_used(number);
    slot.phase.store(WATCHED, Release);
    slot.token.store(token.raw(), Release);
    if let Some(key) = key() {
        key.set(token.raw());
    }
    token
}

fn set_name(slot: &Slot, name: Option<&[u8]>) {
    let mut own_name = [0; 16];
    let bytes = name.unwrap_or_else(|| thread::name(&mut own_name));
    let mut place = slot.name.lock();
    *place = [0; NAME + 1];
    for (to, from) in place.iter_mut().take(NAME).zip(bytes) {
        *to = *from;
    }
}

/// Watches the thread that owns a looper, or renames its loop; `true`: it is new. Its thread is not known yet.
pub fn watch_looper(looper: usize, name: Option<&[u8]>) -> Result<(Token, bool), Refusal> {
    watch_probed(looper, name.unwrap_or(b"looper"), false)
}

/// Watches the frames of the calling thread, which owns a looper, or renames their loop; `true`: it is new.
pub fn watch_frames(looper: usize, name: Option<&[u8]>) -> Result<(Token, bool), Refusal> {
    watch_probed(looper, name.unwrap_or(b"frames"), true)
}

fn watch_probed(looper: usize, name: &[u8], has_frames: bool) -> Result<(Token, bool), Refusal> {
    let terms = TERMS.lock();
    if !terms.open {
        return Err(Refusal::NotInstalled);
    }
    let probed = |slot: &Slot| {
        slot.phase() == WATCHED
            && slot.is_probed.load(Relaxed)
            && slot.frames.is_used() == has_frames
            && slot.looper.load(Relaxed) == looper
    };
    if let Some((_, slot)) = slot::used().find(|(_, slot)| probed(slot)) {
        set_name(slot, Some(name));
        let token = Token::from_raw(slot.token.load(Relaxed)).ok_or(Refusal::NotInstalled)?;
        return Ok((token, false));
    }
    let here = 0u8;
    let (owner, tid, stack_hint) =
        if has_frames { (thread::handle(), thread::tid(), (&raw const here).addr() as u64) } else { (0, 0, 0) };
    let place = if watched() < terms.max_loops { find_place(owner) } else { None };
    let Some((number, slot)) = place else {
        LOOPS_REFUSED.add_one();
        return Err(Refusal::Full);
    };
    let token = next_token(number, slot);
    slot.marks.close_all(Ticks::now());
    slot.frames.begin(has_frames, slot.tid.load(Relaxed));
    statistics::begin(number, slot);
    slot.owner.store(owner, Relaxed);
    slot.tid.store(tid, Relaxed);
    slot.limit_ns.store(terms.limit_ns, Relaxed);
    slot.stack_hint.store(stack_hint, Relaxed);
    slot.closed_by_owner.store(1, Relaxed);
    slot.looper.store(looper, Relaxed);
    slot.is_probed.store(true, Relaxed);
    slot.last_token.store(token.raw(), Relaxed);
    set_name(slot, Some(name));
    Slot::mark_used(number);
    slot.phase.store(WATCHED, Release);
    slot.token.store(token.raw(), Release);
    Ok((token, true))
}

/// The heartbeat of a loop can begin.
pub fn looper_is_ready(_: Token) {
    bell::MONITOR.ring();
}

fn next_token(number: u8, slot: &Slot) -> Token {
    let generation = Token::from_raw(slot.last_token.load(Relaxed)).map_or(1, Token::next_generation);
    Token::new(number, generation)
}

/// Gives a loop up, from any thread. `false`: it is not watched.
pub fn unwatch(token: Token) -> bool {
    let _terms = TERMS.lock();
    let slot = slot(token.slot());
    if !slot.is(token) {
        CALLS_MISUSED.add_one();
        return false;
    }
    give_up(slot, Ticks::now());
    bell::MONITOR.ring();
    true
}

fn give_up(slot: &'static Slot, now: Ticks) {
    if slot.is_probed.load(Relaxed) {
        return give_up_probed(slot, now);
    }
    let by_owner = slot.owner.load(Relaxed) == thread::handle();
    if by_owner {
        mark::close_all(slot, now);
    }
    let cpu_ns = clock::thread_cpu(slot.tid.load(Relaxed)).unwrap_or(0);
    slot.closed_cpu_ns.store(cpu_ns, Relaxed);
    slot.token.store(0, Release);
    slot.closed_at.store(now.0, Relaxed);
    slot.closed_by_owner.store(u32::from(by_owner), Relaxed);
    slot.phase.store(CLOSING, Release);
}

/// Nobody is inside a mark of a loop that has none, but a thread may be inside a frame callback.
fn give_up_probed(slot: &'static Slot, now: Ticks) {
    let may_be_inside = slot.frames.is_used() && slot.owner.load(Relaxed) != thread::handle();
    let cpu_ns = if may_be_inside { clock::thread_cpu(slot.tid.load(Relaxed)) } else { None };
    slot.closed_cpu_ns.store(cpu_ns.unwrap_or(0), Relaxed);
    slot.token.store(0, Release);
    slot.closed_at.store(now.0, Relaxed);
    slot.closed_by_owner.store(u32::from(!may_be_inside), Relaxed);
    slot.phase.store(CLOSING, Release);
}

/// The monitor has found that a loop's thread is gone.
pub fn thread_is_gone(token: Token, now: Ticks) {
    let _terms = TERMS.lock();
    let slot = slot(token.slot());
    if slot.is(token) {
        give_up(slot, now);
    }
}

/// The monitor has taken its last look at a slot in CLOSING.
pub fn release(slot: &Slot) {
    let _terms = TERMS.lock();
    if slot.is_probed.load(Relaxed) {
        let hook = PROBE_GONE.load(Acquire);
        if hook != 0 {
            // SAFETY: only `on_probe_gone` stores here, a function of this type.
            let hook: fn(&Slot) = unsafe { core::mem::transmute(hook) };
            hook(slot);
        }
    }
    let may_be_inside = slot.closed_by_owner.load(Relaxed) == 0 && thread::exists(slot.tid.load(Relaxed));
    slot.phase.store(if may_be_inside { QUARANTINED } else { FREE }, Release);
}

/// Limit of a loop's stretches from the next one on; 0: the configuration's. `false`: it is not watched.
pub fn set_limit(token: Token, limit_ns: u64) -> bool {
    let terms = TERMS.lock();
    let slot = slot(token.slot());
    if !slot.is(token) {
        CALLS_MISUSED.add_one();
        return false;
    }
    slot.limit_ns.store(if limit_ns == 0 { terms.limit_ns } else { limit_ns }, Relaxed);
    // A shorter limit wants looks more often.
    bell::MONITOR.ring();
    true
}

/// A loop's statistics; `takes`: which begin anew. `None`: it is not watched.
pub fn statistics(token: Token, takes: bool) -> Option<Statistics> {
    let _terms = TERMS.lock();
    let slot = slot(token.slot());
    if !slot.is(token) {
        CALLS_MISUSED.add_one();
        return None;
    }
    Some(statistics::read(token, slot, takes))
}

/// The process did not run for a while, as has been found out now.
pub fn was_stopped(from: Ticks, to: Ticks) {
    GATE.disturbed(to);
    let _terms = TERMS.lock();
    for (number, slot) in slot::used().filter(|(_, slot)| slot.phase() == WATCHED) {
        statistics::take_back(number, slot, from, to);
    }
}

/// Loops watched now.
pub fn watched() -> usize {
    slot::used().filter(|(_, slot)| slot.phase() == WATCHED).count()
}

/// May loops be watched: is there an installation?
#[inline]
pub fn is_open() -> bool {
    OPEN.load(Relaxed)
}

/// The calling thread's slot: `Some(None)` if it was unwatched, which only `watch` undoes; `None` if it never was watched.
#[inline]
pub fn current() -> Option<Option<&'static Slot>> {
    if let Some(key) = key() {
        let token = Token::from_raw(key.get())?;
        let slot = slot_of(token);
        return Some(slot.is(token).then_some(slot));
    }
    let own = thread::handle();
    // A thread that is gone may have had the same handle, but not the same id.
    let tid = thread::tid();
    let is_mine = |slot: &&Slot| {
        slot.owner.load(Relaxed) == own && slot.tid.load(Relaxed) == tid && !slot.is_probed.load(Relaxed)
    };
    let mut mine = slot::used().map(|(_, slot)| slot).filter(is_mine);
    match mine.clone().find(|slot| slot.phase() == WATCHED) {
        Some(slot) => Some(Some(slot)),
        None => mine.next().map(|_| None),
    }
}

/// The slot of a token.
#[inline]
pub fn slot_of(token: Token) -> &'static Slot {
    slot(token.slot())
}

fn key() -> Option<ExitKey> {
    usize::try_from(KEY.load(Acquire)).ok().map(ExitKey::from_number)
}

/// Called by the C library when a thread that was watched ends.
unsafe extern "C" fn thread_ends(value: *mut c_void) {
    // In a child of fork nobody is watched, and the lock may be held by a thread that is not there.
    if !fork::is_claimant() {
        return;
    }
    if let Some(token) = Token::from_raw(value.addr()) {
        let _terms = TERMS.lock();
        let slot = slot(token.slot());
        if slot.is(token) && slot.owner.load(Relaxed) == thread::handle() {
            give_up(slot, Ticks::now());
            bell::MONITOR.ring();
        }
        let looper = slot.looper.swap(0, AcqRel);
        let hook = LOOPER_GONE.load(Acquire);
        if looper != 0 && hook != 0 {
            // SAFETY: only `on_looper_gone` stores here, a function of this type.
            let hook: fn(usize) = unsafe { core::mem::transmute(hook) };
            hook(looper);
        }
    }
}
