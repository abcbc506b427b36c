//! The dynamic section: where a module's symbols and its own name are.

use super::elf::{Image, word};
use super::memory::Memory;
use super::symbols::Strings;

/// Entries that are looked at; a library has some thirty.
const MOST_ENTRIES: u64 = 256;
/// Symbols that are looked at, of which the largest libraries have some hundred thousand.
const MOST_SYMBOLS: u64 = 1 << 20;
const WORD: u64 = size_of::<usize>() as u64;

/// What is used of a dynamic section. Addresses are in memory, 0 where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dynamic {
    /// The symbols.
    pub symbols: u64,
    /// The strings.
    pub strings: u64,
    /// Size of the strings.
    pub strings_size: u64,
    /// Where among the strings the library's own name is.
    name: Option<u64>,
    hash: u64,
    gnu_hash: u64,
}

impl Dynamic {
    /// Reads the section anew: a loader may have relocated it since the image was found.
    pub fn read(image: &Image, memory: &impl Memory) -> Option<Dynamic> {
        const HASH: u64 = 4;
        const STRINGS: u64 = 5;
        const SYMBOLS: u64 = 6;
        const STRINGS_SIZE: u64 = 10;
        const NAME: u64 = 14;
        const GNU_HASH: u64 = 0x6fff_fef5;
        let mut found = Dynamic::default();
        entries(image, memory, &mut |tag, value| match tag {
            HASH => found.hash = placed(image, value),
            STRINGS => found.strings = placed(image, value),
            SYMBOLS => found.symbols = placed(image, value),
            STRINGS_SIZE => found.strings_size = value,
            NAME => found.name = Some(value),
            GNU_HASH => found.gnu_hash = placed(image, value),
            _ => {}
        })?;
        found.strings_size = found.strings_size.min(image.span.end.saturating_sub(found.strings));
        (found.strings != 0).then_some(found)
    }

    /// Writes the library's own name and says its length.
    pub fn name(&self, memory: &impl Memory, out: &mut [u8]) -> Option<usize> {
        self.strings().get(self.name?, memory, out)
    }

    /// The strings.
    pub(crate) fn strings(&self) -> Strings {
        Strings { start: self.strings, size: self.strings_size }
    }

    /// How many symbols there are. Only the hash tables tell.
    pub fn symbol_count(&self, memory: &impl Memory) -> Option<u64> {
        let count = match (self.hash, self.gnu_hash) {
            (0, 0) => None,
            (0, table) => gnu_count(memory, table),
            (table, _) => memory.u32(table.checked_add(4)?).map(u64::from),
        };
        count.map(|count| count.min(MOST_SYMBOLS))
    }
}

/// Goes through the entries of a dynamic section, tag and value, as far as they can be read; `None`: not to their end.
pub fn entries(image: &Image, memory: &impl Memory, each: &mut dyn FnMut(u64, u64)) -> Option<()> {
    for index in 0..MOST_ENTRIES {
        let at = image.dynamic.start.checked_add(index * 2 * WORD)?;
        if at >= image.dynamic.end {
            break;
        }
        let entry = memory.bytes::<{ 2 * size_of::<usize>() }>(at)?;
        let (tag, value) = (word(&entry, 0)?, word(&entry, size_of::<usize>())?);
        if tag == 0 {
            break;
        }
        each(tag, value);
    }
    Some(())
}

/// Where an address that the section tells is in memory, 0 for one outside of the module.
///
/// Loaders that relocate the section's addresses and loaders that don't are told apart by where the address points.
#[inline(never)]
pub fn placed(image: &Image, value: u64) -> u64 {
    let moved = image.bias.wrapping_add(value);
    [value, moved].into_iter().find(|address| image.span.holds(*address)).unwrap_or(0)
}

/// The count by a GNU hash table: the highest start of a chain, and on to that chain's end.
fn gnu_count(memory: &impl Memory, table: u64) -> Option<u64> {
    let (buckets, first) = (memory.u32(table)?, u64::from(memory.u32(table.checked_add(4)?)?));
    let bloom = u64::from(memory.u32(table.checked_add(8)?)?).checked_mul(WORD)?;
    let start = table.checked_add(16)?.checked_add(bloom)?;
    let end = start.checked_add(u64::from(buckets).min(MOST_SYMBOLS) * 4)?;
    let mut last = 0;
    let mut at = start;
    while at < end {
        let mut chunk = [0; 2048];
        let chunk = chunk.get_mut(..usize::try_from(end - at).unwrap_or(usize::MAX).min(2048))?;
        if !memory.read(at, chunk) {
            return None;
        }
        let highest = chunk.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).max().unwrap_or(0);
        last = last.max(u64::from(highest));
        at += chunk.len() as u64;
    }
    if last < first {
        return Some(first);
    }
    for index in last..last.saturating_add(MOST_SYMBOLS) {
        let link = memory.u32(end.checked_add((index - first).checked_mul(4)?)?)?;
        if link & 1 == 1 {
            return Some(index + 1);
        }
    }
    None
}
