//! ALooper's calls with marks around what they run. Each is told which functions to go on to: the system's, or those that
//! an interposed module called before.
#![allow(unsafe_code)]

use super::alooper::{self, Functions, POLL_CALLBACK, Poll};
use super::records::{self, RecordName, Registration};
use crate::abi::{ALooper, bc_looper_callback};
use crate::engine::life;
use crate::sys::counters::LOOPS_REFUSED;
use crate::watch::slot::Slot;
use crate::watch::{mark, registry};
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

type Callback = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;

/// Registers a descriptor; its callback goes through `trampoline`.
///
/// # Safety
/// The arguments are as ALooper's own function wants them.
pub unsafe fn add_fd(
    functions: &Functions,
    looper: *mut ALooper,
    fd: c_int,
    ident: c_int,
    events: c_int,
    callback: bc_looper_callback,
    data: *mut c_void,
) -> c_int {
    let registration = Registration {
        looper: looper.addr(),
        fd,
        callback: callback.map_or(0, |callback| callback as *const () as usize),
        data: data.expose_provenance(),
    };
    let name = match callback {
        Some(_) if registry::is_open() => records::take(&registration),
        _ => None,
    };
    if name.is_none() && callback.is_some() && registry::is_open() {
        LOOPS_REFUSED.add_one();
    }
    // The registrations that this one replaces, and none that comes in meanwhile.
    let replaced = records::find_all(looper.addr(), fd, name);
    let result = match name {
        Some(name) => {
            let data = ptr::without_provenance_mut(name.0);
            // SAFETY: the caller vouches for the arguments; the callback and its data are ours.
            unsafe { alooper::add_fd(functions, looper, fd, ident, events, Some(trampoline), data) }
        }
        // SAFETY: the caller vouches for the arguments.
        None => unsafe { alooper::add_fd(functions, looper, fd, ident, events, callback, data) },
    };
    if result == 1 {
        replaced.into_iter().for_each(records::free);
        name.into_iter().for_each(records::confirm);
    } else if let Some(name) = name {
        records::free(name);
    }
    result
}

/// Removes a descriptor.
///
/// # Safety
/// The arguments are as ALooper's own function wants them.
pub unsafe fn remove_fd(functions: &Functions, looper: *mut ALooper, fd: c_int) -> c_int {
    let removed = records::find_all(looper.addr(), fd, None);
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { alooper::remove_fd(functions, looper, fd) };
    if result >= 0 {
        removed.into_iter().for_each(records::free);
    }
    result
}

/// Stands in the place of the program's callback. After an uninstall it only hands on.
unsafe extern "C" fn trampoline(fd: c_int, events: c_int, data: *mut c_void) -> c_int {
    let name = RecordName(data.addr());
    // Removed so long ago that its record is another one's: a looper may or may not call then.
    let Some(registration) = records::get(name) else { return 1 };
    let watched = watched().map(Watched::new);
    let outer = watched.as_ref().map(|watched| mark::callback_begins(watched.slot, registration.callback as u64));
    // SAFETY: the program gave this function for descriptor and data, which come back as they were.
    let result = unsafe {
        let callback = core::mem::transmute::<usize, Callback>(registration.callback);
        callback(fd, events, ptr::with_exposed_provenance_mut(registration.data))
    };
    if let Some((slot, outer)) = watched.as_ref().and_then(Watched::still).zip(outer) {
        mark::callback_ends(slot, outer);
    }
    if result == 0 {
        records::free(name);
    }
    result
}

/// Polls; what the thread does until its next poll is a dispatch.
///
/// # Safety
/// The arguments are as ALooper's own function wants them.
pub unsafe fn poll(
    functions: &Functions,
    poll: Poll,
    timeout_ms: c_int,
    out_fd: *mut c_int,
    out_events: *mut c_int,
    out_data: *mut *mut c_void,
) -> c_int {
    let Some(watched) = watched().map(Watched::new) else {
        // SAFETY: the caller vouches for the arguments.
        return unsafe { alooper::poll(functions, poll, timeout_ms, out_fd, out_events, out_data) };
    };
    mark::poll_begins(watched.slot);
    let version = watched.slot.marks.version();
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { alooper::poll(functions, poll, timeout_ms, out_fd, out_events, out_data) };
    let Some(slot) = watched.still() else { return result };
    // One poll waits first and runs callbacks then, so the last one's end is where the waiting has ended for good.
    let from_callback = poll == Poll::Once && result == POLL_CALLBACK && slot.marks.version() != version;
    mark::poll_returns(slot, result, from_callback);
    result
}

/// The calling thread's slot across a call of the program's code, in which it may be unwatched and given to another thread.
struct Watched {
    slot: &'static Slot,
    token: usize,
}

impl Watched {
    fn new(slot: &'static Slot) -> Watched {
        Watched { slot, token: slot.token.load(Relaxed) }
    }

    fn still(&self) -> Option<&'static Slot> {
        (self.slot.token.load(Relaxed) == self.token).then_some(self.slot)
    }
}

/// The calling thread's slot. A thread that was never watched is, from now on, if watching is on.
#[inline]
fn watched() -> Option<&'static Slot> {
    if !registry::is_open() {
        return None;
    }
    registry::current().unwrap_or_else(watch)
}

#[cold]
fn watch() -> Option<&'static Slot> {
    if !life::is_running() || life::is_in_callback() {
        return None;
    }
    let slot = registry::watch(None).ok().map(registry::slot_of)?;
    registry::on_looper_gone(records::free_all_of);
    slot.looper.store(alooper::of_this_thread(), Relaxed);
    Some(slot)
}
