//! `dev.blockcanary.Hook`, the one class that the library has in a VM: a message to the main thread, and in precise mode
//! the main Looper's Printer.
#![allow(unsafe_code)]

use super::embedded;
use super::env::{Env, Object, letters_in};
use super::line::Line;
use super::looper;
use crate::log_warn;
use crate::sample::java;
use crate::sys::counters::CALLS_MISUSED;
use crate::sys::lock::{Held, Lock};
use crate::watch::mark;
use crate::watch::slot::{Slot, slot};
use crate::watch::token::Token;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use jni_sys as sys;

const NAME: &CStr = c"dev.blockcanary.Hook";
const PRINTER: &CStr = c"Landroid/util/Printer;";
const OF_PRINTER: &CStr = c"(Landroid/util/Printer;)V";
const OWN: &CStr = c"Ldev/blockcanary/Hook;";
const STRING: &CStr = c"Ljava/lang/String;";

/// A reference for the class that marks messages; null while none does. Kept, because the app's loader may be another one
/// later, or be what a late message waits for. Given up by the thread that reads lines alone.
static CLASS: AtomicPtr<jni_sys::_jobject> = AtomicPtr::new(ptr::null_mut());
/// The token that the message which runs has begun with, if its end is to be marked; else 0. Written by the main thread.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
/// Held by whoever changes what marks messages, until it is known who is watched.
static CHANGES: Lock<()> = Lock::new(());

pub(super) type Changes = Held<'static, ()>;

pub(super) fn changes() -> Changes {
    CHANGES.lock()
}

/// The class that marks messages, if one does.
fn kept() -> Option<Object> {
    Some(CLASS.load(Acquire)).filter(|class| !class.is_null())
}

/// Are messages marked?
pub(super) fn is_in() -> bool {
    kept().is_some()
}

/// In a child of fork.
pub(super) fn reset_after_fork() {
    CHANGES.free_after_fork();
    forget();
}

/// The class. The app's loader knows it, which its main thread has.
fn class(env: Env) -> Option<Object> {
    let thread = env.get(looper::main_looper(env)?, c"getThread", c"()Ljava/lang/Thread;", &[])?;
    let loader = env.get(thread, c"getContextClassLoader", c"()Ljava/lang/ClassLoader;", &[])?;
    let name = env.string(NAME)?;
    env.get(loader, c"loadClass", c"(Ljava/lang/String;)Ljava/lang/Class;", &[name])
}

/// A class with its native methods in place.
fn ready(env: Env, class: Object) -> Option<Object> {
    let natives = [
        (c"watch", c"()V", watch as *mut c_void),
        (c"begin", c"()V", begin as *mut c_void),
        (c"end", c"()V", end as *mut c_void),
    ];
    // SAFETY: `watch` is a static native method; the others have no arguments, so that it makes no difference whether the
    // platform takes them for critical ones, which are given neither environment nor class.
    unsafe { env.register(class, &natives) }?;
    Some(class)
}

unsafe extern "system" fn watch(env: *mut sys::JNIEnv, _: sys::jclass) {
    // SAFETY: given by the VM.
    if let Some(env) = unsafe { Env::from_raw(env) } {
        looper::asked(env);
    }
}

/// A message begins. Its name is read from Java when it is late. One before that has told of no end has thrown, and somebody
/// has caught that and runs the Looper on.
extern "C" fn begin() {
    end();
    if let Some(token) = watched() {
        BEGUN.store(token, Relaxed);
        mark::begin(token, ptr::null(), 0);
    }
}

/// It ends, if it has begun while the thread was watched as it is now.
extern "C" fn end() {
    let begun = BEGUN.load(Relaxed);
    if begun != 0 {
        BEGUN.store(0, Relaxed);
        if watched() == Some(begun) {
            mark::end(begun);
        }
    }
}

/// The main thread's slot, while it is watched.
#[inline(always)]
pub(super) fn loop_of_java() -> Option<&'static Slot> {
    let token = Token::from_raw(java::current_loop())?;
    Some(slot(token.slot())).filter(|slot| slot.is(token))
}

/// The same if it is by marks.
#[inline(always)]
pub(super) fn loop_of_marks() -> Option<&'static Slot> {
    loop_of_java().filter(|slot| !slot.probe.is_used())
}

/// Its token.
#[inline(always)]
fn watched() -> Option<usize> {
    let raw = java::current_loop();
    loop_of_marks().map(|_| raw)
}

