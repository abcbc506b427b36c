use super::*;
use crate::unwind::elf::Span;
use std::{vec, vec::Vec};

const RETURN: u16 = match arch::LINK {
    Some(link) => link,
    None => arch::PC,
};
const SP: u8 = arch::SP as u8;
const FP: u8 = arch::FP as u8;
const RA: u8 = RETURN as u8;
/// Another register that calls preserve.
const KEPT: u8 = if cfg!(target_arch = "aarch64") { 19 } else { 3 };

/// One that calls do not preserve.
const SCRATCH: u16 = if cfg!(target_arch = "riscv64") { 5 } else { 1 };

const BASE: u64 = 0x10_0000;
const CODE: u64 = BASE + 0x1000;
const STACK: u64 = 0x9000;

// Call frame instructions, as the standard numbers them.
const DEF_CFA: u8 = 0x0c;
const DEF_CFA_EXPRESSION: u8 = 0x0f;
const OFFSET: u8 = 0x80;
const ADVANCE: u8 = 0x40;
const UNDEFINED: u8 = 0x07;
const VAL_OFFSET: u8 = 0x14;
const EXPRESSION: u8 = 0x10;
const VAL_EXPRESSION: u8 = 0x16;
const REMEMBER: u8 = 0x0a;
const RESTORE_STATE: u8 = 0x0b;

/// A table with one entry and a stack.
struct Fake {
    table: Vec<u8>,
    stack: Vec<u64>,
}

impl Memory for Fake {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let stack: Vec<u8> = self.stack.iter().flat_map(|word| word.to_ne_bytes()).collect();
        [(BASE, &self.table), (STACK, &stack)].into_iter().any(|(base, bytes)| {
            let piece = address.checked_sub(base).and_then(|start| {
                let start = usize::try_from(start).ok()?;
                bytes.get(start..start.checked_add(out.len())?)
            });
            piece.map(|piece| out.copy_from_slice(piece)).is_some()
        })
    }
}

