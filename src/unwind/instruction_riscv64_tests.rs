use super::*;
use std::{vec, vec::Vec};

pub const START: u64 = 0x1_0000;

/// Instructions from `START` on, and words of memory behind.
pub struct Code(pub Vec<u8>);

impl Code {
    pub fn of(parts: &[u32]) -> Code {
        Code(parts.iter().flat_map(|part| part.to_le_bytes().into_iter().take(length(*part) as usize)).collect())
    }
}

impl Memory for Code {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let start = address.wrapping_sub(START) as usize;
        let end = start.wrapping_add(out.len());
        self.0.get(start..end).map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

const T1: u8 = 6;
const T3: u8 = 28;
const A0: u8 = 10;
const A4: u8 = 14;
const A5: u8 = 15;

/// As the assembler has them.
#[test]
fn instructions_of_two_and_four_bytes() {
    let table = [
        (0x7179, Instruction::Add { to: SP, from: SP, by: -48 }),
        (0xfd01_0113, Instruction::Add { to: SP, from: SP, by: -48 }),
        (0x617d, Instruction::Add { to: SP, from: SP, by: 496 }),
        (0x7101, Instruction::Add { to: SP, from: SP, by: -512 }),
        (0x1141, Instruction::Add { to: SP, from: SP, by: -16 }),
        (0x1fe0, Instruction::Add { to: FP, from: SP, by: 1020 }),
        (0x0020, Instruction::Add { to: FP, from: SP, by: 8 }),
        (0x840a, Instruction::Add { to: FP, from: SP, by: 0 }),
        (0xfd04_0113, Instruction::Add { to: SP, from: FP, by: -48 }),
        (0x72fd, Instruction::Add { to: 5, from: 0, by: -4096 }),
        (0x8000_0537, Instruction::Add { to: A0, from: 0, by: -0x8000_0000 }),
        (0x4541, Instruction::Add { to: A0, from: 0, by: 16 }),
        (0x2541, Instruction::Add { to: A0, from: A0, by: 16 }),
        (0x9116, Instruction::Sum { to: SP, from: SP, with: 5, is_difference: false }),
        (0x40a1_0133, Instruction::Sum { to: SP, from: SP, with: A0, is_difference: true }),
        (0xffff_f097, Instruction::Address { to: RA, by: -4096 }),
        (0x70fe, Instruction::Load { to: RA, base: SP, offset: 504 }),
        (0x7f7c, Instruction::Load { to: A5, base: A4, offset: 248 }),
        (0xd50e_3e03, Instruction::Load { to: T3, base: T3, offset: -688 }),
        (0xff86, Instruction::Store { what: RA, base: SP, offset: 504 }),
        (0xeb1c, Instruction::Store { what: A5, base: A4, offset: 16 }),
        (0x7e11_3c23, Instruction::Store { what: RA, base: SP, offset: 2040 }),
        (0x8011_3023, Instruction::Store { what: RA, base: SP, offset: -2048 }),
        (0xb001, Instruction::Jump { link: 0, by: -2048 }),
        (0xaffd, Instruction::Jump { link: 0, by: 2046 }),
        (0x8000_006f, Instruction::Jump { link: 0, by: -0x10_0000 }),
        (0x7fff_f0ef, Instruction::Jump { link: RA, by: 0xf_fffe }),
        (0x9782, Instruction::JumpTo { link: RA, base: A5, offset: 0 }),
        (0x8782, Instruction::JumpTo { link: 0, base: A5, offset: 0 }),
        (0x000e_0367, Instruction::JumpTo { link: T1, base: T3, offset: 0 }),
        (0xff00_80e7, Instruction::JumpTo { link: RA, base: RA, offset: -16 }),
        (0xfe3d, Instruction::Branch),
        // ebreak, ecall, lw, sw, fsd; andi sp, sp, -64; fadd.d ft2, ft2, ft2; feq.d sp, ft2, ft2
        (0x9002, Instruction::Other { to: 0 }),
        (0x0000_0073, Instruction::Other { to: 0 }),
        (0x4110, Instruction::Other { to: 12 }),
        (0xc82a, Instruction::Other { to: 0 }),
        (0xa422, Instruction::Other { to: 0 }),
        (0xfc01_7113, Instruction::Other { to: SP }),
        (0x0221_7153, Instruction::Other { to: 0 }),
        (0xa221_2153, Instruction::Other { to: SP }),
    ];
    for (word, instruction) in table {
        assert_eq!(decode(word), (instruction, length(word)), "{word:#x}");
    }
}

#[test]
fn calls_are_told_from_what_lies_before_their_return() {
    let before = |parts: &[u32]| {
        let code = Code::of(parts);
        call_before(START + code.0.len() as u64, &code)
    };
    let nop = 0x0001;
    // jal back to the begin, behind a short instruction and behind none
    assert_eq!(before(&[nop, nop, 0xffdf_f0ef]), Some(Some(START)));
    assert_eq!(before(&[0xffff_f097, 0xff00_80e7]), Some(Some(START - 4096 - 16)));
    // auipc t1; jalr ra, -16(ra); jalr a5; jalr -16(ra) and nothing before it that can be read
    assert_eq!(before(&[0xffff_f317, 0xff00_80e7]), Some(None));
    assert_eq!(before(&[nop, nop, 0x9782]), Some(None));
    assert_eq!(before(&[0xff00_80e7]), Some(None));
    // jr a5; a jump; jal to nowhere; jalr t1, t3
    assert_eq!(before(&[nop, nop, 0x8782]), None);
    assert_eq!(before(&[nop, 0x8000_006f]), None);
    assert_eq!(before(&[nop, 0x000e_0367]), None);
}

#[test]
fn all_direct_calls_are_shown() {
    // jal 0; auipc ra; jalr -16(ra); auipc t1; nop; jalr -16(t1) without its address; jalr a5
    let code = Code::of(&[0x0001, 0xffff_f0ef, 0xffff_f097, 0xff00_80e7, 0x0000_1317, 0x0001, 0x0203_00e7, 0x9782]);
    let mut calls = vec![];
    let function = Span { start: START, end: START + code.0.len() as u64 };
    each_call(function, &code, |at, target| calls.push((at, target))).unwrap();
    assert_eq!(calls, [(START + 2, START), (START + 10, START + 6 - 4096 - 16)]);
    // Its end is missing, and it is too long.
    assert_eq!(each(Span { end: function.end + 2, ..function }, &code, |_, _| Some(())), None);
    assert_eq!(each(Span { end: START + 64 * 1024, ..function }, &code, |_, _| Some(())), None);
}

#[test]
fn a_piece_may_end_within_an_instruction() {
    let parts: Vec<u32> = [0x0001].into_iter().chain([0x0000_0013; 200]).collect();
    let code = Code::of(&parts);
    let mut count = 0;
    let function = Span { start: START, end: START + code.0.len() as u64 };
    each(function, &code, |at, _| {
        assert!(at == START || at % 4 == 2);
        count += 1;
        Some(())
    })
    .unwrap();
    assert_eq!(count, 201);
}

#[test]
fn stubs_and_short_functions_lead_on() {
    let target = |parts: &[u32]| stub_target(START, &Code::of(parts));
    // auipc t3, 0; ld t3, 16(t3); jalr t1, t3; nop; and the slot: 0x7777
    let stub = [0x0000_0e17, 0x010e_3e03, 0x000e_0367, 0x0000_0013, 0x7777_0003, 0x0003];
    assert_eq!(target(&stub), Some(0x0000_0003_7777_0003));
    // jr t3, and a call: jalr ra, t3
    assert_eq!(target(&[&stub[..2], &[0x000e_0067], &stub[3..]].concat()), Some(0x0000_0003_7777_0003));
    assert_eq!(target(&[&stub[..2], &[0x000e_00e7], &stub[3..]].concat()), None);
    // li a0, 16; j +2046; and auipc t1, 1; jr 32(t1)
    assert_eq!(target(&[0x4541, 0xaffd]), Some(START + 2 + 2046));
    assert_eq!(target(&[0x0000_1317, 0x0203_0067]), Some(START + 4096 + 32));
    // A frame, a branch, a return, a jump to where an argument says.
    assert_eq!(target(&[0x1141, 0xaffd]), None);
    assert_eq!(target(&[0xfe3d, 0xaffd]), None);
    assert_eq!(target(&[0x8082, 0xaffd]), None);
    assert_eq!(target(&[0x8782, 0xaffd]), None);
}
