//! A small cache before a memory whose reads are system calls.

use core::borrow::BorrowMut;
use core::cell::RefCell;

use super::memory::Memory;
use crate::sys::mapping::Zeroed;

/// Bytes of a block. It divides the page, so a block is readable as a whole or not at all; a binary search touches many
/// places once, so small blocks are copied for less.
const BLOCK: usize = 1024;
/// How many blocks are kept: 32 KiB, which hold what a usual stack touches of its modules.
const BLOCKS: usize = 32;

/// How many are read at once of a stack.
const AHEAD: usize = 4;

/// Keeps what was read last. Made anew for each stack, or told to forget, because it never looks again at what it holds.
pub struct Cached<M, B = Blocks> {
    memory: M,
    blocks: RefCell<B>,
}

/// What it holds. All zeros are nothing.
#[repr(C)]
pub struct Blocks {
    /// Where each block was read from, and one; 0 where it holds nothing.
    starts: [u64; BLOCKS],
    bytes: [[u8; BLOCK]; BLOCKS],
    next: usize,
    /// The one that was asked for last, as the next one often is.
    last: usize,
}

// SAFETY: numbers.
#[allow(unsafe_code)]
unsafe impl Zeroed for Blocks {}

impl<M: Memory> Cached<M> {
    /// An empty cache.
    pub fn new(memory: M) -> Cached<M> {
        Cached::within(memory, Blocks::new())
    }
}

impl<M: Memory, B: BorrowMut<Blocks>> Cached<M, B> {
    /// The same in memory of the caller's.
    pub fn within(memory: M, blocks: B) -> Cached<M, B> {
        Cached { memory, blocks: RefCell::new(blocks) }
    }

    /// The memory itself.
    pub fn behind(&self) -> &M {
        &self.memory
    }

    /// Forgets what it holds, for the next stack: cheaper than a new one.
    pub fn forget(&mut self) {
        self.blocks.get_mut().borrow_mut().forget();
    }

    /// Forgets what it holds, and reads a stack's lowest end, up to `end` at most: by one call, because most of it will be
    /// asked for.
    pub fn begin_stack(&mut self, sp: u64, end: u64) {
        self.blocks.get_mut().borrow_mut().begin_stack(sp, end, &self.memory);
    }
}

impl Blocks {
    /// Nothing yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Blocks {
        Blocks { starts: [0; BLOCKS], bytes: [[0; BLOCK]; BLOCKS], next: 0, last: 0 }
    }

    fn forget(&mut self) {
        (self.starts, self.next) = ([0; BLOCKS], 0);
    }

    fn begin_stack(&mut self, sp: u64, end: u64, memory: &impl Memory) {
        self.forget();
        let start = sp - sp % BLOCK as u64;
        let count = (end.saturating_sub(start).div_ceil(BLOCK as u64) as usize).min(AHEAD);
        let Some(blocks) = self.bytes.get_mut(..count) else { return };
        if count > 1 && memory.read(start, blocks.as_flattened_mut()) {
            self.starts.iter_mut().zip((start..).step_by(BLOCK)).take(count).for_each(|(tag, start)| *tag = start | 1);
            self.next = count;
        }
    }

    /// The block that begins at `start`, read now if it isn't held.
    fn at(&mut self, start: u64, memory: &impl Memory) -> Option<&[u8; BLOCK]> {
        if self.starts.get(self.last) == Some(&(start | 1)) {
            return self.bytes.get(self.last);
        }
        if let Some(held) = self.starts.iter().position(|held| *held == start | 1) {
            self.last = held;
            return self.bytes.get(held);
        }
        let place = self.next;
        self.next = (place + 1) % BLOCKS;
        let (tag, bytes) = (self.starts.get_mut(place)?, self.bytes.get_mut(place)?);
        // An unreadable block leaves its place empty: the read has overwritten it in part.
        *tag = 0;
        if !memory.read(start, bytes) {
            return None;
        }
        *tag = start | 1;
        self.last = place;
        Some(bytes)
    }
}

