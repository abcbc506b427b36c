//! Android's packed relocations ("APS2"): signed LEB128 numbers, differences from one relocation to the next, in groups
//! that tell once what their members have in common.

use super::imports::Relocation;
use crate::unwind::memory::Memory;

const SAME_INFO: u64 = 1;
const SAME_DISTANCE: u64 = 2;
const SAME_ADDEND: u64 = 4;
const HAS_ADDENDS: u64 = 8;

/// A table, read from its begin to its end.
pub(super) struct Packed<'m, M> {
    memory: &'m M,
    at: u64,
    end: u64,
    has_addends: bool,
}

impl<'m, M: Memory> Packed<'m, M> {
    /// The table between these two; `None`: it is none.
    pub fn open(memory: &'m M, start: u64, end: u64, has_addends: bool) -> Option<Packed<'m, M>> {
        let begins_well = end.checked_sub(start)? >= 4 && memory.bytes::<4>(start)? == *b"APS2";
        begins_well.then_some(Packed { memory, at: start + 4, end, has_addends })
    }

    /// Tells `see` each relocation; `None`: the table ends too soon or says something impossible.
    pub fn each(mut self, most: u64, see: &mut dyn FnMut(Relocation)) -> Option<()> {
        let mut left = self.number()?;
        let mut relocation = Relocation { offset: self.number()?, ..Relocation::default() };
        if left > most {
            return None;
        }
        while left > 0 {
            let (size, flags) = (self.number()?, self.number()?);
            if size == 0 || size > left || flags & HAS_ADDENDS != 0 && !self.has_addends {
                return None;
            }
            let distance = if flags & SAME_DISTANCE != 0 { Some(self.number()?) } else { None };
            if flags & SAME_INFO != 0 {
                relocation.info = self.number()?;
            }
            match flags & (HAS_ADDENDS | SAME_ADDEND) {
                both if both == HAS_ADDENDS | SAME_ADDEND => {
                    relocation.addend = relocation.addend.wrapping_add(self.number()?);
                }
                HAS_ADDENDS => {}
                _ => relocation.addend = 0,
            }
            for _ in 0..size {
                let distance = match distance {
                    Some(distance) => distance,
                    None => self.number()?,
                };
                relocation.offset = relocation.offset.wrapping_add(distance);
                if flags & SAME_INFO == 0 {
                    relocation.info = self.number()?;
                }
                if flags & (HAS_ADDENDS | SAME_ADDEND) == HAS_ADDENDS {
                    relocation.addend = relocation.addend.wrapping_add(self.number()?);
                }
                see(relocation);
            }
            left -= size;
        }
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = if self.at < self.end { self.memory.bytes::<1>(self.at)? } else { return None };
            self.at += 1;
            let [byte] = byte;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let is_negative = byte & 0x40 != 0 && shift + 7 < 64;
                return Some(if is_negative { value | u64::MAX << (shift + 7) } else { value });
            }
        }
        None
    }
}
