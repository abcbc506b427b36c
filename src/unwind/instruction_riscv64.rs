//! Instructions of riscv64, as far as they move the stack pointer, keep a return address or go elsewhere.

use super::elf::Span;
use super::memory::Memory;

/// The return address.
pub const RA: u8 = 1;
/// The stack pointer.
pub const SP: u8 = 2;
/// The frame pointer.
pub const FP: u8 = 8;

/// A longer function isn't looked through.
const LONGEST_FUNCTION: u64 = 32 * 1024;
/// Bytes of code that are read at once.
const PIECE: usize = 256;

/// What an instruction does; of two and of four bytes alike. Register 0 is always zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `to` becomes `from` and so much.
    Add { to: u8, from: u8, by: i64 },
    /// `to` becomes `from` with another added or subtracted.
    Sum { to: u8, from: u8, with: u8, is_difference: bool },
    /// `to` becomes the instruction's own address and so much.
    Address { to: u8, by: i64 },
    /// Eight bytes from memory.
    Load { to: u8, base: u8, offset: i64 },
    /// Eight bytes to memory.
    Store { what: u8, base: u8, offset: i64 },
    /// Goes so far from itself; `link` becomes the address behind it.
    Jump { link: u8, by: i64 },
    /// The same to where a register says.
    JumpTo { link: u8, base: u8, offset: i64 },
    /// Goes elsewhere or not.
    Branch,
    /// Changes `to` in another way; 0 for what changes none.
    Other { to: u8 },
}

/// Bits `low` and up of `word`, as many as `count`, moved to `place`.
fn bits(word: u32, low: u32, count: u32, place: u32) -> i64 {
    i64::from(word >> low & ((1 << count) - 1)) << place
}

/// A number of `width` bits with its sign.
fn signed(value: i64, width: u32) -> i64 {
    value << (64 - width) >> (64 - width)
}

/// Bytes of the instruction that begins so.
fn length(word: u32) -> u64 {
    if word & 3 == 3 { 4 } else { 2 }
}

/// The instruction that begins with these bytes, and its length.
pub fn decode(word: u32) -> (Instruction, u64) {
    match length(word) {
        4 => (long(word), 4),
        length => (short(word & 0xffff), length),
    }
}

fn long(word: u32) -> Instruction {
    let register = |low: u32| bits(word, low, 5, 0) as u8;
    let (to, from, with) = (register(7), register(15), register(20));
    let immediate = || signed(bits(word, 20, 12, 0), 12);
    match (word & 0x7f, word >> 12 & 7) {
        (0x13 | 0x1b, 0) => Instruction::Add { to, from, by: immediate() },
        (0x37, _) => Instruction::Add { to, from: 0, by: signed(bits(word, 12, 20, 12), 32) },
        (0x17, _) => Instruction::Address { to, by: signed(bits(word, 12, 20, 12), 32) },
        (0x33, 0) if word >> 25 & !0x20 == 0 => Instruction::Sum { to, from, with, is_difference: word >> 30 & 1 == 1 },
        (0x03, 3) => Instruction::Load { to, base: from, offset: immediate() },
        (0x23, 3) => {
            let offset = signed(bits(word, 7, 5, 0) | bits(word, 25, 7, 5), 12);
            Instruction::Store { what: with, base: from, offset }
        }
        (0x6f, _) => {
            let by = bits(word, 21, 10, 1) | bits(word, 20, 1, 11) | bits(word, 12, 8, 12) | bits(word, 31, 1, 20);
            Instruction::Jump { link: to, by: signed(by, 21) }
        }
        (0x67, 0) => Instruction::JumpTo { link: to, base: from, offset: immediate() },
        (0x63, _) => Instruction::Branch,
        // Stores, those of floating point and vectors too, fences: they have something else where others name a register.
        (0x23 | 0x27 | 0x0f, _) => Instruction::Other { to: 0 },
        // What changes registers of floating point and vectors alone; but comparisons, conversions and moves give a plain one.
        (0x07 | 0x43 | 0x47 | 0x4b | 0x4f, _) => Instruction::Other { to: 0 },
        (0x53, _) if !matches!(word >> 27, 0x14 | 0x18 | 0x1c) => Instruction::Other { to: 0 },
        (0x57, kind) if !matches!(kind, 2 | 7) => Instruction::Other { to: 0 },
        _ => Instruction::Other { to },
    }
}

