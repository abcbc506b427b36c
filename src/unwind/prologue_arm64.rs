//! How far below its frame record an aarch64 function's stack pointer is, by what its instructions do.

use super::elf::Span;
use super::memory::Memory;

/// A longer function isn't looked through.
const LONGEST_FUNCTION: u64 = 32 * 1024;
/// Instructions that are read at once.
const PIECE: usize = 64;

/// What the frame pointer is, less the stack pointer, wherever `function` makes a call. `None` where that can't be told:
/// it keeps no frame record, or moves the stack pointer by what is only known when it runs.
pub fn depth(function: Span, memory: &impl Memory) -> Option<u64> {
    let mut frame = Frame { depth: None, in_prologue: true };
    each(function, memory, |_, word| frame.apply(word))?;
    u64::try_from(frame.depth?).ok()
}

/// Shows all instructions with their addresses, until one is answered with `None`.
pub fn each(function: Span, memory: &impl Memory, mut show: impl FnMut(u64, u32) -> Option<()>) -> Option<()> {
    if function.end.checked_sub(function.start)? > LONGEST_FUNCTION {
        return None;
    }
    let mut at = function.start;
    while at < function.end {
        let mut bytes = [0; PIECE * 4];
        let piece = bytes.get_mut(..usize::try_from(function.end - at).unwrap_or(usize::MAX).min(PIECE * 4))?;
        if !memory.read(at, piece) {
            return None;
        }
        for word in piece.as_chunks().0 {
            show(at, u32::from_le_bytes(*word))?;
            at = at.checked_add(4)?;
        }
        if piece.len() < 4 {
            return None;
        }
    }
    Some(())
}

/// What an instruction does to the stack pointer.
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

pub(super) fn effect(word: u32) -> Effect {
    let immediate = || i64::from(word >> 10 & 0xfff) << (12 * (word >> 22 & 1));
    match word & 0xff80_03ff {
        0xd100_03ff => return Effect::Add(-immediate()),
        0x9100_03ff => return Effect::Add(immediate()),
        0x9100_03fd => return Effect::SetFramePointer(immediate()),
        0x9100_03bf | 0xd100_03bf => return Effect::FromFramePointer,
        _ => {}
    }
    // Pairs, stored or loaded, with the stack pointer moved before or behind.
    if let 0x2980_03e0 | 0x28c0_03e0 = word & 0x3bc0_03e0 {
        let scale = match (word >> 26 & 1, word >> 30) {
            (0, kind) => 2 + (kind >> 1),
            (_, kind) => 2 + kind,
        };
        return Effect::Add(i64::from((word << 10) as i32 >> 25) << scale);
    }
    // One register, likewise.
    if let 0x3800_0c00 | 0x3800_0400 = word & 0x3b20_0c00
        && word >> 5 & 31 == 31
    {
        return Effect::Add(i64::from((word << 11) as i32 >> 23));
    }
    let by_register = word & 0x3fe0_001f == 0x0b20_001f;
    let by_constant = word & 0x3f80_001f == 0x1100_001f;
    let by_mask = matches!(word & 0x7f80_001f, 0x1200_001f | 0x3200_001f | 0x5200_001f);
    let branch = word & 0x7c00_0000 == 0x1400_0000 // b, bl
        || word & 0xfe00_0000 == 0x5400_0000 // b.cond
        || word & 0x7c00_0000 == 0x3400_0000 // cbz, cbnz, tbz, tbnz
        || word & 0xfe00_0000 == 0xd600_0000; // br, blr, ret
    match () {
        () if by_register || by_constant || by_mask => Effect::Moves,
        () if branch => Effect::Branch,
        () => Effect::Other,
    }
}

struct Frame {
    /// How far the stack pointer is below the frame pointer, once that is set.
    depth: Option<i64>,
    in_prologue: bool,
}

impl Frame {
    fn apply(&mut self, word: u32) -> Option<()> {
        match (effect(word), self.depth) {
            (Effect::SetFramePointer(above), None) => self.depth = Some(above),
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
    use std::vec::Vec;

    struct Words(Vec<u32>);

    impl Memory for Words {
        fn read(&self, address: u64, out: &mut [u8]) -> bool {
            let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
            let start = address as usize - 0x1000;
            bytes.get(start..start + out.len()).map(|piece| out.copy_from_slice(piece)).is_some()
        }
    }

    fn depth_of(words: &[u32]) -> Option<u64> {
        depth(Span { start: 0x1000, end: 0x1000 + 4 * words.len() as u64 }, &Words(words.to_vec()))
    }

    const CALL: u32 = 0x9400_0010;
    const RETURN: u32 = 0xd65f_03c0;

    #[test]
    fn records_at_both_ends_of_the_frame() {
        // sub sp, sp, #0x30; stp x29, x30, [sp, #0x20]; add x29, sp, #0x20; bl; ldp; add sp, sp, #0x30; ret
        let above = [0xd100_c3ff, 0xa902_7bfd, 0x9100_83fd, CALL, 0xa942_7bfd, 0x9100_c3ff, RETURN];
        assert_eq!(depth_of(&above), Some(0x20));
        // stp x29, x30, [sp, #-48]!; mov x29, sp; bl; ldp x29, x30, [sp], #48; ret
        let below = [0xa9bd_7bfd, 0x9100_03fd, CALL, 0xa8c3_7bfd, RETURN];
        assert_eq!(depth_of(&below), Some(0));
        // The same, and sub sp, sp, #1, lsl #12 behind it.
        let large = [0xa9bd_7bfd, 0x9100_03fd, 0xd140_07ff, CALL, 0x9100_03bf, 0xa8c3_7bfd, RETURN];
        assert_eq!(depth_of(&large), Some(0x1000));
    }

    #[test]
    fn what_only_running_tells_is_not_told() {
        // sub sp, sp, x0 behind the frame's making.
        assert_eq!(depth_of(&[0xa9bd_7bfd, 0x9100_03fd, 0xcb20_63ff, CALL, 0x9100_03bf, 0xa8c3_7bfd, RETURN]), None);
        // and sp, x9, #-32
        assert_eq!(depth_of(&[0xa9bd_7bfd, 0x9100_03fd, 0x927b_e93f, CALL, RETURN]), None);
        // No record at all.
        assert_eq!(depth_of(&[0xf81f_0ffe, CALL, 0xf841_07fe, RETURN]), None);
    }
}
