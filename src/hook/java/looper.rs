//! Watching the main Looper: on its own thread at once, from another one by a message to it.
#![allow(unsafe_code)]

use super::Failure;
use super::attached;
use super::env::{Env, Object, Vm};
use super::hooked;
use crate::abi::ALooper;
use crate::hook::{alooper, probe};
use crate::sample::case::NAME;
use crate::sample::java;
use crate::sys::bell::Bell;
use crate::sys::clock::Ticks;
use crate::sys::lock::Lock;
use crate::watch::registry;
use crate::watch::token::Token;
use core::ffi::c_void;
use core::ptr;

/// How long the main thread is waited for.
const PATIENCE_NS: u64 = 2_000_000_000;

/// What a thread asks of the main thread.
#[derive(Clone, Copy)]
enum Request {
    /// Nothing.
    None,
    /// To watch itself under this name.
    Wanted([u8; NAME], usize),
    /// What has come of that.
    Answered(Result<Token, Failure>),
}

static REQUEST: Lock<Request> = Lock::new(Request::None);
/// One thread asks at a time.
static ASKING: Lock<()> = Lock::new(());
/// Rung with an answer.
static ANSWERED: Bell = Bell::new();

/// Watches the main thread of the VM, or renames its loop.
///
/// # Safety
/// `vm` is null or the process's Java VM.
pub unsafe fn watch(vm: *mut c_void, name: Option<&[u8]>) -> Result<Token, Failure> {
    // SAFETY: the caller vouches for it.
    let vm = unsafe { Vm::from_raw(vm) }.ok_or(Failure::NotSent)?;
    if !alooper::is_there() {
        return Err(Failure::Probe(probe::Failure::Unsupported));
    }
    attached::start(vm)?;
    let name = name.unwrap_or(b"main");
    match vm.env() {
        Some(env) if env.undisturbed(|| is_main(env)) => env.undisturbed(|| here(env, name)),
        _ => from_elsewhere(name),
    }
}

/// Is the calling thread the main one?
fn is_main(env: Env) -> bool {
    let is_it = env.frame(|| {
        let looper = env.class(c"android/os/Looper")?;
        let main = env.get_static(looper, c"getMainLooper", LOOPER)?;
        Some(env.is_same(main, env.get_static(looper, c"myLooper", LOOPER)?))
    });
    is_it == Some(true)
}

const LOOPER: &core::ffi::CStr = c"()Landroid/os/Looper;";

/// The main Looper, if there is one yet.
pub(super) fn main_looper(env: Env) -> Option<Object> {
    env.get_static(env.class(c"android/os/Looper")?, c"getMainLooper", LOOPER)
}

/// On the main thread.
fn here(env: Env, name: &[u8]) -> Result<Token, Failure> {
    let changes = hooked::changes();
    // One that is watched already stays so.
    let is_probed = hooked::loop_of_java().is_some_and(|slot| slot.probe.is_used());
    let is_hooked = !is_probed && env.frame(|| hooked::put_in(env, &changes)).is_some();
    let token = if is_hooked {
        registry::watch(Some(name)).map_err(|refusal| {
            // Nobody is watched by it: bc-java takes it out.
            java::BELL.ring();
            Failure::Probe(probe::Failure::Refused(refusal))
        })?
    } else {
        let looper = ptr::with_exposed_provenance_mut::<ALooper>(alooper::of_this_thread());
        if looper.is_null() {
            return Err(Failure::NoLooper);
        }
        // SAFETY: the calling thread's own.
        unsafe { probe::watch(looper, Some(name)) }.map_err(Failure::Probe)?
    };
    java::set_loop(token.raw());
    drop(changes);
    java::BELL.ring();
    Ok(token)
}

fn from_elsewhere(name: &[u8]) -> Result<Token, Failure> {
    let _asking = ASKING.lock();
    let mut kept = [0; NAME];
    let length = kept.iter_mut().zip(name).map(|(to, from)| *to = *from).count();
    *REQUEST.lock() = Request::Wanted(kept, length);
    attached::post();
    let end = Ticks::now().plus(PATIENCE_NS);
    loop {
        let heard = ANSWERED.heard();
        let left = end.since(Ticks::now());
        let mut request = REQUEST.lock();
        if let Request::Answered(answer) = *request {
            *request = Request::None;
            return answer;
        }
        if left == 0 {
            // Should the main thread come to it later, there is nothing to do.
            *request = Request::None;
            return Err(Failure::Timeout);
        }
        drop(request);
        ANSWERED.sleep(heard, Some(left));
    }
}

/// The message cannot be sent.
pub(super) fn refuse() {
    answer(Err(Failure::NotSent));
}

/// The message that another thread has sent is run by the main thread.
pub(super) fn asked(env: Env) {
    let wanted = match *REQUEST.lock() {
        Request::Wanted(name, length) => Some((name, length)),
        _ => None,
    };
    if let Some((name, length)) = wanted {
        answer(here(env, name.get(..length).unwrap_or(&[])));
    }
}

fn answer(answer: Result<Token, Failure>) {
    let mut request = REQUEST.lock();
    if matches!(*request, Request::Wanted(..)) {
        *request = Request::Answered(answer);
    } else if let Ok(token) = answer {
        // Whoever asked has gone.
        registry::unwatch(token);
        java::set_loop(0);
    }
    drop(request);
    ANSWERED.ring();
}

/// In a child of fork.
pub(super) fn reset_after_fork() {
    REQUEST.free_after_fork();
    ASKING.free_after_fork();
    *REQUEST.lock() = Request::None;
}
