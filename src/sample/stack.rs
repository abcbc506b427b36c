//! The memory that a stack is unwound from.

use super::answer::Answer;
use crate::unwind::memory::{Copied, Memory};

/// The memory of a thread that waits, or what one that runs has answered. One type for both: what unwinds by it is large.
pub struct StackMemory<'a, M> {
    /// What it answered, if it was asked.
    pub answer: Option<&'a Answer>,
    /// Where its stack ends; 0 where that is not known.
    pub high: u64,
    /// Everything else.
    pub rest: M,
}

impl<M: Memory> Memory for StackMemory<'_, M> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let Some(answer) = self.answer else { return self.rest.read(address, out) };
        let rest = Above { answer, high: self.high, rest: &self.rest };
        Copied { base: answer.head.sp, bytes: answer.stack(), rest }.read(address, out)
    }
}

/// What is not in the copy of the stack's lowest end: above it nothing but the frame records that the handler has followed,
/// because the thread runs on and changes the rest; outside of the stack everything, for the tables of the modules.
struct Above<'a, M> {
    answer: &'a Answer,
    high: u64,
    rest: M,
}

impl<M: Memory> Memory for Above<'_, M> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        const WORD: u64 = size_of::<usize>() as u64;
        if !(self.answer.head.sp..self.high).contains(&address) {
            return self.rest.read(address, out);
        }
        let records = self.answer.records();
        let found = records.partition_point(|record| record.at.saturating_add(WORD) < address);
        let Some(record) = records.get(found) else { return false };
        let value = if address == record.at.saturating_add(WORD) {
            record.return_address
        } else if address == record.at {
            records.get(found.saturating_add(1)).map_or(0, |next| next.at)
        } else {
            return false;
        };
        let bytes = (value as usize).to_ne_bytes();
        if out.len() != bytes.len() {
            return false;
        }
        out.copy_from_slice(&bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::answer::{COPY, Head, RECORDS, Record};
    use crate::unwind::registers::COUNT;

    struct Nothing;
    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    #[test]
    fn copy_then_records_then_nothing() {
        let head = Head {
            stretch: 0,
            at: 0,
            pc: 0,
            sp: 0x1000,
            copied: 0x100,
            record_count: 2,
            register_count: 0,
            registers: [0; COUNT],
        };
        let mut answer = Box::new(Answer { head, copy: [7; COPY], records: [Record::default(); RECORDS] });
        answer.records[0] = Record { at: 0x2000, return_address: 0xaaaa };
        answer.records[1] = Record { at: 0x3000, return_address: 0xbbbb };
        let memory = StackMemory { answer: Some(&answer), high: 0x4000, rest: Nothing };
        const WORD: u64 = size_of::<usize>() as u64;
        assert_eq!(memory.word(0x1008), Some(0x0707_0707_0707_0707 & usize::MAX as u64));
        assert_eq!(memory.word(0x2000), Some(0x3000));
        assert_eq!(memory.word(0x2000 + WORD), Some(0xaaaa));
        assert_eq!(memory.word(0x3000), Some(0));
        assert_eq!(memory.word(0x3000 + WORD), Some(0xbbbb));
        let at_the_edge = 0x1100 - WORD / 2;
        assert_eq!((memory.word(at_the_edge), memory.word(0x2010), memory.word(0x5000)), (None, None, None));
    }
}
