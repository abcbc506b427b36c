//! The caller of interrupted code that no table covers, where calls leave the return address in a register (aarch64, riscv64).
//!
//! A frame record tells of the caller only once it is made. A function that makes none, or is at its begin or end, and a
//! stub that leads to a function still have the return address in there, where everybody else has what they last called.

use super::arch;
use super::call::{self, Call};
use super::cfi::Stepper;
use super::kept::Kept;
#[cfg(target_arch = "aarch64")]
use super::link_arm64 as code;
#[cfg(target_arch = "riscv64")]
use super::link_riscv64 as code;
use super::memory::Memory;
use super::modules::ModuleTable;
use super::registers::Registers;

const WORD: u64 = 8;

/// The caller.
pub struct Found {
    /// In it, behind its call.
    pub registers: Registers,
    /// The code itself says so for all of them.
    pub is_certain: bool,
}

/// The caller by that register, or `None` where the frame record leads on, or nothing is known.
#[inline(never)]
pub fn caller(
    registers: &Registers,
    stepper: &mut Stepper,
    memory: &impl Memory,
    modules: &ModuleTable,
) -> Option<Found> {
    let link = arch::code_address(registers.get(arch::LINK?)?);
    let called = call::before(link, memory, modules)?;
    let (pc, sp) = (registers.pc, registers.sp);
    if let Some(kept) = code::in_stub(pc, sp, memory) {
        return Some(Found { registers: behind_call(registers, link, kept, memory), is_certain: true });
    }
    let by_code = || {
        let start = start(called, pc, memory, modules)?;
        code::since(start, pc, sp, memory)
    };
    let by_table = || {
        is_elsewhere(registers, link, stepper, memory, modules).then_some(Kept {
            sp: None,
            preserved: false,
            frame_pointer: None,
        })
    };
    let kept = by_code().or_else(by_table)?;
    Some(Found { registers: behind_call(registers, link, kept, memory), is_certain: false })
}

fn behind_call(registers: &Registers, link: u64, kept: Kept, memory: &impl Memory) -> Registers {
    let mut caller = registers.only(if kept.preserved { arch::PRESERVED } else { 1 << arch::FP });
    caller.pc = link;
    match kept.sp {
        Some(sp) => caller.set(arch::SP, sp),
        None => caller.forget(arch::SP),
    }
    match kept.frame_pointer.map(|place| memory.word(place)) {
        Some(Some(value)) => caller.set(arch::FP, value),
        Some(None) => caller.forget(arch::FP),
        None => {}
    }
    caller
}

/// Where the function that `pc` is in begins, if it was called directly: what was called jumps on at times.
fn start(called: Call, pc: u64, memory: &impl Memory, modules: &ModuleTable) -> Option<u64> {
    let Call::Direct(target) = called else { return None };
    let within = |start: &u64| modules.find(pc).is_some_and(|module| module.code.holds(*start));
    call::way(target, memory, modules).filter(|start| *start <= pc && within(start)).max()
}

/// Does the register lead to another function, by the table that covers that one alone? Then nothing was called since, unless
/// the frame record is made and says the same.
fn is_elsewhere(
    registers: &Registers,
    link: u64,
    stepper: &mut Stepper,
    memory: &impl Memory,
    modules: &ModuleTable,
) -> bool {
    let record = registers.get(arch::FP).and_then(|pointer| pointer.checked_sub(arch::RECORD));
    let record = record.and_then(|record| memory.word(record.checked_add(WORD)?));
    if record.map(arch::code_address) == Some(link) {
        return false;
    }
    let before = link.wrapping_sub(1);
    let Some(module) = modules.find(before) else { return false };
    let _ = stepper.step(&Registers::new(link, registers.sp), &module.image, memory, before);
    let is_covered = stepper.function().holds(before);
    stepper.forget();
    is_covered
}
