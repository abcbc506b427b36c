//! Stacks of 32-bit ARM: its own tables lead through the C library, through a program's functions and through signal
//! handlers, and where there is none the stack ends. They hold for calls alone, and the C library has functions of its own
//! between those with names, so that less can be asked than in `unwind.rs`.
#![cfg(target_arch = "arm")]

#[path = "unwind_parts/chain.rs"]
mod chain;
#[path = "unwind_parts/names.rs"]
mod names;
#[path = "unwind_parts/own.rs"]
mod own;
#[path = "unwind_parts/target.rs"]
mod target;

use blockcanary::unwind::cache::Cached;
use blockcanary::unwind::memory::Copied;
use blockcanary::unwind::walk::{Stack, walk};

use chain::{Build, Chain, Kind};
use names::{Modules, chain_names};
use own::OwnMemory;
use target::{Sample, Target};

/// Names, and whether the root was reached.
fn walked(modules: &Modules, sample: &Sample) -> (Vec<String>, bool) {
    let memory = Copied { base: sample.registers.sp, bytes: sample.stack(), rest: Cached::new(OwnMemory::new()) };
    let mut pcs = [0; 128];
    let mut stack = Stack::new(&mut pcs);
    walk(&sample.registers, &memory, &modules.table, sample.bounds, &mut stack);
    (modules.names(stack.pcs()), !stack.truncated)
}

fn assert_whole((names, is_whole): &(Vec<String>, bool), first: &str, what: &str) {
    let at = names.iter().position(|name| name == "chain_1").unwrap_or(names.len());
    assert_eq!(names.get(at..at + 10), Some(chain_names().as_slice()), "{what}: {names:?}");
    assert!(names[..=at].iter().any(|name| name == first), "{what}: {names:?}");
    assert!(is_whole, "{what}: the root was not reached: {names:?}");
}

#[test]
fn blocked_in_the_c_library() {
    for build in [Build::Tables, Build::FramePointers, Build::Variable] {
        let chain = Chain::load(build);
        let modules = Modules::new();
        for kind in [Kind::Nanosleep, Kind::Read, Kind::Poll, Kind::Usleep, Kind::Select, Kind::Receive] {
            let target = Target::start(&chain, kind);
            target.wait_until_blocked(kind);
            assert_whole(&walked(&modules, &target.sample()), kind.function(), &format!("{build:?} {kind:?}"));
            target.finish();
        }
    }
}

#[test]
fn through_a_signal_handler() {
    let chain = Chain::load(Build::Tables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Handler);
    target.wait_until_blocked(Kind::Read);
    assert_whole(&walked(&modules, &target.sample()), "chain_handler", "handler");
    target.finish();
}

#[test]
fn interrupted_in_its_own_code() {
    let chain = Chain::load(Build::Tables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Spin);
    let in_chain = |sample: &Sample| modules.names(&[sample.registers.pc]) == ["chain_1"];
    let sample = (0..10_000).map(|_| target.sample()).find(in_chain).expect("it does little else");
    assert_whole(&walked(&modules, &sample), "chain_1", "spin");
    target.finish();
}

#[test]
fn code_without_tables_ends_the_stack() {
    let chain = Chain::load(Build::NoTables);
    let modules = Modules::new();
    let target = Target::start(&chain, Kind::Read);
    target.wait_until_blocked(Kind::Read);
    let (names, is_whole) = walked(&modules, &target.sample());
    assert_eq!(names.last().map(String::as_str), Some("chain_1"), "{names:?}");
    assert!(!is_whole);
    target.finish();
}
