//! Keeping the library that contains us loaded, for as long as the system may call it and cannot be told not to.
#![allow(unsafe_code)]

use super::program;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

/// The loader's handle of the library, while we keep it; null for none.
static KEPT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Keeps it loaded. `false`: that cannot be had. The main program stays by itself. Takes the loader's lock.
pub fn keep() -> bool {
    if is_kept() || program::holds(own()) {
        return true;
    }
    let handle = open_again();
    if handle.is_null() {
        return false;
    }
    if KEPT.compare_exchange(ptr::null_mut(), handle, AcqRel, Acquire).is_err() {
        // Another thread has kept it meanwhile.
        // SAFETY: the handle is ours, and not the last one.
        unsafe { libc::dlclose(handle) };
    }
    true
}

/// Keeps it loaded until the process ends.
pub fn keep_for_good() {
    static IS_KEPT: AtomicBool = AtomicBool::new(false);
    if !IS_KEPT.swap(true, AcqRel) && !program::holds(own()) {
        // The handle is never closed.
        open_again();
    }
}

fn own() -> usize {
    keep as *const () as usize
}

/// Another handle of the library that is ours; null for none.
fn open_again() -> *mut c_void {
    // SAFETY: plain data, all of which may be zero.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: an address of ours, and a live place for the answer, whose text stays while we are loaded.
    unsafe {
        if libc::dladdr(ptr::with_exposed_provenance(own()), &mut found) == 0 || found.dli_fname.is_null() {
            return ptr::null_mut();
        }
        libc::dlopen(found.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD)
    }
}

/// Does it stay loaded because of us?
pub fn is_kept() -> bool {
    !KEPT.load(Acquire).is_null()
}

/// Lets it go. The caller is the program, which has the library loaded for as long as it calls.
pub fn let_go() {
    let handle = KEPT.swap(ptr::null_mut(), AcqRel);
    if !handle.is_null() {
        // SAFETY: the handle is ours.
        unsafe { libc::dlclose(handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_program_need_not_be_kept() {
        assert!(keep() && !is_kept());
        let_go();
    }
}
