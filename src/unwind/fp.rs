//! One step from a frame to its caller by the frame pointer.

use super::arch;
use super::cfi::Step;
use super::elf::Span;
use super::memory::Memory;
use super::modules::ModuleTable;
use super::registers::Registers;

const WORD: u64 = size_of::<usize>() as u64;

/// From a frame to its caller by the record that the frame pointer points to: the caller's frame pointer and the return
/// address. `None` where there is no such record: it must be aligned, lie above the stack pointer and within `bounds`,
/// and its return address must lie in code.
///
/// The step is right for a function that keeps the frame pointer and has already set it up. Another function's caller
/// is left out, so what follows is approximate. Where frames go on above their records, nobody knows how far: then the
/// caller's stack pointer is not known either.
pub fn step(registers: &Registers, memory: &impl Memory, modules: &ModuleTable, bounds: Span) -> Option<Step> {
    let record = registers.get(arch::FP)?.checked_sub(arch::RECORD)?;
    let above = record.checked_add(2 * WORD)?;
    if !record.is_multiple_of(WORD) || record < registers.sp || record < bounds.start || above > bounds.end {
        return None;
    }
    let next = memory.word(record)?;
    let pc = arch::code_address(memory.word(record + WORD)?);
    if pc == 0 {
        // On 32-bit ARM the register is one like any other to most code, and what it leads to may be anything.
        return (!cfg!(target_arch = "arm")).then_some(Step::Root);
    }
    modules.find(pc - 1)?;
    let mut caller = Registers::new(pc, above);
    if !arch::RECORDS_END_FRAMES {
        caller.forget(arch::SP);
    }
    caller.set(arch::FP, next);
    Some(Step::Caller { registers: caller, signal: false })
}
