//! The life cycle: install, start, pause, stop, uninstall; and who may use an installation meanwhile.
//!
//! `LIFE` is held only while its words are read or changed, never while anything is waited for. A call that uses an
//! installation beyond that is counted in `USERS`; an uninstall first turns new ones away and then waits for those inside.

use super::install::{Engine, Failure, Handles};
use super::settings::Settings;
use crate::log_info;
use crate::report::filter::FILTER;
use crate::report::upload::UPLOADER;
use crate::report::writer::Writer;
use crate::report::{lent, listeners, shown};
use crate::sample::{desk, request};
use crate::sys::clock::Ticks;
use crate::sys::errno::Errno;
use crate::sys::lock::Lock;
use crate::sys::vdso;
use crate::sys::{counters, descriptors, fault, fork, loaded, log, own_threads, program, signal, thread};
use crate::watch::gate::GATE;
use crate::watch::{bell, frames, registry};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::*};

/// How long a stop waits for the monitor. It has to be back within 200 ms.
const STOP_NS: u64 = 150_000_000;
/// How long an uninstall waits for callbacks.
const UNINSTALL_NS: u64 = 2_000_000_000;
/// How long an unload waits for the library's own threads, on a machine that is too busy for them: they would go on in code
/// that is not there any more.
const UNLOAD_NS: u64 = 5_000_000_000;

/// How long an uninstall waits for frame callbacks that were asked for, which come with the next frame of the display.
const FRAMES_NS: u64 = 200_000_000;

/// Even a flush that shall not wait gives the monitor so long to look once.
const SHORTEST_FLUSH_NS: u64 = 50_000_000;

struct Life {
    engine: Option<Engine>,
    /// An uninstall is under way: nobody else may begin to use the installation.
    is_leaving: bool,
    is_running: bool,
    pauses: u64,
    /// See `Settings`.
    duration_ns: u64,
}

static LIFE: Lock<Life> =
    Lock::new(Life { engine: None, is_leaving: false, is_running: false, pauses: 0, duration_ns: 0 });
static USERS: AtomicU32 = AtomicU32::new(0);
/// Watching is on: for a glance without the lock.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// The process that used the library's locks last, 0 for none.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Why a call did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not fit the present state.
    State,
    /// It may not be called from a callback.
    Thread,
    /// It took too long.
    Timeout,
    /// The library has found a fault of its own.
    Fault,
    /// A file or directory could not be used.
    Io,
    /// A fixed capacity does not suffice.
    Full,
    /// An installation could not be made.
    Failed(Failure),
    /// What was to be written could not be.
    Output(Errno),
}

/// The installation, which stays as long as this does.
pub struct Use(Handles);

impl core::ops::Deref for Use {
    type Target = Handles;
    fn deref(&self) -> &Handles {
        &self.0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        USERS.fetch_sub(1, Release);
    }
}

impl Life {
    fn user(&self) -> Result<Use, Refusal> {
        let engine = self.engine.as_ref().filter(|_| !self.is_leaving).ok_or(Refusal::State)?;
        USERS.fetch_add(1, AcqRel);
        Ok(Use(engine.handles))
    }
}

/// The life cycle's words, if this process has an installation.
fn life() -> Result<crate::sys::lock::Held<'static, Life>, Refusal> {
    if fault::is_disabled() {
        return Err(Refusal::Fault);
    }
    // A child of fork must not wait for a lock that some thread of its parent held.
    if !fork::is_claimant() {
        return Err(Refusal::State);
    }
    Ok(LIFE.lock())
}

/// Is the calling thread inside a callback of the program's?
pub fn is_in_callback() -> bool {
    listeners::is_inside() || FILTER.is_inside() || UPLOADER.is_inside() || log::is_inside()
}

/// Is there an installation that may be used?
#[inline(never)]
pub fn check_installed() -> Result<(), Refusal> {
    use_it().map(drop)
}

/// The installation, for a call that goes on for a while.
pub fn use_it() -> Result<Use, Refusal> {
    life()?.user()
}

/// Makes an installation.
pub fn install(settings: &Settings) -> Result<(), Refusal> {
    if fault::is_disabled() {
        return Err(Refusal::Fault);
    }
    adopt();
    let mut life = LIFE.lock();
    if life.engine.is_some() || life.is_leaving {
        return Err(Refusal::State);
    }
    vdso::find();
    counters::reset();
    life.engine = Some(Engine::new(settings).map_err(Refusal::Failed)?);
    (life.is_running, life.pauses, life.is_leaving) = (false, 0, false);
    life.duration_ns = settings.duration_ns;
    registry::open(settings.max_loops, settings.limit_ns);
    fork::claim();
    Ok(())
}

/// To be called before anything that waits for a lock and is allowed without an installation: in a child of fork, locks
/// may be held and callbacks be running on threads of the parent's, and are forgotten.
pub fn adopt() {
    let pid = thread::pid();
    let before = PROCESS.swap(pid, AcqRel);
    if before != 0 && before != pid {
        fork::note_child();
        forget_parents();
    }
}

