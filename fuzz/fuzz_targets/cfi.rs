//! Walks a stack through a module made of the input: its headers, tables and code, then the stack, then registers.
//!
//! A library is a good thing to begin with, followed by 512 bytes of stack and 32 of registers:
//! `cargo +nightly fuzz run cfi CORPUS`.
#![no_main]

mod piece;

use blockcanary::unwind::arch;
use blockcanary::unwind::elf::Span;
use blockcanary::unwind::modules::{Module, ModuleTable};
use blockcanary::unwind::registers::Registers;
use blockcanary::unwind::walk::{Stack, Walker, walk};
use libfuzzer_sys::fuzz_target;
use piece::Pieces;

const BASE: u64 = 0x10000;
const STACK: u64 = 0x7fff_0000;

fuzz_target!(|data: &[u8]| {
    let Some((rest, words)) = data.split_last_chunk::<32>() else { return };
    let Some((module, stack)) = rest.split_last_chunk::<512>() else { return };
    let word = |at: usize| u64::from_le_bytes(words[at * 8..at * 8 + 8].try_into().unwrap());
    let memory = [(BASE, module), (STACK, &stack[..])];
    let memory = Pieces(&memory);
    let (mut slots, mut text) = ([Module::default(); 2], [0; 128]);
    let mut modules = ModuleTable::new(&mut slots, &mut text);
    let end = BASE + module.len() as u64;
    let maps = format!("{BASE:08x}-{end:08x} r-xp 00000000 00:01 5 /lib/library.so\n");
    modules.refresh(maps.as_bytes(), &memory).unwrap();

    let pc = BASE + word(0) % (module.len() as u64 + 1);
    let mut registers = Registers::new(pc, STACK + word(1) % 512 / 8 * 8);
    let known = word(2);
    for number in (0..33).filter(|number| known >> number & 1 == 1 && *number != arch::SP && *number != arch::PC) {
        registers.set(number, STACK + (word(3) >> number) % 512);
    }
    let bounds = if known >> 63 == 1 { Span { start: STACK, end: STACK + 512 } } else { Span::default() };

    let mut pcs = [0; 64];
    let mut stack = Stack::new(&mut pcs);
    walk(&registers, &memory, &modules, bounds, &mut stack);
    assert_eq!(stack.pcs()[0], arch::code_address(pc));
    let mut walker = Walker::new();
    for _ in 0..2 {
        let mut pcs = [0; 64];
        let mut again = Stack::new(&mut pcs);
        walker.walk(&registers, &memory, &modules, bounds, &mut again);
        assert_eq!(
            (again.pcs(), again.truncated, again.approximate, again.frames_cut),
            (stack.pcs(), stack.truncated, stack.approximate, stack.frames_cut),
        );
    }
});
