//! Memory that is read without faulting.

/// A place to read from. Whoever implements it promises that no address makes `read` fault.
pub trait Memory {
    /// Fills `out` from `address`; `false`, with `out` in any state, where not all of it could be read.
    fn read(&self, address: u64, out: &mut [u8]) -> bool;

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
