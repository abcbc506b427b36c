//! bc-java: the thread of the library's own that is attached to the VM. It alone waits for the VM, and nobody waits for it:
//! not the monitor, which asks for stacks, nor the writer, which takes what is there. It begins with the first watch and
//! ends with the installation.
#![allow(unsafe_code)]

use super::env::{Env, Vm};
use super::{Failure, embedded, hooked, looper, stack};
use crate::engine::companion;
use crate::log_warn;
use crate::sample::java::{self, BELL, Stack};
use crate::sys::clock::{self, Ticks};
use crate::sys::lock::Lock;
use crate::sys::thread::Thread;
use crate::sys::{own_threads, signal, thread};
use crate::watch::token::Token;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// The VM keeps guard pages there, and runs Java on it.
const STACK: usize = 1024 * 1024;
/// How long a new thread is waited for.
const START_NS: u64 = 1_000_000_000;
/// How often the Printer is looked after, while the main thread runs.
const ROUND_NS: u64 = 1_000_000_000;

/// The thread and its VM, while there is one.
static THREAD: Lock<Option<(Thread, Vm)>> = Lock::new(None);
static QUITS: AtomicBool = AtomicBool::new(false);
/// Counts the threads that have run to their end.
static ENDED: AtomicU32 = AtomicU32::new(0);
/// A message to the main thread is to be sent.
static POSTS: AtomicBool = AtomicBool::new(false);
/// Where stacks are put together. Held by the thread alone.
static ROOM: Lock<Stack> = Lock::new(Stack::NONE);

/// Sees to it that the thread runs.
pub(super) fn start(vm: Vm) -> Result<(), Failure> {
    companion::set(has_ended, reset_after_fork);
    let mut place = THREAD.lock();
    if place.is_some() {
        return Ok(());
    }
    QUITS.store(false, Release);
    ENDED.store(0, Release);
    POSTS.store(false, Release);
    java::reset();
    let before = own_threads::entered();
    let nothing: &'static mut [(); 0] = &mut [];
    let started = thread::spawn(c"bc-java", STACK, nothing, run).map_err(|_| Failure::Thread)?;
    *place = Some((started, vm));
    drop(place);
    own_threads::wait_until_more(before, START_NS);
    Ok(())
}

/// Has the main thread sent the message that makes it watch itself.
pub(super) fn post() {
    POSTS.store(true, Release);
    BELL.ring();
}

/// Asks the thread to end, and says whether it has: it may be waiting for the VM.
fn has_ended() -> bool {
    let mut place = THREAD.lock();
    if place.is_none() {
        return true;
    }
    QUITS.store(true, Release);
    BELL.ring();
    if ENDED.load(Acquire) == 0 {
        return false;
    }
    let ended = place.take();
    drop(place);
    if let Some((ended, _)) = ended {
        ended.join();
    }
    java::reset();
    true
}

fn reset_after_fork() {
    THREAD.free_after_fork();
    ROOM.free_after_fork();
    *THREAD.lock() = None;
    hooked::reset_after_fork();
    looper::reset_after_fork();
    java::reset_after_fork();
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    own_threads::enter();
    // As the monitor: it has little to do, but while the main thread is late.
    thread::go_first();
    // Of signals, a VM needs those that a fault of Java code's raises.
    signal::unblock_faults();
    let vm = THREAD.lock().as_ref().map(|(_, vm)| *vm);
    if let Some(vm) = vm {
        Attached { vm, watched: Watched::NONE, looked: Ticks(0) }.work();
    }
    own_threads::leave();
    ENDED.store(1, Release);
    ptr::null_mut()
}

/// What is known of the main thread's loop from look to look.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Watched {
    token: usize,
    cpu_ns: u64,
    version: usize,
}

impl Watched {
    const NONE: Watched = Watched { token: 0, cpu_ns: 0, version: 0 };
}

struct Attached {
    vm: Vm,
    watched: Watched,
    looked: Ticks,
}

impl Attached {
    fn work(&mut self) {
        if self.vm.attach(c"bc-java").is_none() {
            log_warn!("no thread can be attached to the Java VM: reports have no Java stacks");
        }
        loop {
            let heard = BELL.heard();
            if QUITS.load(Acquire) {
                break;
            }
            let posts = POSTS.swap(false, AcqRel);
            // Asked each time: a VM that has gone down would keep for ever who calls it.
            match self.vm.env() {
                Some(env) => self.serve(env, posts),
                None if posts => {
                    log_warn!("bc_java_watch: the Java VM cannot be entered");
                    looper::refuse();
                }
                None => {}
            }
            BELL.sleep(heard, hooked::is_in().then_some(ROUND_NS));
        }
        match self.vm.env() {
            Some(env) => {
                hooked::take_out(env, &hooked::changes());
                embedded::forget(env);
            }
            None => hooked::forget(),
        }
        self.vm.detach();
    }

    fn serve(&mut self, env: Env, posts: bool) {
        if posts && env.frame(|| hooked::post(env)).is_none() {
            log_warn!(
                "bc_java_watch from another thread than the main one needs a main Looper, and before Android 8 the class \
                 dev.blockcanary.Hook in the app"
            );
            looper::refuse();
        }
        let token = Token::from_raw(java::current_loop());
        if let Some((token, stretch)) = token.zip(java::take_wanted()) {
            let is_precise = hooked::loop_of_marks().is_some();
            stack::take(env, token, stretch, is_precise, &mut ROOM.lock());
        }
        if hooked::is_in() && hooked::loop_of_marks().is_none() {
            let changes = hooked::changes();
            // The main thread may have been about to watch itself.
            if hooked::loop_of_marks().is_none() {
                hooked::take_out(env, &changes);
            }
        }
        if Ticks::now().since(self.looked) >= ROUND_NS {
            self.look_after_printer(env);
        }
    }

    /// Has the main thread run and left no mark? Then our Printer may be gone. As long as marks come, whoever has put
    /// another one over it calls it.
    fn look_after_printer(&mut self, env: Env) {
        let Some(slot) = hooked::loop_of_marks() else { return };
        self.looked = Ticks::now();
        let cpu_ns = clock::thread_cpu(slot.tid.load(Relaxed)).unwrap_or(0);
        let Some(seen) = slot.look() else { return };
        let now = Watched { token: java::current_loop(), cpu_ns, version: seen.version };
        let before = core::mem::replace(&mut self.watched, now);
        if before.token == now.token && before.version == now.version && before.cpu_ns != now.cpu_ns {
            let changes = hooked::changes();
            env.frame(|| hooked::put_in_again(env, &changes));
        }
    }
}