/// One record of `.eh_frame`, padded.
fn record(id: u32, mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(8) + 4, 0);
    let mut bytes = Vec::from((body.len() as u32 + 4).to_ne_bytes());
    bytes.extend(id.to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// A header with one row, then a CIE (at 32), then an FDE for 0x100 bytes at `CODE`, with these instructions.
fn fake(augmentation: &[u8], instructions: &[u8]) -> (Fake, Image) {
    let mut cie = vec![1];
    cie.extend(augmentation);
    // Code is counted in bytes, data in words downwards; the entries' pointers are relative, of four bytes.
    cie.extend([1, 0x78, RA, 1, 0x1b]);
    let cie = record(0, cie);
    let fde_at = BASE + 32 + cie.len() as u64;
    let relative = |from: u64, to: u64| (to.wrapping_sub(from) as u32).to_ne_bytes();
    let mut fde = Vec::from(relative(fde_at + 8, CODE));
    fde.extend(0x100_u32.to_ne_bytes());
    fde.push(0);
    fde.extend(instructions);
    let mut table = vec![1, 0x1b, 3, 0x3b];
    table.extend(relative(BASE + 4, BASE + 32));
    table.extend(1_u32.to_ne_bytes());
    table.extend(relative(BASE, CODE));
    table.extend(relative(BASE, fde_at));
    table.resize(32, 0);
    table.extend(&cie);
    table.extend(record(cie.len() as u32 + 4, fde));
    let mut image = Image::default();
    image.span = Span { start: BASE, end: CODE + 0x1000 };
    image.eh_frame_hdr = Span { start: BASE, end: BASE + 20 };
    (Fake { table, stack: (0..32).map(|index| 0x7000 + index).collect() }, image)
}

fn registers() -> Registers {
    let mut registers = Registers::new(CODE + 0x10, STACK);
    registers.set(arch::FP, STACK + 64);
    registers.set(KEPT.into(), 77);
    registers.set(SCRATCH, 55);
    registers
}

fn step(augmentation: &[u8], instructions: &[u8]) -> Result<Step, Error> {
    let (memory, image) = fake(augmentation, instructions);
    Stepper::new().step(&registers(), &image, &memory, CODE + 0x10)
}

fn caller(instructions: &[u8]) -> Registers {
    match step(b"zR\0", instructions) {
        Ok(Step::Caller { registers, signal: false }) => registers,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_of_every_kind() {
    // CFA is sp + 16; the return address one word below it, the frame pointer two.
    let simple = caller(&[DEF_CFA, SP, 16, OFFSET | RA, 1, OFFSET | FP, 2]);
    assert_eq!((simple.pc, simple.sp, simple.get(arch::FP)), (0x7001, STACK + 16, Some(0x7000)));
    assert_eq!(simple.get(KEPT.into()), Some(77), "a call preserves it");
    assert_eq!(simple.get(1), None, "a call does not preserve it");
    // By the frame pointer; a register that is the CFA - 8.
    let framed = caller(&[DEF_CFA, FP, 16, OFFSET | RA, 1, VAL_OFFSET, KEPT, 1]);
    assert_eq!((framed.pc, framed.sp, framed.get(KEPT.into())), (0x7009, STACK + 80, Some(STACK + 72)));
    // CFA = *(sp + 16) + 3 (breg, deref, lit3, plus), registers by expressions that begin with the CFA.
    let breg = 0x70 + SP;
    let expressions = [
        &[DEF_CFA_EXPRESSION, 5, breg, 16, 0x06, 0x33, 0x22] as &[u8],
        &[EXPRESSION, RA, 3, 0x96, breg, 8],
        &[VAL_EXPRESSION, KEPT, 2, 0x31, 0x1c],
    ];
    let computed = caller(&expressions.concat());
    assert_eq!((computed.sp, computed.pc), (0x7002 + 3, 0x7001));
    assert_eq!(computed.get(KEPT.into()), Some(0x7002 + 3 - 1));
}

#[test]
fn the_row_of_the_pc_counts() {
    let rows = |advance: u8| {
        let first = [DEF_CFA, SP, 8, OFFSET | RA, 1, REMEMBER, ADVANCE | advance, DEF_CFA, SP, 24];
        caller(&first).sp - STACK
    };
    assert_eq!((rows(0x11), rows(0x10)), (8, 24));
    let back = [DEF_CFA, SP, 8, OFFSET | RA, 1, REMEMBER, ADVANCE | 1, DEF_CFA, SP, 24, ADVANCE | 1, RESTORE_STATE];
    assert_eq!(caller(&back).sp - STACK, 8);
}

#[test]
fn the_root_and_signal_frames_are_known() {
    assert!(matches!(step(b"zR\0", &[DEF_CFA, SP, 16, UNDEFINED, RA]), Ok(Step::Root)));
    // Where its frame is doesn't matter then, nor whether it could be told.
    let (memory, image) = fake(b"zR\0", &[DEF_CFA, FP, 16, UNDEFINED, RA]);
    let root = Stepper::new().step(&Registers::new(CODE, STACK), &image, &memory, CODE);
    assert!(matches!(root, Ok(Step::Root)));
    match step(b"zRS\0", &[DEF_CFA, SP, 16, OFFSET | RA, 1]) {
        Ok(Step::Caller { registers, signal: true }) => assert_eq!(registers.get(SCRATCH), Some(55)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_say_what_is_missing() {
    let simple = [DEF_CFA, FP, 16, OFFSET | RA, 1];
    let (memory, image) = fake(b"zR\0", &simple);
    let mut stepper = Stepper::new();
    let mut error = |registers: &Registers, image: &Image, lookup: u64| {
        stepper.step(registers, image, &memory, lookup).expect_err("no step")
    };
    assert_eq!(error(&Registers::new(CODE, STACK), &image, CODE), Error::Unknown(arch::FP));
    for outside in [0, CODE - 1, CODE + 0x100, u64::MAX] {
        assert_eq!(error(&registers(), &image, outside), Error::NoEntry, "{outside:#x}");
    }
    assert_eq!(error(&registers(), &Image::default(), CODE), Error::NoTable);
    let mut unmapped = image;
    unmapped.eh_frame_hdr = Span { start: 0x5000, end: 0x6000 };
    assert_eq!(error(&registers(), &unmapped, CODE), Error::Corrupt);
    let mut far = registers();
    far.set(arch::FP, 0xdead_0000);
    assert_eq!(error(&far, &image, CODE), Error::Unreadable(0xdead_0008));
    let endless = [DEF_CFA_EXPRESSION, 4, 0x2f, 0xfd, 0xff, 0x31, OFFSET | RA, 1];
    assert_eq!(step(b"zR\0", &endless).expect_err("it never ends"), Error::Corrupt);
    let empty = [DEF_CFA_EXPRESSION, 1, 0x22, OFFSET | RA, 1];
    assert_eq!(step(b"zR\0", &empty).expect_err("nothing to add"), Error::Corrupt);
}

#[test]
fn random_tables_are_harmless() {
    let breg = 0x70 + SP;
    let rules = [DEF_CFA_EXPRESSION, 5, breg, 16, 0x06, 0x33, 0x22, OFFSET | FP, 1, EXPRESSION, RA, 3, 0x96, breg, 8];
    let (mut memory, image) = fake(b"zR\0", &rules);
    let model = memory.table.clone();
    let mut seed = 0x1234_5678_9abc_def1_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut stepper = Stepper::new();
    let mut stepped = 0;
    for case in 0..100_000 {
        memory.table.copy_from_slice(&model);
        for _ in 0..1 + case % 4 {
            let at = random() as usize % model.len();
            memory.table[at] = random() as u8;
        }
        stepped += stepper.step(&registers(), &image, &memory, CODE + 0x10).is_ok() as u32;
    }
    assert!((5_000..95_000).contains(&stepped), "some must be harmless, some not: {stepped}");
}
