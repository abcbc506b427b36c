//! Does ra still lead back from interrupted riscv64 code, and what else has the caller's value? By the instructions.

use super::elf::Span;
use super::instruction_riscv64::{FP, Instruction, RA, SP, decode, each};
use super::kept::Kept;
use super::memory::Memory;
use super::prologue_riscv64::{Constant, Effect};

/// Stubs have so many bytes, and begin at a multiple of it.
const STUB: u64 = 16;
const T1: u8 = 6;
const T2: u8 = 7;
const T3: u8 = 28;

/// Is `pc` in a stub (PLT) on the way from a call to its function? Stubs change t0 to t3 alone.
pub fn in_stub(pc: u64, sp: u64, memory: &impl Memory) -> Option<Kept> {
    let start = pc & !(STUB - 1);
    // What binds functions has the length of two.
    let is_one = is_stub(start, memory) || binds(start, memory) || binds(start.checked_sub(STUB)?, memory);
    // Each instruction has four bytes.
    let is_at_one = pc.is_multiple_of(4);
    (is_one && is_at_one).then_some(Kept { sp: Some(sp), preserved: true, frame_pointer: None })
}

fn instructions<const COUNT: usize>(start: u64, memory: &impl Memory) -> Option<[Instruction; COUNT]> {
    let mut found = [Instruction::Branch; COUNT];
    for (place, at) in found.iter_mut().zip((start..).step_by(4)) {
        *place = decode(memory.u32(at)?).0;
    }
    Some(found)
}

/// `auipc t3; ld t3, (t3); jalr t1, t3; nop`.
fn is_stub(start: u64, memory: &impl Memory) -> bool {
    let [address, load, jump] = instructions(start, memory).unwrap_or([Instruction::Branch; 3]);
    matches!(address, Instruction::Address { to: T3, .. })
        && matches!(load, Instruction::Load { to: T3, base: T3, .. })
        && jump == Instruction::JumpTo { link: T1, base: T3, offset: 0 }
}

/// `auipc t2; sub t1, t1, t3; ld t3, (t2)`, and five more.
fn binds(start: u64, memory: &impl Memory) -> bool {
    let [address, difference, load] = instructions(start, memory).unwrap_or([Instruction::Branch; 3]);
    matches!(address, Instruction::Address { to: T2, .. })
        && difference == Instruction::Sum { to: T1, from: T1, with: T3, is_difference: true }
        && matches!(load, Instruction::Load { to: T3, base: T2, .. })
}

/// Does ra still lead back from the function that begins at `start`, interrupted at `pc`? `None`, too, where its frame
/// record is made, which then leads back. A function that calls nothing makes one without the return address.
pub fn since(start: u64, pc: u64, sp: u64, memory: &impl Memory) -> Option<Kept> {
    let mut state = State { link: Link::Kept, framed: false, moved: Some(0), frame_pointer: None };
    let mut constant = Constant::default();
    let mut body = None;
    each(Span { start, end: pc }, memory, |_, instruction| {
        state.apply(instruction, constant.effect(instruction), &mut body);
        Some(())
    })?;
    if state.link == Link::Lost || state.framed && state.link == Link::Saved {
        return None;
    }
    let moved = state.moved.filter(|moved| *moved <= 0);
    let at_start = moved.and_then(|moved| sp.checked_add(moved.unsigned_abs()));
    let frame_pointer = if state.framed {
        // Where that lies nobody can say without the stack pointer.
        Some(state.frame_pointer.zip(at_start).and_then(|(place, sp)| sp.checked_add_signed(place)).unwrap_or(0))
    } else {
        None
    };
    let preserved = moved == Some(0) && state.link == Link::Kept && !state.framed;
    Some(Kept { sp: at_start, preserved, frame_pointer })
}

#[derive(Clone, Copy, PartialEq)]
enum Link {
    Kept,
    /// Saved, and still there: where code goes straight on.
    Saved,
    Lost,
}

#[derive(Clone, Copy)]
struct State {
    link: Link,
    /// The frame pointer is the function's own.
    framed: bool,
    /// How far the stack pointer was moved.
    moved: Option<i64>,
    /// Where the caller's frame pointer was put, from where the stack pointer was at first.
    frame_pointer: Option<i64>,
}

impl State {
    /// `body` is what holds where the function isn't left, once it is being left.
    fn apply(&mut self, instruction: Instruction, effect: Effect, body: &mut Option<State>) {
        let is_restored =
            |register| matches!(instruction, Instruction::Load { to, base: SP | FP, .. } if to == register);
        if matches!(effect, Effect::Add(1..) | Effect::FromFramePointer) || is_restored(RA) || is_restored(FP) {
            body.get_or_insert(*self);
        }
        match effect {
            Effect::Add(by) => self.moved = self.moved.and_then(|moved| moved.checked_add(by)),
            Effect::SetFramePointer(_) => self.framed = true,
            Effect::FromFramePointer | Effect::Moves => self.moved = None,
            Effect::Branch if self.link == Link::Saved => self.link = Link::Lost,
            Effect::Branch | Effect::Other => {}
        }
        match instruction {
            Instruction::Store { what: RA, base: SP, .. } if self.link == Link::Kept => self.link = Link::Saved,
            Instruction::Store { what: FP, base: SP, offset } if !self.framed => {
                self.frame_pointer = self.moved.and_then(|moved| moved.checked_add(offset));
            }
            _ if is_restored(RA) => self.link = Link::Kept,
            _ if is_restored(FP) => self.framed = false,
            Instruction::Add { to: RA, .. }
            | Instruction::Sum { to: RA, .. }
            | Instruction::Address { to: RA, .. }
            | Instruction::Load { to: RA, .. }
            | Instruction::Jump { link: RA, .. }
            | Instruction::JumpTo { link: RA, .. }
            | Instruction::Other { to: RA } => self.link = Link::Lost,
            // What follows comes from elsewhere.
            Instruction::Jump { link: 0, .. } | Instruction::JumpTo { link: 0, .. } => {
                *self = body.take().unwrap_or(*self);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "link_riscv64_tests.rs"]
mod tests;
