//! The frame pointer of a function, where only its pc and its stack pointer are known.
//!
//! A thread that waits in the kernel tells no more than those two. Two rules find the rest, and nothing else does: what
//! merely looks like a frame record is, more often than one would think, one of a function that has long returned.

use super::arch;
use super::call::{self, Call};
use super::elf::Span;
use super::memory::Memory;
use super::modules::ModuleTable;
#[cfg(target_arch = "aarch64")]
use super::prologue_arm64 as prologue;
#[cfg(target_arch = "riscv64")]
use super::prologue_riscv64 as prologue;
use super::registers::Registers;

const WORD: u64 = size_of::<usize>() as u64;
/// Stack that is searched for a record.
const FARTHEST: u64 = 64 * 1024;
/// The stack is read in pieces of so many bytes.
const PIECE: usize = 512;

/// A frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its value.
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
    registers.get(arch::SP)?;
    let place = Place { sp: registers.sp, start: function.start, memory, modules, reach };
    if let Some(frame_pointer) = by_code(registers, function, memory).filter(|pointer| place.fits(*pointer)) {
        return Some(Found { frame_pointer, is_certain: true });
    }
    Some(Found { frame_pointer: place.only_record()?.checked_add(arch::RECORD)?, is_certain: false })
}

/// By the instructions that made the frame.
#[cfg(target_arch = "x86_64")]
fn by_code(registers: &Registers, function: Span, memory: &impl Memory) -> Option<u64> {
    let depth = super::prologue::depth(function, registers.pc, memory)?;
    registers.sp.checked_add(depth)
}

#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
fn by_code(registers: &Registers, function: Span, memory: &impl Memory) -> Option<u64> {
    let depth = prologue::depth(function, memory)?;
    registers.sp.checked_add(depth)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn by_code(_: &Registers, _: Span, _: &impl Memory) -> Option<u64> {
    None
}

/// The stack pointer of `function` at a call of it, by the instructions that made its frame and its frame pointer.
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
pub fn stack_pointer(registers: &Registers, function: Span, memory: &impl Memory) -> Option<u64> {
    let depth = prologue::depth(function, memory)?;
    registers.get(arch::FP)?.checked_sub(depth).filter(|sp| *sp >= registers.sp)
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
    fn fits(&self, frame_pointer: u64) -> bool {
        let Some(record) = frame_pointer.checked_sub(arch::RECORD) else { return false };
        let inside = record >= self.sp && record.is_multiple_of(WORD);
        let above = record.checked_add(2 * WORD).is_some_and(|above| above <= self.reach.end);
        let called = || {
            let pc = arch::code_address(self.memory.word(record + WORD)?);
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
        let mut found = None;
        let mut several = false;
        Stack { sp: self.sp, reach: self.reach, memory: self.memory }.words(2 * WORD, |at, saved| {
            let pc = arch::code_address(saved);
            if call::before(pc, self.memory, self.modules).is_some_and(|called| self.is_mine(called)) {
                several = found.is_some();
                found = at.checked_sub(WORD);
            }
            (!several).then_some(())
        });
        found.filter(|_| !several)
    }
}

/// The stack above a stack pointer, as far as it is searched.
pub(super) struct Stack<'m, M> {
    pub sp: u64,
    pub reach: Span,
    pub memory: &'m M,
}

impl<M: Memory> Stack<'_, M> {
    /// Shows every word that may be a return address, with where it lies, until one is answered with `None`. With a step
    /// of two words: the upper ones of frame records.
    pub fn words(&self, step: u64, mut show: impl FnMut(u64, u64) -> Option<()>) {
        let Some(start) = self.sp.checked_next_multiple_of(2 * WORD) else { return };
        let end = self.reach.end.min(start.saturating_add(FARTHEST));
        let mut at = start;
        while at < end {
            let mut bytes = [0; PIECE];
            let wanted = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
            let Some(piece) = bytes.get_mut(..wanted) else { return };
            if !self.memory.read(at, piece) {
                return;
            }
            for word in piece.as_chunks().0 {
                let shown = step == WORD || at % step == WORD;
                if shown && show(at, usize::from_ne_bytes(*word) as u64).is_none() {
                    return;
                }
                at = at.saturating_add(WORD);
            }
            if wanted < PIECE {
                return;
            }
        }
    }
}
