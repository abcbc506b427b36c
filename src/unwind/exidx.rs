//! One step from a frame to its caller by `.ARM.exidx`, the tables of 32-bit ARM.
//!
//! They hold for a whole function, not for each instruction of it: at a call they are right, in a prologue they needn't be.

use super::cfi::Error;
use super::elf::Span;
use super::memory::Memory;

/// No function's instructions are longer.
const MOST_BYTES: u32 = 256;
const SP: usize = 13;
const LR: usize = 14;
const PC: usize = 15;

/// r0 to r15, of which some may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Their values.
    pub values: [u32; 16],
    /// One bit for each that is known.
    pub known: u16,
}

impl Registers {
    fn get(&self, number: usize) -> Result<u32, Error> {
        let value = self.values.get(number).filter(|_| self.known >> number & 1 == 1);
        value.copied().ok_or(Error::Unknown(number as u16))
    }

    fn set(&mut self, number: usize, value: u32) {
        if let Some(place) = self.values.get_mut(number) {
            *place = value;
            self.known |= 1 << number;
        }
    }
}

/// The caller's registers; `None` where the function says that it has no caller.
pub fn step<M: Memory>(
    registers: &Registers,
    table: Span,
    memory: &M,
    lookup: u64,
) -> Result<Option<Registers>, Error> {
    const CANNOT_UNWIND: u32 = 1;
    let entry = find(table, memory, lookup)?;
    let word = read(memory, entry.wrapping_add(4))?;
    if word == CANNOT_UNWIND {
        return Ok(None);
    }
    let code = if word >> 31 == 1 {
        Code::new(memory, entry.wrapping_add(4), word)?
    } else {
        let place = relative(entry.wrapping_add(4), word);
        match read(memory, place)? {
            compact if compact >> 31 == 1 => Code::new(memory, place, compact)?,
            // A language's own routine comes first; those of C++ and Rust keep the same instructions behind it.
            _ => {
                let place = place.wrapping_add(4);
                let word = read(memory, place)?;
                Code { memory, at: place.wrapping_add(1), left: 3 + 4 * (word >> 24).min(MOST_BYTES / 4) }
            }
        }
    };
    // The caller's: calls preserve r4 to r11.
    let mut frame = Frame { callee: *registers, caller: *registers, vsp: registers.get(SP)?, popped: 0, memory };
    frame.run(code)?;
    Ok(Some(frame.finish()?))
}

/// The same for the registers of a walk.
#[cfg(target_arch = "arm")]
pub fn frame_step<M: Memory>(
    registers: &super::registers::Registers,
    table: Span,
    memory: &M,
    lookup: u64,
) -> Result<super::cfi::Step, Error> {
    let mut own = Registers { values: [0; 16], known: 0 };
    for number in 0..16_u16 {
        if let Some(value) = registers.get(number) {
            own.set(usize::from(number), value as u32);
        }
    }
    let Some(caller) = step(&own, table, memory, lookup)? else { return Ok(super::cfi::Step::Root) };
    let pc = super::arch::code_address(u64::from(caller.get(PC)?));
    let mut registers = super::registers::Registers::new(pc, u64::from(caller.get(SP)?));
    for number in 0..SP {
        if let Ok(value) = caller.get(number) {
            registers.set(number as u16, u64::from(value));
        }
    }
    Ok(super::cfi::Step::Caller { registers, signal: false })
}

/// The address of the last entry that begins at or before `lookup`.
fn find(table: Span, memory: &impl Memory, lookup: u64) -> Result<u64, Error> {
    let count = table.end.saturating_sub(table.start) / 8;
    if count == 0 {
        return Err(Error::NoTable);
    }
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        let at = table.start + 8 * middle;
        if relative(at, read(memory, at)?) <= lookup {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.checked_sub(1).map(|row| table.start + 8 * row).ok_or(Error::NoEntry)
}

/// What a word of 31 bits at `at` points to.
fn relative(at: u64, word: u32) -> u64 {
    let offset = (word << 1) as i32 >> 1;
    u64::from((at as u32).wrapping_add_signed(offset))
}

fn read(memory: &impl Memory, at: u64) -> Result<u32, Error> {
    memory.u32(at).ok_or(Error::Corrupt)
}

/// Instructions, which lie in their words from the highest byte to the lowest.
struct Code<'m, M> {
    memory: &'m M,
    /// The next byte, counted in that order.
    at: u64,
    left: u32,
}