fn short(word: u32) -> Instruction {
    let register = |low: u32| bits(word, low, 5, 0) as u8;
    // One of eight that three bits name.
    let popular = |low: u32| 8 + bits(word, low, 3, 0) as u8;
    let immediate = || signed(bits(word, 2, 5, 0) | bits(word, 12, 1, 5), 6);
    let (to, with) = (register(7), register(2));
    match (word & 3, word >> 13) {
        (0, 0) => {
            let by = bits(word, 6, 1, 2) | bits(word, 5, 1, 3) | bits(word, 11, 2, 4) | bits(word, 7, 4, 6);
            Instruction::Add { to: popular(2), from: SP, by }
        }
        (0, 3) => {
            Instruction::Load { to: popular(2), base: popular(7), offset: bits(word, 10, 3, 3) | bits(word, 5, 2, 6) }
        }
        (0, 7) => Instruction::Store {
            what: popular(2),
            base: popular(7),
            offset: bits(word, 10, 3, 3) | bits(word, 5, 2, 6),
        },
        (0, 2) => Instruction::Other { to: popular(2) },
        (0, _) => Instruction::Other { to: 0 },
        (1, 0 | 1) => Instruction::Add { to, from: to, by: immediate() },
        (1, 2) => Instruction::Add { to, from: 0, by: immediate() },
        (1, 3) if to == SP => {
            let by = bits(word, 6, 1, 4)
                | bits(word, 2, 1, 5)
                | bits(word, 5, 1, 6)
                | bits(word, 3, 2, 7)
                | bits(word, 12, 1, 9);
            Instruction::Add { to, from: to, by: signed(by, 10) }
        }
        (1, 3) => Instruction::Add { to, from: 0, by: immediate() << 12 },
        (1, 4) => Instruction::Other { to: popular(7) },
        (1, 5) => {
            let by = bits(word, 3, 3, 1)
                | bits(word, 11, 1, 4)
                | bits(word, 2, 1, 5)
                | bits(word, 7, 1, 6)
                | bits(word, 6, 1, 7)
                | bits(word, 9, 2, 8)
                | bits(word, 8, 1, 10)
                | bits(word, 12, 1, 11);
            Instruction::Jump { link: 0, by: signed(by, 12) }
        }
        (1, _) => Instruction::Branch,
        (2, 3) => {
            let offset = bits(word, 5, 2, 3) | bits(word, 12, 1, 5) | bits(word, 2, 3, 6);
            Instruction::Load { to, base: SP, offset }
        }
        (2, 7) => Instruction::Store { what: with, base: SP, offset: bits(word, 10, 3, 3) | bits(word, 7, 3, 6) },
        (2, 4) => match (word >> 12 & 1, to, with) {
            (_, 0, _) => Instruction::Other { to: 0 },
            (link, base, 0) => Instruction::JumpTo { link: link as u8 * RA, base, offset: 0 },
            (0, to, from) => Instruction::Add { to, from, by: 0 },
            (_, to, with) => Instruction::Sum { to, from: to, with, is_difference: false },
        },
        (2, 0 | 2) => Instruction::Other { to },
        _ => Instruction::Other { to: 0 },
    }
}

/// Shows the instructions of a function with their addresses, until one is answered with `None`.
pub fn each(function: Span, memory: &impl Memory, mut show: impl FnMut(u64, Instruction) -> Option<()>) -> Option<()> {
    if function.end.checked_sub(function.start)? > LONGEST_FUNCTION {
        return None;
    }
    let mut at = function.start;
    while at < function.end {
        let mut bytes = [0; PIECE];
        let piece = bytes.get_mut(..usize::try_from(function.end - at).unwrap_or(PIECE).min(PIECE))?;
        if !memory.read(at, piece) {
            return None;
        }
        let mut rest = &*piece;
        while let Some(word) = first(rest) {
            let (instruction, length) = decode(word);
            let Some(behind) = rest.get(length as usize..) else { break };
            show(at, instruction)?;
            at = at.checked_add(length)?;
            rest = behind;
        }
        if rest.len() == piece.len() {
            return None;
        }
    }
    Some(())
}

