//! The modules that the loader knows, and writing to their words while they stay.
//!
//! `dl_iterate_phdr` calls back under a lock without which nothing is unmapped, by glibc as by Android from its version 6
//! on. So whatever is written to a module is written in such a callback. Threads of the library's that others wait for
//! must not come here: a thread may hold the loader's lock for as long as a library's constructor takes.
#![allow(unsafe_code)]

use super::errno::{Errno, check};
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// A module, for as long as the loader's callback lasts.
#[derive(Clone, Copy)]
pub struct Loaded<'a> {
    /// Its path as the loader has it; empty for the program.
    pub name: &'a CStr,
    /// Where its first byte is mapped.
    pub base: u64,
    /// The first page of those that the loader write-protects when it has done its work on the module; 0: none.
    pub protected_at: u64,
    /// Loaded and unloaded so far, where the loader tells.
    pub counts: Option<(u64, u64)>,
}

/// What a page may be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Reading.
    pub read: bool,
    /// Writing.
    pub write: bool,
    /// Executing.
    pub execute: bool,
}

impl Access {
    fn flags(self) -> c_int {
        let flag = |has: bool, flag: c_int| if has { flag } else { 0 };
        flag(self.read, libc::PROT_READ) | flag(self.write, libc::PROT_WRITE) | flag(self.execute, libc::PROT_EXEC)
    }
}

/// A module that is sure to stay for now.
pub struct Staying<'a>(&'a Loaded<'a>);

impl<'a> core::ops::Deref for Staying<'a> {
    type Target = Loaded<'a>;
    fn deref(&self) -> &Loaded<'a> {
        self.0
    }
}

/// Does the loader keep what it tells of from being unloaded meanwhile?
pub fn holds_still() -> bool {
    #[cfg(target_os = "android")]
    {
        let mut value = [0; libc::PROP_VALUE_MAX as usize];
        // SAFETY: a string that ends in a NUL, and as much room as the call asks for.
        unsafe { libc::__system_property_get(c"ro.build.version.sdk".as_ptr(), value.as_mut_ptr()) };
        let digits = value.iter().map(|digit| (*digit as u8).wrapping_sub(b'0')).take_while(|digit| *digit < 10);
        let level = digits.fold(0_u32, |level, digit| level.wrapping_mul(10).wrapping_add(u32::from(digit)));
        // What has no such property is not as old as that.
        level == 0 || level >= 23
    }
    #[cfg(not(target_os = "android"))]
    true
}

fn page_size() -> u64 {
    // SAFETY: sysconf takes a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096).max(4096)
}

/// Goes through the modules.
pub fn each(mut see: &mut dyn FnMut(&Staying)) {
    unsafe extern "C" fn call(info: *mut libc::dl_phdr_info, size: usize, see: *mut c_void) -> c_int {
        // SAFETY: `each` gave a pointer to its own argument.
        let see = unsafe { &mut *see.cast::<&mut dyn FnMut(&Staying)>() };
        // SAFETY: the loader gives its account of a module.
        if let Some(loaded) = unsafe { loaded(info, size) } {
            see(&Staying(&loaded));
        }
        0
    }
    // SAFETY: the callback is called during this call, with our argument.
    unsafe { libc::dl_iterate_phdr(Some(call), (&raw mut see).cast()) };
}

// Not the same type where words are narrower.
#[allow(clippy::unnecessary_cast)]
unsafe fn loaded<'a>(info: *const libc::dl_phdr_info, size: usize) -> Option<Loaded<'a>> {
    // SAFETY: the caller's account begins with these fields in all versions; older ones have no others.
    unsafe {
        let (bias, name) = ((*info).dlpi_addr as u64, (*info).dlpi_name);
        if (*info).dlpi_phdr.is_null() {
            return None;
        }
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        let first = headers.iter().find(|header| header.p_type == libc::PT_LOAD)?;
        let base = bias.wrapping_add(first.p_vaddr as u64).wrapping_sub(first.p_offset as u64);
        let page = page_size();
        let protected = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO).and_then(|header| {
            let start = bias.wrapping_add(header.p_vaddr as u64);
            let end = start.checked_add(header.p_memsz as u64)? / page * page;
            Some(start / page * page).filter(|start| *start < end)
        });
        // A smaller account is an older one's, which ends before these fields.
        #[cfg(target_env = "gnu")]
        let counts = (size >= size_of::<libc::dl_phdr_info>()).then(|| ((*info).dlpi_adds, (*info).dlpi_subs));
        #[cfg(not(target_env = "gnu"))]
        let counts = None.filter(|_: &(u64, u64)| size > 0);
        let name = if name.is_null() { c"" } else { CStr::from_ptr(name) };
        Some(Loaded { name, base, protected_at: protected.unwrap_or(0), counts })
    }
}

/// Waits until whoever is loading something has done so. Takes the loader's lock.
pub fn wait_for_loading(address: u64) {
    // SAFETY: nothing but numbers and pointers.
    let mut info = unsafe { core::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: any address will do.
    unsafe { libc::dladdr(ptr::without_provenance(address as usize), &mut info) };
}

impl Staying<'_> {
    /// Puts `to` in the place of `from` in a word of the module's that lies in a page of this use, which it has again
    /// afterwards. `false`: the word was not `from`, and stays as it is.
    ///
    /// # Safety
    /// The word is an aligned one of the module's, which nobody minds changing from the one value to the other.
    pub unsafe fn exchange(&self, at: u64, access: Access, from: usize, to: usize) -> Result<bool, Errno> {
        if !access.read || access.execute {
            return Err(Errno(libc::EACCES));
        }
        let page = at / page_size() * page_size();
        let page = ptr::with_exposed_provenance_mut::<c_void>(page as usize);
        let protect = |access: Access| {
            // SAFETY: a page of the module's, which stays; its code and data may do what they could before.
            check(unsafe { libc::mprotect(page, page_size() as usize, access.flags()) }.into()).map(drop)
        };
        if !access.write {
            protect(Access { write: true, ..access })?;
        }
        // SAFETY: the word is aligned, mapped, and may be written now.
        let word = unsafe { AtomicUsize::from_ptr(ptr::with_exposed_provenance_mut(at as usize)) };
        let exchanged = word.compare_exchange(from, to, AcqRel, Acquire).is_ok();
        if !access.write {
            protect(access)?;
        }
        Ok(exchanged)
    }
}
