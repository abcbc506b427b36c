//! How far below its frame pointer a riscv64 function's stack pointer is, by what its instructions do.

use super::elf::Span;
use super::instruction_riscv64::{FP, Instruction, RA, SP, each};
use super::memory::Memory;

/// What the frame pointer is, less the stack pointer, wherever `function` makes a call. `None` where that can't be told:
/// it keeps no frame record, or moves the stack pointer by what is only known when it runs.
pub fn depth(function: Span, memory: &impl Memory) -> Option<u64> {
    let mut frame = Frame { depth: None, in_prologue: true, saved: [None; 2], constant: Constant::default() };
    each(function, memory, |_, instruction| frame.apply(instruction))?;
    u64::try_from(frame.depth?).ok()
}

/// What an instruction does to the stack pointer and the frame pointer.
pub(super) enum Effect {
    Other,
    /// Moves it by so much.
    Add(i64),
    /// The frame pointer is set so far above it.
    SetFramePointer(i64),
    /// It is set from the frame pointer.
    FromFramePointer,
    /// Goes elsewhere.
    Branch,
    Moves,
}

/// A number that was put into a register, for frames whose size no single instruction has room for.
#[derive(Clone, Copy, Default)]
pub(super) struct Constant(Option<(u8, i64)>);

impl Constant {
    /// The effect of the next instruction.
    pub fn effect(&mut self, instruction: Instruction) -> Effect {
        let held = |with: u8| self.0.filter(|(register, _)| *register == with).map(|(_, value)| value);
        let effect = match instruction {
            Instruction::Add { to: SP, from: SP, by } => Effect::Add(by),
            Instruction::Add { to: FP, from: SP, by } => Effect::SetFramePointer(by),
            Instruction::Add { to: SP, from: FP, .. } => Effect::FromFramePointer,
            Instruction::Sum { to: SP, from: SP, with, is_difference } => match held(with) {
                Some(value) => Effect::Add(if is_difference { value.wrapping_neg() } else { value }),
                None => Effect::Moves,
            },
            Instruction::Branch | Instruction::Jump { .. } | Instruction::JumpTo { .. } => Effect::Branch,
            _ if changes(instruction) == SP => Effect::Moves,
            _ => Effect::Other,
        };
        match instruction {
            Instruction::Add { to, from: 0, by } if to != 0 => self.0 = Some((to, by)),
            Instruction::Add { to, from, by } if to == from && held(to).is_some() => {
                self.0 = held(to).map(|value| (to, value.wrapping_add(by)));
            }
            _ if held(changes(instruction)).is_some() => self.0 = None,
            _ => {}
        }
        effect
    }
}

/// Which register it changes; 0 for none.
fn changes(instruction: Instruction) -> u8 {
    match instruction {
        Instruction::Add { to, .. }
        | Instruction::Sum { to, .. }
        | Instruction::Address { to, .. }
        | Instruction::Load { to, .. }
        | Instruction::Other { to } => to,
        Instruction::Jump { link, .. } | Instruction::JumpTo { link, .. } => link,
        Instruction::Store { .. } | Instruction::Branch => 0,
    }
}

struct Frame {
    /// How far the stack pointer is below the frame pointer, once that is set.
    depth: Option<i64>,
    in_prologue: bool,
    /// Where above the stack pointer the return address and the frame pointer were put.
    saved: [Option<i64>; 2],
    constant: Constant,
}

impl Frame {
    fn apply(&mut self, instruction: Instruction) -> Option<()> {
        if let Instruction::Store { what: what @ (RA | FP), base: SP, offset } = instruction
            && self.depth.is_none()
            && let Some(place) = self.saved.get_mut(usize::from(what == FP))
        {
            *place = Some(offset);
        }
        match (self.constant.effect(instruction), self.depth) {
            // Any other function may have an address of its own in there.
            (Effect::SetFramePointer(above), None) if self.saved == [Some(above - 8), Some(above - 16)] => {
                self.depth = Some(above);
            }
            (Effect::SetFramePointer(_) | Effect::Moves, _) => return None,
            (Effect::Branch, Some(_)) => self.in_prologue = false,
            (Effect::Add(by), Some(depth)) if self.in_prologue => self.depth = Some(depth.checked_sub(by)?),
            // Upwards it moves where the function is left; downwards only for what the body adds.
            (Effect::Add(by), Some(_)) if by < 0 => return None,
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::instruction_riscv64::tests::{Code, START};

    fn depth_of(parts: &[u32]) -> Option<u64> {
        let code = Code::of(parts);
        depth(Span { start: START, end: START + code.0.len() as u64 }, &code)
    }

    const CALL: u32 = 0x0100_00ef;
    const RETURN: u32 = 0x8082;

    #[test]
    fn records_at_the_top_of_the_frame() {
        // addi sp, sp, -48; sd ra, 40(sp); sd s0, 32(sp); addi s0, sp, 48; jal; ld ra; ld s0; addi sp, sp, 48; ret
        let short = [0x7179, 0xf406, 0xf022, 0x1800, CALL, 0x70a2, 0x7402, 0x6145, RETURN];
        assert_eq!(depth_of(&short), Some(48));
        let long = [0xfd01_0113, 0x0211_3423, 0x0281_3023, 0x0301_0413, CALL, 0x0281_3083, 0x0201_3403, 0x0301_0113];
        assert_eq!(depth_of(&long), Some(48));
        // A function with variable arguments: 64 bytes above the record. addi sp, sp, -80; sd ra, 8(sp); sd s0, 0(sp);
        // addi s0, sp, 16
        assert_eq!(depth_of(&[0x715d, 0xe406, 0xe022, 0x0800, CALL, RETURN]), Some(16));
        // lui t0, 0xfffff; addi t0, t0, 16; add sp, sp, t0 behind it; and lui a0, 1; addiw a0, a0, 16; sub sp, sp, a0
        for large in [[0x72fd, 0x02c1, 0x9116], [0x6505, 0x2541, 0x40a1_0133]] {
            let code = [&short[..4], &large, &[CALL, 0xfd04_0113], &short[5..]].concat();
            let expected = if large[1] == 0x02c1 { 48 + 4096 - 16 } else { 48 + 4096 + 16 };
            assert_eq!(depth_of(&code), Some(expected));
        }
    }

    #[test]
    fn what_only_running_tells_is_not_told() {
        let frame = [0x7179, 0xf406, 0xf022, 0x1800];
        // sub sp, sp, a0; andi sp, sp, -64
        for moves in [0x40a1_0133, 0xfc01_7113] {
            assert_eq!(depth_of(&[&frame[..], &[moves, CALL, 0xfd04_0113, RETURN]].concat()), None);
        }
        // The constant was another register's, or has changed: li a1, 16; sub sp, sp, a0. li a0, 16; ld a0, (a0); sub
        assert_eq!(depth_of(&[&frame[..], &[0x45c1, 0x40a1_0133, CALL, RETURN]].concat()), None);
        assert_eq!(depth_of(&[&frame[..], &[0x4541, 0x6108, 0x40a1_0133, CALL, RETURN]].concat()), None);
        // No record, only an address of the function's own: addi sp, sp, -48; sd s0, 32(sp); addi s0, sp, 8
        assert_eq!(depth_of(&[0x7179, 0xf022, 0x0020, CALL, RETURN]), None);
        // addi sp, sp, -16; sd ra, 8(sp); jal
        assert_eq!(depth_of(&[0x1141, 0xe406, CALL, RETURN]), None);
    }
}