/// As many bytes as an instruction may have, or as there are.
fn first(bytes: &[u8]) -> Option<u32> {
    let low = u16::from_le_bytes(*bytes.first_chunk()?);
    let whole = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    Some(whole.unwrap_or(low.into()))
}

fn at(address: u64, memory: &impl Memory) -> Option<(Instruction, u64)> {
    let low = u32::from(u16::from_le_bytes(memory.bytes(address)?));
    if length(low) == 2 { Some(decode(low)) } else { memory.u32(address).map(decode) }
}

/// The call that returns to `pc`: what it calls, where it says that itself.
pub fn call_before(pc: u64, memory: &impl Memory) -> Option<Option<u64>> {
    let place = pc.checked_sub(4)?;
    match memory.u32(place).filter(|word| length(*word) == 4).map(long) {
        Some(Instruction::Jump { link: RA, by }) => return Some(Some(place.wrapping_add_signed(by))),
        Some(Instruction::JumpTo { link: RA, base, offset }) => {
            let before = place.checked_sub(4)?;
            return Some(match memory.u32(before).filter(|word| length(*word) == 4).map(long) {
                Some(Instruction::Address { to, by }) if to == base => {
                    Some(before.wrapping_add_signed(by).wrapping_add_signed(offset))
                }
                _ => None,
            });
        }
        _ => {}
    }
    let last = u16::from_le_bytes(memory.bytes(pc.checked_sub(2)?)?);
    matches!(decode(last.into()), (Instruction::JumpTo { link: RA, .. }, 2)).then_some(None)
}

/// Shows all direct calls of a function: where their last instruction is, which has four bytes, and what they call.
pub fn each_call(function: Span, memory: &impl Memory, mut show: impl FnMut(u64, u64)) -> Option<()> {
    let mut address = None;
    each(function, memory, |at, instruction| {
        match (instruction, address.take()) {
            (Instruction::Jump { link: RA, by }, _) => show(at, at.wrapping_add_signed(by)),
            (Instruction::JumpTo { link: RA, base, offset }, Some((to, value))) if to == base => {
                show(at, u64::wrapping_add_signed(value, offset));
            }
            (Instruction::Address { to, by }, _) => address = Some((to, at.wrapping_add_signed(by))),
            _ => {}
        }
        Some(())
    })
}

/// A function that only prepares arguments and jumps to another one has so many instructions.
const SHORT: usize = 4;

/// Where a stub leads: `auipc t3; ld t3, (t3); jalr t1, t3`; or a function that soon jumps to another one.
pub fn stub_target(stub: u64, memory: &impl Memory) -> Option<u64> {
    let mut place = stub;
    let mut known: Option<(u8, u64)> = None;
    for _ in 0..SHORT {
        let (instruction, length) = at(place, memory)?;
        match instruction {
            Instruction::Address { to, by } => known = Some((to, place.wrapping_add_signed(by))),
            Instruction::Load { to, base, offset } if known.is_some_and(|(from, _)| from == base && to == base) => {
                let slot = known?.1.wrapping_add_signed(offset);
                let next = at(place.checked_add(length)?, memory)?.0;
                let goes_on = matches!(next, Instruction::JumpTo { link, base, offset: 0 } if base == to && link != RA);
                return if goes_on { memory.word(slot) } else { None };
            }
            Instruction::Jump { link: 0, by } => return Some(place.wrapping_add_signed(by)),
            Instruction::JumpTo { link: 0, base, offset } => {
                return known.filter(|(to, _)| *to == base).map(|(_, value)| value.wrapping_add_signed(offset));
            }
            // Anything else that goes elsewhere, or a frame: a function like any other.
            Instruction::Jump { .. } | Instruction::JumpTo { .. } | Instruction::Branch => return None,
            Instruction::Add { to: SP, .. } | Instruction::Store { base: SP, .. } => return None,
            _ => {}
        }
        place = place.checked_add(length)?;
    }
    None
}

#[cfg(test)]
#[path = "instruction_riscv64_tests.rs"]
pub(super) mod tests;
