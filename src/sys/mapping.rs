//! The one piece of memory that an installation takes.
#![allow(unsafe_code)]

use super::errno::Errno;
use core::ptr::{self, NonNull};

/// Types for which all bytes zero is a valid value.
///
/// # Safety
/// Every field of the type is such a type.
pub unsafe trait Zeroed {}

// SAFETY: plain numbers.
unsafe impl Zeroed for u8 {}
// SAFETY: plain numbers.
unsafe impl Zeroed for u16 {}
// SAFETY: plain numbers.
unsafe impl Zeroed for u32 {}
// SAFETY: plain numbers.
unsafe impl Zeroed for u64 {}
// SAFETY: numbers and nullable pointers.
unsafe impl Zeroed for crate::abi::bc_frame {}
// SAFETY: numbers, a nullable pointer, bools, and an enumeration that has a zero.
unsafe impl Zeroed for crate::abi::bc_sample {}
// SAFETY: an array of such values.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

/// Adds up what will be carved, so that the mapping can be made in one piece.
#[derive(Clone, Copy, Default)]
pub struct Plan(Option<usize>);

impl Plan {
    /// Nothing yet.
    pub fn new() -> Plan {
        Plan(Some(0))
    }

    /// `count` values of this type more.
    pub fn add<T>(&mut self, count: usize) {
        let bytes = size_of::<T>().checked_mul(count);
        self.0 = self.0.zip(bytes).and_then(|(sum, bytes)| sum.checked_add(align_of::<T>())?.checked_add(bytes));
    }

    /// The sum in bytes; `None` where it does not fit an address.
    pub fn bytes(&self) -> Option<usize> {
        self.0.and_then(|sum| sum.checked_next_multiple_of(1 << 16))
    }
}

/// Zeroed memory, given out piece by piece and given back as a whole.
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    used: usize,
}

// SAFETY: it owns the memory; carving takes it by `&mut`.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Reserves `bytes` of address space. Pages cost memory when they are first written.
    pub fn new(bytes: usize) -> Result<Mapping, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        match NonNull::new(base.cast()) {
            Some(base) => Ok(Mapping { base, bytes, used: 0 }),
            None => Err(Errno(libc::ENOMEM)),
        }
    }

    /// `count` zeroed values. `None` when the mapping is used up.
    ///
    /// The lifetime ends when the mapping is given back: see `unmap`.
    pub fn carve<T: Zeroed>(&mut self, count: usize) -> Option<&'static mut [T]> {
        let place = self.reserve::<T>(count)?;
        // SAFETY: `reserve` gave a piece of our own, aligned, large enough and never given out before; it is zeroed, which
        // T allows.
        Some(unsafe { core::slice::from_raw_parts_mut(place.as_ptr(), count) })
    }

    /// `count` values, each made by `make`. `None` when the mapping is used up.
    pub fn fill<T>(&mut self, count: usize, make: impl Fn() -> T) -> Option<&'static mut [T]> {
        let place = self.reserve::<T>(count)?;
        for number in 0..count {
            // SAFETY: `reserve` gave an aligned piece of our own that holds `count` values.
            unsafe { place.add(number).write(make()) };
        }
        // SAFETY: all of them were written just now.
        Some(unsafe { core::slice::from_raw_parts_mut(place.as_ptr(), count) })
    }

    /// One value, moved in. `None` when the mapping is used up.
    pub fn place<T>(&mut self, value: T) -> Option<&'static mut T> {
        let place = self.reserve::<T>(1)?;
        // SAFETY: `reserve` gave an aligned piece of our own that holds one T.
        unsafe {
            place.write(value);
            Some(&mut *place.as_ptr())
        }
    }

    fn reserve<T>(&mut self, count: usize) -> Option<NonNull<T>> {
        self.reserve_bytes(align_of::<T>(), size_of::<T>().checked_mul(count)?).map(NonNull::cast)
    }

    /// The same for all types, so not inlined into each use.
    #[inline(never)]
    fn reserve_bytes(&mut self, align: usize, bytes: usize) -> Option<NonNull<u8>> {
        let start = self.used.checked_next_multiple_of(align)?;
        let end = start.checked_add(bytes)?;
        if end > self.bytes {
            return None;
        }
        self.used = end;
        // SAFETY: `start` lies within the mapping.
        Some(unsafe { self.base.add(start) })
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// Nothing that was carved or placed is used any more, by any thread.
    pub unsafe fn unmap(self) {
        // SAFETY: it is a whole mapping of our own, and the caller vouches for the rest.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planned_can_be_carved_and_no_more() {
        let mut plan = Plan::new();
        plan.add::<u8>(3);
        plan.add::<u64>(1000);
        let mut mapping = Mapping::new(plan.bytes().unwrap()).unwrap();
        assert_eq!(mapping.carve::<u8>(3).unwrap(), [0; 3]);
        let words = mapping.carve::<u64>(1000).unwrap();
        assert!(words.iter().all(|w| *w == 0) && words.as_ptr().is_aligned());
        assert!(mapping.carve::<u8>(1 << 20).is_none());
        // SAFETY: the slices are not used again.
        unsafe { mapping.unmap() };
    }

    #[test]
    fn a_plan_that_overflows_says_so() {
        let mut plan = Plan::new();
        plan.add::<u64>(usize::MAX / 4);
        assert_eq!(plan.bytes(), None);
    }
}
