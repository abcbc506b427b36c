//! The main program, which stays mapped as long as the process lives, unlike libraries.
#![allow(unsafe_code)]

use core::ptr;
#[cfg(target_pointer_width = "32")]
use libc::Elf32_Phdr as Segment;
#[cfg(target_pointer_width = "64")]
use libc::Elf64_Phdr as Segment;

/// Does an address lie in the main program? Asks nothing of the loader, which may be in the middle of something. `true`, too,
/// where that cannot be found out.
pub fn holds(address: usize) -> bool {
    // SAFETY: takes numbers.
    let (place, count, size) =
        unsafe { (libc::getauxval(libc::AT_PHDR), libc::getauxval(libc::AT_PHNUM), libc::getauxval(libc::AT_PHENT)) };
    let place = place as usize;
    if place == 0 || size as usize != size_of::<Segment>() {
        return true;
    }
    // SAFETY: the kernel says that so many headers of the main program are mapped there, and they stay.
    let segments =
        unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance::<Segment>(place), count as usize) };
    // A program that does not say where its headers are was linked to lie where it does.
    let own = segments.iter().find(|segment| segment.p_type == libc::PT_PHDR);
    let bias = own.map_or(0, |own| place.wrapping_sub(own.p_vaddr as usize));
    let is_in = |segment: &&Segment| {
        let at = address.wrapping_sub(bias).wrapping_sub(segment.p_vaddr as usize);
        segment.p_type == libc::PT_LOAD && at < segment.p_memsz as usize
    };
    segments.iter().any(|segment| is_in(&segment))
}

/// Where the program begins.
#[cfg(target_arch = "arm")]
pub fn entry() -> usize {
    // SAFETY: takes a number.
    unsafe { libc::getauxval(libc::AT_ENTRY) as usize }
}

/// A function of the C library's, by which to know that.
#[cfg(target_arch = "arm")]
pub const C_LIBRARY: unsafe extern "C" fn() -> libc::pthread_t = libc::pthread_self;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_no_part_of_it() {
        assert!(holds(holds as *const () as usize));
        let on_stack = 0u8;
        assert!(!holds(libc::getpid as *const () as usize) && !holds((&raw const on_stack).addr()) && !holds(0));
    }
}
