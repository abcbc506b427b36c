//! The thread that looks after interposed modules: bc-keeper, begun with the first name and ended by an uninstall.
//!
//! While watching is on it looks once a second whether a module that is wanted has been loaded, or loaded again, and
//! whether the linker has bound a word anew; when watching ends, it puts all words back. It alone of our threads takes the
//! loader's lock, because for a while nobody has to wait for it: a stop waits as long as it has, and an uninstall says
//! `Timeout` when some thread does not let go of that lock.

use super::alooper;
use super::attended::{self, Attendant};
use super::interpose::{self, State};
use crate::engine::life::{self, Refusal};
use crate::engine::threads;
use crate::sys::bell::Bell;
use crate::sys::clock::Ticks;
use crate::sys::lock::Lock;
use crate::sys::thread::{self, Thread};
use crate::sys::{futex, loaded, loader, own_threads};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::*};

/// Between two looks.
const PERIOD_NS: u64 = 1_000_000_000;
/// How long a start or stop waits for the words to be exchanged.
const SETTLE_NS: u64 = 30_000_000;
/// How long an uninstall does.
const UNINSTALL_NS: u64 = 2_000_000_000;

/// The thread is there: for a glance without the lock, which an uninstall holds for a while.
static IS_THERE: AtomicBool = AtomicBool::new(false);
static THREAD: Lock<Option<Thread>> = Lock::new(None);
/// The process that it belongs to.
static PROCESS: AtomicI32 = AtomicI32::new(0);
static BELL: Bell = Bell::new();
static QUITS: AtomicBool = AtomicBool::new(false);
/// Looks asked for.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// How many of them the last whole look has seen at its begin.
static DONE: AtomicU32 = AtomicU32::new(0);
/// It has come to its end.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

static ATTENDANT: Attendant = Attendant { adopt, start, stop: settle, end, forget };

/// In a child of fork the thread is gone.
fn adopt() {
    let own = thread::pid();
    let before = PROCESS.swap(own, AcqRel);
    if before != 0 && before != own {
        THREAD.free_after_fork();
        *THREAD.lock() = None;
        IS_THERE.store(false, Release);
        interpose::forget_lock();
        interpose::give_up_all();
        QUITS.store(false, Release);
    }
}

fn start() {
    if interpose::is_any_wanted() {
        begin();
    }
    settle();
}

fn forget() {
    interpose::give_up_all();
    // Another call may have begun it anew before the installation was gone.
    end();
}

/// Why a name is not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The installation is not there.
    Life(Refusal),
    /// The loader unloads what it tells of.
    Loader,
    /// There is no room for another name.
    Full,
    /// There is no thread for it.
    Thread,
}

/// A module of this name is wanted from now on, and interposed now if watching is on and it can be.
pub fn interpose(name: &[u8]) -> Result<State, Failure> {
    let _user = life::use_it().map_err(Failure::Life)?;
    if !loader::holds_still() {
        return Err(Failure::Loader);
    }
    adopt();
    attended::attend(&ATTENDANT);
    if !interpose::want(name) {
        return Err(Failure::Full);
    }
    if !begin() {
        interpose::give_up(name);
        return Err(Failure::Thread);
    }
    loaded::keep_for_good();
    if !life::is_running() {
        return Ok(State::New);
    }
    alooper::look_up();
    interpose::look();
    let state = interpose::state(name).unwrap_or(State::New);
    if matches!(state, State::Refused(_)) {
        interpose::give_up(name);
    }
    if !life::is_running() {
        // Watching has ended meanwhile, and the words are ours, perhaps after everything was put back.
        BELL.ring();
    }
    Ok(state)
}

/// It is not wanted any more, and as it was. `State`: it was not.
pub fn restore(name: &[u8]) -> Result<(), Refusal> {
    let _user = life::use_it()?;
    if !interpose::give_up(name) {
        return Err(Refusal::State);
    }
    interpose::restore(Some(name));
    Ok(())
}

/// Sees to it that the thread is there; `false`: it cannot be had.
fn begin() -> bool {
    let mut thread = THREAD.lock();
    // One that was told to end may have done so when nobody waited for it any more.
    if let Some(ended) = thread.take_if(|_| HAS_ENDED.load(Acquire)) {
        ended.join();
    }
    if thread.is_none() {
        QUITS.store(false, Release);
        HAS_ENDED.store(false, Release);
        *thread = threads::start_keeper(run);
        IS_THERE.store(thread.is_some(), Release);
    }
    thread.is_some()
}

/// Watching has begun or ended: waits a moment for what that means for the modules.
fn settle() {
    // Its own log handler may call, and in a child of fork nobody is there to be waited for.
    let is_there = IS_THERE.load(Acquire) && PROCESS.load(Acquire) == thread::pid();
    if is_there && !own_threads::is_own_thread() {
        let asked = ASKED.fetch_add(1, AcqRel).wrapping_add(1);
        BELL.ring();
        wait(SETTLE_NS, || DONE.load(Acquire).wrapping_sub(asked) as i32 >= 0);
    } else if is_there {
        BELL.ring();
    }
}

/// Puts everything back and ends the thread. The names stay. `false`: it is still at it.
fn end() -> bool {
    let mut thread = THREAD.lock();
    if thread.is_none() {
        return true;
    }
    QUITS.store(true, Release);
    BELL.ring();
    if !wait(UNINSTALL_NS, || HAS_ENDED.load(Acquire)) {
        QUITS.store(false, Release);
        return false;
    }
    IS_THERE.store(false, Release);
    if let Some(thread) = thread.take() {
        thread.join();
    }
    true
}

fn wait(patience_ns: u64, is_so: impl Fn() -> bool) -> bool {
    let end = Ticks::now().plus(patience_ns);
    loop {
        let done = DONE.load(Acquire);
        if is_so() {
            return true;
        }
        let left = end.since(Ticks::now());
        if left == 0 {
            return false;
        }
        futex::wait(&DONE, done, Some(left));
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    own_threads::enter();
    loop {
        let heard = BELL.heard();
        let asked = ASKED.load(Acquire);
        let quits = QUITS.load(Acquire);
        let looks = !quits && life::is_running() && interpose::is_any_wanted();
        if looks {
            interpose::look();
        } else {
            interpose::restore(None);
        }
        if quits {
            break;
        }
        DONE.store(asked, Release);
        futex::wake_all(&DONE);
        BELL.sleep(heard, looks.then_some(PERIOD_NS));
    }
    own_threads::leave();
    HAS_ENDED.store(true, Release);
    DONE.fetch_add(1, AcqRel);
    futex::wake_all(&DONE);
    ptr::null_mut()
}