impl<'m, M: Memory> Code<'m, M> {
    /// The compact forms: three bytes, or two and more words.
    fn new(memory: &'m M, at: u64, word: u32) -> Result<Code<'m, M>, Error> {
        match word >> 24 & 0xf {
            0 => Ok(Code { memory, at: at.wrapping_add(1), left: 3 }),
            1 | 2 => Ok(Code { memory, at: at.wrapping_add(2), left: 2 + 4 * (word >> 16 & 0xff).min(MOST_BYTES / 4) }),
            _ => Err(Error::Unsupported),
        }
    }

    fn byte(&mut self) -> Result<Option<u8>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let [byte] = self.memory.bytes(self.at ^ 3).ok_or(Error::Corrupt)?;
        (self.at, self.left) = (self.at.wrapping_add(1), left);
        Ok(Some(byte))
    }

    /// A byte that an instruction lacks.
    fn more(&mut self) -> Result<u8, Error> {
        self.byte()?.ok_or(Error::Corrupt)
    }
}

struct Frame<'m, M> {
    callee: Registers,
    caller: Registers,
    /// The stack pointer, as the instructions go back through the function's frame.
    vsp: u32,
    popped: u16,
    memory: &'m M,
}

impl<M: Memory> Frame<'_, M> {
    fn run(&mut self, mut code: Code<M>) -> Result<(), Error> {
        const FINISH: u8 = 0xb0;
        while let Some(byte) = code.byte()? {
            let low = u32::from(byte & 7);
            match byte {
                0x00..=0x3f => self.drop(4 * u32::from(byte & 0x3f) + 4),
                0x40..=0x7f => self.vsp = self.vsp.wrapping_sub(4 * u32::from(byte & 0x3f) + 4),
                0x80..=0x8f => match u32::from(byte & 0xf) << 8 | u32::from(code.more()?) {
                    0 => return Err(Error::NoEntry),
                    mask => self.pop(mask << 4)?,
                },
                0x9d | 0x9f => return Err(Error::Unsupported),
                0x90..=0x9f => self.vsp = self.caller.get(usize::from(byte & 0xf))?,
                0xa0..=0xa7 => self.pop(run_of(low))?,
                0xa8..=0xaf => self.pop(run_of(low) | 1 << LR)?,
                FINISH => return Ok(()),
                0xb1 => match u32::from(code.more()?) {
                    mask @ 1..=0xf => self.pop(mask)?,
                    _ => return Err(Error::Unsupported),
                },
                0xb2 => self.drop_far(&mut code)?,
                // Vector registers are nobody's concern, but for the room they take. One old form has a word more.
                0xb3 => self.drop(8 * (u32::from(code.more()? & 0xf) + 1) + 4),
                // A signature of the return address.
                0xb4 => self.drop(4),
                0xb8..=0xbf => self.drop(8 * (low + 1) + 4),
                0xc6 | 0xc8 | 0xc9 => self.drop(8 * (u32::from(code.more()? & 0xf) + 1)),
                0xc7 => self.drop(4 * (code.more()? & 0xf).count_ones()),
                0xc0..=0xc5 | 0xd0..=0xd7 => self.drop(8 * (low + 1)),
                _ => return Err(Error::Unsupported),
            }
        }
        Ok(())
    }

    fn drop(&mut self, bytes: u32) {
        self.vsp = self.vsp.wrapping_add(bytes);
    }

    /// Far more than one byte can say.
    fn drop_far(&mut self, code: &mut Code<M>) -> Result<(), Error> {
        let mut words = 0_u32;
        for shift in (0..32).step_by(7) {
            let byte = code.more()?;
            words |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                self.drop(words.wrapping_mul(4).wrapping_add(0x204));
                return Ok(());
            }
        }
        Err(Error::Corrupt)
    }

    /// Restores the registers of `mask`, the lowest from the lowest address.
    fn pop(&mut self, mask: u32) -> Result<(), Error> {
        let mut at = self.vsp;
        for number in (0..16).filter(|number| mask >> number & 1 == 1) {
            let address = u64::from(at);
            let value = self.memory.u32(address).ok_or(Error::Unreadable(address))?;
            self.caller.set(number, value);
            self.popped |= 1 << number;
            at = at.wrapping_add(4);
        }
        self.vsp = if mask >> SP & 1 == 1 { self.caller.get(SP)? } else { at };
        Ok(())
    }

    fn finish(mut self) -> Result<Registers, Error> {
        const PRESERVED: u16 = 0xff0;
        if self.popped >> PC & 1 == 0 {
            let link = self.caller.get(LR)?;
            self.caller.set(PC, link);
        }
        self.caller.set(SP, self.vsp);
        // What was not saved and is not preserved is the callee's own.
        let kept = self.callee.known & PRESERVED | self.popped | 1 << SP | 1 << PC;
        self.caller.known &= kept & !(1 << LR);
        Ok(self.caller)
    }
}

/// r4 and as many behind it.
fn run_of(more: u32) -> u32 {
    ((2 << more) - 1) << 4
}

#[cfg(test)]
#[path = "exidx_tests.rs"]
mod tests;
