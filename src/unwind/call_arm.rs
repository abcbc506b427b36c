//! Calls in the two sets of instructions of 32-bit ARM. Which of them code is made of its address does not tell once the
//! lowest bit is gone, so what is a call in either counts as one.

use super::call::Call;
use super::memory::Memory;

/// The call that returns to `pc`.
pub fn before(pc: u64, memory: &impl Memory) -> Option<Call> {
    thumb(pc, memory).or_else(|| arm(pc, memory))
}

fn thumb(pc: u64, memory: &impl Memory) -> Option<Call> {
    let last = half(memory, pc.checked_sub(2)?)?;
    if let Some(first) = half(memory, pc.checked_sub(4)?)
        && first & 0xf800 == 0xf000
        && last & 0xc000 == 0xc000
    {
        // bl, or blx, which goes to a whole word of ARM.
        let is_exchange = last & 0x1000 == 0;
        let base = if is_exchange { pc & !3 } else { pc };
        return (!is_exchange || last & 1 == 0).then(|| Call::Direct(plus(base, long_branch(first, last))));
    }
    // blx of a register.
    (last & 0xff87 == 0x4780).then_some(Call::Indirect)
}

fn arm(pc: u64, memory: &impl Memory) -> Option<Call> {
    let at = pc.checked_sub(4).filter(|at| at.is_multiple_of(4))?;
    let word = memory.u32(at)?;
    let offset = (word << 8) as i32 >> 6;
    // Code counts from two instructions on.
    let target = plus(at, offset + 8);
    match word >> 24 {
        // blx, whose bit 24 is half a word.
        exchange @ (0xfa | 0xfb) => Some(Call::Direct(plus(target, (exchange as i32 & 1) << 1))),
        link if link & 0xf == 0xb => Some(Call::Direct(target)),
        _ => (word >> 28 != 0xf && word & 0x0fff_fff0 == 0x012f_ff30).then_some(Call::Indirect),
    }
}

/// Where a stub leads: `add ip, pc; add ip, ip; ldr pc, [ip, ...]!`, with which the procedure linkage tables of both linkers
/// begin an entry. In front of it may lie `bx pc; nop` for callers of the other set.
pub fn stub_target(stub: u64, memory: &impl Memory) -> Option<u64> {
    let stub = if half(memory, stub)? == 0x4778 { stub.checked_add(4)? } else { stub };
    let mut address = plus(stub, 8);
    for index in 0..3 {
        let word = memory.u32(stub.checked_add(4 * index)?)?;
        match (index, word >> 12) {
            (0, 0xe28fc) | (1, 0xe28cc) => address = plus(address, rotated(word)),
            (2, 0xe5bcf) => return memory.word(plus(address, (word & 0xfff) as i32)).map(super::arch::code_address),
            _ => return None,
        }
    }
    None
}

/// A constant of eight bits, turned right by an even number of bits.
fn rotated(word: u32) -> i32 {
    (word & 0xff).rotate_right((word >> 8 & 0xf) * 2) as i32
}

/// What a long branch of Thumb adds to the address behind it.
fn long_branch(first: u16, last: u16) -> i32 {
    let bit = |number: u32| u32::from(last) >> number & 1;
    let sign = u32::from(first) >> 10 & 1;
    let (second, third) = (!(bit(13) ^ sign) & 1, !(bit(11) ^ sign) & 1);
    let high = sign << 24 | second << 23 | third << 22;
    let all = high | (u32::from(first) & 0x3ff) << 12 | (u32::from(last) & 0x7ff) << 1;
    (all << 7) as i32 >> 7
}

fn half(memory: &impl Memory, at: u64) -> Option<u16> {
    memory.bytes(at).map(u16::from_le_bytes)
}

/// Addresses have 32 bits.
fn plus(address: u64, offset: i32) -> u64 {
    u64::from((address as u32).wrapping_add_signed(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::memory::Copied;

    struct Nothing;
    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    fn call(code: &[u8]) -> Option<Call> {
        let memory = Copied { base: 0x1_0000, bytes: code, rest: Nothing };
        before(0x1_0000 + code.len() as u64, &memory)
    }

    /// As an assembler has made them.
    #[test]
    fn calls_of_both_sets() {
        let table: [(&[u8], Option<Call>); 14] = [
            // Thumb: bl .+0x1004, bl .-0x1000, bl .-0xbffffc, blx .+0x104 (with nop before: of an odd half word).
            (&[0x01, 0xf0, 0x00, 0xf8], Some(Call::Direct(0x1_1004))),
            (&[0xfe, 0xf7, 0xfe, 0xff], Some(Call::Direct(0xf000))),
            (&[0x00, 0xf4, 0x00, 0xd8], Some(Call::Direct(0xff41_0004))),
            (&[0x00, 0xf0, 0x80, 0xe8], Some(Call::Direct(0x1_0104))),
            (&[0x00, 0xbf, 0x00, 0xf0, 0x80, 0xe8], Some(Call::Direct(0x1_0104))),
            // blx r3, bx r3, b.w, a move.
            (&[0x00, 0xbf, 0x98, 0x47], Some(Call::Indirect)),
            (&[0x00, 0xbf, 0x18, 0x47], None),
            (&[0x00, 0xf0, 0x00, 0xb8], None),
            (&[0x00, 0xbf, 0x08, 0x46], None),
            // ARM: bl .+0x108, blne .-8, blx .+0x10a, blx r3, b.
            (&[0x40, 0x00, 0x00, 0xeb], Some(Call::Direct(0x1_0108))),
            (&[0xfc, 0xff, 0xff, 0x1b], Some(Call::Direct(0xfff8))),
            (&[0x40, 0x00, 0x00, 0xfb], Some(Call::Direct(0x1_010a))),
            (&[0x33, 0xff, 0x2f, 0xe1], Some(Call::Indirect)),
            (&[0x40, 0x00, 0x00, 0xea], None),
        ];
        for (code, expected) in table {
            assert_eq!(call(code), expected, "{code:02x?}");
        }
    }

    #[test]
    fn a_stub_leads_where_its_slot_says() {
        let mut bytes = vec![0u8; 0x2_0100];
        let mut put = |at: usize, word: u32| bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        // add ip, pc, #0; add ip, ip, #0x20000; ldr pc, [ip, #0x30]!
        [0xe28f_c600, 0xe28c_ca20, 0xe5bc_f030].into_iter().enumerate().for_each(|(index, word)| put(4 * index, word));
        bytes[0x2_0038..0x2_0038 + size_of::<usize>()].copy_from_slice(&0x1234_5678usize.to_le_bytes());
        let memory = Copied { base: 0x1_0000, bytes: &bytes, rest: Nothing };
        assert_eq!(stub_target(0x1_0000, &memory), Some(0x1234_5678));
        assert_eq!(stub_target(0x1_0004, &memory), None);
    }
}
