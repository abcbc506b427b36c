//! The Java stack of the main thread, as the VM tells it.

use super::env::{Env, letters_in};
use super::line::Line;
use super::{hooked, looper};
use crate::sample::java::{self, Stack};
use crate::sys::clock::Ticks;
use crate::watch::slot::slot;
use crate::watch::token::Token;

/// Elements that are told; the outermost are left out. A main thread's stack is mostly the framework's.
const MOST: usize = 96;

/// Takes it for this stretch, and keeps it if the stretch goes on still: then it is of no other message. The VM may take its
/// time for it.
pub(super) fn take(env: Env, token: Token, stretch: usize, is_precise: bool, stack: &mut Stack) -> Option<()> {
    let slot = slot(token.slot());
    let goes_on = || slot.is(token) && slot.look().is_some_and(|seen| seen.open && seen.stretch == stretch);
    if !goes_on() {
        return None;
    }
    stack.clear();
    let is_debugged = env.frame(|| env.ask_static(env.class(c"android/os/Debug")?, c"isDebuggerConnected"));
    java::set_debugged(is_debugged.unwrap_or(false));
    env.frame(|| fill(env, stack))?;
    stack.at = Ticks::now();
    if is_precise {
        let mut line = Line::NONE;
        let _ = env.frame(|| hooked::read_line(env, &mut line));
        stack.name(&line.what());
    }
    if !goes_on() {
        return None;
    }
    (stack.slot, stack.stretch) = (token.slot(), stretch);
    java::keep(stack);
    Some(())
}

fn fill(env: Env, stack: &mut Stack) -> Option<()> {
    let thread = env.get(looper::main_looper(env)?, c"getThread", c"()Ljava/lang/Thread;", &[])?;
    let elements = env.get(thread, c"getStackTrace", c"()[Ljava/lang/StackTraceElement;", &[])?;
    let count = env.length(elements);
    let to_string = env.method(env.element(elements, 0)?, c"toString", c"()Ljava/lang/String;")?;
    let mut told = 0;
    for place in 0..count.min(MOST) {
        let element = env.element(elements, place)?;
        let text = env.get_by(element, to_string)?;
        // Whole ones only, but for one that would be alone.
        let fits = told == 0 || env.string_length(text) <= letters_in(stack.room());
        let length = if fits { env.copy_string(text, 0, stack.room()) } else { 0 };
        env.give_up(text);
        env.give_up(element);
        if length == 0 {
            break;
        }
        stack.push(length);
        told += 1;
    }
    stack.frames_cut = (count - told) as u32;
    Some(())
}
