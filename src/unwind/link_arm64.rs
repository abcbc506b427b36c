//! Does x30 still lead back from interrupted aarch64 code, and what else has the caller's value? By the instructions.

use super::elf::Span;
use super::kept::Kept;
use super::memory::Memory;
use super::prologue_arm64::{Effect, each, effect};

/// Instructions of the longest stub.
const LONGEST_STUB: i64 = 8;

/// Is `pc` in a stub on the way from a call to its function (PLT, veneer)? Stubs change x16 and x17 alone; one of them
/// pushes a pair first, for who binds the function.
pub fn in_stub(pc: u64, sp: u64, memory: &impl Memory) -> Option<Kept> {
    let at = |index: i64| memory.u32(pc.checked_add_signed(4 * index)?).and_then(stub);
    let to_come = || (0..LONGEST_STUB).map_while(at);
    to_come().find(|part| *part == Stub::Jump)?;
    // What lies before a jump is another stub.
    let done = || (1..=LONGEST_STUB).map_while(|index| at(-index).filter(|part| *part != Stub::Jump));
    if !to_come().take_while(|part| *part != Stub::Jump).chain(done()).any(|part| part == Stub::Address) {
        return None;
    }
    let pushed = if done().any(|part| part == Stub::Push) { 16 } else { 0 };
    Some(Kept { sp: sp.checked_add(pushed), preserved: true, frame_pointer: None })
}

/// What an instruction does in a stub.
#[derive(Clone, Copy, PartialEq)]
enum Stub {
    /// Gets an address from nowhere but the code.
    Address,
    Push,
    Jump,
    Other,
}

#[inline(never)]
fn stub(word: u32) -> Option<Stub> {
    // x16 or x17.
    let scratch = |shift: u32| word >> shift & 0x1e == 16;
    let part = match () {
        // adrp, adr; ldr of a constant; movz
        () if word & 0x1f00_0000 == 0x1000_0000 && scratch(0) => Stub::Address,
        () if word & 0xff00_0000 == 0x5800_0000 && scratch(0) => Stub::Address,
        () if word & 0xff80_0000 == 0xd280_0000 && scratch(0) => Stub::Address,
        // stp x16, x30, [sp, #-16]!
        () if word == 0xa9bf_7bf0 => Stub::Push,
        // br; ldr, add with a constant, add, movk
        () if word & 0xffff_fc1f == 0xd61f_0000 && scratch(5) => Stub::Jump,
        () if word & 0xffc0_0000 == 0xf940_0000 && scratch(0) && scratch(5) => Stub::Other,
        () if word & 0xff80_0000 == 0x9100_0000 && scratch(0) && scratch(5) => Stub::Other,
        () if word & 0xffe0_fc00 == 0x8b00_0000 && scratch(0) && scratch(5) && scratch(16) => Stub::Other,
        () if word & 0xff80_0000 == 0xf280_0000 && scratch(0) => Stub::Other,
        // Hints: nothing, a landing mark, a signature of x17.
        () if word & 0xffff_f01f == 0xd503_201f => Stub::Other,
        () => return None,
    };
    Some(part)
}

/// Does x30 still lead back from the function that begins at `start`, interrupted at `pc`? `None`, too, where its frame
/// record is made, which then leads back.
pub fn since(start: u64, pc: u64, sp: u64, memory: &impl Memory) -> Option<Kept> {
    let mut state = State { link: Link::Kept, framed: false, moved: Some(0) };
    let mut body = None;
    each(Span { start, end: pc }, memory, |_, word| {
        state.apply(word, &mut body);
        Some(())
    })?;
    if state.framed || state.link == Link::Lost {
        return None;
    }
    let moved = state.moved.filter(|moved| *moved <= 0);
    let preserved = moved == Some(0) && state.link == Link::Kept;
    let sp = moved.and_then(|moved| sp.checked_add(moved.unsigned_abs()));
    Some(Kept { sp, preserved, frame_pointer: None })
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
}

impl State {
    /// `body` is what holds where the function isn't left, once it is being left.
    fn apply(&mut self, word: u32, body: &mut Option<State>) {
        let (effect, link) = (effect(word), link_use(word));
        if matches!(effect, Effect::Add(1..) | Effect::FromFramePointer) || link == LinkUse::Loads {
            body.get_or_insert(*self);
        }
        match effect {
            Effect::Add(by) => self.moved = self.moved.and_then(|moved| moved.checked_add(by)),
            Effect::SetFramePointer(_) => self.framed = true,
            Effect::FromFramePointer | Effect::Moves => self.moved = None,
            Effect::Branch if self.link == Link::Saved => self.link = Link::Lost,
            Effect::Branch | Effect::Other => {}
        }
        match link {
            LinkUse::Stores if self.link == Link::Kept => self.link = Link::Saved,
            LinkUse::Loads => (self.link, self.framed) = (Link::Kept, false),
            LinkUse::Changes => self.link = Link::Lost,
            LinkUse::Stores | LinkUse::None => {}
        }
        if matches!(effect, Effect::Branch) && goes_for_good(word) {
            *self = body.take().unwrap_or(*self);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum LinkUse {
    None,
    Stores,
    Loads,
    Changes,
}

/// What is done to x30.
fn link_use(word: u32) -> LinkUse {
    const LINK: u32 = 30;
    let (first, base, second) = (word & 31, word >> 5 & 31, word >> 10 & 31);
    let pair = word & 0xfe00_0000 == 0xa800_0000;
    if pair && second == LINK || first == LINK && (pair || word & 0xfe80_0000 == 0xf800_0000) {
        let is_load = word >> 22 & 1 == 1;
        return match is_load {
            false => LinkUse::Stores,
            true if base == 31 || base == 29 => LinkUse::Loads,
            true => LinkUse::Changes,
        };
    }
    let is_call = word >> 26 == 0b10_0101 || word & 0xfe60_0000 == 0xd620_0000;
    let computes = word >> 26 & 7 == 0b100 || word >> 25 & 7 == 0b101;
    let accesses = word >> 25 & 7 == 0b100;
    match is_call || first == LINK && (computes || accesses) {
        true => LinkUse::Changes,
        false => LinkUse::None,
    }
}

/// `b`, `br` and `ret`: what follows comes from elsewhere.
fn goes_for_good(word: u32) -> bool {
    word >> 26 == 0b00_0101 || word & 0xfe00_0000 == 0xd600_0000 && word >> 21 & 3 != 1
}

#[cfg(test)]
#[path = "link_arm64_tests.rs"]
mod tests;
