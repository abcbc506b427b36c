//! Stacks of real threads that block in the C library, walked through a table of this process's real modules.
//! For 32-bit ARM, see `unwind_arm.rs`.
#![cfg(not(target_arch = "arm"))]

#[path = "unwind_parts/chain.rs"]
mod chain;
#[path = "unwind_parts/names.rs"]
mod names;
#[path = "unwind_parts/own.rs"]
mod own;
#[path = "unwind_parts/target.rs"]
mod target;

use blockcanary::unwind::cache::Cached;
use blockcanary::unwind::elf::Span;
use blockcanary::unwind::memory::{Copied, Memory};
use blockcanary::unwind::registers::Registers;
use blockcanary::unwind::walk::{Stack, Walker, walk};

use chain::{Build, Chain, Kind};
use names::{Modules, chain_names};
use own::OwnMemory;
use target::{Sample, Target};

const BLOCKING: [Kind; 12] = [
    Kind::Nanosleep,
    Kind::Read,
    Kind::Mutex,
    Kind::Poll,
    Kind::Usleep,
    Kind::ClockNanosleep,
    Kind::Epoll,
    Kind::Select,
    Kind::Semaphore,
    Kind::Receive,
    Kind::Condition,
    Kind::Stub,
];

struct Walked {
    names: Vec<String>,
    pcs: Vec<u64>,
    truncated: bool,
    approximate: bool,
    frames_cut: u32,
    interrupted: Vec<usize>,
}

fn walked(modules: &Modules, memory: &impl Memory, registers: &Registers, bounds: Span, depth: usize) -> Walked {
    let mut pcs = vec![0; depth];
    let mut stack = Stack::new(&mut pcs);
    walk(registers, memory, &modules.table, bounds, &mut stack);
    // What a walk remembers changes nothing.
    let mut walker = Walker::new();
    for _ in 0..2 {
        let mut pcs = vec![0; depth];
        let mut again = Stack::new(&mut pcs);
        walker.walk(registers, memory, &modules.table, bounds, &mut again);
        assert_eq!(
            (again.pcs(), again.truncated, again.frames_cut, again.approximate),
            (stack.pcs(), stack.truncated, stack.frames_cut, stack.approximate)
        );
    }
    // On 32-bit x86 a system call is a function of the kernel's, with a frame of its own.
    // Whoever called it stands for both.
    let (mut names, mut interrupted, mut was_interrupted) = (vec![], vec![], false);
    for (name, frame) in modules.names(stack.pcs()).into_iter().zip(0..) {
        was_interrupted |= stack.is_interrupted(frame);
        if name != "__kernel_vsyscall" {
            if std::mem::take(&mut was_interrupted) {
                interrupted.push(names.len());
            }
            names.push(name);
        }
    }
    Walked {
        names,
        interrupted,
        pcs: stack.pcs().to_vec(),
        truncated: stack.truncated,
        approximate: stack.approximate,
        frames_cut: stack.frames_cut,
    }
}

fn sampled(modules: &Modules, sample: &Sample, depth: usize) -> Walked {
    let memory = Copied { base: sample.registers.sp, bytes: sample.stack(), rest: Cached::new(OwnMemory::new()) };
    walked(modules, &memory, &sample.registers, sample.bounds, depth)
}

/// `first` and after it all ten, innermost first, without a hole.
fn assert_whole(walked: &Walked, first: &str, what: &str) {
    let names = &walked.names;
    let at = names.iter().position(|name| name == "chain_1").unwrap_or(names.len());
    assert!((1..=5).contains(&at) && names[at - 1] == first, "{what}: {names:?}");
    assert_eq!(names.get(at..at + 10), Some(chain_names().as_slice()), "{what}: {names:?}");
    assert!(!walked.truncated, "{what}: the root was not reached: {names:?}");
}

/// Has the C library tables for all of its code? Debian's for riscv64 has them for little more than what may be
/// cancelled; other code keeps no frame pointer either. Threads begin in such code.
const C_LIBRARY_HAS_TABLES: bool = !cfg!(target_arch = "riscv64");

fn each_blocked(build: Build, mut check: impl FnMut(&Modules, &Target, Kind, &str)) {
    let chain = Chain::load(build);
    let modules = Modules::new();
    for kind in BLOCKING {
        if !C_LIBRARY_HAS_TABLES && matches!(kind, Kind::Mutex | Kind::Epoll) {
            continue;
        }
        let target = Target::start(&chain, kind);
        target.wait_until_blocked(kind);
        check(&modules, &target, kind, &format!("{build:?} {kind:?}"));
        target.finish();
    }
}

