//! Keeping the library that contains us loaded, for as long as the system may call it and cannot be told not to.
#![allow(unsafe_code)]

use super::program;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// The loader's handle of the library, while we keep it; null for none.
static KEPT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Keeps it loaded. `false`: that cannot be had. The main program stays by itself. Takes the loader's lock.
pub fn keep() -> bool {
    let own = keep as *const () as usize;
    if is_kept() || program::holds(own) {
        return true;
    }
    // SAFETY: plain data, all of which may be zero.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: an address of ours, and a live place for the answer, whose text stays while we are loaded.
    let handle = unsafe {
        if libc::dladdr(ptr::with_exposed_provenance(own), &mut found) == 0 || found.dli_fname.is_null() {
            return false;
        }
        libc::dlopen(found.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD)
    };
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
