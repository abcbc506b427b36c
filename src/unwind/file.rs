//! What only a module's file has: the symbols that are not needed to run it. Read through a `Memory` whose addresses are
//! offsets in the file, which may be damaged or made to deceive.

use super::elf::{self, BUILD_ID, Span, half, quarter, word};
use super::memory::Memory;
use super::symbols::{Function, SYMBOL, Strings, Table};

/// Is this process's word 64 bits wide? ELF lays its structures out by it.
const WIDE: bool = size_of::<usize>() == 8;
const HEADER: usize = if WIDE { 64 } else { 52 };
const PROGRAM_HEADER: usize = if WIDE { 56 } else { 32 };
const SECTION_HEADER: usize = if WIDE { 64 } else { 40 };
/// More than any linked file has.
const MOST_SECTIONS: u64 = 4096;
const MOST_SEGMENTS: u64 = 128;
/// So much of a table of symbols is searched, which are well over a million.
const MOST_BYTES: u64 = 32 << 20;

/// Where in the file the things are that are read.
#[derive(Clone, Copy, Debug)]
pub struct File {
    symbols: Option<Table>,
    build_id: Option<([u8; BUILD_ID], usize)>,
}

impl File {
    /// Reads the headers; `None` where that is no ELF file of this machine's kind.
    pub fn read(file: &impl Memory) -> Option<File> {
        let header = file.bytes::<HEADER>(0)?;
        let class = if WIDE { 2 } else { 1 };
        let order = if cfg!(target_endian = "little") { 1 } else { 2 };
        if !header.starts_with(&[0x7f, b'E', b'L', b'F', class, order]) {
            return None;
        }
        Some(File { symbols: symbols(file, &header), build_id: build_id(file, &header) })
    }

    /// Writes the build id in lower-case digits, as many as fit, and says how many digits those are; 0 where it has none.
    pub fn build_id(&self, out: &mut [u8]) -> usize {
        let id = self.build_id.as_ref().and_then(|(bytes, length)| bytes.get(..*length));
        elf::hexadecimal(id.unwrap_or_default(), out)
    }

    /// The function that an address lies in, which counts as the module's offsets do. See [`super::symbols::function`].
    pub fn function(&self, file: &impl Memory, address: u64, out: &mut [u8]) -> Option<Function> {
        self.symbols?.function(file, address, out)
    }
}

/// What is used of a section header.
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

impl Section {
    fn read(file: &impl Memory, table: u64, index: u64) -> Option<Section> {
        let bytes = file.bytes::<SECTION_HEADER>(table.checked_add(index.checked_mul(SECTION_HEADER as u64)?)?)?;
        let (offset, size, link) = if WIDE { (24, 32, 40) } else { (16, 20, 24) };
        Some(Section {
            kind: half(&bytes, 4)?,
            offset: word(&bytes, offset)?,
            size: word(&bytes, size)?,
            link: half(&bytes, link)?,
        })
    }
}

/// All symbols; those for the loader where there are no others.
fn symbols(file: &impl Memory, header: &[u8]) -> Option<Table> {
    const SYMBOLS: u32 = 2;
    const STRINGS: u32 = 3;
    const LOADERS_SYMBOLS: u32 = 11;
    let (table, size, count) = if WIDE { (40, 58, 60) } else { (32, 46, 48) };
    let table = word(header, table)?;
    if table == 0 || usize::from(quarter(header, size)?) != SECTION_HEADER {
        return None;
    }
    let count = match u64::from(quarter(header, count)?) {
        // Too many for the header: the first section tells.
        0 => Section::read(file, table, 0)?.size,
        count => count,
    };
    let count = count.min(MOST_SECTIONS);
    let mut found: Option<Section> = None;
    for index in 0..count {
        let section = Section::read(file, table, index)?;
        match section.kind {
            SYMBOLS => {
                found = Some(section);
                break;
            }
            LOADERS_SYMBOLS => found = found.or(Some(section)),
            _ => {}
        }
    }
    let found = found?;
    if u64::from(found.link) >= count {
        return None;
    }
    let strings = Section::read(file, table, found.link.into()).filter(|strings| strings.kind == STRINGS)?;
    Some(Table {
        symbols: found.offset,
        count: found.size.min(MOST_BYTES) / SYMBOL as u64,
        strings: Strings { start: strings.offset, size: strings.size },
    })
}

fn build_id(file: &impl Memory, header: &[u8]) -> Option<([u8; BUILD_ID], usize)> {
    const NOTE: u32 = 4;
    let (table, size, count) = if WIDE { (32, 54, 56) } else { (28, 42, 44) };
    let table = word(header, table)?;
    if usize::from(quarter(header, size)?) != PROGRAM_HEADER {
        return None;
    }
    let count = u64::from(quarter(header, count)?).min(MOST_SEGMENTS);
    let (offset, size) = if WIDE { (8, 32) } else { (4, 16) };
    for index in 0..count {
        let bytes = file.bytes::<PROGRAM_HEADER>(table.checked_add(index * PROGRAM_HEADER as u64)?)?;
        if half(&bytes, 0)? != NOTE {
            continue;
        }
        let start = word(&bytes, offset)?;
        let notes = Span { start, end: start.saturating_add(word(&bytes, size)?) };
        if let Some(id) = elf::build_id(file, notes) {
            return Some((id.bytes, id.length));
        }
    }
    None
}

#[cfg(all(test, target_pointer_width = "64"))]
#[path = "file_tests.rs"]
mod tests;
