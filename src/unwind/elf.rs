//! ELF headers as the loader mapped them, read softly and with every count bounded.

use super::memory::Memory;

/// Addresses from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
}

impl Span {
    /// The address lies in it.
    pub fn holds(self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// It has no address.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// `length` bytes from `start`, if they lie in `self`; else nothing.
    fn part(self, start: u64, length: u64) -> Span {
        match start.checked_add(length) {
            Some(end) if self.start <= start && end <= self.end => Span { start, end },
            _ => Span::default(),
        }
    }
}

/// Most bytes of a build id that are kept; linkers write 8, 16 or 20.
pub const BUILD_ID: usize = 32;

/// A mapped ELF file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// What is added to an address in the file to have the one in memory.
    pub bias: u64,
    /// From the first to the last byte of its segments.
    pub span: Span,
    /// `.eh_frame_hdr`; empty where there is none.
    pub eh_frame_hdr: Span,
    /// `.ARM.exidx`; empty where there is none, and on every other processor.
    pub exidx: Span,
    /// The dynamic section; empty where there is none.
    pub dynamic: Span,
    /// Where in the file code begins, less where that is in memory.
    code_offset: u64,
    /// The segments of notes, the first two.
    notes: [Span; 2],
}

/// Is this process's word 64 bits wide? ELF lays its structures out by it.
const WIDE: bool = size_of::<usize>() == 8;
const HEADER: usize = if WIDE { 64 } else { 52 };
const PROGRAM_HEADER: usize = if WIDE { 56 } else { 32 };
/// More program headers than any linker makes.
const MOST_HEADERS: u16 = 128;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const NOTE: u32 = 4;
const EXECUTE: u32 = 1;
const EH_FRAME: u32 = 0x6474_e550;
const EXIDX: u32 = 0x7000_0001;

/// The word at a place of a structure.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<{ size_of::<usize>() }>()?;
    Some(usize::from_ne_bytes(*bytes) as u64)
}

