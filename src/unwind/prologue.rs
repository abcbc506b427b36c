//! How far below its frame record a function's stack pointer is, by what its instructions do (x86_64).

use super::elf::Span;
use super::instruction::{Effect, LONGEST, decode};
use super::memory::Memory;

/// A longer function isn't looked through.
const LONGEST_FUNCTION: u64 = 32 * 1024;
/// Instructions are read in pieces of this size.
const PIECE: usize = 256;
const WORD: i64 = 8;

/// What the frame pointer is, less the stack pointer, when `function` is at `pc`.
///
/// `None` where that can't be told: it keeps no frame record, sets it up in a way that isn't known here, has
/// instructions that aren't, or moves the stack pointer by what is only known when it runs (a variable-length array, an
/// alignment), anywhere, for it may have been there before.
pub fn depth(function: Span, pc: u64, memory: &impl Memory) -> Option<u64> {
    let length = function.end.checked_sub(function.start)?;
    if length > LONGEST_FUNCTION || pc < function.start || pc > function.end {
        return None;
    }
    let mut code = Code { memory, end: function.end, piece: [0; PIECE], start: 0, length: 0 };
    let mut frame = Frame { depth: None, pushed: false, body: None, probed: None };
    let mut at = function.start;
    let mut found = None;
    while at < function.end {
        if at == pc {
            found = frame.depth;
        }
        let instruction = decode(code.at(at)?)?;
        frame.apply(instruction.effect)?;
        at = at.checked_add(instruction.length as u64)?;
    }
    // A call that never returns may be the last instruction.
    let depth = if at == pc { frame.depth } else { found };
    depth.and_then(|depth| u64::try_from(depth).ok())
}

/// The instructions, read in pieces.
struct Code<'m, M> {
    memory: &'m M,
    end: u64,
    piece: [u8; PIECE],
    start: u64,
    length: usize,
}

impl<M: Memory> Code<'_, M> {
    /// The bytes at `address`, enough for an instruction or all there are.
    fn at(&mut self, address: u64) -> Option<&[u8]> {
        let wanted = self.end.checked_sub(address)?.min(LONGEST as u64);
        let held = self.start.saturating_add(self.length as u64);
        if address < self.start || address.checked_add(wanted)? > held {
            self.length = usize::try_from(self.end - address).unwrap_or(PIECE).min(PIECE);
            self.start = address;
            if !self.memory.read(address, self.piece.get_mut(..self.length)?) {
                return None;
            }
        }
        self.piece.get(usize::try_from(address - self.start).ok()?..self.length)
    }
}

/// What is known of the stack pointer, instruction by instruction.
struct Frame {
    /// How far it is below the frame pointer, once that is set.
    depth: Option<i64>,
    /// rbp was pushed; next it is set.
    pushed: bool,
    /// The depth between calls, which holds again behind each jump.
    body: Option<i64>,
    /// Where a loop that touches each page of a frame ends.
    probed: Option<i64>,
}

impl Frame {
    /// `None` where nothing can be said any more.
    fn apply(&mut self, effect: Effect) -> Option<()> {
        let Some(depth) = self.depth else { return self.before(effect) };
        let moved = match effect {
            Effect::Other => return Some(()),
            Effect::Push | Effect::PushFramePointer => depth.checked_add(WORD)?,
            Effect::Add(by) => {
                if by > 0 {
                    self.body.get_or_insert(depth);
                }
                depth.checked_sub(by)?
            }
            Effect::FromFramePointer(offset) => {
                self.body.get_or_insert(depth);
                offset.checked_neg()?
            }
            Effect::ProbeBelow(by) => {
                self.probed = Some(depth.checked_add(by)?);
                depth
            }
            Effect::ProbeSub(by) => {
                self.probed = self.probed.and_then(|probed| probed.checked_add(by));
                depth
            }
            Effect::JumpBack if self.body.is_none() && self.probed > Some(depth) => self.probed.take()?,
            Effect::Call => {
                self.body.get_or_insert(depth);
                depth
            }
            // Arguments are on the stack for a call, not for a loop.
            Effect::Branch | Effect::JumpBack => {
                let body = *self.body.get_or_insert(depth);
                (depth == body).then_some(depth)?
            }
            Effect::End => *self.body.get_or_insert(depth),
            Effect::SetFramePointer | Effect::Moves => return None,
        };
        self.depth = Some(moved);
        Some(())
    }

    /// Until the frame pointer is set, nothing else may move the stack pointer.
    fn before(&mut self, effect: Effect) -> Option<()> {
        match effect {
            Effect::PushFramePointer if !self.pushed => self.pushed = true,
            Effect::SetFramePointer if self.pushed => self.depth = Some(0),
            Effect::Other | Effect::ProbeBelow(_) | Effect::ProbeSub(_) => {}
            // Some leave early, before they make a frame.
            Effect::Branch | Effect::JumpBack | Effect::End if !self.pushed => {}
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
#[path = "prologue_tests.rs"]
mod tests;
