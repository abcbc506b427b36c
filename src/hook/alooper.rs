//! The system's ALooper functions, found at run time: a program without them links all the same.
#![allow(unsafe_code)]

use crate::abi::{ALooper, bc_looper_callback};
use crate::sys::fork;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

/// `ALOOPER_POLL_CALLBACK`.
pub const POLL_CALLBACK: c_int = -2;
/// `ALOOPER_POLL_ERROR`.
pub const POLL_ERROR: c_int = -4;

type AddFd = unsafe extern "C" fn(*mut ALooper, c_int, c_int, c_int, bc_looper_callback, *mut c_void) -> c_int;
type RemoveFd = unsafe extern "C" fn(*mut ALooper, c_int) -> c_int;
type PollFn = unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, *mut *mut c_void) -> c_int;

/// The four functions that are bracketed, by address: addFd, removeFd, pollOnce, pollAll.
pub struct Functions([AtomicPtr<c_void>; 4]);

/// Their names, in the same order.
pub const NAMES: [&CStr; 4] = [c"ALooper_addFd", c"ALooper_removeFd", c"ALooper_pollOnce", c"ALooper_pollAll"];

/// The system's.
pub static SYSTEM: Functions = Functions::none();

const ADD_FD: usize = 0;
const REMOVE_FD: usize = 1;
const POLL_ONCE: usize = 2;
const POLL_ALL: usize = 3;

static FOR_THREAD: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static ACQUIRE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static RELEASE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static LOOKED_UP: AtomicBool = AtomicBool::new(false);

/// Which poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// `ALooper_pollOnce`.
    Once,
    /// `ALooper_pollAll`, which no header declares any more and every system still has.
    All,
}

impl Functions {
    /// None, so the system's.
    pub const fn none() -> Functions {
        Functions([const { AtomicPtr::new(ptr::null_mut()) }; 4])
    }

    /// The address of one, 0 where there is none.
    pub fn address(&self, number: usize) -> usize {
        self.0.get(number).map_or(0, |place| place.load(Acquire).expose_provenance())
    }

    /// Calls of this one go to `address` from now on.
    pub fn set(&self, number: usize, address: usize) {
        if let Some(place) = self.0.get(number) {
            place.store(ptr::with_exposed_provenance_mut(address), Release);
        }
    }

    fn get(&self, number: usize) -> *mut c_void {
        let own = self.0.get(number).map_or(ptr::null_mut(), |place| place.load(Acquire));
        let system = SYSTEM.0.get(number).filter(|_| own.is_null());
        system.map_or(own, get)
    }
}

/// Looks again for what was not there: the looper may have come with a library since.
pub fn look_again() {
    if (0..NAMES.len()).any(|number| SYSTEM.address(number) == 0) {
        LOOKED_UP.store(false, Release);
        look_up();
    }
}

/// Looks for the functions, once. Takes the loader's lock and may allocate, so it is done at install, or by the first call
/// before that.
pub fn look_up() {
    // A child of fork makes do with what its parent has found: it may have been forked in the middle of this.
    if LOOKED_UP.load(Acquire) || fork::is_child() {
        return;
    }
    let others = [(&FOR_THREAD, c"ALooper_forThread"), (&ACQUIRE, c"ALooper_acquire"), (&RELEASE, c"ALooper_release")];
    for (place, name) in SYSTEM.0.iter().zip(NAMES).chain(others) {
        if place.load(Relaxed).is_null() {
            place.store(find(name), Release);
        }
    }
    LOOKED_UP.store(true, Release);
}

/// Looks for one function of the system's, null where it is not. Takes the loader's lock.
pub(super) fn find(name: &CStr) -> *mut c_void {
    // SAFETY: strings that end in a NUL.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        if !found.is_null() {
            return found;
        }
        // A library opened with RTLD_LOCAL does not see what its own dependencies are. Nothing is loaded that is not there.
        let library = libc::dlopen(c"libandroid.so".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() { library } else { libc::dlsym(library, name.as_ptr()) }
    }
}

fn get(place: &AtomicPtr<c_void>) -> *mut c_void {
    let found = place.load(Acquire);
    if found.is_null() && !LOOKED_UP.load(Acquire) {
        look_up();
        return place.load(Acquire);
    }
    found
}

/// Address of the calling thread's looper, 0 without one.
pub fn of_this_thread() -> usize {
    let function = get(&FOR_THREAD);
    if function.is_null() {
        return 0;
    }
    // SAFETY: the NDK's function of this name has this type.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> *mut ALooper>(function)() }.addr()
}

/// Does the system have it?
pub fn is_there() -> bool {
    !SYSTEM.get(ADD_FD).is_null() && !SYSTEM.get(REMOVE_FD).is_null()
}

/// `ALooper_acquire`.
///
/// # Safety
/// `looper` is a live looper.
pub unsafe fn acquire(looper: *mut ALooper) {
    // SAFETY: the caller vouches for the looper.
    unsafe { count(&ACQUIRE, looper) };
}

/// `ALooper_release`.
///
/// # Safety
/// `looper` was acquired.
pub unsafe fn release(looper: *mut ALooper) {
    // SAFETY: the caller vouches for the looper.
    unsafe { count(&RELEASE, looper) };
}

unsafe fn count(place: &AtomicPtr<c_void>, looper: *mut ALooper) {
    let function = get(place);
    if !function.is_null() {
        // SAFETY: the NDK's functions of these names have this type; the caller vouches for the looper.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut ALooper)>(function)(looper) };
    }
}

/// `ALooper_addFd`, -1 without it.
///
/// # Safety
/// The arguments are as that function wants them.
pub unsafe fn add_fd(
    functions: &Functions,
    looper: *mut ALooper,
    fd: c_int,
    ident: c_int,
    events: c_int,
    callback: bc_looper_callback,
    data: *mut c_void,
) -> c_int {
    let function = functions.get(ADD_FD);
    if function.is_null() {
        return -1;
    }
    // SAFETY: the NDK's function of this name has this type; the caller vouches for the arguments.
    unsafe { transmute::<*mut c_void, AddFd>(function)(looper, fd, ident, events, callback, data) }
}

/// `ALooper_removeFd`, -1 without it.
///
/// # Safety
/// The arguments are as that function wants them.
pub unsafe fn remove_fd(functions: &Functions, looper: *mut ALooper, fd: c_int) -> c_int {
    let function = functions.get(REMOVE_FD);
    if function.is_null() {
        return -1;
    }
    // SAFETY: as above.
    unsafe { transmute::<*mut c_void, RemoveFd>(function)(looper, fd) }
}

/// A poll, `POLL_ERROR` without it.
///
/// # Safety
/// The arguments are as that function wants them.
pub unsafe fn poll(
    functions: &Functions,
    poll: Poll,
    timeout_ms: c_int,
    out_fd: *mut c_int,
    out_events: *mut c_int,
    out_data: *mut *mut c_void,
) -> c_int {
    let function = functions.get(if poll == Poll::Once { POLL_ONCE } else { POLL_ALL });
    if function.is_null() {
        return POLL_ERROR;
    }
    // SAFETY: as above.
    unsafe { transmute::<*mut c_void, PollFn>(function)(timeout_ms, out_fd, out_events, out_data) }
}
