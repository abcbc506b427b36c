//! One step from a frame to its caller by DWARF call frame information.

use gimli::{
    BaseAddresses, CfaRule, CommonInformationEntry, EhFrame, EndianSlice, FrameDescriptionEntry, NativeEndian,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow,
};

use super::arch;
use super::eh_frame::Entry;
use super::elf::{Image, Span};
use super::expression;
use super::memory::Memory;
use super::registers::{COUNT, Registers};
use super::rules::Rule;

/// Why no step could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The module has no `.eh_frame_hdr`, or one without a table.
    NoTable,
    /// Nothing covers this pc.
    NoEntry,
    /// The information contradicts itself or went away.
    Corrupt,
    /// The information is larger than what is set aside for it.
    TooLong,
    /// It says something that no compiler for this machine says.
    Unsupported,
    /// A register is needed that is not known.
    Unknown(u16),
    /// The stack could not be read at this address.
    Unreadable(u64),
}

/// What a step leads to.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one step, and there is no heap to put registers on")]
pub enum Step {
    /// The caller's registers.
    Caller {
        /// Its registers, pc being where it goes on; 0 where the callee was the outermost frame and returns to nowhere.
        registers: Registers,
        /// The frame that was left is a signal's: the caller was interrupted *before* its pc, it did not call.
        signal: bool,
    },
    /// There is no caller: this is the outermost function of the thread.
    Root,
}

type Slice<'s> = EndianSlice<'s, NativeEndian>;

/// How much a row of rules holds: a signal frame restores every register, aarch64 functions save the lower halves of
/// eight vector registers, too.
struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = [(gimli::Register, RegisterRule<usize>); 48];
    type Stack = [UnwindTableRow<usize, Storage>; 4];
}

/// The space that steps need, some 16 KiB; used again and again.
pub struct Stepper {
    entry: Entry,
    function: Span,
    rule: Option<Rule>,
    context: UnwindContext<usize, Storage>,
}

impl Stepper {
    /// Space for steps.
    pub fn new() -> Stepper {
        Stepper { entry: Entry::new(), function: Span::default(), rule: None, context: UnwindContext::new_in() }
    }

    /// From a frame to its caller. `lookup` is the address that is looked up: the pc, or for a return address the
    /// address before it, which lies in the call.
    pub fn step(
        &mut self,
        registers: &Registers,
        image: &Image,
        memory: &impl Memory,
        lookup: u64,
    ) -> Result<Step, Error> {
        (self.function, self.rule) = (Span::default(), None);
        self.entry.load(image, memory, lookup)?;
        let mut section = EhFrame::new(self.entry.section(), NativeEndian);
        section.set_address_size(size_of::<usize>() as u8);
        if cfg!(target_arch = "aarch64") {
            section.set_vendor(gimli::Vendor::AArch64);
        }
        let bases = BaseAddresses::default().set_eh_frame(self.entry.base);
        let fde: FrameDescriptionEntry<Slice> = section
            .fde_from_offset(&bases, self.entry.fde.into(), |section, bases, at| section.cie_from_offset(bases, at))
            .map_err(|_| Error::Corrupt)?;
        let row =
            fde.unwind_info_for_address(&section, &bases, &mut self.context, lookup).map_err(|error| match error {
                gimli::Error::NoUnwindInfoForAddress => Error::NoEntry,
                gimli::Error::TooManyRegisterRules | gimli::Error::StackFull => Error::TooLong,
                _ => Error::Corrupt,
            })?;
        self.function = Span { start: fde.initial_address(), end: fde.end_address() };
        let frame = Frame { registers, memory, section: &section, cie: fde.cie() };
        self.rule = frame.rule(row);
        frame.caller(row)
    }

    /// The last step's rule led nowhere.
    pub(super) fn forget(&mut self) {
        self.rule = None;
    }

    /// What the last step was by, where it is simple.
    pub(super) fn rule(&self) -> Option<Rule> {
        self.rule
    }

    /// The function whose rules the last step found, though it may have lacked a register to apply them; empty where it
    /// found none.
    pub fn function(&self) -> Span {
        self.function
    }
}

impl Default for Stepper {
    fn default() -> Stepper {
        Stepper::new()
    }
}

/// A frame whose rules are applied.
struct Frame<'f, 's, M> {
    registers: &'f Registers,
    memory: &'f M,
    section: &'f EhFrame<Slice<'s>>,
    cie: &'f CommonInformationEntry<Slice<'s>>,
}

impl<M: Memory> Frame<'_, '_, M> {
    fn caller(&self, row: &UnwindTableRow<usize, Storage>) -> Result<Step, Error> {
        let signal = self.cie.is_signal_trampoline();
        let link = self.cie.return_address_register();
        let way_back = row.register(link);
        if way_back == Some(RegisterRule::Undefined) {
            return Ok(Step::Root);
        }
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => self.register(register.0)?.wrapping_add_signed(*offset),
            CfaRule::Expression(expression) => self.expression(expression, None)?,
        };
        let pc = match way_back {
            // Where calls leave the return address in a register, it is still there.
            None if arch::LINK == Some(link.0) => self.register(link.0)?,
            None => return Err(Error::Corrupt),
            Some(rule) => self.value(link.0, &rule, cfa)?,
        };
        let pc = arch::code_address(pc);
        let kept = if signal { u64::MAX } else { arch::PRESERVED };
        let mut caller = self.registers.only(kept);
        caller.set(arch::SP, cfa);
        for (register, rule) in row.registers().filter(|(register, _)| usize::from(register.0) < COUNT) {
            // A register that cannot be had matters only if somebody asks for it.
            match self.value(register.0, rule, cfa) {
                Ok(value) => caller.set(register.0, value),
                Err(_) => caller.forget(register.0),
            }
        }
        caller.pc = pc;
        if let Some(link) = arch::LINK {
            caller.forget(link);
        }
        Ok(Step::Caller { registers: caller, signal })
    }

    fn rule(&self, row: &UnwindTableRow<usize, Storage>) -> Option<Rule> {
        let link = self.cie.return_address_register();
        let how = row.register(link)?;
        if self.cie.is_signal_trampoline() {
            return None;
        }
        if how == RegisterRule::Undefined {
            return Some(Rule::ROOT);
        }
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let registers = row.registers().map(|(register, how)| (register.0, how));
        Rule::new((register.0, *offset), (link.0, how), registers)
    }

    fn register(&self, number: u16) -> Result<u64, Error> {
        self.registers.get(number).ok_or(Error::Unknown(number))
    }

    fn value(&self, number: u16, rule: &RegisterRule<usize>, cfa: u64) -> Result<u64, Error> {
        match rule {
            RegisterRule::Undefined => Err(Error::Unknown(number)),
            RegisterRule::SameValue => self.register(number),
            RegisterRule::Offset(offset) => self.load(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => self.register(other.0),
            RegisterRule::Expression(expression) => self.load(self.expression(expression, Some(cfa))?),
            RegisterRule::ValExpression(expression) => self.expression(expression, Some(cfa)),
            RegisterRule::Constant(value) => Ok(*value),
            _ => Err(Error::Unsupported),
        }
    }

    fn load(&self, address: u64) -> Result<u64, Error> {
        self.memory.word(address).ok_or(Error::Unreadable(address))
    }

    fn expression(&self, expression: &UnwindExpression<usize>, first: Option<u64>) -> Result<u64, Error> {
        let bytes = expression.get(self.section).map_err(|_| Error::Corrupt)?.0;
        expression::evaluate(bytes.slice(), self.cie.encoding(), self.registers, self.memory, first)
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
#[path = "cfi_tests.rs"]
mod tests;
