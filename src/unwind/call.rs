//! The call before a return address: is there one, and what does it call?

use super::memory::Memory;
use super::modules::ModuleTable;

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Of the function that begins here, or of the stub (PLT) that leads to it.
    Direct(u64),
    /// Of what a register or a variable said.
    Indirect,
}

/// The call that returns to `pc`. Code is read by `memory` alone; where it can't be read nothing is known.
pub fn before(pc: u64, memory: &impl Memory, modules: &ModuleTable) -> Option<Call> {
    modules.find(pc.wrapping_sub(1))?;
    machine::before(pc, memory, modules)
}

/// Can `pc` be a return address? Yes, too, where the code can't be read.
pub fn may_return_to(pc: u64, memory: &impl Memory, modules: &ModuleTable) -> bool {
    before(pc, memory, modules).is_some() || memory.bytes::<1>(pc.wrapping_sub(1)).is_none()
}

/// A stub, a function that jumps on, and one more.
const MOST_STUBS: usize = 3;

/// Is it a call of the function that begins at `start`, by way of stubs or not?
pub fn is_of(call: Call, start: u64, memory: &impl Memory, modules: &ModuleTable) -> bool {
    let Call::Direct(target) = call else { return false };
    way(target, memory, modules).any(|at| at == start)
}

/// `target` and where it leads to, stub by stub.
pub fn way(target: u64, memory: &impl Memory, modules: &ModuleTable) -> impl Iterator<Item = u64> {
    let on = |at: &u64| Some(leads_to(*at, memory, modules)).filter(|next| next != at);
    core::iter::successors(Some(target), on).take(1 + MOST_STUBS)
}

/// Where a call of `target` arrives, if that is a stub; else `target`.
pub fn leads_to(target: u64, memory: &impl Memory, modules: &ModuleTable) -> u64 {
    let stub = modules.find(target).and_then(|_| machine::stub_target(target, memory));
    stub.unwrap_or(target)
}

#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
pub use machine::each;

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
mod machine {
    use super::Call;
    use crate::unwind::memory::Memory;
    use crate::unwind::modules::ModuleTable;

    fn relative(bytes: &[u8], from: u64) -> Option<u64> {
        let offset = i32::from_le_bytes(*bytes.first_chunk()?);
        Some((from as usize).wrapping_add_signed(offset as isize) as u64)
    }

    /// A slot that code names: from the next instruction on, or by its address where those have 32 bits.
    fn slot(bytes: &[u8], from: u64) -> Option<u64> {
        relative(bytes, if cfg!(target_arch = "x86") { 0 } else { from })
    }

    pub fn before(pc: u64, memory: &impl Memory, modules: &ModuleTable) -> Option<Call> {
        let bytes = memory.bytes::<7>(pc.checked_sub(7)?)?;
        if let [_, _, 0xe8, offset @ ..] = &bytes {
            let target = relative(offset, pc)?;
            if modules.find(target).is_some() {
                return Some(Call::Direct(target));
            }
        }
        // Through a slot that the loader has filled in: as good as direct, if the function is still there.
        if let [_, 0xff, 0x15, offset @ ..] = &bytes {
            let target = slot(offset, pc).and_then(|slot| memory.word(slot));
            return Some(target.map_or(Call::Indirect, Call::Direct));
        }
        indirect(&bytes).then_some(Call::Indirect)
    }

    /// `call` of a register or of memory takes two, three, four, six or seven bytes, by what follows its opcode.
    fn indirect(bytes: &[u8; 7]) -> bool {
        (0..=5).any(|at| {
            let Some([0xff, operands, scale @ ..]) = bytes.get(at..) else { return false };
            let (mode, group, base) = (operands >> 6, operands >> 3 & 7, operands & 7);
            let indexed = mode != 3 && base == 4;
            let offset = match (mode, indexed, scale.first()) {
                (0, false, _) if base == 5 => 4,
                (0, true, Some(scale)) if scale & 7 == 5 => 4,
                (1, ..) => 1,
                (2, ..) => 4,
                _ => 0,
            };
            group == 2 && scale.len() == usize::from(indexed) + offset
        })
    }