#[test]
fn blocked_in_the_c_library_without_frame_pointers() {
    each_blocked(Build::Tables, |modules, target, kind, what| {
        let walked = sampled(modules, &target.sample(), 128);
        assert_whole(&walked, kind.function(), what);
        assert_eq!(walked.approximate, !C_LIBRARY_HAS_TABLES, "{what}");
    });
}

#[test]
fn blocked_in_the_c_library_with_frame_pointers() {
    each_blocked(Build::FramePointers, |modules, target, kind, what| {
        let walked = sampled(modules, &target.sample(), 128);
        assert_whole(&walked, kind.function(), what);
        assert_eq!(walked.approximate, !C_LIBRARY_HAS_TABLES, "{what}");
    });
}

#[test]
fn code_without_tables_is_walked_by_frame_pointer_and_says_so() {
    for build in [Build::NoTables, Build::NoHeader] {
        each_blocked(build, |modules, target, kind, what| {
            // Without a table nothing tells that a function makes no frame.
            if kind == Kind::Stub {
                return;
            }
            let walked = sampled(modules, &target.sample(), 128);
            assert_whole(&walked, kind.function(), what);
            assert!(walked.approximate, "{what}");
        });
    }
}

#[test]
fn tables_lead_on_where_a_frame_pointer_led_to() {
    each_blocked(Build::Holes, |modules, target, kind, what| {
        let walked = sampled(modules, &target.sample(), 128);
        assert_whole(&walked, kind.function(), what);
        assert!(walked.approximate, "{what}");
    });
}

/// As the kernel tells of a waiting thread: by pc and stack pointer alone.
fn waiting(modules: &Modules, target: &Target) -> Walked {
    let (pc, sp) = target.where_it_waits();
    walked(modules, &Cached::new(OwnMemory::new()), &Registers::new(pc, sp), target.bounds, 128)
}

#[test]
fn stack_pointer_and_pc_are_enough() {
    for build in [Build::Tables, Build::FramePointers, Build::MixedOdd, Build::MixedEven, Build::Pointers] {
        each_blocked(build, |modules, target, kind, what| {
            let walked = waiting(modules, target);
            // Who called chain_1 doesn't say so, and where in chain_1 it is was in a register alone.
            if cfg!(any(target_arch = "aarch64", target_arch = "riscv64"))
                && matches!((build, kind), (Build::Pointers, Kind::Stub))
            {
                assert_eq!(walked.names, ["chain_stub"]);
                return assert!(walked.truncated);
            }
            // Only the kernel's own function for system calls puts the frame pointer on the stack.
            if cfg!(target_arch = "x86") && kind == Kind::Stub && walked.truncated {
                return assert_eq!(walked.names, ["chain_stub", "chain_1"]);
            }
            assert_whole(&walked, kind.function(), what);
            assert_eq!(walked.approximate, !C_LIBRARY_HAS_TABLES, "{what}");
        });
    }
}

#[test]
#[cfg_attr(any(target_arch = "aarch64", target_arch = "x86"), ignore = "there the frame pointer is always handed on")]
fn a_function_that_moves_its_stack_pointer_is_found_by_the_one_call_of_it() {
    let mut approximate = 0;
    each_blocked(Build::Variable, |modules, target, kind, what| {
        let walked = waiting(modules, target);
        assert_whole(&walked, kind.function(), what);
        approximate += walked.approximate as u32;
    });
    assert!(approximate > 0, "the C library hands the frame pointer on in some of them, not in all");
}

#[test]
#[cfg_attr(target_arch = "x86", ignore = "there the frame pointer is always handed on")]
fn such_a_function_ends_the_stack_if_it_was_called_through_a_pointer() {
    let mut ended = 0;
    each_blocked(Build::VariablePointers, |modules, target, kind, what| {
        let walked = waiting(modules, target);
        match walked.truncated {
            true => {
                ended += 1;
                let right = [kind.function().to_owned(), "chain_1".to_owned()];
                let found =
                    if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) { &right[..1] } else { &right };
                assert!(walked.names.ends_with(found), "{what}: {:?}", walked.names);
            }
            false => assert_whole(&walked, kind.function(), what),
        }
    });
    assert!(ended > 0, "the C library hands the frame pointer on in some of them, not in all");
}

#[test]
#[cfg_attr(
    any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86"),
    ignore = "there the frame pointer is always handed on"
)]
fn remains_of_earlier_calls_are_no_frames() {
    let chain = Chain::load(Build::Tables);
    let modules = Modules::new();
    let target = Target::start_at(&chain, c"stale_4", Kind::Read);
    target.wait_until_blocked(Kind::Read);
    let whole = sampled(&modules, &target.sample(), 128);
    assert_eq!(whole.names[..5], ["read", "stale_1", "stale_2", "stale_3", "stale_4"]);
    let walked = waiting(&modules, &target);
    assert_eq!(walked.names, ["read", "stale_1", "stale_2"], "two records of one call, and no telling which is right");
    assert!(walked.truncated);
    target.finish();
}

