//! Stacks that are broken, lie, or end too soon: walked without a fault, begun right, and what is missing is said.
//!
//! The walk is the same for 32 bits, and its figures here are those of stacks that begin in the C library: on 32-bit x86 they
//! begin in the kernel's function for system calls, on 32-bit ARM they end at the first function without a table.
#![cfg(target_pointer_width = "64")]

#[path = "unwind_parts/chain.rs"]
mod chain;
#[path = "unwind_parts/names.rs"]
mod names;
#[path = "unwind_parts/own.rs"]
mod own;
#[path = "unwind_parts/target.rs"]
mod target;

use blockcanary::unwind::arch;
use blockcanary::unwind::cache::Cached;
use blockcanary::unwind::elf::Span;
use blockcanary::unwind::memory::Memory;
use blockcanary::unwind::registers::Registers;
use blockcanary::unwind::walk::{Stack, Walker, walk};

use chain::{Build, Chain, Kind};
use names::Modules;
use own::OwnMemory;
use target::{Sample, Target};

struct Walked {
    names: Vec<String>,
    pcs: Vec<u64>,
    truncated: bool,
    approximate: bool,
    frames_cut: u32,
}

fn walked(modules: &Modules, memory: &impl Memory, registers: &Registers, bounds: Span) -> Walked {
    let mut pcs = [0; 128];
    let mut stack = Stack::new(&mut pcs);
    walk(registers, memory, &modules.table, bounds, &mut stack);
    // What a walk remembers changes nothing.
    let mut walker = Walker::new();
    for _ in 0..2 {
        let mut pcs = [0; 128];
        let mut again = Stack::new(&mut pcs);
        walker.walk(registers, memory, &modules.table, bounds, &mut again);
        let seen = |stack: &Stack| (stack.truncated, stack.approximate, stack.frames_cut);
        assert_eq!((again.pcs(), seen(&again)), (stack.pcs(), seen(&stack)));
    }
    Walked {
        names: modules.names(stack.pcs()),
        pcs: stack.pcs().to_vec(),
        truncated: stack.truncated,
        approximate: stack.approximate,
        frames_cut: stack.frames_cut,
    }
}

/// Real memory, but for a stack that is a copy, may have been changed, and ends where the copy does; and a part that
/// can't be read.
struct Staged {
    rest: Cached<OwnMemory>,
    bounds: Span,
    sp: u64,
    stack: Vec<u64>,
    gone: Span,
}

impl Staged {
    fn new(sp: u64, bounds: Span) -> Staged {
        let memory = OwnMemory::new();
        let stack = (sp..bounds.end).step_by(8).map_while(|at| memory.word(at)).take(2048).collect();
        Staged { rest: Cached::new(memory), bounds, sp, stack, gone: Span::default() }
    }

    fn put(&mut self, at: u64, value: u64) {
        self.stack[(at - self.sp) as usize / 8] = value;
    }

    /// Where this value lies first.
    fn position(&self, value: u64) -> u64 {
        let at = self.stack.iter().position(|word| *word == value).expect("the value lies on the stack");
        self.sp + 8 * at as u64
    }
}

impl Memory for Staged {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        if self.gone.holds(address) {
            return false;
        }
        if !self.bounds.holds(address) {
            return self.rest.read(address, out);
        }
        let Some(offset) = address.checked_sub(self.sp) else { return false };
        let bytes: Vec<u8> =
            self.stack.iter().skip(offset as usize / 8).take(out.len() / 8 + 2).flat_map(|w| w.to_ne_bytes()).collect();
        let piece = bytes.get(offset as usize % 8..).and_then(|bytes| bytes.get(..out.len()));
        piece.map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

/// Never mapped, for the memory's smallest page; by arithmetic; for lack of bits.
fn hostile_addresses(unmapped: u64) -> [u64; 10] {
    [1, 7, 4096, unmapped, unmapped + 8, 1 << 47, 0x8000_0000_0000_0000, 0xdead_beef_dead_beef, u64::MAX - 7, u64::MAX]
}

/// A page that was mapped and is no more.
fn unmapped_page() -> u64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping that nobody has, made unreadable for good.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page as u64
    }
}

fn blocked(build: Build) -> (Modules, Target, Sample) {
    let chain = Chain::load(build);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Read);
    target.wait_until_blocked(Kind::Read);
    let sample = target.sample();
    (modules, target, sample)
}