/// Sends the main thread a message that has it watch itself. Called by one thread.
pub(super) fn post(env: Env) -> Option<()> {
    let class = class(env).or_else(|| embedded::class(env, NAME))?;
    let message = env.construct(ready(env, class)?, OF_PRINTER, &[ptr::null_mut()])?;
    let handler = env.class(c"android/os/Handler")?;
    let handler = env.construct(handler, c"(Landroid/os/Looper;)V", &[looper::main_looper(env)?])?;
    env.ask(handler, c"post", c"(Ljava/lang/Runnable;)Z", &[message])?.then_some(())
}

/// Is precise mode wanted, or on? Then a Printer of ours is put in before the one that is there. Only a class of the
/// app's can want it. On the main thread.
pub(super) fn put_in(env: Env, _: &Changes) -> Option<()> {
    let known = kept();
    let class = known.or_else(|| ready(env, class(env)?))?;
    if loop_of_marks().is_none() && !env.static_flag(class, c"precise")? {
        return None;
    }
    let looper = looper::main_looper(env)?;
    let done = put_over(env, class, looper, known.is_none());
    if done.is_none() {
        log_warn!("the main Looper's Printer cannot be read or set: it is watched by a heartbeat, not precisely");
    }
    done
}

fn put_over(env: Env, class: Object, looper: Object, is_first: bool) -> Option<()> {
    let there = printer(env, looper)?;
    if is_first {
        let idle = env.construct(class, OF_PRINTER, &[ptr::null_mut()])?;
        let queue = env.get_static(env.class(c"android/os/Looper")?, c"myQueue", c"()Landroid/os/MessageQueue;")?;
        env.run(queue, c"addIdleHandler", c"(Landroid/os/MessageQueue$IdleHandler;)V", &[idle])?;
        env.set_static_field(class, c"watching", OWN, idle)?;
    }
    // It may be ours, of an earlier watch.
    if there.is_null() || !env.is_same(env.class_of(there)?, class) {
        set_printer(env, looper, env.construct(class, OF_PRINTER, &[there])?)?;
    }
    if is_first {
        CLASS.store(env.keep(class)?, Release);
    }
    Some(())
}

/// The Looper's Printer, maybe null. There is no public way to ask for it.
fn printer(env: Env, looper: Object) -> Option<Object> {
    env.field(looper, c"mLogging", PRINTER)
}

fn set_printer(env: Env, looper: Object, printer: Object) -> Option<()> {
    env.run(looper, c"setMessageLogging", c"(Landroid/util/Printer;)V", &[printer])
}

/// Somebody has put another Printer, or none, in the place of ours, which then hears of no message: it is put in again, and
/// calls the other. To be called when the main thread has run and no mark has come.
pub(super) fn put_in_again(env: Env, _: &Changes) -> Option<()> {
    // The end of a message that runs is told to the Printer that was told of its begin.
    let class = kept().filter(|_| BEGUN.load(Relaxed) == 0)?;
    let looper = looper::main_looper(env)?;
    let there = printer(env, looper)?;
    if !there.is_null() && env.is_same(env.class_of(there)?, class) {
        return None;
    }
    set_printer(env, looper, env.construct(class, OF_PRINTER, &[there])?)?;
    CALLS_MISUSED.add_one();
    log_warn!("somebody has replaced the main Looper's Printer: ours is put in again, and calls theirs");
    Some(())
}

/// Ours goes, or if somebody has put another one over it, calls the one before and does nothing else. On the thread that
/// reads lines.
pub(super) fn take_out(env: Env, _: &Changes) {
    let Some(class) = kept() else { return };
    // The queue drops its idle handler when that is not the one any more.
    let _ = env.set_static_field(class, c"watching", OWN, ptr::null_mut());
    let _ = env.set_static_field(class, c"line", STRING, ptr::null_mut());
    env.frame(|| {
        let looper = looper::main_looper(env)?;
        let there = printer(env, looper)?;
        if !there.is_null() && env.is_same(env.class_of(there)?, class) {
            set_printer(env, looper, env.field(there, c"previous", PRINTER)?)?;
        }
        Some(())
    });
    env.let_go(class);
    forget();
}

/// Nothing is known of the class any more.
pub(super) fn forget() {
    CLASS.store(ptr::null_mut(), Release);
    BEGUN.store(0, Relaxed);
}

/// Reads the line of the message that runs, in precise mode.
pub(super) fn read_line(env: Env, line: &mut Line) -> Option<()> {
    let text = env.static_field(kept()?, c"line", STRING)?;
    if text.is_null() {
        return None;
    }
    let length = env.string_length(text);
    let mut is_whole = true;
    line.read_head(|room| {
        is_whole = length <= letters_in(room);
        env.copy_string(text, 0, room)
    });
    if !is_whole {
        line.read_tail(|room| env.copy_string(text, length.saturating_sub(letters_in(room)), room));
    }
    Some(())
}
