//! The caller of a function that left its return address in a register which nobody tells (aarch64, riscv64).
//!
//! A system call's stub makes no frame: the way back is in that register alone. But whoever called it had saved its own return
//! address, and the call before *that* names it.

use super::arch;
use super::call::{self, Call};
use super::cfi::{Error, Step, Stepper};
use super::elf::Span;
use super::memory::Memory;
use super::modules::ModuleTable;
#[cfg(target_arch = "aarch64")]
use super::prologue_arm64 as prologue;
#[cfg(target_arch = "riscv64")]
use super::prologue_riscv64 as prologue;
use super::registers::Registers;
use super::search::Stack;

const WORD: u64 = 8;

/// The caller.
pub struct Found {
    /// In it, behind its call.
    pub registers: Registers,
    /// It is the only one that fits, and calls from one place only.
    pub is_certain: bool,
}

/// The caller of the function that begins at `start` and has `registers.sp` as its caller left it.
pub fn caller<M: Memory>(
    registers: &Registers,
    start: u64,
    stepper: &mut Stepper,
    memory: &M,
    modules: &ModuleTable,
    reach: Span,
) -> Option<Found> {
    let mut search = Search { sp: registers.sp, start, stepper, memory, modules };
    let mut weak: Option<Registers> = None;
    let mut several = false;
    let mut found = None;
    Stack { sp: registers.sp, reach, memory }.words(WORD, |at, saved| {
        match search.look(at, arch::code_address(saved)) {
            Some(Fit::Sure(caller)) => {
                found = Some(caller);
                return None;
            }
            Some(Fit::Maybe(caller)) => {
                several = weak.is_some();
                weak = weak.or(Some(caller));
            }
            None => {}
        }
        Some(())
    });
    let weak = weak.filter(|_| !several).map(|registers| Found { registers, is_certain: false });
    found.or(weak)
}

enum Fit {
    /// The caller's own tables or instructions put its return address just there.
    Sure(Found),
    /// They don't say where it is.
    Maybe(Registers),
}

struct Search<'s, 'm, M> {
    sp: u64,
    start: u64,
    stepper: &'s mut Stepper,
    memory: &'m M,
    modules: &'m ModuleTable<'m>,
}

impl<M: Memory> Search<'_, '_, M> {
    /// Is `saved`, at `at`, a return address of the caller?
    fn look(&mut self, at: u64, saved: u64) -> Option<Fit> {
        let Call::Direct(target) = call::before(saved, self.memory, self.modules)? else { return None };
        let begin = call::leads_to(target, self.memory, self.modules);
        let module = self.modules.find(begin)?;
        let mut caller = Registers::new(begin, self.sp);
        let _ = self.stepper.step(&caller, &module.image, self.memory, begin);
        let function = self.stepper.function();
        if function.start != begin {
            return None;
        }
        let (site, sites) = self.sites(function)?;
        caller.pc = site.checked_add(4)?;
        let frame_pointer = at.checked_sub(WORD)?.checked_add(arch::RECORD)?;
        match self.stepper.step(&caller, &module.image, self.memory, site) {
            Ok(Step::Caller { registers, .. }) if registers.pc == saved => {}
            Err(Error::Unknown(arch::FP)) => {
                caller.set(arch::FP, frame_pointer);
                match prologue::depth(function, self.memory) {
                    None => return Some(Fit::Maybe(caller)),
                    Some(depth) if self.sp.checked_add(depth) == Some(frame_pointer) => {}
                    Some(_) => return None,
                }
            }
            _ => return None,
        }
        Some(Fit::Sure(Found { registers: caller, is_certain: sites == 1 }))
    }

    /// The first place from which `function` calls the one searched from, and how many there are.
    fn sites(&self, function: Span) -> Option<(u64, u32)> {
        let mut first = None;
        let mut count = 0;
        call::each(function, self.memory, |at, target| {
            if call::is_of(Call::Direct(target), self.start, self.memory, self.modules) {
                first = first.or(Some(at));
                count += 1;
            }
        })?;
        Some((first?, count))
    }
}
