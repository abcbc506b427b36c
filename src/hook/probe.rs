//! The heartbeat of a looper: an event descriptor with a callback, added to it from outside.
#![allow(unsafe_code)]

use super::alooper::{self, SYSTEM};
use crate::abi::ALooper;
use crate::sys::event;
use crate::watch::registry::{self, Refusal};
use crate::watch::slot::Slot;
use crate::watch::token::Token;
use crate::watch::{probe, slot};
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::*;

/// `ALOOPER_EVENT_INPUT`.
const INPUT: c_int = 1;

/// Why a looper cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The system has no ALooper.
    Unsupported,
    /// No loop can be watched.
    Refused(Refusal),
    /// The looper does not take the descriptor, or there is none to be had.
    Looper,
}

/// Watches the thread that owns a looper, or renames its loop.
///
/// # Safety
/// `looper` is a live looper.
pub unsafe fn watch(looper: *mut ALooper, name: Option<&[u8]>) -> Result<Token, Failure> {
    if !alooper::is_there() {
        return Err(Failure::Unsupported);
    }
    let (token, is_new) = registry::watch_looper(looper.expose_provenance(), name).map_err(Failure::Refused)?;
    if is_new {
        // SAFETY: the caller vouches for the looper.
        unsafe { begin(looper, token, on_ping) }?;
        registry::looper_is_ready(token);
    }
    Ok(token)
}

type OnPing = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;

/// Gives a new loop its descriptor; without one it is given up.
///
/// # Safety
/// `looper` is a live looper.
pub(super) unsafe fn begin(looper: *mut ALooper, token: Token, on_ping: OnPing) -> Result<(), Failure> {
    registry::on_probe_gone(release);
    let slot = slot::slot(token.slot());
    let fd = event::open().map_err(|_| {
        registry::unwatch(token);
        Failure::Looper
    })?;
    // SAFETY: the caller vouches for the looper, which is kept until `release`; the callback and its data are ours.
    let added = unsafe {
        alooper::acquire(looper);
        slot.probe.begin(fd);
        alooper::add_fd(&SYSTEM, looper, fd, 0, INPUT, Some(on_ping), ptr::without_provenance_mut(token.raw()))
    };
    if added != 1 {
        registry::unwatch(token);
        return Err(Failure::Looper);
    }
    Ok(())
}

/// The loop that a callback was made for, if it still is watched.
pub(super) fn of_data(data: *mut c_void) -> Option<&'static Slot> {
    let token = Token::from_raw(data.addr())?;
    Some(slot::slot(token.slot())).filter(|slot| slot.is(token))
}

/// Runs on the looper's thread.
unsafe extern "C" fn on_ping(fd: c_int, _events: c_int, data: *mut c_void) -> c_int {
    event::take(fd);
    if let Some(slot) = of_data(data) {
        probe::answers(slot);
    }
    1
}

/// The loop has been given up.
fn release(slot: &Slot) {
    let fd = slot.probe.end();
    let looper = ptr::with_exposed_provenance_mut::<ALooper>(slot.looper.swap(0, AcqRel));
    if fd >= 0 && !looper.is_null() {
        // SAFETY: the looper was acquired with the descriptor, which goes with it.
        unsafe {
            alooper::remove_fd(&SYSTEM, looper, fd);
            alooper::release(looper);
        }
        event::close(fd);
    }
}
