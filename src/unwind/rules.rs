//! What was found out about frames once, so that the next stack with the same ones needs no tables.
//!
//! Most of a late thread's samples have most of their frames in common, and reading tables from memory that may vanish
//! costs a system call each time.

use gimli::RegisterRule;

use super::arch;
use super::memory::Memory;
use super::registers::{COUNT, Registers};
use crate::sys::mapping::Zeroed;

const WORD: i64 = size_of::<usize>() as i64;
const SAVED: usize = arch::PRESERVED.count_ones() as usize;
/// Places that a pc may be kept in.
const WAYS: usize = 4;
const SETS: usize = 128;

/// How a frame leads to its caller, where that is simple.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// There is no caller.
    is_root: bool,
    /// The CFA is counted from the frame pointer, not the stack pointer.
    by_frame_pointer: bool,
    /// The CFA less that.
    cfa: i32,
    /// Where the return address is, in words from the CFA.
    link: i8,
    /// Where preserved registers were saved, in words from the CFA; 0 for one that still has its value.
    saved: [i8; SAVED],
    /// The frame pointer less the stack pointer, where the code tells, and the return address that was found behind a
    /// fitting call then.
    pub by_code: Option<(u32, u64)>,
    /// The address lies in a call, as one does that a caller goes on behind.
    pub is_call: bool,
}

impl Rule {
    /// The frame has no caller.
    pub const ROOT: Rule = Rule {
        is_root: true,
        by_frame_pointer: false,
        cfa: 0,
        link: 0,
        saved: [0; SAVED],
        by_code: None,
        is_call: false,
    };

    /// From its parts; `None` where it isn't simple.
    pub fn new<'r>(
        cfa: (u16, i64),
        link: (u16, RegisterRule<usize>),
        registers: impl Iterator<Item = (u16, &'r RegisterRule<usize>)>,
    ) -> Option<Rule> {
        let mut rule = Rule { is_root: false, link: slot(&link.1)?, ..Rule::ROOT };
        rule.by_frame_pointer = cfa.0 == arch::FP;
        if !rule.by_frame_pointer && cfa.0 != arch::SP {
            return None;
        }
        rule.cfa = i32::try_from(cfa.1).ok()?;
        for (number, how) in registers.filter(|(number, _)| usize::from(*number) < COUNT && *number != link.0) {
            let place = PRESERVED.iter().position(|preserved| *preserved == number)?;
            *rule.saved.get_mut(place)? = if *how == RegisterRule::SameValue { 0 } else { slot(how)? };
        }
        Some(rule)
    }

    /// Makes a frame's registers its caller's; where something is missing, they stay as they are.
    pub fn leave(&self, registers: &mut Registers, memory: &impl Memory) -> Left {
        if self.is_root {
            return Left::Root;
        }
        self.try_leave(registers, memory).unwrap_or(Left::Not)
    }

    fn try_leave(&self, registers: &mut Registers, memory: &impl Memory) -> Option<Left> {
        let (base, called) = match (registers.get(arch::FP), self.by_code) {
            _ if !self.by_frame_pointer => (registers.get(arch::SP)?, None),
            (Some(frame_pointer), _) => (frame_pointer, None),
            (None, by_code) => {
                let (depth, called) = by_code?;
                (registers.get(arch::SP)?.checked_add(u64::from(depth))?, Some(called))
            }
        };
        let cfa = base.wrapping_add_signed(i64::from(self.cfa));
        let at = |slot: i8| cfa.wrapping_add_signed(i64::from(slot) * WORD);
        let pc = arch::code_address(memory.word(at(self.link))?);
        if called.is_some_and(|called| called != pc) {
            return None;
        }
        registers.keep(arch::PRESERVED);
        for (number, slot) in PRESERVED.iter().zip(self.saved).filter(|(_, slot)| *slot != 0) {
            match memory.word(at(slot)) {
                Some(value) => registers.set(*number, value),
                None => registers.forget(*number),
            }
        }
        registers.pc = pc;
        registers.set(arch::SP, cfa);
        Some(Left::Frame)
    }
}

/// What came of leaving a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The registers are the caller's.
    Frame,
    /// There is no caller.
    Root,
    /// Something is missing.
    Not,
}

/// The registers that a call preserves, by number.
const PRESERVED: [u16; SAVED] = {
    let mut numbers = [0; SAVED];
    let (mut number, mut place) = (0, 0);
    while place < SAVED {
        if arch::PRESERVED >> number & 1 == 1 {
            numbers[place] = number;
            place += 1;
        }
        number += 1;
    }
    numbers
};

/// Where something was saved, in words from the CFA.
fn slot(how: &RegisterRule<usize>) -> Option<i8> {
    match how {
        RegisterRule::Offset(offset) if *offset != 0 && offset % WORD == 0 => i8::try_from(offset / WORD).ok(),
        _ => None,
    }
}

/// Rules by the address that is looked up for a frame. All zeros are none.
#[repr(C)]
pub struct Rules {
    sets: [[(u64, Rule); WAYS]; SETS],
    /// How often the table of modules had been made that they belong to.
    made: u64,
}

// SAFETY: numbers, bools, and an option of numbers, one of whose two tags is zero.
#[allow(unsafe_code)]
unsafe impl Zeroed for Rules {}

impl Rules {
    /// None yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Rules {
        // Nothing is executed at address 0.
        Rules { sets: [[(0, Rule::ROOT); WAYS]; SETS], made: 0 }
    }

    /// Forgets everything, unless these are the same modules as before.
    pub(super) fn belong_to(&mut self, made: u64) {
        if self.made != made {
            // In place: it is too large for many a stack.
            self.sets.iter_mut().flatten().for_each(|way| *way = (0, Rule::ROOT));
            self.made = made;
        }
    }

    /// The rule at this address.
    pub(super) fn get(&self, lookup: u64) -> Option<&Rule> {
        self.sets.get(set(lookup))?.iter().find(|(at, _)| *at == lookup && *at != 0).map(|(_, rule)| rule)
    }

    /// Keeps a rule, in the place of the one that was kept first.
    pub(super) fn put(&mut self, lookup: u64, rule: Rule) {
        let Some(ways) = self.sets.get_mut(set(lookup)) else { return };
        if let Some(held) = ways.iter_mut().find(|(at, _)| *at == lookup) {
            held.1 = Rule { is_call: rule.is_call || held.1.is_call, ..rule };
            return;
        }
        ways.rotate_right(1);
        let [first, ..] = ways;
        *first = (lookup, rule);
    }
}

fn set(lookup: u64) -> usize {
    (lookup.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SETS
}
