//! A whole stack, from the innermost frame to the root of the thread.

use arrayvec::ArrayVec;
use core::borrow::BorrowMut;

use super::arch;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
use super::bare;
use super::call;
use super::cfi::{Error, Step, Stepper};
use super::elf::Span;
#[cfg(target_arch = "arm")]
use super::exidx;
use super::fp;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
use super::link;
use super::memory::Memory;
use super::modules::ModuleTable;
use super::registers::Registers;
use super::rules::{Left, Rules};
use super::search;
#[cfg(target_arch = "aarch64")]
use super::sigreturn_arm64 as sigreturn;
#[cfg(target_arch = "riscv64")]
use super::sigreturn_riscv64 as sigreturn;
#[cfg(target_arch = "arm")]
use crate::sys::program;

/// Frames beyond the caller's slice are counted up to this depth.
const DEEPEST: usize = 4096;
/// Signal handlers that interrupt each other, each with a stack of its own. More is garbage.
pub const MOST_SIGNALS: usize = 8;
/// How far a stack may reach that isn't the thread's own: a signal stack's or a fiber's bounds are not known.
const OTHER_STACK: u64 = 1 << 20;

/// The frames of a stack, innermost first, in memory that the caller gives.
#[derive(Debug)]
pub struct Stack<'o> {
    pcs: &'o mut [u64],
    count: usize,
    /// Where among the frames those are that a signal interrupted.
    interrupted: ArrayVec<usize, { MOST_SIGNALS + 1 }>,
    /// The root of the thread was not reached, or frames were cut.
    pub truncated: bool,
    /// Some step could not be verified.
    pub approximate: bool,
    /// Frames that were found and had no room, counted to a limit.
    pub frames_cut: u32,
    /// The walk came to an address that is in no known module: garbage, or a library that the table lacks.
    pub strayed: bool,
}

impl<'o> Stack<'o> {
    /// Room for a stack of `pcs.len()` frames.
    pub fn new(pcs: &'o mut [u64]) -> Stack<'o> {
        Stack {
            pcs,
            count: 0,
            interrupted: ArrayVec::new_const(),
            truncated: true,
            approximate: false,
            frames_cut: 0,
            strayed: false,
        }
    }

    /// The frames: the pc, then return addresses as they were found, but for pointer authentication.
    pub fn pcs(&self) -> &[u64] {
        self.pcs.get(..self.count).unwrap_or_default()
    }

    /// The frame's pc is where it was interrupted: the innermost one's, and that of each which a signal handler lies on.
    /// Any other is a return address, and what is looked up is the address before it, which lies in the call.
    pub fn is_interrupted(&self, frame: usize) -> bool {
        self.interrupted.contains(&frame)
    }

    /// Which frames those are, in order.
    pub fn interrupted(&self) -> &[usize] {
        &self.interrupted
    }

    fn push(&mut self, pc: u64, interrupted: bool) {
        match self.pcs.get_mut(self.count) {
            Some(place) => {
                *place = pc;
                if interrupted {
                    // As many as signals are believed.
                    let _ = self.interrupted.try_push(self.count);
                }
                self.count += 1;
            }
            None => self.frames_cut = self.frames_cut.saturating_add(1),
        }
    }

    fn depth(&self) -> usize {
        self.count.saturating_add(self.frames_cut as usize)
    }
}

/// Walks stacks, and remembers what it found out about their frames, some 40 KiB of it.
pub struct Walker<R = Rules> {
    stepper: Stepper,
    rules: R,
}

impl Walker {
    /// One that remembers nothing yet.
    pub fn new() -> Walker {
        Walker::within(Rules::new())
    }
}

impl<R: BorrowMut<Rules>> Walker<R> {
    /// The same, which remembers in memory of the caller's.
    pub fn within(rules: R) -> Walker<R> {
        Walker { stepper: Stepper::new(), rules }
    }

