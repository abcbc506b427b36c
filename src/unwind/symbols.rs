//! The name of a function, from its module's dynamic symbols as they are mapped.

use super::dynamic::Dynamic;
use super::elf::{Image, half, quarter, word};
use super::memory::Memory;

const WIDE: bool = size_of::<usize>() == 8;
pub(crate) const SYMBOL: usize = if WIDE { 24 } else { 16 };
/// Symbols that are read at once, in a piece of about two pages.
const CHUNK: usize = 340;
/// So much of two names of one function is compared.
const COMPARED: usize = 64;

/// A function that an address lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// How many bytes of its name were written, without the NUL that follows them.
    pub name_length: usize,
    /// How far into it the address lies.
    pub offset: u64,
    /// The symbol says that it reaches so far; else it is only the nearest one before that says no size.
    pub is_sure: bool,
}

/// What is used of a symbol.
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    value: u64,
    size: u64,
}

impl Symbol {
    /// The symbol, if it is a function that is defined here.
    fn function(bytes: &[u8; SYMBOL]) -> Option<Symbol> {
        const FUNCTION: u8 = 2;
        const INDIRECT_FUNCTION: u8 = 10;
        let (info, section, value, size) = if WIDE { (4, 6, 8, 16) } else { (12, 14, 4, 8) };
        let kind = bytes.get(info)? & 0xf;
        if kind != FUNCTION && kind != INDIRECT_FUNCTION || quarter(bytes, section)? == 0 {
            return None;
        }
        // The lowest bit of an ARM function tells Thumb code, not a place.
        let value = word(bytes, value)? & if cfg!(target_arch = "arm") { !1 } else { !0 };
        Some(Symbol { name: half(bytes, 0)?, value, size: word(bytes, size)? })
    }

    fn covers(&self, address: u64) -> bool {
        address.checked_sub(self.value).is_some_and(|offset| offset < self.size)
    }
}

/// What a scan has found so far.
#[derive(Default)]
struct Nearest {
    covering: Option<Symbol>,
    /// The nearest one before the address that says no size.
    unsized_before: Option<Symbol>,
    /// The nearest one of a size that ends before the address.
    ended: u64,
}

/// The function of `image` that `address` (in memory) lies in. Its name is written to `out` with a NUL behind it, cut
/// where it doesn't fit.
///
/// For a return address pass the address before it: a call may be the last instruction of its function.
pub fn function(image: &Image, memory: &impl Memory, address: u64, out: &mut [u8]) -> Option<Function> {
    let dynamic = Dynamic::read(image, memory)?;
    let room = image.span.end.checked_sub(dynamic.symbols)? / SYMBOL as u64;
    let count = if dynamic.symbols == 0 { 0 } else { dynamic.symbol_count(memory)?.min(room) };
    let table = Table { symbols: dynamic.symbols, count, strings: dynamic.strings() };
    table.function(memory, address.wrapping_sub(image.bias), out)
}

/// Symbols and their names: a module's in memory, or a file's, whose offsets are the addresses then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub symbols: u64,
    pub count: u64,
    pub strings: Strings,
}

impl Table {
    /// The function that covers `address`, which is as the file's symbols count, or comes nearest.
    pub fn function(&self, memory: &impl Memory, address: u64, out: &mut [u8]) -> Option<Function> {
        let nearest = self.scan(memory, address)?;
        let unsized_before = nearest.unsized_before.filter(|symbol| symbol.value >= nearest.ended);
        let symbol = nearest.covering.or(unsized_before)?;
        let room = out.len().checked_sub(1)?;
        let name_length = self.strings.get(u64::from(symbol.name), memory, out.get_mut(..room)?)?;
        *out.get_mut(name_length)? = 0;
        Some(Function { name_length, offset: address - symbol.value, is_sure: nearest.covering.is_some() })
    }

    fn scan(&self, memory: &impl Memory, address: u64) -> Option<Nearest> {
        let mut nearest = Nearest::default();
        let mut index = 0;
        while index < self.count {
            let mut chunk = [0; CHUNK * SYMBOL];
            let symbols = usize::try_from(self.count - index).unwrap_or(usize::MAX).min(CHUNK);
            let chunk = chunk.get_mut(..symbols * SYMBOL)?;
            if !memory.read(self.symbols.checked_add(index.checked_mul(SYMBOL as u64)?)?, chunk) {
                return None;
            }
            for symbol in chunk.as_chunks::<SYMBOL>().0.iter().filter_map(Symbol::function) {
                nearest.look(symbol, address, |one, other| self.strings.first(memory, one, other));
            }
            index += symbols as u64;
        }
        Some(nearest)
    }
}

impl Nearest {
    /// Takes a symbol in. `better` tells which of two names of one place is to be preferred.
    fn look(&mut self, symbol: Symbol, address: u64, better: impl Fn(&Symbol, &Symbol) -> bool) {
        if symbol.value > address {
            return;
        }
        let nearer = |held: &Option<Symbol>| {
            held.is_none_or(|held| symbol.value > held.value || symbol.value == held.value && better(&symbol, &held))
        };
        if symbol.covers(address) {
            if nearer(&self.covering) {
                self.covering = Some(symbol);
            }
        } else if symbol.size == 0 {
            if nearer(&self.unsized_before) {
                self.unsized_before = Some(symbol);
            }
        } else {
            self.ended = self.ended.max(symbol.value.saturating_add(symbol.size));
        }
    }
}

/// Names, each ending in a NUL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strings {
    pub start: u64,
    pub size: u64,
}

impl Strings {
    /// Writes the string at `offset`, as much of it as fits, and says its length.
    pub fn get(&self, offset: u64, memory: &impl Memory, out: &mut [u8]) -> Option<usize> {
        let left = usize::try_from(self.size.checked_sub(offset)?).ok()?;
        let room = out.len().min(left);
        let out = out.get_mut(..room)?;
        if !memory.read(self.start.checked_add(offset)?, out) {
            return None;
        }
        Some(out.iter().position(|byte| *byte == 0).unwrap_or(room))
    }

    /// Does `one`'s name come before `other`'s? The one that people call has the fewest underscores in front and is the
    /// shortest; bytes decide between the rest, so that the answer is always the same.
    fn first(&self, memory: &impl Memory, one: &Symbol, other: &Symbol) -> bool {
        let mut names = [[0; COMPARED]; 2];
        let [one, other] = [one, other].map(|symbol| u64::from(symbol.name));
        let [first, second] = &mut names;
        let (Some(first_length), Some(second_length)) = (self.get(one, memory, first), self.get(other, memory, second))
        else {
            return false;
        };
        let key = |name: &[u8]| name.iter().position(|byte| *byte != b'_').unwrap_or(name.len());
        let (first, second) =
            (first.get(..first_length).unwrap_or_default(), second.get(..second_length).unwrap_or_default());
        (key(first), first.len(), first) < (key(second), second.len(), second)
    }
}
