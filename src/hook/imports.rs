//! Where a module keeps the addresses of functions that it imports: the words that its relocations by symbol fill in.
//!
//! All four forms of tables are read: with addends and without (`DT_RELA`, `DT_REL`), and Android's packed ones of both
//! (`hook/packed.rs`). Tables of relative relocations alone (`DT_RELR`) have no symbols, so nothing in them is an import.

use super::packed::Packed;
use crate::unwind::dynamic::{self, Dynamic};
use crate::unwind::elf::{Image, half, quarter, word};
use crate::unwind::memory::Memory;
use crate::unwind::symbols::SYMBOL;

/// More relocations than the largest libraries have.
const MOST_RELOCATIONS: u64 = 1 << 22;
const WORD: usize = size_of::<usize>();
/// Longest name that is looked for, and the NUL behind it.
const NAME: usize = 24;

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
mod kind {
    pub const JUMP_SLOT: u32 = 7;
    pub const GLOB_DAT: u32 = 6;
    pub const ABSOLUTE: u32 = 1;
}
#[cfg(target_arch = "aarch64")]
mod kind {
    pub const JUMP_SLOT: u32 = 1026;
    pub const GLOB_DAT: u32 = 1025;
    pub const ABSOLUTE: u32 = 257;
}
#[cfg(target_arch = "arm")]
mod kind {
    pub const JUMP_SLOT: u32 = 22;
    pub const GLOB_DAT: u32 = 21;
    pub const ABSOLUTE: u32 = 2;
}
#[cfg(target_arch = "riscv64")]
mod kind {
    pub const JUMP_SLOT: u32 = 5;
    /// A word of the GOT has no type of its own: it is taken for a pointer, which is left alone if it was changed.
    pub const GLOB_DAT: u32 = JUMP_SLOT;
    pub const ABSOLUTE: u32 = 2;
}

/// One relocation, as all forms of tables tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Relocation {
    /// Where, as the file counts.
    pub offset: u64,
    /// Symbol and type.
    pub info: u64,
    /// What is added to the symbol's address, where the table tells it.
    pub addend: u64,
}

impl Relocation {
    fn symbol(&self) -> u64 {
        if WORD == 8 { self.info >> 32 } else { (self.info & 0xffff_ffff) >> 8 }
    }

    fn kind(&self) -> u32 {
        (self.info & if WORD == 8 { 0xffff_ffff } else { 0xff }) as u32
    }
}

/// What the program's code makes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The linker's own, for calls and addresses; with lazy binding it leads to a stub at first.
    Slot,
    /// A pointer of the program's, which it may have changed meanwhile.
    Pointer,
}

/// A word that holds an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import {
    /// Which of the names.
    pub name: usize,
    /// Where the word is in memory.
    pub at: u64,
    /// What it is for.
    pub used_as: Use,
}

/// Why a module's imports cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It has no symbols.
    Symbols,
    /// A table of its relocations is cut off or contradicts itself.
    Relocations,
}

/// Where the tables are.
#[derive(Default)]
struct Tables {
    rel: (u64, u64),
    rela: (u64, u64),
    packed_rel: (u64, u64),
    packed_rela: (u64, u64),
    slots: (u64, u64),
    slots_have_addends: bool,
}

impl Tables {
    fn read(image: &Image, memory: &impl Memory) -> Option<Tables> {
        let mut tables = Tables::default();
        dynamic::entries(image, memory, &mut |tag, value| match tag {
            2 => tables.slots.1 = value,
            7 => tables.rela.0 = dynamic::placed(image, value),
            8 => tables.rela.1 = value,
            17 => tables.rel.0 = dynamic::placed(image, value),
            18 => tables.rel.1 = value,
            20 => tables.slots_have_addends = value == 7,
            23 => tables.slots.0 = dynamic::placed(image, value),
            0x6000_000f => tables.packed_rel.0 = dynamic::placed(image, value),
            0x6000_0010 => tables.packed_rel.1 = value,
            0x6000_0011 => tables.packed_rela.0 = dynamic::placed(image, value),
            0x6000_0012 => tables.packed_rela.1 = value,
            _ => {}
        })?;
        Some(tables)
    }
}