#[test]
fn frame_pointers_that_lead_nowhere() {
    // The C library hands the register on to code that has nothing else to go by: as it is, or from its own frame.
    let (modules, target, sample) = blocked(Build::NoTables);
    let memory = Staged::new(sample.registers.sp, sample.bounds);
    let whole = walked(&modules, &memory, &sample.registers, sample.bounds);
    assert_eq!(whole.names[..3], ["read", "chain_1", "chain_2"]);
    let unmapped = unmapped_page();
    for hostile in hostile_addresses(unmapped).into_iter().chain([0, sample.registers.sp - 16, sample.bounds.end]) {
        let mut registers = sample.registers;
        let hostile = hostile.wrapping_add(arch::RECORD);
        registers.set(arch::FP, hostile);
        let mut memory = Staged::new(sample.registers.sp, sample.bounds);
        if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) {
            memory.put(memory.position(whole.pcs[1]) - 8, hostile);
        }
        let walked = walked(&modules, &memory, &registers, sample.bounds);
        assert_eq!(walked.names, ["read", "chain_1"], "{hostile:#x}");
        assert!(walked.truncated, "{hostile:#x}");
    }
    target.finish();
}

#[test]
fn saved_frame_pointers_that_lead_nowhere_or_back() {
    // On aarch64 the tables of a function with a frame pointer do without it.
    let build = if cfg!(target_arch = "aarch64") { Build::NoTables } else { Build::FramePointers };
    let (modules, target, sample) = blocked(build);
    let memory = Staged::new(sample.registers.sp, sample.bounds);
    let registers = Registers::new(sample.registers.pc, sample.registers.sp);
    let whole = walked(&modules, &memory, &registers, sample.bounds);
    assert_eq!(whole.names[..3], ["read", "chain_1", "chain_2"]);
    // The record of chain_1, whose return address lies in chain_2.
    let record = memory.position(whole.pcs[2]) - 8;
    for hostile in hostile_addresses(unmapped_page()).into_iter().chain([0, record, record - 16, sample.bounds.end]) {
        let mut memory = Staged::new(sample.registers.sp, sample.bounds);
        memory.put(record, hostile.wrapping_add(arch::RECORD));
        let walked = walked(&modules, &memory, &registers, sample.bounds);
        assert_eq!(walked.names, ["read", "chain_1", "chain_2"], "{hostile:#x}");
        assert!(walked.truncated, "{hostile:#x}");
    }
    target.finish();
}

#[test]
fn return_addresses_that_are_none() {
    for build in [Build::Tables, Build::FramePointers, Build::Variable] {
        let (modules, target, sample) = blocked(build);
        let registers = Registers::new(sample.registers.pc, sample.registers.sp);
        let memory = Staged::new(sample.registers.sp, sample.bounds);
        let whole = walked(&modules, &memory, &registers, sample.bounds);
        assert_eq!(whole.names[..3], ["read", "chain_1", "chain_2"], "{build:?}");
        let slot = memory.position(whole.pcs[2]);
        for hostile in hostile_addresses(unmapped_page()).into_iter().chain([slot, whole.pcs[0]]) {
            let mut memory = Staged::new(sample.registers.sp, sample.bounds);
            memory.put(slot, hostile);
            let walked = walked(&modules, &memory, &registers, sample.bounds);
            assert_eq!(walked.names[..2], ["read", "chain_1"], "{build:?} {hostile:#x}");
            assert!(walked.truncated || walked.approximate, "{build:?} {hostile:#x}: {:?}", walked.names);
            // Where records are chained whatever a return address says, the chain may lead on.
            let found = walked.names[2..].contains(&"chain_2".to_owned());
            assert!(!found || cfg!(any(target_arch = "aarch64", target_arch = "riscv64")), "{build:?} {hostile:#x}");
        }
        target.finish();
    }
}

#[test]
fn a_return_to_behind_the_innermost_frame_was_not_called_from_there() {
    let (modules, target, sample) = blocked(Build::Tables);
    let (pc, sp) = (sample.registers.pc, sample.registers.sp);
    let memory = Staged::new(sp, sample.bounds);
    let whole = walked(&modules, &memory, &Registers::new(pc, sp), sample.bounds);
    let mut memory = Staged::new(sp, sample.bounds);
    memory.put(memory.position(whole.pcs[1]), pc + 1);
    // What is looked up for it is the innermost frame's own address.
    let walked = walked(&modules, &memory, &Registers::new(pc, sp), sample.bounds);
    assert_eq!(walked.pcs[..2], [pc, pc + 1]);
    assert!(walked.approximate);
    target.finish();
}