fn forget_parents() {
    let is_torn = LIFE.free_after_fork();
    listeners::forget_runners();
    FILTER.forget_runners();
    UPLOADER.forget_runners();
    shown::forget();
    log::forget_runners();
    own_threads::forget_threads();
    #[cfg(feature = "jni")]
    super::companion::forked();
    registry::reset_after_fork();
    request::reset_after_fork();
    descriptors::close_inherited();
    GATE.close(Ticks::now());
    USERS.store(0, Release);
    RUNNING.store(false, Release);
    let mut life = LIFE.lock();
    (life.is_running, life.is_leaving) = (false, false);
    // One that is half written perhaps keeps its memory, which is all that it owns here.
    if let Some(engine) = life.engine.take().filter(|_| !is_torn) {
        engine.forget();
    }
    drop(life);
    reset_callbacks();
}

/// Watching begins.
pub fn start() -> Result<(), Refusal> {
    let mut life = life()?;
    let user = life.user()?;
    if !core::mem::replace(&mut life.is_running, true) {
        user.update_utc_offset();
        user.tidy();
        RUNNING.store(true, Release);
        look_for_waiters(&user);
        let duration_ns = Some(life.duration_ns).filter(|ns| *ns != 0);
        user.orders.set_end(duration_ns.map(|ns| Ticks::now().plus(ns)));
        user.orders.set_running(true);
        if life.pauses == 0 {
            GATE.open(Ticks::now());
        }
        bell::MONITOR.ring();
    }
    Ok(())
}

/// Signals that somebody may be waiting for, as the calling thread tells. One of the library's own, which callbacks run on,
/// blocks all of them: then what was heard last still holds.
pub fn look_for_waiters(handles: &Handles) -> u64 {
    if !own_threads::is_own_thread() {
        handles.orders.avoid_signals(signal::waited_for());
    }
    handles.orders.signals_to_avoid()
}

/// Watching ends; what that closes is closed when this returns, if the monitor gets to it in time.
pub fn stop() -> Result<(), Refusal> {
    let user = {
        let mut life = life()?;
        let user = life.user()?;
        end_running(&mut life, &user);
        user
    };
    user.orders.look_now(STOP_NS);
    Ok(())
}

/// Watching has gone on for as long as it was to; called by the monitor.
pub fn end_by_itself() {
    let ended = {
        let mut life = LIFE.lock();
        // Looked at again, because a stop and a start may have come between.
        let user = life.user().ok().filter(|user| user.orders.is_over(Ticks::now()));
        if let Some(user) = &user {
            end_running(&mut life, user);
        }
        user.is_some()
    };
    if ended {
        log_info!("watching has ended after monitor_duration_s; bc_start begins it again");
    }
}

fn end_running(life: &mut Life, handles: &Handles) {
    if core::mem::replace(&mut life.is_running, false) {
        RUNNING.store(false, Release);
        GATE.close(Ticks::now());
        handles.orders.set_running(false);
    }
}

/// Is watching on?
pub fn is_running() -> bool {
    RUNNING.load(Acquire) && fork::is_claimant() && !fault::is_disabled()
}

/// One pause more.
pub fn pause() -> Result<(), Refusal> {
    let mut life = life()?;
    life.user()?;
    life.pauses += 1;
    if life.pauses == 1 && life.is_running {
        GATE.close(Ticks::now());
        bell::MONITOR.ring();
    }
    Ok(())
}

/// One pause less.
pub fn resume() -> Result<(), Refusal> {
    let mut life = life()?;
    life.user()?;
    life.pauses = life.pauses.checked_sub(1).ok_or(Refusal::State)?;
    if life.pauses == 0 && life.is_running {
        GATE.open(Ticks::now());
        bell::MONITOR.ring();
    }
    Ok(())
}

/// Waits until all blocks that have ended by now are stored and delivered.
pub fn flush(timeout_ns: u64) -> Result<(), Refusal> {
    if is_in_callback() {
        return Err(Refusal::Thread);
    }
    let user = use_it()?;
    let end = Ticks::now().plus(timeout_ns);
    // Without any patience nothing could ever be said to be done.
    if !user.orders.look_now(timeout_ns.max(SHORTEST_FLUSH_NS)) {
        return Err(Refusal::Timeout);
    }
    let order = user.evidence.lock().last_order();
    loop {
        let heard = user.delivery.progress.heard();
        let is_written = !user.evidence.lock().has_ended_up_to(order) && !user.delivery.owes.load(Acquire);
        let is_written = is_written && !user.delivery.recovers.load(Acquire);
        if is_written && !user.delivery.holds_up_to(order) {
            return Ok(());
        }
        let left = end.since(Ticks::now());
        if left == 0 {
            return Err(Refusal::Timeout);
        }
        if life()?.is_leaving {
            return Err(Refusal::State);
        }
        // An uninstall rings too, so that nobody sleeps through it.
        user.delivery.progress.sleep(heard, Some(left));
    }
}

