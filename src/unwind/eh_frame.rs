//! Finds the unwind entry of a pc by `.eh_frame_hdr` and copies it out of memory that may vanish at any time.

use super::cfi::Error;
use super::elf::{Image, Span};
use super::memory::Memory;

/// Room for an entry (FDE) and what it shares with others (CIE). Of half a million entries looked at, a hundred in one
/// compiler were larger, and no system library's or engine's.
const BYTES: usize = 8192;

/// A copied entry, laid out as a section of its own: first the CIE, then the FDE.
pub struct Entry {
    bytes: [u8; BYTES],
    /// The entry as a section.
    length: usize,
    /// Where in it the FDE is.
    pub fde: usize,
    /// The address that its first byte would have in memory for the FDE to lie where it did.
    pub base: u64,
}

impl Entry {
    /// Room for an entry.
    pub const fn new() -> Entry {
        Entry { bytes: [0; BYTES], length: 0, fde: 0, base: 0 }
    }

    /// The section.
    pub fn section(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Copies the entry that `.eh_frame_hdr` names for this pc. Whether it covers the pc is for the caller to look at.
    pub fn load(&mut self, image: &Image, memory: &impl Memory, pc: u64) -> Result<(), Error> {
        self.length = 0;
        let (_, fde) = find(image.eh_frame_hdr, memory, pc)?;
        let fde_length = length(image.span, memory, fde)?;
        let link = fde.wrapping_add(4);
        let distance = memory.u32(link).ok_or(Error::Corrupt)?;
        let cie = link.wrapping_sub(u64::from(distance));
        // 0 is the mark of a CIE.
        if distance == 0 {
            return Err(Error::Corrupt);
        }
        let cie_length = length(image.span, memory, cie)?;
        let total = cie_length.saturating_add(fde_length);
        let place = self.bytes.get_mut(..total).ok_or(Error::TooLong)?;
        let (cie_bytes, fde_bytes) = place.split_at_mut_checked(cie_length).ok_or(Error::Corrupt)?;
        if !memory.read(cie, cie_bytes) || !memory.read(fde, fde_bytes) {
            return Err(Error::Corrupt);
        }
        // The distance to the CIE is another one here.
        let distance = u32::try_from(cie_length + 4).map_err(|_| Error::TooLong)?;
        fde_bytes.get_mut(4..8).ok_or(Error::Corrupt)?.copy_from_slice(&distance.to_ne_bytes());
        (self.length, self.fde, self.base) = (total, cie_length, fde.wrapping_sub(cie_length as u64));
        Ok(())
    }
}

impl Default for Entry {
    fn default() -> Entry {
        Entry::new()
    }
}

/// How long the entry at `address` is, its length field included. The 64-bit form is not used by any linker here.
fn length(span: Span, memory: &impl Memory, address: u64) -> Result<usize, Error> {
    let length = memory.u32(address).filter(|_| span.holds(address)).ok_or(Error::Corrupt)?;
    if (4..0xffff_fff0).contains(&length) { Ok(length as usize + 4) } else { Err(Error::Corrupt) }
}

/// Size of a value in this pointer encoding.
fn size(encoding: u8) -> Option<u64> {
    match encoding & 0xf {
        _ if encoding == 0xff => Some(0),
        0x0 => Some(size_of::<usize>() as u64),
        0x2 | 0xa => Some(2),
        0x3 | 0xb => Some(4),
        0x4 | 0xc => Some(8),
        _ => None,
    }
}

/// The begin of the last function that begins at or before `pc` and the address of its FDE, from the sorted table.
fn find(hdr: Span, memory: &impl Memory, pc: u64) -> Result<(u64, u64), Error> {
    if hdr.is_empty() {
        return Err(Error::NoTable);
    }
    let [version, pointer, count_encoding, table] = memory.bytes::<4>(hdr.start).ok_or(Error::Corrupt)?;
    // Both columns relative to the header: 4 bytes each, or 8 in files of more than 2 GiB.
    let width = match (version, table) {
        (1, 0x3b) => 4,
        (1, 0x3c) => 8,
        (1, _) => return Err(Error::NoTable),
        _ => return Err(Error::Corrupt),
    };
    let count_at = hdr.start + 4 + size(pointer).ok_or(Error::Corrupt)?;
    let count = match size(count_encoding).ok_or(Error::Corrupt)? {
        0 => return Err(Error::NoTable),
        4 => memory.u32(count_at).map(u64::from),
        8 => memory.bytes(count_at).map(u64::from_ne_bytes),
        _ => None,
    };
    let rows = count_at.saturating_add(size(count_encoding).unwrap_or(0));
    let count = count.ok_or(Error::Corrupt)?.min(hdr.end.saturating_sub(rows) / (2 * width));
    let value = |index: u64| {
        let at = rows + index * width;
        let relative = match width {
            4 => i64::from(memory.u32(at)? as i32),
            _ => i64::from_ne_bytes(memory.bytes(at)?),
        };
        Some(hdr.start.wrapping_add_signed(relative))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if value(2 * middle).ok_or(Error::Corrupt)? <= pc {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let row = low.checked_sub(1).ok_or(Error::NoEntry)?;
    value(2 * row).zip(value(2 * row + 1)).ok_or(Error::Corrupt)
}
