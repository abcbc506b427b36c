//! Copying in the signal handler, past the caches.
//!
//! Whoever has the place in another processor's cache loses it without handing it over: taking one line from there costs a
//! tenth of a microsecond, and an answer has 270. Where a processor has no such stores, they are plain ones.
//!
//! Not by `memcpy`, which may be another: a sanitizer's, which would object to a stack being read across its frames, or one
//! that is only bound when it is first called.
#![allow(unsafe_code)]

/// Bytes of a line of the cache: stores that fill one after the other leave as one.
const LINE: usize = 64;

/// Copies bytes. What was written is seen by others after `arrive`.
///
/// # Safety
/// `from` is readable and `to` writable for `count` bytes, they do not overlap, and `to` is aligned to 16 bytes.
#[inline]
pub unsafe fn past_caches(from: *const u8, to: *mut u8, count: usize) {
    let whole = count / LINE * LINE;
    for at in (0..whole).step_by(LINE) {
        // SAFETY: the caller vouches for both places.
        unsafe { line(from.add(at), to.add(at)) };
    }
    for at in whole..count {
        // SAFETY: as above.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
}

/// Copies a line.
///
/// # Safety
/// As `past_caches`, for a line.
#[inline]
unsafe fn line(from: *const u8, to: *mut u8) {
    // SAFETY: the caller vouches for both places. Spelled out, because a compiler that spares code keeps a loop as one.
    unsafe {
        pair_past_caches(from, to);
        pair_past_caches(from.add(PAIR), to.add(PAIR));
        pair_past_caches(from.add(2 * PAIR), to.add(2 * PAIR));
        pair_past_caches(from.add(3 * PAIR), to.add(3 * PAIR));
    }
}

/// Bytes that are written as one.
const PAIR: usize = 16;
const _: () = assert!(LINE == 4 * PAIR);

/// Copies 16 bytes.
///
/// # Safety
/// As `past_caches`, for 16 bytes.
#[inline]
pub unsafe fn pair_past_caches(from: *const u8, to: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for both places; every x86_64 has SSE.
    unsafe {
        use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        _mm_stream_si128(to.cast::<__m128i>(), _mm_loadu_si128(from.cast::<__m128i>()));
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller vouches for both places.
    unsafe {
        let (from, to) = (from.cast::<u64>(), to.cast::<u64>());
        to.write_volatile(from.read_unaligned());
        to.add(1).write_volatile(from.add(1).read_unaligned());
    }
}

/// What `past_caches` has written comes before all later stores of this thread.
#[inline]
pub fn arrive() {
    // SAFETY: every x86_64 has SSE.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_arrives_and_no_more() {
        #[repr(align(64))]
        struct Place([u8; 256]);
        let from: Vec<u8> = (0..=255).collect();
        for (begin, count) in [(0, 0), (0, 1), (0, 7), (1, 8), (0, 9), (3, 16), (8, 17), (0, 64), (5, 250)] {
            let mut to = Place([0xee; 256]);
            // SAFETY: both have 256 bytes.
            unsafe { super::past_caches(from.as_ptr().add(begin), to.0.as_mut_ptr(), count) };
            super::arrive();
            assert_eq!(to.0[..count], from[begin..begin + count]);
            assert!(to.0[count..].iter().all(|byte| *byte == 0xee));
        }
    }
}