impl<M: Memory, B: BorrowMut<Blocks>> Memory for Cached<M, B> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let Ok(mut blocks) = self.blocks.try_borrow_mut() else { return self.memory.read(address, out) };
        let blocks: &mut Blocks = (*blocks).borrow_mut();
        // Large pieces would only push out the small ones.
        if out.len() > BLOCK {
            return self.memory.read(address, out);
        }
        let (mut address, mut left) = (address, out);
        while !left.is_empty() {
            let offset = (address % BLOCK as u64) as usize;
            let Some(block) = blocks.at(address - offset as u64, &self.memory) else { return false };
            let held = block.get(offset..).unwrap_or_default();
            let (piece, rest) = left.split_at_mut(held.len().min(left.len()));
            piece.copy_from_slice(held.get(..piece.len()).unwrap_or_default());
            let Some(next) = address.checked_add(piece.len() as u64) else { return rest.is_empty() };
            (address, left) = (next, rest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Readable from 4096 to 8192; each byte is the lowest of its address.
    struct Page<'a>(&'a Cell<u32>);

    impl Memory for Page<'_> {
        fn read(&self, address: u64, out: &mut [u8]) -> bool {
            self.0.set(self.0.get() + 1);
            let inside = address >= 4096 && address.checked_add(out.len() as u64).is_some_and(|end| end <= 8192);
            out.iter_mut().enumerate().for_each(|(at, byte)| *byte = (address as u8).wrapping_add(at as u8));
            inside
        }
    }

    #[test]
    fn reads_once_and_across_blocks() {
        let reads = Cell::new(0);
        let cached = Cached::new(Page(&reads));
        assert_eq!(cached.bytes(4096 + 1020), Some([252, 253, 254, 255, 0, 1, 2, 3]));
        assert_eq!(reads.get(), 2);
        assert_eq!(cached.bytes(4096 + 2), Some([2, 3]));
        assert_eq!(reads.get(), 2);
    }

    #[test]
    fn forgets() {
        let reads = Cell::new(0);
        let mut cached = Cached::new(Page(&reads));
        for _ in 0..2 {
            cached.forget();
            assert_eq!((cached.bytes(4096), cached.bytes(4097)), (Some([0]), Some([1])));
        }
        assert_eq!(reads.get(), 2);
    }

    #[test]
    fn a_stack_is_read_at_once_up_to_its_end() {
        let reads = Cell::new(0);
        let mut cached = Cached::new(Page(&reads));
        for (sp, end, held) in
            [(4100, 8192, 4), (4096 + 1024, 8192, 3), (8000, 8192, 0), (4096, 8193, 4), (4096, 6145, 3)]
        {
            cached.begin_stack(sp, end);
            reads.set(0);
            let start = sp / 1024;
            for block in start..8 {
                assert_eq!(cached.bytes(block * 1024 + 5), Some([5]), "{sp} {end}");
            }
            assert_eq!(reads.get(), 8 - start as u32 - held, "{sp} {end}");
        }
        // Less of it can be read than was thought: then what is asked for is.
        cached.begin_stack(7000, 20_000);
        assert_eq!((cached.bytes(7000), cached.bytes::<1>(8192)), (Some([(7000 % 256) as u8]), None));
    }

    #[test]
    fn fails_where_any_byte_is_unreadable() {
        let reads = Cell::new(0);
        let cached = Cached::new(Page(&reads));
        assert_eq!(cached.bytes::<8>(8188), None);
        assert_eq!(cached.bytes::<8>(4092), None);
        assert_eq!(cached.bytes::<8>(u64::MAX - 3), None);
        assert!(cached.bytes::<8>(8184).is_some());
        assert_eq!(cached.bytes::<8>(8188), None, "what failed is not taken for held");
    }

    #[test]
    fn many_blocks_push_each_other_out_and_stay_right() {
        let reads = Cell::new(0);
        struct All<'a>(&'a Cell<u32>);
        impl Memory for All<'_> {
            fn read(&self, address: u64, out: &mut [u8]) -> bool {
                self.0.set(self.0.get() + 1);
                out.iter_mut().zip(address..).for_each(|(byte, at)| *byte = (at / 1024) as u8);
                true
            }
        }
        let cached = Cached::new(All(&reads));
        for round in 0..3_u64 {
            for block in 0..40_u64 {
                assert_eq!(cached.bytes(block * 1024 + round), Some([block as u8]));
            }
        }
        assert!(reads.get() > 40);
    }
}