#[test]
#[cfg_attr(
    any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86"),
    ignore = "there the frame pointer is always handed on"
)]
fn an_unknown_frame_pointer_ends_the_stack_where_no_table_tells_who_needs_it() {
    let chain = Chain::load(Build::NoTables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Read);
    target.wait_until_blocked(Kind::Read);
    let (pc, sp) = target.where_it_waits();
    let memory = Cached::new(OwnMemory::new());
    let walked = walked(&modules, &memory, &Registers::new(pc, sp), target.bounds, 128);
    assert_eq!(walked.names, ["read", "chain_1"]);
    assert!(walked.truncated);
    target.finish();
}

/// The first sample that is `wanted`.
fn caught(target: &Target, wanted: impl FnMut(&Sample) -> bool) -> Sample {
    (0..10_000).map(|_| target.sample()).find(wanted).expect("it does little else")
}

#[test]
#[cfg_attr(
    any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86"),
    ignore = "emulators have no vdso, and that of 32-bit x86 has no table"
)]
fn interrupted_in_the_vdso() {
    let chain = Chain::load(Build::Tables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Clock);
    let in_vdso = |sample: &Sample| modules.path_of(sample.registers.pc).as_deref() == Some("[vdso]");
    let sample = caught(&target, in_vdso);
    let walked = sampled(&modules, &sample, 128);
    let first = walked.names.iter().position(|name| name == "chain_1").expect("chain_1");
    assert_eq!(walked.names.get(first..first + 10), Some(chain_names().as_slice()), "{:?}", walked.names);
    assert!(walked.names[..first].contains(&"clock_gettime".to_owned()), "{:?}", walked.names);
    assert!(!walked.truncated && !walked.approximate);
    target.finish();
}

#[test]
fn interrupted_in_its_own_code() {
    for build in [Build::Tables, Build::FramePointers, Build::NoTables] {
        let chain = Chain::load(build);
        let modules = Modules::new();
        let target = Target::start(&chain, Kind::Spin);
        let in_chain = |sample: &Sample| modules.names(&[sample.registers.pc]) == ["chain_1"];
        let sample = caught(&target, in_chain);
        let walked = sampled(&modules, &sample, 128);
        assert_eq!(walked.names.get(..10), Some(chain_names().as_slice()), "{build:?}: {:?}", walked.names);
        assert!(!walked.truncated, "{build:?}");
        target.finish();
    }
}

#[test]
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "x86"),
    ignore = "calls leave the return address on the stack, where only a table finds it"
)]
fn interrupted_in_a_function_without_frame_and_table() {
    for build in [Build::Tables, Build::FramePointers, Build::NoTables, Build::Holes, Build::Pointers] {
        let chain = Chain::load(build);
        let modules = Modules::new();
        let target = Target::start(&chain, Kind::Leaf);
        let sample = caught(&target, |sample| modules.names(&[sample.registers.pc]) == ["chain_leaf"]);
        let walked = sampled(&modules, &sample, 128);
        assert_whole(&walked, "chain_leaf", &format!("{build:?}"));
        assert!(walked.approximate, "{build:?}");
        target.finish();
    }
}

#[test]
fn interrupted_in_a_stub_that_leads_to_another_function() {
    for build in [Build::Tables, Build::FramePointers, Build::Holes] {
        let chain = Chain::load(build);
        let modules = Modules::new();
        let target = Target::start(&chain, Kind::Calls);
        let in_chain = |pc: u64| modules.path_of(pc) == modules.path_of(target.outermost);
        let in_stub = |pc: u64| in_chain(pc) && modules.names(&[pc]) == ["?"];
        // The chain's own calls go through stubs, too.
        caught(&target, |sample| modules.names(&[sample.registers.pc]) == ["chain_leaf"]);
        let sample = caught(&target, |sample| in_stub(sample.registers.pc));
        let walked = sampled(&modules, &sample, 128);
        assert_whole(&walked, "?", &format!("{build:?}"));
        assert_eq!(walked.approximate, matches!(build, Build::Holes) || !C_LIBRARY_HAS_TABLES, "{build:?}");
        target.finish();
    }
}