/// The process ends in order, as `exit` does it: blocks that are open end, and their reports are stored, if that is quick.
/// No callback is begun any more: what it would need may be gone. Where we are part of a library, that may be about to be
/// unloaded, so everything is given back, however long that takes, if no callback is running.
pub fn at_exit() {
    let user = life().and_then(|mut life| {
        let user = life.user()?;
        user.end_recovery();
        user.hold_callbacks(true);
        end_running(&mut life, &user);
        Ok(user)
    });
    let Ok(user) = user else { return };
    let may_be_unloaded = !is_in_callback() && !program::holds(at_exit as *const () as usize);
    let patience_ns = if may_be_unloaded { UNLOAD_NS } else { STOP_NS };
    let has_looked = user.orders.look_now(patience_ns);
    let order = user.evidence.lock().last_order();
    let end = Ticks::now().plus(patience_ns);
    // A callback that does not return keeps its thread from anything else, and so does a VM that is going down.
    let calls_end = Ticks::now().plus(STOP_NS);
    let is_held_up = || (is_calling() || waits_for_others()) && Ticks::now() >= calls_end;
    let is_stored = || !user.evidence.lock().has_unstored_up_to(order);
    wait_until(&user, end, &mut || {
        lent::with(Writer::finish);
        is_stored() || is_held_up()
    });
    if !has_looked || !is_stored() || !may_be_unloaded {
        return;
    }
    let handles = *user;
    if core::mem::replace(&mut LIFE.lock().is_leaving, true) {
        // An uninstall is under way.
        return;
    }
    drop(user);
    log::silence(true);
    wait_until(&handles, end, &mut || is_quiet() || is_held_up());
    if is_quiet() {
        take_down();
    } else {
        log::silence(false);
        LIFE.lock().is_leaving = false;
    }
}

/// Waits for something that `progress` tells, and looks often, because it does not tell everything. `false`: it has not come.
#[inline(never)]
fn wait_until(handles: &Handles, end: Ticks, is_so: &mut dyn FnMut() -> bool) -> bool {
    while !is_so() {
        if Ticks::now() >= end {
            return false;
        }
        handles.delivery.progress.ring();
        let heard = handles.delivery.progress.heard();
        handles.delivery.progress.sleep(heard, Some(1_000_000));
    }
    true
}

/// Is nobody inside a callback, a call that uses the installation, or the signal handler?
fn is_quiet() -> bool {
    !waits_for_others() && USERS.load(Acquire) == 0 && !is_calling() && desk::DESK.inside.load(SeqCst) == 0
}

/// Is there still a thread of ours that may wait for a Java VM? It is told to end.
fn waits_for_others() -> bool {
    #[cfg(feature = "jni")]
    return !super::companion::has_ended();
    #[cfg(not(feature = "jni"))]
    false
}

/// Is anybody inside a callback?
fn is_calling() -> bool {
    listeners::is_running() || FILTER.is_running() || UPLOADER.is_running() || log::is_running()
}

/// Gives everything back. Nobody uses the installation, and nobody can begin to.
fn take_down() {
    registry::close();
    let engine = LIFE.lock().engine.take();
    if let Some(engine) = engine {
        engine.take_down();
    }
    reset_callbacks();
    log::silence(false);
    // Until here no other install could begin.
    let mut life = LIFE.lock();
    fork::release();
    life.is_leaving = false;
}

/// Ends watching and gives everything back. After a `Timeout` the installation is still there, stopped.
pub fn uninstall() -> Result<(), Refusal> {
    if is_in_callback() {
        return Err(Refusal::Thread);
    }
    let handles = {
        let mut life = life()?;
        let user = life.user()?;
        end_running(&mut life, &user);
        life.is_leaving = true;
        *user
    };
    let end = Ticks::now().plus(UNINSTALL_NS);
    let until = |is_so: &mut dyn FnMut() -> bool| wait_until(&handles, end, is_so);
    handles.orders.look_now(UNINSTALL_NS);
    handles.end_recovery();
    // What has ended is delivered, unless a listener takes too long.
    let order = handles.evidence.lock().last_order();
    until(&mut || !handles.delivery.is_recovering.load(SeqCst));
    if handles.holds_callbacks() {
        // The process is at its end already: what has ended is stored, and nobody is told.
        until(&mut || !handles.evidence.lock().has_unstored_up_to(order));
    } else {
        until(&mut || !handles.evidence.lock().has_ended_up_to(order) && !handles.delivery.holds_up_to(order));
    }
    handles.hold_callbacks(true);
    log::silence(true);
    if !until(&mut is_quiet) {
        log::silence(false);
        handles.hold_callbacks(false);
        LIFE.lock().is_leaving = false;
        return Err(Refusal::Timeout);
    }
    let end = Ticks::now().plus(FRAMES_NS);
    let frames_rest = wait_until(&handles, end, &mut frames::are_at_rest);
    take_down();
    if frames_rest && !frames::are_to_come() {
        loaded::let_go();
    }
    Ok(())
}

/// All callbacks but the log handler are the installation's.
fn reset_callbacks() {
    listeners::clear();
    FILTER.replace(None, core::ptr::null_mut());
    UPLOADER.replace(None, core::ptr::null_mut());
}
