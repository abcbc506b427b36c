//! Copying in the signal handler.
#![allow(unsafe_code)]

/// Copies bytes by plain loads and, where the processor has them, stores that go past its caches: whoever has the place in
/// another processor's cache loses it without handing it over, which costs a third of taking it from there. What was
/// written is seen by others after `arrive`.
///
/// Not by `memcpy`, which may be another: a sanitizer's, which would object to a stack being read across its frames, or one
/// that is only bound when it is first called.
///
/// # Safety
/// `from` is readable and `to` writable for `count` bytes, they do not overlap, and `to` is aligned to 16 bytes.
#[inline]
pub unsafe fn past_caches(from: *const u8, to: *mut u8, count: usize) {
    const UNIT: usize = if cfg!(target_arch = "x86_64") { 64 } else { size_of::<usize>() };
    for at in (0..count / UNIT * UNIT).step_by(UNIT) {
        // SAFETY: the caller vouches for both places.
        unsafe { unit(from.add(at), to.add(at)) };
    }
    for byte in count / UNIT * UNIT..count {
        // SAFETY: as above.
        unsafe { to.add(byte).write_volatile(from.add(byte).read_volatile()) };
    }
}

/// One line of the cache: stores that fill it one after the other leave as one.
///
/// # Safety
/// As `past_caches`, for 64 bytes.
#[cfg(target_arch = "x86_64")]
unsafe fn unit(from: *const u8, to: *mut u8) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    // SAFETY: the caller vouches for both places.
    unsafe {
        let from: [_; 4] = core::array::from_fn(|quarter| _mm_loadu_si128(from.cast::<__m128i>().add(quarter)));
        for (quarter, value) in from.into_iter().enumerate() {
            _mm_stream_si128(to.cast::<__m128i>().add(quarter), value);
        }
    }
}

/// One word.
///
/// # Safety
/// As `past_caches`, for a word.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn unit(from: *const u8, to: *mut u8) {
    // SAFETY: the caller vouches for both places.
    unsafe { to.cast::<usize>().write_volatile(from.cast::<usize>().read_unaligned()) };
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
