//! Registers by their DWARF numbers.

use super::arch;

/// How many DWARF numbers are kept: 17 on x86_64 (16 is the return address), 33 on aarch64 (30 lr, 31 sp, 32 pc), 32 on
/// riscv64.
pub const COUNT: usize = 33;

const STACK_POINTER: u64 = 1 << arch::SP;

/// A thread's registers, of which some may be unknown.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    values: [u64; COUNT],
    known: u64,
    /// The instruction that is executed, or the return address of an outer frame.
    pub pc: u64,
    /// The stack pointer; where that is forgotten, the lowest that it can be.
    pub sp: u64,
}

impl Registers {
    /// Only pc and sp are known.
    pub fn new(pc: u64, sp: u64) -> Registers {
        Registers { values: [0; COUNT], known: STACK_POINTER, pc, sp }
    }

    /// The register of this DWARF number, where it is known. pc and sp are found under their numbers, too.
    pub fn get(&self, number: u16) -> Option<u64> {
        match number {
            arch::SP => (self.known & STACK_POINTER != 0).then_some(self.sp),
            arch::PC => Some(self.pc),
            _ => {
                let value = *self.values.get(usize::from(number))?;
                (self.known >> number & 1 == 1).then_some(value)
            }
        }
    }

    /// Makes a register known. A number out of range is ignored.
    pub fn set(&mut self, number: u16, value: u64) {
        match number {
            arch::SP => {
                self.sp = value;
                self.known |= STACK_POINTER;
            }
            arch::PC => self.pc = value,
            _ => {
                if let Some(place) = self.values.get_mut(usize::from(number)) {
                    *place = value;
                    self.known |= 1 << number;
                }
            }
        }
    }

    /// Makes a register unknown; pc is always known.
    pub fn forget(&mut self, number: u16) {
        if usize::from(number) < COUNT {
            self.known &= !(1 << number);
        }
    }

    /// Forgets all registers but sp and those of `mask` (one bit a DWARF number).
    pub fn keep(&mut self, mask: u64) {
        self.known &= mask | STACK_POINTER;
    }

    /// These registers, with only sp and those of `mask` (one bit a DWARF number) still known.
    pub fn only(mut self, mask: u64) -> Registers {
        self.keep(mask);
        self
    }
}