    /// Like [`walk`], but by what earlier walks found out. The table of modules must be the same one each time.
    pub fn walk(
        &mut self,
        registers: &Registers,
        memory: &impl Memory,
        modules: &ModuleTable,
        bounds: Span,
        out: &mut Stack,
    ) {
        let rules = self.rules.borrow_mut();
        rules.belong_to(modules.made());
        let rules = Some(rules);
        Steps { stepper: &mut self.stepper, rules, memory, modules, bounds }.walk(registers, out);
    }
}

impl Default for Walker {
    fn default() -> Walker {
        Walker::new()
    }
}

/// Walks from `registers` outwards and fills `out`. `bounds` is the thread's stack; everything is read from `memory`.
///
/// Each step is by CFI; where that says nothing for a pc, by frame pointer. A frame pointer that is needed and not known
/// is searched for as [`search`] says. The walk stops where nothing leads on, and where a step does not lead upwards into
/// known code: it never looks for plausible values.
pub fn walk(registers: &Registers, memory: &impl Memory, modules: &ModuleTable, bounds: Span, out: &mut Stack) {
    Steps { stepper: &mut Stepper::new(), rules: None, memory, modules, bounds }.walk(registers, out);
}

/// A frame that a step leads on from.
struct Frame {
    registers: Registers,
    /// Its pc where it was interrupted, else the address before, which lies in the call.
    lookup: u64,
    reach: Span,
    /// Its frame pointer had to be searched for.
    searched: Option<search::Found>,
    /// What it returns to.
    called_from: u64,
}

struct Steps<'w, 'm, M> {
    stepper: &'w mut Stepper,
    rules: Option<&'w mut Rules>,
    memory: &'w M,
    modules: &'w ModuleTable<'m>,
    bounds: Span,
}

impl<M: Memory> Steps<'_, '_, M> {
    fn walk(&mut self, registers: &Registers, out: &mut Stack) {
        out.interrupted.clear();
        (out.count, out.truncated, out.approximate, out.frames_cut) = (0, true, false, 0);
        let mut registers = *registers;
        registers.pc = arch::code_address(registers.pc);
        let mut interrupted = true;
        let mut signals = 0;
        let mut rooted = false;
        out.strayed = !self.is_code(registers.pc);
        loop {
            out.push(registers.pc, interrupted);
            if out.depth() >= DEEPEST {
                break;
            }
            let lookup = if interrupted { registers.pc } else { registers.pc.wrapping_sub(1) };
            let reach = reach(self.bounds, registers.sp);
            let (pc, sp) = (registers.pc, registers.sp);
            let known = self.rules.as_ref().and_then(|rules| rules.get(lookup));
            let known = known.filter(|rule| interrupted || rule.is_call);
            let (left, signal) = match known.map_or(Left::Not, |rule| rule.leave(&mut registers, self.memory)) {
                Left::Not => self.leave(&mut registers, lookup, reach, &mut out.approximate),
                left => (left, false),
            };
            if left != Left::Frame {
                rooted = left == Left::Root;
                break;
            }
            if signal {
                // Where the interrupted code's stack is, nobody can say; only so many are believed.
                signals += 1;
                if signals > MOST_SIGNALS {
                    break;
                }
            } else if !rises((pc, sp), (registers.pc, registers.sp), interrupted, reach) {
                break;
            }
            // The ABIs let the outermost frame return to nowhere.
            if registers.pc == 0 {
                rooted = true;
                break;
            }
            // Behind a call there is code, unless what was taken for a return address isn't one.
            if !self.is_code(if signal { registers.pc } else { registers.pc - 1 }) && !self.is_sigreturn(registers.pc) {
                out.strayed = true;
                break;
            }
            interrupted = signal;
        }
        out.truncated = !rooted || out.frames_cut > 0;
    }

