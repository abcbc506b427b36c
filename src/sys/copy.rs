//! Copying in the signal handler.
#![allow(unsafe_code)]

/// Copies bytes as the processor's own instructions do it. `memcpy` may be another: a sanitizer's, which would object to a
/// stack being read across its frames, or one that is only bound when it is first called.
///
/// # Safety
/// `from` is readable and `to` writable for `count` bytes, and they do not overlap.
#[inline]
pub unsafe fn bytes(from: *const u8, to: *mut u8, count: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for both places; the direction flag is clear by the ABI.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") count => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let words = count / size_of::<usize>();
        for word in 0..words {
            // SAFETY: the caller vouches for both places.
            unsafe {
                let value = from.cast::<usize>().add(word).read_volatile();
                to.cast::<usize>().add(word).write_unaligned(value);
            }
        }
        for byte in words * size_of::<usize>()..count {
            // SAFETY: as above.
            unsafe { to.add(byte).write_volatile(from.add(byte).read_volatile()) };
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_arrives_and_no_more() {
        let from: Vec<u8> = (0..=255).collect();
        for count in [0, 1, 7, 8, 9, 64, 250] {
            let mut to = vec![0xee; 256];
            // SAFETY: both have 256 bytes.
            unsafe { super::bytes(from.as_ptr(), to.as_mut_ptr(), count) };
            assert_eq!(to[..count], from[..count]);
            assert!(to[count..].iter().all(|byte| *byte == 0xee));
        }
    }
}
