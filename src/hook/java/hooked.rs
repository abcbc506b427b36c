//! `dev.blockcanary.Hook`, the one class that the library has in a VM: a message to the main thread, and in precise mode
//! the main Looper's Printer.
#![allow(unsafe_code)]

use super::embedded;
use super::env::{Env, Object};
use super::looper;
use crate::log_warn;
use crate::sample::java;
use crate::sys::counters::CALLS_MISUSED;
use crate::watch::mark;
use crate::watch::slot::slot;
use crate::watch::token::Token;
use core::ffi::{CStr, c_void};
use core::ptr;
use jni_sys as sys;

const NAME: &CStr = c"dev.blockcanary.Hook";
const PRINTER: &CStr = c"Landroid/util/Printer;";

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

/// A message begins. Its name is read from Java when it is late.
extern "C" fn begin() {
    if let Some(token) = watched() {
        mark::begin(token, ptr::null(), 0);
    }
}

extern "C" fn end() {
    if let Some(token) = watched() {
        mark::end(token);
    }
}

/// The main thread's token, while it is watched.
#[inline(always)]
fn watched() -> Option<usize> {
    let raw = java::current_loop();
    Token::from_raw(raw).filter(|token| slot(token.slot()).is(*token)).map(|_| raw)
}

/// Sends the main thread a message that has it watch itself. Called by one thread.
pub(super) fn post(env: Env) -> Option<()> {
    let class = class(env).or_else(|| embedded::class(env, NAME))?;
    let message = env.construct(ready(env, class)?, c"()V", &[])?;
    let handler = env.class(c"android/os/Handler")?;
    let handler = env.construct(handler, c"(Landroid/os/Looper;)V", &[looper::main_looper(env)?])?;
    env.ask(handler, c"post", c"(Ljava/lang/Runnable;)Z", &[message])?.then_some(())
}

/// Is precise mode wanted? Then a Printer of ours is put in before the one that is there. Only a class of the app's can
/// want it.
pub(super) fn put_in(env: Env) -> Option<()> {
    let class = ready(env, class(env)?)?;
    if !env.static_flag(class, c"precise")? {
        return None;
    }
    let looper = looper::main_looper(env)?;
    let done = printer(env, looper).and_then(|there| {
        if !there.is_null() && env.is_same(env.class_of(there)?, class) {
            // Of an earlier watch.
            return env.set_static_flag(class, c"on", true);
        }
        let hook = env.construct(class, c"()V", &[])?;
        env.set_static_field(class, c"previous", PRINTER, there)?;
        env.set_static_flag(class, c"on", true)?;
        set_printer(env, looper, hook)
    });
    if done.is_none() {
        log_warn!("the main Looper's Printer cannot be read or set: it is watched by a heartbeat, not precisely");
    }
    done
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
pub(super) fn put_in_again(env: Env) -> Option<()> {
    let class = class(env)?;
    let looper = looper::main_looper(env)?;
    let there = printer(env, looper)?;
    if !there.is_null() && env.is_same(env.class_of(there)?, class) {
        return None;
    }
    let hook = env.construct(class, c"()V", &[])?;
    env.set_static_field(class, c"previous", PRINTER, there)?;
    set_printer(env, looper, hook)?;
    CALLS_MISUSED.add_one();
    log_warn!("somebody has replaced the main Looper's Printer: ours is put in again, and calls theirs");
    Some(())
}

/// Ours goes, if nobody has put another one over it.
pub(super) fn take_out(env: Env) -> Option<()> {
    let class = class(env)?;
    env.set_static_flag(class, c"on", false)?;
    let looper = looper::main_looper(env)?;
    let there = printer(env, looper)?;
    if !there.is_null() && env.is_same(env.class_of(there)?, class) {
        set_printer(env, looper, env.static_field(class, c"previous", PRINTER)?)?;
    }
    env.set_static_field(class, c"previous", PRINTER, ptr::null_mut())
}

/// Reads the line of the message that runs, in precise mode.
pub(super) fn read_line(env: Env, room: &mut [u8]) -> Option<usize> {
    let class = class(env)?;
    let line = env.static_field(class, c"line", c"Ljava/lang/String;")?;
    (!line.is_null()).then(|| env.copy_string(line, room))
}
