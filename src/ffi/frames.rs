//! The display's frames, as a thread's choreographer tells them.

use super::looper::of_failure;
use super::watching;
use crate::abi::bc_loop;
use crate::abi::bc_status::{self, *};
use crate::hook::frames::{self, Refusal};
use crate::log_error;
use core::ffi::c_char;

/// Watches the calling thread by frame callbacks of its `AChoreographer`, as a loop of its own beside any other of this
/// thread. The time from one callback to the next is a stretch: a longer one than the threshold is a block ("frame", its
/// tag is the display's time of the frame before), whatever kept the thread. `bc_loop_stats_get` counts each time from
/// frame to frame by the display's clock, and in `missed_frames` the periods of the display that went by without one, at
/// whatever rate it has. A second call renames the loop and gives the same token. `name` is copied; NULL: "frames". What
/// keeps the thread while another loop of it is watched is a block of each: the dispatch says what it was, this one that
/// frames were missed for it.
///
/// A callback asks for the next one, so the thread is woken with each frame of the display while watching is on, and not
/// while it is off or paused: pause when the program leaves the foreground. While no frame comes, the thread is asked each
/// quarter of the threshold to show that it is alive. What has been asked for cannot be taken back: one more callback may
/// come after the watch has ended, and does nothing. A library that contains this one stays loaded until `bc_uninstall` has
/// seen the last one come, for which it waits 200 ms at most; if it then has not, for ever. It cannot come where
/// `bc_uninstall` is called on the watched thread, unless that has polled since `bc_stop`.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (`loop` is NULL), BC_ERROR_UNSUPPORTED (the system has no AChoreographer, as
/// before Android 7 and elsewhere, or the library cannot be kept loaded), BC_ERROR_INVALID_STATE (not installed),
/// BC_ERROR_LIMIT_REACHED, BC_ERROR_WRONG_THREAD (the thread has no looper, or from a callback), BC_ERROR_INTERNAL.
/// `*loop` is NULL unless BC_OK.
///
/// Units: none. Ownership: the thread's looper is acquired until the watch ends. Threads: the one to be watched, which has a
/// looper, but not in callbacks of this library.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_frames_watch(name: *const c_char, r#loop: *mut *mut bc_loop) -> bc_status {
    // SAFETY: the caller's name and place.
    unsafe { watching::begin(r#loop, name, true, |name| frames::watch(name).map_err(of_frames)) }
}

fn of_frames(refusal: Refusal) -> bc_status {
    match refusal {
        Refusal::Unsupported => log_error!("bc_frames_watch: the system has no AChoreographer"),
        Refusal::Unloadable => log_error!("bc_frames_watch: the library cannot be kept loaded"),
        Refusal::NoLooper => {
            log_error!("bc_frames_watch: the calling thread has no looper");
            return BC_ERROR_WRONG_THREAD;
        }
        Refusal::Probe(failure) => return of_failure(failure, "bc_frames_watch"),
    }
    BC_ERROR_UNSUPPORTED
}