#[test]
fn through_a_signal_handler() {
    let chain = Chain::load(Build::Tables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Handler);
    target.wait_until_blocked(Kind::Read);
    let walked = sampled(&modules, &target.sample(), 128);
    assert_eq!(walked.names[..2], ["read", "chain_handler"], "{:?}", walked.names);
    let first = walked.names.iter().position(|name| name == "chain_1").expect("chain_1");
    assert!((3..=7).contains(&first), "{:?}", walked.names);
    assert_eq!(walked.names.get(first..first + 10), Some(chain_names().as_slice()));
    assert_eq!((walked.truncated, walked.approximate), (false, !C_LIBRARY_HAS_TABLES));
    // The one that raised the signal, in its system call; behind the handler and what the kernel put there.
    let [0, raised] = walked.interrupted[..] else { panic!("{:?}", walked.interrupted) };
    assert_eq!(raised, 3, "{:?}", walked.names);
    target.finish();
}

#[test]
fn frames_beyond_the_depth_are_counted() {
    let chain = Chain::load(Build::Tables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Read);
    target.wait_until_blocked(Kind::Read);
    let sample = target.sample();
    let (whole, cut) = (sampled(&modules, &sample, 128), sampled(&modules, &sample, 5));
    assert_eq!(cut.pcs, whole.pcs[..5]);
    assert_eq!(cut.frames_cut as usize, whole.pcs.len() - 5);
    assert!(cut.truncated && !whole.truncated && whole.frames_cut == 0);
    let none = sampled(&modules, &sample, 0);
    assert!(none.truncated && none.pcs.is_empty() && none.frames_cut as usize == whole.pcs.len());
    target.finish();
}

/// Changes some of the bytes outside the stack: one in sixteen to one in two thousand, as the seed says.
struct Corrupted<M> {
    memory: M,
    keep: Span,
    seed: u64,
}

impl<M: Memory> Memory for Corrupted<M> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let read = self.memory.read(address, out);
        for (index, byte) in out.iter_mut().enumerate() {
            let at = address.wrapping_add(index as u64);
            let mixed = (at ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if mixed >> (60 - self.seed % 8) == 0 && !self.keep.holds(at) {
                *byte ^= (mixed >> 32) as u8;
            }
        }
        read
    }
}

#[test]
fn corrupt_tables_are_harmless() {
    let chain = Chain::load(Build::Tables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Read);
    target.wait_until_blocked(Kind::Read);
    let sample = target.sample();
    let whole = sampled(&modules, &sample, 128).pcs.len();
    let (mut deepest, mut shorter) = (0, 0);
    for seed in 1..=3000 {
        let rest = Cached::new(OwnMemory::new());
        let memory = Copied { base: sample.registers.sp, bytes: sample.stack(), rest };
        let memory = Corrupted { memory, keep: sample.bounds, seed };
        let walked = walked(&modules, &memory, &sample.registers, sample.bounds, 128);
        deepest = deepest.max(walked.pcs.len());
        shorter += (walked.pcs.len() < whole) as u32;
    }
    assert!(deepest > 2 && shorter > 100, "the corruption must be met on the way: {deepest} {shorter}");
    target.finish();
}

#[test]
fn random_registers_are_harmless() {
    let chain = Chain::load(Build::NoTables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Read);
    target.wait_until_blocked(Kind::Read);
    let sample = target.sample();
    let mut seed = 88_172_645_463_325_252_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let code: Vec<Span> = modules.table.all().iter().map(|module| module.code).collect();
    let mut deep = 0;
    for case in 0..20_000 {
        let mut value = || match random() % 4 {
            0 => random(),
            1 => sample.registers.sp.wrapping_add(random() % 65_536),
            2 => sample.registers.sp.wrapping_add(random() % 512 * 8),
            _ => random() % 4096,
        };
        let mut registers = Registers::new(0, value());
        (0..33).for_each(|number| registers.set(number, value()));
        let within = code[random() as usize % code.len()];
        registers.pc = within.start + random() % (within.end - within.start);
        // Now and then everything is right but what a call doesn't preserve, so that some walks get somewhere.
        if case % 64 == 0 {
            (registers.pc, registers.sp) = (sample.registers.pc, sample.registers.sp);
        }
        let memory = Copied { base: sample.registers.sp, bytes: sample.stack(), rest: OwnMemory::new() };
        deep += (walked_depth(&modules, &memory, &registers, sample.bounds) > 1) as u32;
    }
    assert!(deep > 300, "some must get somewhere, {deep} did");
    target.finish();
}

fn walked_depth(modules: &Modules, memory: &impl Memory, registers: &Registers, bounds: Span) -> usize {
    let mut pcs = [0; 64];
    let mut stack = Stack::new(&mut pcs);
    walk(registers, memory, &modules.table, bounds, &mut stack);
    stack.pcs().len()
}
