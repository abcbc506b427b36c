//! What stands in the place of the imports of interposed modules: a set of functions for each module, so that each goes on
//! to what that module called before, and it is known which module's calls come through.
//!
//! Static and never taken back: a module may have copied an address from its import, and a thread may be in a poll.
#![allow(unsafe_code)]

use super::alooper::{Functions, Poll};
use super::brackets;
use crate::abi::{ALooper, bc_looper_callback};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Modules at a time.
pub const SETS: usize = 8;

/// One module's.
pub struct Set {
    /// What it called before.
    pub functions: Functions,
    /// Has it made a call?
    fired: AtomicBool,
}

static ALL: [Set; SETS] = [const { Set { functions: Functions::none(), fired: AtomicBool::new(false) } }; SETS];

/// A set by its number, which is below `SETS`.
pub fn set(number: usize) -> &'static Set {
    let [first, ..] = &ALL;
    ALL.get(number).unwrap_or(first)
}

impl Set {
    /// Has a call come through it since `forget`?
    pub fn has_fired(&self) -> bool {
        self.fired.load(Relaxed)
    }

    /// Another module has it from now on.
    pub fn forget(&self) {
        self.fired.store(false, Relaxed);
    }

    #[inline(always)]
    fn called(&self) -> &Functions {
        // Looked at first, so that the word stays in the caches of all processors.
        if !self.fired.load(Relaxed) {
            self.fired.store(true, Relaxed);
        }
        &self.functions
    }
}

/// The addresses of a set's functions, in the order of `alooper::NAMES`.
pub fn addresses(number: usize) -> [usize; 4] {
    match number {
        0 => of::<0>(),
        1 => of::<1>(),
        2 => of::<2>(),
        3 => of::<3>(),
        4 => of::<4>(),
        5 => of::<5>(),
        6 => of::<6>(),
        _ => of::<7>(),
    }
}

/// The set whose function for a name this is.
pub fn find(name: usize, address: usize) -> Option<usize> {
    (0..SETS).find(|number| addresses(*number).get(name) == Some(&address))
}

fn of<const N: usize>() -> [usize; 4] {
    [
        add_fd::<N> as *const () as usize,
        remove_fd::<N> as *const () as usize,
        poll_once::<N> as *const () as usize,
        poll_all::<N> as *const () as usize,
    ]
}

unsafe extern "C" fn add_fd<const N: usize>(
    looper: *mut ALooper,
    fd: c_int,
    ident: c_int,
    events: c_int,
    callback: bc_looper_callback,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the module keeps to the rules of the function that it imports.
    unsafe { brackets::add_fd(set(N).called(), looper, fd, ident, events, callback, data) }
}

unsafe extern "C" fn remove_fd<const N: usize>(looper: *mut ALooper, fd: c_int) -> c_int {
    // SAFETY: as above.
    unsafe { brackets::remove_fd(set(N).called(), looper, fd) }
}

unsafe extern "C" fn poll_once<const N: usize>(
    timeout_ms: c_int,
    out_fd: *mut c_int,
    out_events: *mut c_int,
    out_data: *mut *mut c_void,
) -> c_int {
    // SAFETY: as above.
    unsafe { brackets::poll(set(N).called(), Poll::Once, timeout_ms, out_fd, out_events, out_data) }
}

unsafe extern "C" fn poll_all<const N: usize>(
    timeout_ms: c_int,
    out_fd: *mut c_int,
    out_events: *mut c_int,
    out_data: *mut *mut c_void,
) -> c_int {
    // SAFETY: as above.
    unsafe { brackets::poll(set(N).called(), Poll::All, timeout_ms, out_fd, out_events, out_data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_one_module_s() {
        let mut all: std::vec::Vec<usize> = (0..SETS).flat_map(addresses).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4 * SETS);
        for (name, address) in addresses(5).into_iter().enumerate() {
            assert_eq!(find(name, address), Some(5));
            assert_eq!(find((name + 1) % 4, address), None);
        }
    }
}
