//! What a thread answers to the sampling signal: registers, a piece of its stack, the frame records above it.
#![allow(unsafe_code)]

use crate::sys::mapping::Zeroed;
use crate::unwind::registers::{COUNT, Registers};

/// Bytes copied from the lowest end of the stack.
pub const COPY: usize = 16 * 1024;

/// Frame records kept of what lies above the copy; more than the deepest stack that can be asked for.
pub const RECORDS: usize = 1024;

/// A frame record: where it lies, and the return address in it.
#[derive(Clone, Copy, Default)]
#[repr(C, align(16))]
pub struct Record {
    /// Address of the record.
    pub at: u64,
    /// The return address.
    pub return_address: u64,
}

/// Registers and counts of an answer; whole lines of the cache, so that the copy behind it begins at one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Head {
    /// Names the loop's stretch when the handler ran, which this is a sample of.
    pub stretch: usize,
    /// When the handler ran, ns.
    pub at: u64,
    /// The interrupted instruction.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// Bytes of `copy` that are valid; its first byte lay at `sp`.
    pub copied: usize,
    /// Valid places of `records`.
    pub record_count: usize,
    /// How many registers there are.
    pub register_count: usize,
    /// Registers by DWARF number, as far as the processor has them.
    pub registers: [u64; COUNT],
}

/// Filled by the signal handler, in place: it is too large for an alternate stack.
///
/// The handler writes all of it past the caches (`sys/copy.rs`): the monitor has read the last answer on another processor,
/// and getting its lines back from there took longer than all else that the handler does.
#[repr(C)]
pub struct Answer {
    /// What the rest means.
    pub head: Head,
    /// The lowest end of the stack.
    pub copy: [u8; COPY],
    /// Frame records above the copy, innermost first.
    pub records: [Record; RECORDS],
}

// SAFETY: numbers.
unsafe impl Zeroed for Record {}
// SAFETY: numbers and an array of records.
unsafe impl Zeroed for Answer {}

impl Answer {
    /// The registers, all known.
    pub fn registers(&self) -> Registers {
        let mut registers = Registers::new(self.head.pc, self.head.sp);
        for (number, value) in self.head.registers.iter().take(self.head.register_count).enumerate() {
            registers.set(number as u16, *value);
        }
        registers
    }

    /// The copied piece of stack.
    pub fn stack(&self) -> &[u8] {
        self.copy.get(..self.head.copied).unwrap_or(&[])
    }

    /// The frame records above it.
    pub fn records(&self) -> &[Record] {
        self.records.get(..self.head.record_count).unwrap_or(&[])
    }
}