/// The four bytes at a place of a structure.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The two bytes at a place of a structure.
pub(crate) fn quarter(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// What is used of a program header.
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Segment {
    fn read(memory: &impl Memory, at: u64) -> Option<Segment> {
        let bytes = memory.bytes::<PROGRAM_HEADER>(at)?;
        let (flags, offset, address, size) = if WIDE { (4, 8, 16, 40) } else { (24, 4, 8, 20) };
        Some(Segment {
            kind: half(&bytes, 0)?,
            flags: half(&bytes, flags)?,
            offset: word(&bytes, offset)?,
            address: word(&bytes, address)?,
            size: word(&bytes, size)?,
        })
    }
}

impl Image {
    /// Reads the headers of the file whose first byte is mapped at `base`; `None` where that is no ELF file of this
    /// machine's kind or its headers contradict themselves.
    pub fn read(memory: &impl Memory, base: u64) -> Option<Image> {
        let header = memory.bytes::<HEADER>(base)?;
        let class = if WIDE { 2 } else { 1 };
        let order = if cfg!(target_endian = "little") { 1 } else { 2 };
        if !header.starts_with(&[0x7f, b'E', b'L', b'F', class, order]) || !matches!(quarter(&header, 16)?, 2 | 3) {
            return None;
        }
        let (table, size, count) = if WIDE { (32, 54, 56) } else { (28, 42, 44) };
        let table = base.checked_add(word(&header, table)?)?;
        let count = quarter(&header, count)?;
        if usize::from(quarter(&header, size)?) != PROGRAM_HEADER || count > MOST_HEADERS {
            return None;
        }
        let segment = |index: u16| Segment::read(memory, table.checked_add(u64::from(index) * PROGRAM_HEADER as u64)?);
        let mut image = Image::loaded(base, count, segment)?;
        for index in 0..count {
            let found = segment(index)?;
            let part = image.span.part(image.bias.wrapping_add(found.address), found.size);
            match found.kind {
                LOAD if found.flags & EXECUTE != 0 && image.code_offset == 0 => {
                    image.code_offset = found.offset.wrapping_sub(image.bias.wrapping_add(found.address));
                }
                DYNAMIC => image.dynamic = part,
                EH_FRAME => image.eh_frame_hdr = part,
                EXIDX if cfg!(target_arch = "arm") => image.exidx = part,
                NOTE => {
                    if let Some(place) = image.notes.iter_mut().find(|place| place.is_empty()) {
                        *place = part;
                    }
                }
                _ => {}
            }
        }
        Some(image)
    }

    /// Code at `address` comes from this place of the file, as the headers have it. The beginning of a file may be mapped
    /// once more with the code behind it, where that shares a page with the headers.
    pub(super) fn has_code(&self, address: u64, offset: u64) -> bool {
        self.code_offset.wrapping_add(address) == offset
    }

    /// Bias and span, which need all loaded segments.
    fn loaded(base: u64, count: u16, segment: impl Fn(u16) -> Option<Segment>) -> Option<Image> {
        let mut image: Option<Image> = None;
        for index in 0..count {
            let found = segment(index)?;
            if found.kind != LOAD || found.size == 0 {
                continue;
            }
            // The first segment is the one with the headers, which lie at `base`.
            let bias =
                image.map_or(base.wrapping_sub(found.address.wrapping_sub(found.offset)), |image: Image| image.bias);
            let start = bias.wrapping_add(found.address);
            let end = start.checked_add(found.size)?;
            let span = image.map_or(Span { start: start.min(base), end }, |image| Span {
                start: image.span.start.min(start),
                end: image.span.end.max(end),
            });
            image = Some(Image { bias, span, ..Image::default() });
        }
        image
    }

    /// The build id's bytes, as many as there are.
    pub fn build_id(&self, memory: &impl Memory) -> Option<([u8; BUILD_ID], usize)> {
        self.notes.iter().find_map(|notes| build_id(memory, *notes)).map(|id| (id.bytes, id.length))
    }

    /// The build id, and where it is.
    pub(super) fn build_id_note(&self, memory: &impl Memory) -> Option<BuildId> {
        self.notes.iter().find_map(|notes| build_id(memory, *notes))
    }
}

/// Writes bytes as lower-case digits, as many as fit, and says how many digits those are.
pub(super) fn hexadecimal(bytes: &[u8], out: &mut [u8]) -> usize {
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digits = nibbles.map(|value| if value < 10 { b'0' + value } else { b'a' - 10 + value });
    out.iter_mut().zip(digits).map(|(to, digit)| *to = digit).count()
}

/// A build id that was found.
pub(super) struct BuildId {
    /// Where.
    pub at: u64,
    /// Its bytes.
    pub bytes: [u8; BUILD_ID],
    /// How many there are.
    pub length: usize,
}

/// The GNU build id among these notes.
pub(super) fn build_id(memory: &impl Memory, notes: Span) -> Option<BuildId> {
    const GNU_BUILD_ID: u32 = 3;
    let mut at = notes.start;
    // A segment has a handful of notes; the bound is for one that is garbage.
    for _ in 0..32 {
        let header = memory.bytes::<12>(at)?;
        let (name, size, kind) = (half(&header, 0)?, half(&header, 4)?, half(&header, 8)?);
        let padded = |length: u32| (u64::from(length) + 3) & !3;
        let bytes = at.checked_add(12)?.checked_add(padded(name))?;
        let next = bytes.checked_add(padded(size))?;
        if next > notes.end {
            return None;
        }
        if kind == GNU_BUILD_ID && name == 4 && memory.bytes::<4>(at + 12)? == *b"GNU\0" {
            let mut id = [0; BUILD_ID];
            let length = usize::try_from(size).ok()?.min(BUILD_ID);
            return memory.read(bytes, id.get_mut(..length)?).then_some(BuildId { at: bytes, bytes: id, length });
        }
        at = next;
    }
    None
}

#[cfg(all(test, target_pointer_width = "64"))]
#[path = "elf_tests.rs"]
mod tests;
