//! DWARF expressions as they occur in CFI: a small stack machine over words.

use arrayvec::ArrayVec;
use gimli::{Encoding, EndianSlice, NativeEndian, Operation};

use super::cfi::Error;
use super::memory::Memory;
use super::registers::Registers;

/// Deeper than any compiler's or hand-written expression.
const DEPTH: usize = 16;
/// An expression may jump backwards; none that means well takes longer.
const STEPS: usize = 256;

/// Evaluates an expression, with `first` on the stack if there is one.
pub fn evaluate(
    bytes: &[u8],
    encoding: Encoding,
    registers: &Registers,
    memory: &impl Memory,
    first: Option<u64>,
) -> Result<u64, Error> {
    let mut stack = ArrayVec::<u64, DEPTH>::new();
    stack.extend(first);
    let mut rest = EndianSlice::new(bytes, NativeEndian);
    for _ in 0..STEPS {
        if rest.slice().is_empty() {
            return stack.pop().ok_or(Error::Corrupt);
        }
        let operation = Operation::parse(&mut rest, encoding).map_err(|_| Error::Corrupt)?;
        let jump = match operation {
            Operation::Skip { target } => Some(target),
            Operation::Bra { target } => (stack.pop().ok_or(Error::Corrupt)? != 0).then_some(target),
            other => {
                apply(other, &mut stack, registers, memory)?;
                None
            }
        };
        if let Some(target) = jump {
            let here = bytes.len() - rest.slice().len();
            let there = here.checked_add_signed(isize::from(target)).and_then(|at| bytes.get(at..));
            rest = EndianSlice::new(there.ok_or(Error::Corrupt)?, NativeEndian);
        }
    }
    Err(Error::Corrupt)
}

fn apply(
    operation: Operation<EndianSlice<'_, NativeEndian>>,
    stack: &mut ArrayVec<u64, DEPTH>,
    registers: &Registers,
    memory: &impl Memory,
) -> Result<(), Error> {
    let mut pop = || stack.pop().ok_or(Error::Corrupt);
    let value = match operation {
        Operation::Nop => return Ok(()),
        Operation::Drop => return pop().map(drop),
        Operation::UnsignedConstant { value } => value,
        Operation::SignedConstant { value } => value as u64,
        Operation::Address { address } => address,
        Operation::RegisterOffset { register, offset, .. } => {
            registers.get(register.0).ok_or(Error::Unknown(register.0))?.wrapping_add_signed(offset)
        }
        Operation::Deref { size, space: false, .. } => load(pop()?, size, memory)?,
        Operation::PlusConstant { value } => pop()?.wrapping_add(value),
        Operation::Neg => pop()?.wrapping_neg(),
        Operation::Not => !pop()?,
        Operation::Abs => (pop()? as i64).unsigned_abs(),
        Operation::Pick { index } => {
            let below = stack.len().checked_sub(usize::from(index) + 1);
            *below.and_then(|at| stack.get(at)).ok_or(Error::Corrupt)?
        }
        Operation::Swap => {
            let (top, below) = (pop()?, pop()?);
            stack.try_push(top).map_err(|_| Error::Corrupt)?;
            below
        }
        Operation::Rot => {
            let (top, second, third) = (pop()?, pop()?, pop()?);
            stack.try_extend_from_slice(&[top, third]).map_err(|_| Error::Corrupt)?;
            second
        }
        of_two => {
            let (top, below) = (pop()?, pop()?);
            combine(of_two, below, top)?
        }
    };
    stack.try_push(value).map_err(|_| Error::Corrupt)
}

fn load(address: u64, size: u8, memory: &impl Memory) -> Result<u64, Error> {
    let value = match size {
        1 => memory.bytes(address).map(|bytes| u64::from(u8::from_ne_bytes(bytes))),
        2 => memory.bytes(address).map(|bytes| u64::from(u16::from_ne_bytes(bytes))),
        4 => memory.u32(address).map(u64::from),
        8 => memory.bytes(address).map(u64::from_ne_bytes),
        _ => return Err(Error::Corrupt),
    };
    value.ok_or(Error::Unreadable(address))
}

fn combine(operation: Operation<EndianSlice<'_, NativeEndian>>, below: u64, top: u64) -> Result<u64, Error> {
    let shift = u32::try_from(top).unwrap_or(u32::MAX);
    let (signed_below, signed_top) = (below as i64, top as i64);
    Ok(match operation {
        Operation::And => below & top,
        Operation::Or => below | top,
        Operation::Xor => below ^ top,
        Operation::Plus => below.wrapping_add(top),
        Operation::Minus => below.wrapping_sub(top),
        Operation::Mul => below.wrapping_mul(top),
        Operation::Div if top != 0 => signed_below.wrapping_div(signed_top) as u64,
        Operation::Mod => below.checked_rem(top).ok_or(Error::Corrupt)?,
        Operation::Shl => below.checked_shl(shift).unwrap_or(0),
        Operation::Shr => below.checked_shr(shift).unwrap_or(0),
        Operation::Shra => signed_below.checked_shr(shift).unwrap_or(signed_below >> 63) as u64,
        Operation::Eq => u64::from(below == top),
        Operation::Ne => u64::from(below != top),
        Operation::Lt => u64::from(signed_below < signed_top),
        Operation::Le => u64::from(signed_below <= signed_top),
        Operation::Gt => u64::from(signed_below > signed_top),
        Operation::Ge => u64::from(signed_below >= signed_top),
        _ => return Err(Error::Unsupported),
    })
}