    /// Where a stub leads: `jmp` through a slot, behind a landing mark or not.
    pub fn stub_target(stub: u64, memory: &impl Memory) -> Option<u64> {
        let bytes = memory.bytes::<11>(stub)?;
        let (length, offset) = match &bytes {
            [0xff, 0x25, offset @ ..] => (6, offset.first_chunk::<4>()?),
            [0xf2, 0xff, 0x25, offset @ ..] => (7, offset.first_chunk()?),
            [0xf3, 0x0f, 0x1e, 0xfa | 0xfb, 0xff, 0x25, offset @ ..] => (10, offset.first_chunk()?),
            [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, offset @ ..] => (11, offset.first_chunk()?),
            _ => return None,
        };
        memory.word(slot(offset, stub.wrapping_add(length))?)
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use super::Call;
    use crate::unwind::elf::Span;
    use crate::unwind::memory::Memory;
    use crate::unwind::modules::ModuleTable;
    use crate::unwind::prologue_arm64;

    pub fn before(pc: u64, memory: &impl Memory, _: &ModuleTable) -> Option<Call> {
        let at = pc.checked_sub(4)?;
        let word = memory.u32(at)?;
        if let Some(target) = branch_with_link(word, at) {
            return Some(Call::Direct(target));
        }
        // blr, and its forms that check a signature.
        let indirect = word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800;
        indirect.then_some(Call::Indirect)
    }

    /// Shows all direct calls of a function: where their last instruction is, which has four bytes, and what they call.
    pub fn each(function: Span, memory: &impl Memory, mut show: impl FnMut(u64, u64)) -> Option<()> {
        prologue_arm64::each(function, memory, |at, word| {
            if let Some(target) = branch_with_link(word, at) {
                show(at, target);
            }
            Some(())
        })
    }

    /// Where `word`, if it is a `bl` at `at`, leads.
    fn branch_with_link(word: u32, at: u64) -> Option<u64> {
        (word >> 26 == 0b10_0101).then(|| branch_target(word, at))
    }

    /// Where `b` and `bl` lead.
    fn branch_target(word: u32, at: u64) -> u64 {
        let offset = ((word << 6) as i32 >> 4) as i64;
        at.wrapping_add_signed(offset)
    }

    /// A function that only prepares arguments and jumps to another one has so many instructions.
    const SHORT: u64 = 4;

    /// Where a stub leads: `adrp x16; ldr x17, [x16]; add x16; br x17`, behind a landing mark or not; or a function that
    /// soon jumps to another one.
    pub fn stub_target(stub: u64, memory: &impl Memory) -> Option<u64> {
        const LANDING: u32 = 0xd503_245f;
        let first = memory.u32(stub)?;
        let at = if first == LANDING { stub.checked_add(4)? } else { stub };
        let (page, load) = (memory.u32(at)?, memory.u32(at.checked_add(4)?)?);
        if page & 0x9f00_001f == 0x9000_0010 && load & 0xffc0_03ff == 0xf940_0211 {
            let pages = ((page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3) << 11;
            let base = (at & !0xfff).wrapping_add_signed(i64::from(pages as i32 >> 11) << 12);
            return memory.word(base.wrapping_add(u64::from(load >> 10 & 0xfff) * 8));
        }
        for index in 0..SHORT {
            let at = at.checked_add(4 * index)?;
            let word = memory.u32(at)?;
            if word >> 26 == 0b00_0101 {
                return Some(branch_target(word, at));
            }
            // Anything else that goes elsewhere, or a frame: a function like any other.
            let moves = word & 0xff80_03ff == 0xd100_03ff || word & 0x3bc0_03e0 == 0x2980_03e0;
            if moves || word & 0x1c00_0000 == 0x1400_0000 {
                return None;
            }
        }
        None
    }
}

#[cfg(target_arch = "arm")]
mod machine {
    use super::Call;
    use crate::unwind::call_arm;
    use crate::unwind::memory::Memory;
    use crate::unwind::modules::ModuleTable;

    pub fn before(pc: u64, memory: &impl Memory, _: &ModuleTable) -> Option<Call> {
        call_arm::before(pc, memory)
    }

    pub use call_arm::stub_target;
}

#[cfg(target_arch = "riscv64")]
mod machine {
    use super::Call;
    use crate::unwind::instruction_riscv64 as instruction;
    use crate::unwind::memory::Memory;
    use crate::unwind::modules::ModuleTable;

    pub use instruction::{each_call as each, stub_target};

    pub fn before(pc: u64, memory: &impl Memory, modules: &ModuleTable) -> Option<Call> {
        let call = instruction::call_before(pc, memory)?;
        // What looks like an instruction of four bytes may be the end of one and the begin of another.
        Some(call.filter(|target| modules.find(*target).is_some()).map_or(Call::Indirect, Call::Direct))
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
#[path = "call_tests.rs"]
mod tests;
