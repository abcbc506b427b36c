//! The kernel's own function that reads the clock, in the pages that it maps into every process. The C library calls it
//! too, but a mark takes hardly longer than the clock, so the way through the C library counts.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{clockid_t, timespec};

type Read = unsafe extern "C" fn(clockid_t, *mut timespec) -> i32;

/// What reads the clock: the C library until `find` has found something shorter. Never null.
static READ: AtomicPtr<()> = AtomicPtr::new(libc::clock_gettime as *mut ());

/// Reads CLOCK_MONOTONIC.
#[inline(always)]
pub fn monotonic() -> timespec {
    let mut time = core::mem::MaybeUninit::uninit();
    // SAFETY: READ only ever holds functions of this type. This clock is always there, so the time is written.
    unsafe {
        core::mem::transmute::<*mut (), Read>(READ.load(Relaxed))(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    }
}

/// Looks for the kernel's function. Where there is none, or it does not tell what the C library tells, nothing changes.
pub fn find() {
    #[cfg(all(
        target_pointer_width = "64",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
    ))]
    if let Some(found) = image::function().filter(|found| agrees(*found)) {
        READ.store(found as *mut (), Relaxed);
    }
}

#[cfg(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn agrees(read: Read) -> bool {
    let times = [libc::clock_gettime, read, libc::clock_gettime].map(|read| {
        let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the C library's function, or the kernel's of the same type.
        let result = unsafe { read(libc::CLOCK_MONOTONIC, &mut time) };
        (result, time.tv_sec, time.tv_nsec)
    });
    times.is_sorted() && times.iter().all(|(result, ..)| *result == 0)
}

/// The kernel's image: a small shared object.
#[cfg(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod image {
    use super::Read;
    use core::ffi::CStr;
    use core::ptr;
    use libc::Elf64_Phdr;

    const NAME: &CStr = if cfg!(target_arch = "aarch64") { c"__kernel_clock_gettime" } else { c"__vdso_clock_gettime" };
    const DYNAMIC_STRINGS: u64 = 5;
    const DYNAMIC_SYMBOLS: u64 = 6;
    const MOST_SYMBOLS: usize = 256;

    /// The file's header, as far as it is looked at.
    #[repr(C)]
    struct Header {
        magic: [u8; 4],
        _properties: [u8; 28],
        segments: u64,
        _sections: [u8; 16],
        segment_count: u16,
    }

    #[repr(C)]
    struct Symbol {
        name: u32,
        _properties: u32,
        value: u64,
        _size: u64,
    }

    /// An entry of the dynamic section.
    #[repr(C)]
    struct Dynamic {
        tag: u64,
        value: u64,
    }

    pub fn function() -> Option<Read> {
        // SAFETY: takes a number.
        let header = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
        let header = ptr::with_exposed_provenance::<Header>(header);
        // SAFETY: the kernel says that a whole image is mapped there, and it stays.
        unsafe {
            if header.is_null() || (*header).magic != *b"\x7fELF" {
                return None;
            }
            let of_image = |offset: u64| header.wrapping_byte_add(offset as usize);
            let segments = of_image((*header).segments).cast::<Elf64_Phdr>();
            let segments = core::slice::from_raw_parts(segments, usize::from((*header).segment_count));
            let loaded = segments.iter().find(|segment| segment.p_type == libc::PT_LOAD)?;
            let bias = loaded.p_offset.wrapping_sub(loaded.p_vaddr);
            let at = |address: u64| of_image(address.wrapping_add(bias));
            let dynamic = segments.iter().find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
            let entries = dynamic.p_memsz as usize / size_of::<Dynamic>();
            let entries = core::slice::from_raw_parts(at(dynamic.p_vaddr).cast::<Dynamic>(), entries);
            let value = |tag| entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.value);
            let (symbols, strings) = (value(DYNAMIC_SYMBOLS)?, value(DYNAMIC_STRINGS)?);
            // All of them lie before their names.
            let count = strings.checked_sub(symbols)? as usize / size_of::<Symbol>();
            let symbols = core::slice::from_raw_parts(at(symbols).cast::<Symbol>(), count.min(MOST_SYMBOLS));
            let is_it = |symbol: &&Symbol| {
                let name = at(strings.wrapping_add(u64::from(symbol.name)));
                symbol.value != 0 && CStr::from_ptr(name.cast()) == NAME
            };
            let address = at(symbols.iter().find(is_it)?.value);
            Some(core::mem::transmute::<*const Header, Read>(address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_time_before_and_after_it_was_found() {
        let before = monotonic();
        find();
        let after = monotonic();
        assert!((before.tv_sec, before.tv_nsec) <= (after.tv_sec, after.tv_nsec));
        #[cfg(target_arch = "x86_64")]
        assert_ne!(READ.load(Relaxed), libc::clock_gettime as *mut (), "not found");
    }
}
