//! Frame callbacks of a thread: each asks for the next one, as long as the loop is watched and time counts.
//!
//! The choreographer belongs to its thread and goes with it, so only that thread touches it: others ring the heartbeat's
//! descriptor, and the thread goes on. What has been asked for cannot be taken back. It comes with its loop's token, and
//! does nothing if that is not valid any more; until then the library that contains us is kept loaded (`sys::loaded`).
#![allow(unsafe_code)]

use super::alooper;
use super::choreographer::{self, AChoreographer, AChoreographerFrameCallbackData, Callbacks};
use super::probe::{self, Failure, of_data};
use crate::sys::{event, loaded};
use crate::watch::gate::GATE;
use crate::watch::registry;
use crate::watch::slot::Slot;
use crate::watch::token::Token;
use crate::watch::{frames, slot};
use core::ffi::{c_int, c_long, c_void};
use core::ptr;

/// Why frames cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The system has no choreographer.
    Unsupported,
    /// The calling thread has no looper.
    NoLooper,
    /// The library cannot be kept loaded.
    Unloadable,
    /// As of a heartbeat.
    Probe(Failure),
}

const CALLBACKS: Callbacks = Callbacks { vsync: on_vsync, whole: on_whole, long: on_long };

/// Watches the calling thread's frames, or renames their loop.
pub fn watch(name: Option<&[u8]>) -> Result<Token, Refusal> {
    if !alooper::is_there() || !choreographer::is_there() {
        return Err(Refusal::Unsupported);
    }
    let looper = alooper::of_this_thread();
    if looper == 0 || choreographer::of_this_thread().is_null() {
        return Err(Refusal::NoLooper);
    }
    if !loaded::keep() {
        return Err(Refusal::Unloadable);
    }
    let refused = |refusal| Refusal::Probe(Failure::Refused(refusal));
    let (token, is_new) = registry::watch_frames(looper, name).map_err(refused)?;
    if is_new {
        // SAFETY: the calling thread's looper is alive.
        unsafe { probe::begin(ptr::with_exposed_provenance_mut(looper), token, on_ring) }.map_err(Refusal::Probe)?;
        ask_if_time_counts(slot::slot(token.slot()), ptr::without_provenance_mut(token.raw()));
        registry::looper_is_ready(token);
    }
    Ok(token)
}

/// Asks for the next frame, on the loop's own thread. `false`: not now, and the loop rests.
fn ask_if_time_counts(slot: &Slot, data: *mut c_void) -> bool {
    let choreographer = choreographer::of_this_thread();
    if !GATE.is_open() || choreographer.is_null() {
        frames::rests(slot);
        return false;
    }
    let was_at_rest = slot.frames.vsync() == 0;
    frames::asks(slot);
    // SAFETY: the choreographer is this thread's. The callbacks stay loaded while one is to come.
    unsafe {
        if was_at_rest {
            // Not twice, if nothing has come since the last time.
            choreographer::untell_rate(choreographer, on_rate, data);
            choreographer::tell_rate(choreographer, on_rate, data);
        }
        choreographer::post(choreographer, &CALLBACKS, data);
    }
    true
}

/// Nothing of the loop's is left with the choreographer, on its own thread.
fn rest(choreographer: *mut AChoreographer, data: *mut c_void) {
    if !choreographer.is_null() {
        // SAFETY: the choreographer is this thread's.
        unsafe { choreographer::untell_rate(choreographer, on_rate, data) };
    }
}

/// A frame has come that was asked for.
fn comes(data: *mut c_void, read: impl FnOnce(&Slot) -> (u64, Option<u64>)) {
    let goes_on = of_data(data).is_some_and(|slot| {
        let (vsync, period) = read(slot);
        if let Some(period) = period {
            slot.frames.tell_period(period);
        }
        frames::comes(slot, vsync);
        ask_if_time_counts(slot, data)
    });
    if !goes_on && let Some(token) = Token::from_raw(data.addr()) {
        rest(choreographer::of_this_thread(), data);
        slot::slot(token.slot()).frames.returns(token.raw());
    }
}

unsafe extern "C" fn on_vsync(frame: *const AChoreographerFrameCallbackData, data: *mut c_void) {
    // SAFETY: the choreographer gives it for the time of this call.
    comes(data, |_| unsafe { choreographer::read(frame) });
}

unsafe extern "C" fn on_whole(time: i64, data: *mut c_void) {
    comes(data, |_| (u64::try_from(time).unwrap_or(0), None));
}

unsafe extern "C" fn on_long(time: c_long, data: *mut c_void) {
    comes(data, |slot| {
        // A long of 32 bits has lost the rest.
        let time = if size_of::<c_long>() < size_of::<u64>() { slot.frames.whole(time as u32) } else { time as u64 };
        (time, None)
    });
}

unsafe extern "C" fn on_rate(period: i64, data: *mut c_void) {
    if let Some((slot, period)) = of_data(data).zip(u64::try_from(period).ok()) {
        slot.frames.tell_period(period);
    }
}

/// The monitor asks the looper's thread to show that it is alive, and to go on if it rests.
unsafe extern "C" fn on_ring(fd: c_int, _events: c_int, data: *mut c_void) -> c_int {
    event::take(fd);
    if let Some(slot) = of_data(data) {
        frames::answers(slot);
        if !slot.frames.is_asked() {
            ask_if_time_counts(slot, data);
        }
    }
    1
}