#[test]
fn a_recursion_of_five_thousand_is_cut_and_counted() {
    for build in [Build::Tables, Build::FramePointers] {
        let chain = Chain::load(build);
        let modules = Modules::new();
        let target = Target::start_at(&chain, c"chain_deep", Kind::Read);
        target.wait_until_blocked(Kind::Read);
        let (pc, sp) = target.where_it_waits();
        let memory = Cached::new(OwnMemory::new());
        let walked = walked(&modules, &memory, &Registers::new(pc, sp), target.bounds);
        assert_eq!((walked.names[0].as_str(), walked.names[10].as_str()), ("read", "chain_10"), "{build:?}");
        assert!(walked.truncated && walked.pcs.len() == 128, "{build:?}");
        assert!(walked.frames_cut >= 3000, "{build:?}: {}", walked.frames_cut);
        target.finish();
    }
}

#[test]
fn stacks_that_end_too_soon() {
    for build in [Build::Tables, Build::FramePointers, Build::Variable] {
        let (modules, target, sample) = blocked(build);
        let registers = Registers::new(sample.registers.pc, sample.registers.sp);
        let sp = registers.sp;
        let memory = Staged::new(sp, sample.bounds);
        let whole = walked(&modules, &memory, &registers, sample.bounds);
        let mut deepest = 0;
        for words in (0..64).chain([100, 120]) {
            // What is there to be read ends, and what is said to be the stack.
            let mut short = Staged::new(sp, sample.bounds);
            short.stack.truncate(words);
            let bounds = Span { start: sp, end: sp + 8 * words as u64 };
            for (memory, bounds) in [(&short, sample.bounds), (&short, bounds), (&memory, bounds)] {
                let walked = walked(&modules, memory, &registers, bounds);
                let right = whole.pcs.iter().zip(&walked.pcs).take_while(|(one, other)| one == other).count();
                assert!(right >= 1 && right == walked.pcs.len(), "{build:?} {words}: {:?}", walked.names);
                deepest = deepest.max(right);
            }
            let walked = walked(&modules, &short, &registers, sample.bounds);
            assert!(walked.truncated, "{build:?} {words}");
        }
        assert!(deepest > 5, "{build:?}: {deepest}");
        target.finish();
    }
}

#[test]
fn tables_that_are_gone() {
    let (modules, target, sample) = blocked(Build::FramePointers);
    let registers = Registers::new(sample.registers.pc, sample.registers.sp);
    let libc = modules.table.find(registers.pc).expect("the C library");
    let chain = modules.table.find(target.outermost).expect("the chain");
    for (module, left) in [(libc, vec!["read"]), (chain, vec!["read", "chain_1"])] {
        let mut memory = Staged::new(registers.sp, sample.bounds);
        memory.gone = module.image.eh_frame_hdr;
        let walked = walked(&modules, &memory, &registers, sample.bounds);
        // On aarch64 the C library has the frame pointer in its own frame, and it leads on.
        if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) && left.len() == 2 {
            assert_eq!(walked.names.get(1..11), Some(names::chain_names().as_slice()));
            assert!(walked.approximate);
            continue;
        }
        assert_eq!(walked.names, left);
        assert!(walked.truncated);
    }
    // Code that can't be read: what it would have told is not guessed.
    if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) {
        return target.finish();
    }
    let mut memory = Staged::new(registers.sp, sample.bounds);
    memory.gone = chain.code;
    let walked = walked(&modules, &memory, &registers, sample.bounds);
    assert_eq!(walked.names, ["read", "chain_1"]);
    assert!(walked.truncated);
    target.finish();
}

#[test]
fn random_stacks() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for build in [Build::Tables, Build::FramePointers, Build::Variable, Build::NoTables] {
        let (modules, target, sample) = blocked(build);
        let (pc, sp) = (sample.registers.pc, sample.registers.sp);
        let whole = Staged::new(sp, sample.bounds).stack;
        let hostile = hostile_addresses(unmapped_page());
        let mut memory = Staged::new(sp, sample.bounds);
        let mut depths = [0; 129];
        for case in 0..500 {
            memory.stack.copy_from_slice(&whole);
            for word in memory.stack.iter_mut().take(256) {
                if random() % (1 << (2 + case % 6)) != 0 {
                    continue;
                }
                *word = match random() % 4 {
                    0 => hostile[random() as usize % hostile.len()],
                    1 => sp + random() % 4096,
                    2 => whole[random() as usize % whole.len()],
                    _ => pc - random() % 65_536,
                };
            }
            for registers in [Registers::new(pc, sp), sample.registers] {
                let walked = walked(&modules, &memory, &registers, sample.bounds);
                assert_eq!(walked.pcs[0], pc);
                depths[walked.pcs.len()] += 1;
            }
        }
        assert!(depths.iter().filter(|count| **count > 0).count() > 3, "{build:?}: {depths:?}");
        target.finish();
    }
}