/// Tells `found` each word of the module that holds one of the functions that are named and not its own.
pub fn each(
    image: &Image,
    memory: &impl Memory,
    names: &[&[u8]],
    found: &mut dyn FnMut(Import),
) -> Result<(), Unreadable> {
    let dynamic = Dynamic::read(image, memory).filter(|dynamic| dynamic.symbols != 0).ok_or(Unreadable::Symbols)?;
    let tables = Tables::read(image, memory).ok_or(Unreadable::Relocations)?;
    let mut see = |relocation: Relocation| {
        if let Some(import) = import(image, memory, &dynamic, names, relocation) {
            found(import);
        }
    };
    plain(image, memory, tables.rel, false, &mut see)?;
    plain(image, memory, tables.rela, true, &mut see)?;
    plain(image, memory, tables.slots, tables.slots_have_addends, &mut see)?;
    for (table, has_addends) in [(tables.packed_rel, false), (tables.packed_rela, true)] {
        if let Some((start, end)) = place(image, table)? {
            Packed::open(memory, start, end, has_addends)
                .and_then(|packed| packed.each(MOST_RELOCATIONS, &mut see))
                .ok_or(Unreadable::Relocations)?;
        }
    }
    Ok(())
}

/// A table's first byte and the one behind its end; `None`: there is no such table.
fn place(image: &Image, (start, size): (u64, u64)) -> Result<Option<(u64, u64)>, Unreadable> {
    if size == 0 {
        return Ok(None);
    }
    let end = start.checked_add(size).filter(|end| start != 0 && *end <= image.span.end);
    end.map(|end| Some((start, end))).ok_or(Unreadable::Relocations)
}

fn plain(
    image: &Image,
    memory: &impl Memory,
    table: (u64, u64),
    has_addends: bool,
    see: &mut dyn FnMut(Relocation),
) -> Result<(), Unreadable> {
    let Some((start, end)) = place(image, table)? else { return Ok(()) };
    let size = WORD * if has_addends { 3 } else { 2 };
    for index in 0..((end - start) / size as u64).min(MOST_RELOCATIONS) {
        let mut entry = [0; 3 * WORD];
        let entry = entry.get_mut(..size).unwrap_or_default();
        if !memory.read(start + index * size as u64, entry) {
            return Err(Unreadable::Relocations);
        }
        let at = |index: usize| word(entry, index * WORD).unwrap_or(0);
        see(Relocation { offset: at(0), info: at(1), addend: at(2) });
    }
    Ok(())
}

fn import(
    image: &Image,
    memory: &impl Memory,
    dynamic: &Dynamic,
    names: &[&[u8]],
    relocation: Relocation,
) -> Option<Import> {
    let kind = relocation.kind();
    let used_as = if kind == kind::JUMP_SLOT || kind == kind::GLOB_DAT {
        Use::Slot
    } else if kind == kind::ABSOLUTE {
        Use::Pointer
    } else {
        return None;
    };
    let at = image.bias.wrapping_add(relocation.offset);
    let lies_well = at.is_multiple_of(WORD as u64) && image.span.holds(at) && image.span.holds(at + WORD as u64 - 1);
    if relocation.symbol() == 0 || relocation.addend != 0 || !lies_well {
        return None;
    }
    let symbol = dynamic.symbols.checked_add(relocation.symbol().checked_mul(SYMBOL as u64)?)?;
    let symbol = image.span.holds(symbol).then(|| memory.bytes::<SYMBOL>(symbol))??;
    // One that is defined here is the module's own function.
    if quarter(&symbol, if WORD == 8 { 6 } else { 14 })? != 0 {
        return None;
    }
    let mut name = [0; NAME];
    let length = dynamic.strings().get(u64::from(half(&symbol, 0)?), memory, &mut name)?;
    let name = name.get(..length)?;
    let name = names.iter().position(|wanted| *wanted == name)?;
    Some(Import { name, at, used_as })
}
