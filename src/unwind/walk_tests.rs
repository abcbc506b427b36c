use super::*;
use crate::unwind::modules::Module;
use std::{vec, vec::Vec};

/// Code without any table at 0x1000 to 0x3000, a stack of words at 0x8000, nothing else.
struct Fake {
    stack: Vec<u64>,
}

const STACK: u64 = 0x8000;

impl Memory for Fake {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let bytes: Vec<u8> = self.stack.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let piece = address.checked_sub(STACK).and_then(|start| {
            let start = usize::try_from(start).ok()?;
            bytes.get(start..start.checked_add(out.len())?)
        });
        piece.map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

struct Result {
    pcs: Vec<u64>,
    truncated: bool,
    approximate: bool,
    frames_cut: u32,
}

fn walked(stack: Vec<u64>, sp: u64, fp: u64, depth: usize) -> Result {
    let (mut slots, mut text) = ([Module::default(); 4], [0; 64]);
    let mut modules = ModuleTable::new(&mut slots, &mut text);
    let bounds = Span { start: STACK, end: STACK + stack.len() as u64 * 8 };
    let memory = Fake { stack };
    modules.refresh(b"1000-3000 r-xp 00000000 00:01 5 /code\n".as_slice(), &memory).unwrap();
    let mut registers = Registers::new(0x1100, sp);
    registers.set(arch::FP, of_record(fp));
    let mut pcs = vec![0; depth];
    let mut out = Stack::new(&mut pcs);
    walk(&registers, &memory, &modules, bounds, &mut out);
    let (truncated, approximate, frames_cut) = (out.truncated, out.approximate, out.frames_cut);
    Result { pcs: out.pcs().to_vec(), truncated, approximate, frames_cut }
}

/// The frame pointer that leads to a record.
fn of_record(record: u64) -> u64 {
    record.wrapping_add(arch::RECORD)
}

/// Records at words 2, 4 and 6, the last of which returns to nowhere.
fn records() -> Vec<u64> {
    vec![0, 0, of_record(STACK + 32), 0x1200, of_record(STACK + 48), 0x1300, 0, 0]
}

#[test]
fn records_lead_to_the_root() {
    let result = walked(records(), STACK, STACK + 16, 16);
    assert_eq!(result.pcs, [0x1100, 0x1200, 0x1300]);
    assert!(!result.truncated && result.approximate && result.frames_cut == 0);
}

#[test]
fn hostile_frame_pointers_end_the_stack() {
    let low = STACK - 16;
    for fp in
        [0, 1, STACK + 17, low, 0xdead_0000, 0x8000_0000_0000_0000, u64::MAX, u64::MAX - 7, STACK + 64, STACK + 56]
    {
        let result = walked(records(), STACK, fp, 16);
        assert_eq!(result.pcs, [0x1100], "{fp:#x}");
        assert!(result.truncated, "{fp:#x}");
    }
    // Below the stack pointer is no frame, though it may still hold one.
    assert_eq!(walked(records(), STACK + 32, STACK + 16, 16).pcs, [0x1100]);
}

#[test]
fn records_that_lead_in_circles_end_the_stack() {
    for back in [STACK + 16, STACK, STACK + 32, 0] {
        let mut stack = records();
        stack[4] = of_record(back);
        let result = walked(stack, STACK, STACK + 16, 16);
        assert_eq!(result.pcs, [0x1100, 0x1200, 0x1300], "{back:#x}");
        assert!(result.truncated && result.frames_cut == 0);
    }
}

#[test]
fn a_return_address_outside_code_ends_the_stack() {
    for wrong in [0x1000, 0x3001, 0xdead_0000, u64::MAX] {
        let mut stack = records();
        stack[5] = wrong;
        let result = walked(stack, STACK, STACK + 16, 16);
        assert_eq!(result.pcs, [0x1100, 0x1200], "{wrong:#x}");
        assert!(result.truncated);
    }
}

#[test]
fn deep_stacks_are_cut_and_counted_to_a_limit() {
    let deep = |frames: u64| {
        (0..frames)
            .flat_map(|index| [if index + 1 < frames { of_record(STACK + 16 * (index + 1)) } else { 0 }, 0x1200])
            .collect()
    };
    let result = walked(deep(100), STACK, STACK, 8);
    assert_eq!((result.pcs.len(), result.frames_cut, result.truncated), (8, 93, true));
    let result = walked(deep(600), STACK, STACK, 600);
    assert_eq!((result.pcs.len(), result.frames_cut), (600, 1));
}

#[test]
fn an_unknown_stack_is_walked_within_a_reach() {
    let mut registers = Registers::new(0x1100, STACK);
    registers.set(arch::FP, of_record(STACK + 16));
    let (mut slots, mut text) = ([Module::default(); 4], [0; 64]);
    let mut modules = ModuleTable::new(&mut slots, &mut text);
    let memory = Fake { stack: records() };
    modules.refresh(b"1000-3000 r-xp 00000000 00:01 5 /code\n".as_slice(), &memory).unwrap();
    let mut pcs = [0; 8];
    let mut out = Stack::new(&mut pcs);
    walk(&registers, &memory, &modules, Span { start: 0x10_0000, end: 0x20_0000 }, &mut out);
    assert_eq!(out.pcs(), [0x1100, 0x1200, 0x1300], "a fiber's stack lies elsewhere");
}
