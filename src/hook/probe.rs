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
    registry::on_probe_gone(release);
    let (token, is_new) = registry::watch_looper(looper.expose_provenance(), name).map_err(Failure::Refused)?;
    if !is_new {
        return Ok(token);
    }
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
    registry::looper_is_ready(token);
    Ok(token)
}

/// Runs on the looper's thread.
unsafe extern "C" fn on_ping(fd: c_int, _events: c_int, data: *mut c_void) -> c_int {
    event::take(fd);
    let slot = Token::from_raw(data.addr()).map(|token| (slot::slot(token.slot()), token));
    if let Some((slot, _)) = slot.filter(|(slot, token)| slot.is(*token)) {
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
