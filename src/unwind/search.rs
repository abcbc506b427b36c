//! The frame pointer of a function, where only its pc and its stack pointer are known.
//!
//! A thread that waits in the kernel tells no more than those two. Two rules find the rest, and nothing else does: what
//! merely looks like a frame record is, more often than one would think, one of a function that has long returned.

use super::call::{self, Call};
use super::elf::Span;
use super::memory::Memory;
use super::modules::ModuleTable;
use super::registers::Registers;

const WORD: u64 = size_of::<usize>() as u64;
/// Stack that is searched for a record.
const FARTHEST: u64 = 64 * 1024;
/// The stack is read in pieces of so many records.
const PIECE: usize = 32;
/// Frame records lie at multiples of this.
const RECORD: usize = 2 * size_of::<usize>();

/// A frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where the function's frame record is.
    pub frame_pointer: u64,
    /// The code itself says so, not only what lies on the stack.
    pub is_certain: bool,
}

/// The frame pointer of `function`, which is at `registers.pc`, with its record within `reach`.
pub fn frame_pointer(
    registers: &Registers,
    function: Span,
    memory: &impl Memory,
    modules: &ModuleTable,
    reach: Span,
) -> Option<Found> {
    let place = Place { sp: registers.sp, start: function.start, memory, modules, reach };
    if let Some(frame_pointer) = by_code(registers, function, memory).filter(|record| place.fits(*record)) {
        return Some(Found { frame_pointer, is_certain: true });
    }
    Some(Found { frame_pointer: place.only_record()?, is_certain: false })
}

/// By the instructions that made the frame.
#[cfg(target_arch = "x86_64")]
fn by_code(registers: &Registers, function: Span, memory: &impl Memory) -> Option<u64> {
    let depth = super::prologue::depth(function, registers.pc, memory)?;
    registers.sp.checked_add(depth)
}

#[cfg(not(target_arch = "x86_64"))]
fn by_code(_: &Registers, _: Span, _: &impl Memory) -> Option<u64> {
    None
}

struct Place<'p, M> {
    sp: u64,
    start: u64,
    memory: &'p M,
    modules: &'p ModuleTable<'p>,
    reach: Span,
}

impl<M: Memory> Place<'_, M> {
    /// Does the record's return address lie behind a call that may be one of this function?
    fn fits(&self, record: u64) -> bool {
        let inside = record >= self.sp && record.is_multiple_of(WORD);
        let above = record.checked_add(2 * WORD).is_some_and(|above| above <= self.reach.end);
        let called = || {
            let pc = super::arch::code_address(self.memory.word(record + WORD)?);
            call::before(pc, self.memory, self.modules)
        };
        inside && above && called().is_some_and(|called| called == Call::Indirect || self.is_mine(called))
    }

    fn is_mine(&self, called: Call) -> bool {
        call::is_of(called, self.start, self.memory, self.modules)
    }

    /// By the stack: the one record whose return address lies behind a direct call of this very function. Where there
    /// are two, one of them is a left-over, and nothing tells which.
    fn only_record(&self) -> Option<u64> {
        let start = self.sp.checked_next_multiple_of(RECORD as u64)?;
        let end = self.reach.end.min(start.saturating_add(FARTHEST));
        let mut found = None;
        let mut at = start;
        while at.saturating_add(RECORD as u64) <= end {
            let mut bytes = [0; PIECE * RECORD];
            let records = usize::try_from((end - at) / RECORD as u64).unwrap_or(PIECE).min(PIECE);
            let piece = bytes.get_mut(..records * RECORD)?;
            if !self.memory.read(at, piece) {
                break;
            }
            for record in piece.as_chunks::<RECORD>().0 {
                let (_, saved) = record.as_chunks::<{ size_of::<usize>() }>().0.split_first()?;
                let pc = super::arch::code_address(usize::from_ne_bytes(*saved.first()?) as u64);
                if call::before(pc, self.memory, self.modules).is_some_and(|called| self.is_mine(called)) {
                    if found.is_some() {
                        return None;
                    }
                    found = Some(at);
                }
                at += RECORD as u64;
            }
        }
        found
    }
}
