//! Memory that is read without faulting.

use crate::sys::memory::OwnMemory;

/// A place to read from. Whoever implements it promises that no address makes `read` fault.
pub trait Memory {
    /// Fills `out` from `address`; `false`, with `out` in any state, where not all of it could be read.
    fn read(&self, address: u64, out: &mut [u8]) -> bool;

    /// Fills `out` with pieces, each an address and a length, one behind the other; else as `read`.
    fn read_pieces(&self, pieces: &[(u64, usize)], out: &mut [u8]) -> bool {
        let mut rest = out;
        pieces.iter().all(|(address, length)| {
            let Some((piece, behind)) = core::mem::take(&mut rest).split_at_mut_checked(*length) else { return false };
            rest = behind;
            self.read(*address, piece)
        })
    }

    /// So many bytes.
    fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes).then_some(bytes)
    }

    /// One machine word.
    fn word(&self, address: u64) -> Option<u64> {
        self.bytes(address).map(|bytes| usize::from_ne_bytes(bytes) as u64)
    }

    /// Four bytes.
    fn u32(&self, address: u64) -> Option<u32> {
        self.bytes(address).map(u32::from_ne_bytes)
    }
}

impl<M: Memory> Memory for &M {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        (**self).read(address, out)
    }
}

impl<M: Memory> Memory for &mut M {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        (**self).read(address, out)
    }
}

/// A copied piece of memory before the memory it was copied from: what the piece holds is read from it, the rest is not.
pub struct Copied<'a, M> {
    /// Address that the first byte was copied from.
    pub base: u64,
    /// The copy.
    pub bytes: &'a [u8],
    /// Everything else.
    pub rest: M,
}

impl<M: Memory> Memory for Copied<'_, M> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let piece = address
            .checked_sub(self.base)
            .and_then(|start| usize::try_from(start).ok())
            .and_then(|start| self.bytes.get(start..start.checked_add(out.len())?));
        match piece {
            Some(piece) => {
                out.copy_from_slice(piece);
                true
            }
            None => self.rest.read(address, out),
        }
    }
}

impl Memory for OwnMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.copy(address, out) == out.len()
    }

    fn read_pieces(&self, pieces: &[(u64, usize)], out: &mut [u8]) -> bool {
        self.copy_pieces(pieces, out)
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    #[test]
    fn reads_itself_and_fails_softly() {
        let memory = OwnMemory::new();
        let value = 0x1234_5678_9abc_def0_u64;
        assert_eq!(memory.bytes(&raw const value as u64).map(u64::from_ne_bytes), Some(value));
        for wrong in [0, 1, 4095, 0x0000_8000_0000_0000, 0xffff_8000_0000_0000, u64::MAX - 7, u64::MAX] {
            assert_eq!(memory.bytes::<8>(wrong), None, "{wrong:#x}");
        }
    }

    #[test]
    fn pieces_are_read_one_behind_the_other_or_not_at_all() {
        struct Slowly(OwnMemory);
        impl Memory for Slowly {
            fn read(&self, address: u64, out: &mut [u8]) -> bool {
                self.0.read(address, out)
            }
        }
        let (first, second) = ([1_u8, 2, 3], [4_u8, 5]);
        let pieces = [(first.as_ptr().addr() as u64, 3), (second.as_ptr().addr() as u64, 2)];
        let whole = [pieces, pieces].concat();
        let mut bad = whole.clone();
        bad[2].0 = 1;
        for length in 0..=4 {
            let size = whole[..length].iter().map(|piece| piece.1).sum();
            let expected = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5];
            let memory = OwnMemory::new();
            let (mut out, mut other) = ([9_u8; 10], [9_u8; 10]);
            assert!(memory.read_pieces(&whole[..length], &mut out[..size]));
            assert!(Slowly(memory).read_pieces(&whole[..length], &mut other[..size]));
            assert_eq!((&out[..size], &other[..size]), (&expected[..size], &expected[..size]));
            assert!(out[size..].iter().chain(&other[size..]).all(|byte| *byte == 9));
            assert_eq!(memory.read_pieces(&bad[..length], &mut out[..size]), length < 3);
            assert_eq!(Slowly(memory).read_pieces(&bad[..length], &mut out[..size]), length < 3);
        }
    }

    #[test]
    fn a_piece_that_ends_in_nothing_is_not_read() {
        // Behind the end of its file a page cannot be read by anybody.
        // SAFETY: a fresh mapping of two pages of a file of one.
        let page = unsafe {
            let file = libc::syscall(libc::SYS_memfd_create, c"one page".as_ptr(), 0_usize) as i32;
            assert_eq!(libc::ftruncate(file, 4096), 0);
            let page = libc::mmap(core::ptr::null_mut(), 8192, libc::PROT_READ, libc::MAP_SHARED, file, 0);
            assert_ne!(page, libc::MAP_FAILED);
            libc::close(file);
            page
        };
        let memory = OwnMemory::new();
        assert!(memory.bytes::<16>(page as u64 + 4080).is_some());
        assert!(memory.bytes::<16>(page as u64 + 4088).is_none());
        // SAFETY: the mapping made above, which nobody refers to any more.
        unsafe { libc::munmap(page, 8192) };
    }
}
