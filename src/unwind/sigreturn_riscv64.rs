//! What a signal interrupted, found where the kernel keeps it on the stack (riscv64).
//!
//! The code that handlers return to has a table that tells of no register. So the code itself is looked for.

use super::memory::Memory;
use super::registers::Registers;

/// `li a7, 139` (`rt_sigreturn`), `ecall`.
const RETURN: [u32; 2] = [0x08b0_0893, 0x0000_0073];
/// From the stack pointer: a `siginfo_t` of 128 bytes; of the `ucontext_t` behind it 176 until the machine's part.
const REGISTERS: u64 = 128 + 176;
/// pc, x1 to x31.
const WORDS: usize = 32;

/// Is `pc` where handlers return to?
pub fn is_here(pc: u64, memory: &impl Memory) -> bool {
    let [first, second] = RETURN;
    memory.u32(pc) == Some(first) && pc.checked_add(4).and_then(|next| memory.u32(next)) == Some(second)
}

/// The interrupted registers, the stack pointer at `pc` being `sp`.
pub fn interrupted(pc: u64, sp: u64, memory: &impl Memory) -> Option<Registers> {
    if !is_here(pc, memory) {
        return None;
    }
    let bytes = memory.bytes::<{ 8 * WORDS }>(sp.checked_add(REGISTERS)?)?;
    let (words, _) = bytes.as_chunks();
    let mut values = words.iter().map(|word| u64::from_le_bytes(*word));
    let pc = values.next()?;
    let sp = values.clone().nth(1)?;
    let mut registers = Registers::new(0, 0);
    (1..).zip(values).for_each(|(number, value)| registers.set(number, value));
    (registers.pc, registers.sp) = (pc, sp);
    Some(registers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const CODE: u64 = 0x1000;
    const SP: u64 = 0x8000;

    /// The code, and a frame whose words are their own addresses.
    struct Frame(Vec<u8>);

    impl Memory for Frame {
        fn read(&self, address: u64, out: &mut [u8]) -> bool {
            if let Some(piece) = self.0.get(address.wrapping_sub(CODE) as usize..) {
                return piece.get(..out.len()).map(|piece| out.copy_from_slice(piece)).is_some();
            }
            let addresses = (SP..SP + 4096).step_by(8).flat_map(u64::to_le_bytes);
            let mut bytes = addresses.skip(address.wrapping_sub(SP).min(4096) as usize);
            out.iter_mut().all(|to| bytes.next().map(|byte| *to = byte).is_some())
        }
    }

    #[test]
    fn all_registers_come_from_the_frame() {
        // nop; li a7, 139; ecall
        let memory =
            Frame([0x0000_0013_u32, RETURN[0], RETURN[1]].iter().flat_map(|word| word.to_le_bytes()).collect());
        let registers = interrupted(CODE + 4, SP, &memory).unwrap();
        // As <asm/ucontext.h> and <asm/ptrace.h> lay it out: pc, ra, sp, ... t6.
        assert_eq!((registers.pc, registers.get(1), registers.sp), (SP + 304, Some(SP + 312), SP + 320));
        assert_eq!((registers.get(8), registers.get(31)), (Some(SP + 304 + 64), Some(SP + 304 + 248)));
        assert!(interrupted(CODE, SP, &memory).is_none() && interrupted(CODE + 8, SP, &memory).is_none());
        assert!(
            interrupted(CODE + 4, SP + 4096, &memory).is_none() && interrupted(CODE + 4, u64::MAX, &memory).is_none()
        );
    }
}
