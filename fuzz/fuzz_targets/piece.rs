//! Memory that is there in pieces.

use blockcanary::unwind::memory::Memory;

/// Bytes at an address, and whatever else.
pub struct Pieces<'p>(pub &'p [(u64, &'p [u8])]);

impl Memory for Pieces<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.0.iter().any(|(base, bytes)| {
            let piece = address.checked_sub(*base).and_then(|start| {
                let start = usize::try_from(start).ok()?;
                bytes.get(start..start.checked_add(out.len())?)
            });
            piece.map(|piece| out.copy_from_slice(piece)).is_some()
        })
    }
}