    fn is_code(&self, pc: u64) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.get(pc).is_some()) || self.modules.find(pc).is_some()
    }

    /// Signal handlers return to code that begins with its mapping at times.
    fn is_sigreturn(&self, _pc: u64) -> bool {
        #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
        return self.is_code(_pc) && sigreturn::is_here(_pc, self.memory);
        #[cfg(not(any(target_arch = "aarch64", target_arch = "riscv64")))]
        false
    }

    /// Makes a frame's registers its caller's; and was it a signal's frame?
    fn leave(&mut self, registers: &mut Registers, lookup: u64, reach: Span, approximate: &mut bool) -> (Left, bool) {
        let mut frame = Frame { registers: *registers, lookup, reach, searched: None, called_from: 0 };
        let step = self.caller(&mut frame, approximate);
        // What signal handlers return to, nobody called.
        let is_signal = matches!(step, Some(Step::Caller { signal: true, .. }));
        let believed =
            lookup == registers.pc || is_signal || call::may_return_to(registers.pc, self.memory, self.modules);
        match believed {
            true => self.remember(&frame),
            false => *approximate = true,
        }
        match step {
            Some(Step::Caller { registers: caller, signal }) => {
                *registers = caller;
                (Left::Frame, signal)
            }
            Some(Step::Root) => (Left::Root, false),
            None => (Left::Not, false),
        }
    }

    fn caller(&mut self, frame: &mut Frame, approximate: &mut bool) -> Option<Step> {
        #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
        if frame.lookup != frame.registers.pc
            && let Some(step) = self.by_signal(frame)
        {
            self.stepper.forget();
            return Some(step);
        }
        let by_cfi = match self.by_cfi(frame) {
            Some(Err(Error::Unknown(arch::FP))) => {
                let function = self.stepper.function();
                let found = search::frame_pointer(&frame.registers, function, self.memory, self.modules, frame.reach)?;
                *approximate |= !found.is_certain;
                frame.searched = Some(found);
                frame.registers.set(arch::FP, found.frame_pointer);
                self.by_cfi(frame)
            }
            // The way back is in a register that isn't known.
            #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
            Some(Err(Error::Unknown(lacking))) if arch::LINK == Some(lacking) && frame.lookup == frame.registers.pc => {
                let start = self.stepper.function().start;
                let found = link::caller(&frame.registers, start, self.stepper, self.memory, self.modules, frame.reach);
                self.stepper.forget();
                let found = found?;
                *approximate |= !found.is_certain;
                return Some(Step::Caller { registers: found.registers, signal: false });
            }
            // Behind a frame that no table covers.
            #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
            Some(Err(Error::Unknown(arch::SP))) => {
                let sp = search::stack_pointer(&frame.registers, self.stepper.function(), self.memory);
                sp.and_then(|sp| {
                    frame.registers.set(arch::SP, sp);
                    self.by_cfi(frame)
                })
            }
            step => step,
        };
        match by_cfi {
            Some(Ok(step)) => {
                frame.called_from = match &step {
                    Step::Caller { registers, .. } => registers.pc,
                    Step::Root => 0,
                };
                Some(step)
            }
            _ => {
                self.stepper.forget();
                #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
                if frame.lookup == frame.registers.pc
                    && matches!(by_cfi, None | Some(Err(Error::NoTable | Error::NoEntry)))
                    && let Some(found) = bare::caller(&frame.registers, self.stepper, self.memory, self.modules)
                {
                    *approximate |= !found.is_certain;
                    return Some(Step::Caller { registers: found.registers, signal: false });
                }
                let step = fp::step(&frame.registers, self.memory, self.modules, frame.reach)?;
                *approximate = true;
                Some(step)
            }
        }
    }

    #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
    fn by_signal(&self, frame: &Frame) -> Option<Step> {
        let sp = frame.registers.get(arch::SP)?;
        let mut registers = sigreturn::interrupted(frame.registers.pc, sp, self.memory)?;
        registers.pc = arch::code_address(registers.pc);
        Some(Step::Caller { registers, signal: true })
    }

    fn by_cfi(&mut self, frame: &Frame) -> Option<Result<Step, Error>> {
        let image = &self.modules.find(frame.lookup)?.image;
        let step = self.stepper.step(&frame.registers, image, self.memory, frame.lookup);
        #[cfg(target_arch = "arm")]
        if let Err(Error::NoTable | Error::NoEntry) = step {
            let step = exidx::frame_step(&frame.registers, image.exidx, self.memory, frame.lookup);
            // The linker says so of code that was compiled without a table, too.
            if matches!(step, Ok(Step::Root)) && !self.may_begin_threads(frame.lookup) {
                return Some(Err(Error::NoEntry));
            }
            return Some(step);
        }
        Some(step)
    }

    /// Threads begin in the C library, the first one where the program does.
    #[cfg(target_arch = "arm")]
    fn may_begin_threads(&self, pc: u64) -> bool {
        // The program's first function is a few instructions long.
        const LENGTH: u64 = 64;
        let (entry, of_library) = (program::entry() as u64, program::C_LIBRARY as *const () as u64);
        let is_entry = pc.checked_sub(arch::code_address(entry)).is_some_and(|offset| offset < LENGTH);
        is_entry || self.modules.find(pc).is_some_and(|module| module.code.holds(of_library))
    }

    /// Keeps the rule of the last step, and with it what the code told of the frame pointer. What only the stack told
    /// holds for one stack.
    fn remember(&mut self, frame: &Frame) {
        let (Some(rules), Some(mut rule)) = (&mut self.rules, self.stepper.rule()) else { return };
        rule.is_call = frame.lookup != frame.registers.pc;
        if let Some(found) = frame.searched {
            let depth = found.frame_pointer.checked_sub(frame.registers.sp).and_then(|depth| u32::try_from(depth).ok());
            let (Some(depth), true) = (depth, found.is_certain) else { return };
            rule.by_code = Some((depth, frame.called_from));
        }
        rules.put(frame.lookup, rule);
    }
}

/// The part of the address space in which the stack goes on above `sp`.
fn reach(bounds: Span, sp: u64) -> Span {
    if bounds.holds(sp) { bounds } else { Span { start: sp, end: sp.saturating_add(OTHER_STACK) } }
}

/// The caller's frame lies above. Only a function that has not pushed anything may have its caller's stack pointer: where
/// calls push nothing, or if it has taken its return address off the stack, as `vfork` does. Of each the pc and the stack
/// pointer.
fn rises(callee: (u64, u64), caller: (u64, u64), interrupted: bool, reach: Span) -> bool {
    let leaf = interrupted && caller.1 == callee.1 && caller.0 != callee.0;
    (caller.1 > callee.1 || leaf) && caller.1 <= reach.end
}

#[cfg(all(test, target_pointer_width = "64"))]
#[path = "walk_tests.rs"]
mod tests;
