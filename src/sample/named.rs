//! Frames that have a name: module and symbol, found by the monitor when a sample is taken, because the module may be gone
//! when the report is made, or another one lie in its place. Shared with the writer, which takes the names from here.
//!
//! An address means what it meant when the table of modules was made, so each frame is kept for a range of tables: the one
//! by which it was named, and those after it in which the same module was seen in the same place.

use super::strings::{At, Strings};

/// Places for frames: far more than the stacks of a few blocks have between them, as a rule.
pub const PLACES: usize = 2048;
/// Places that a frame may be kept in.
pub const WAYS: usize = 8;
/// The longest record of a module: a path as the kernel has them, a library's name behind it, and the rest.
pub const RECORD: usize = 4608;
const NUMBERS: usize = 4 * size_of::<u64>();

/// What a frame is looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its pc.
    pub pc: u64,
    /// The pc is a return address, and its call is what the frame does.
    pub is_outer: bool,
    /// The table of modules it was found by: how often that had been made.
    pub table: u32,
}

/// A module as the writer needs it, whatever has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// Path, with the library's name behind it in an archive.
    pub path: &'a [u8],
    /// Build id in lower-case digits.
    pub build_id: &'a [u8],
    /// Device and inode of the file, as the maps tell them.
    pub file: (u64, u64),
    /// Where in the file the ELF file begins.
    pub file_offset: u64,
    /// It is an ELF file that has not been deleted or replaced.
    pub is_whole: bool,
}

impl<'a> Module<'a> {
    /// As one string; says how long it is.
    fn write(&self, out: &mut [u8; RECORD]) -> usize {
        let numbers = [self.file.0, self.file.1, self.file_offset, u64::from(self.is_whole)];
        let numbers = numbers.into_iter().flat_map(u64::to_ne_bytes);
        let id_length = self.build_id.len().min(usize::from(u8::MAX));
        let id = self.build_id.iter().take(id_length).copied();
        let bytes = numbers.chain([id_length as u8]).chain(id).chain(self.path.iter().copied());
        out.iter_mut().zip(bytes).map(|(to, from)| *to = from).count()
    }

    /// From such a string.
    fn read(record: &'a [u8]) -> Option<Module<'a>> {
        let (numbers, rest) = record.split_first_chunk::<NUMBERS>()?;
        let (id_length, rest) = rest.split_first()?;
        let (build_id, path) = rest.split_at_checked(usize::from(*id_length))?;
        let [device, inode, file_offset, is_whole] = *numbers.as_chunks().0 else { return None };
        let [device, inode, file_offset, is_whole] = [device, inode, file_offset, is_whole].map(u64::from_ne_bytes);
        Some(Module { path, build_id, file: (device, inode), file_offset, is_whole: is_whole != 0 })
    }
}

/// How well a frame's symbol is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Nobody has looked for it: there was no time.
    Pending,
    /// The symbols in memory have none that says to cover the address; the module's file may have one.
    InMemory,
    /// There is no more to be found.
    Done,
}

/// What was found out about a frame.
pub struct Found<'a> {
    /// Its module.
    pub module: Module<'a>,
    /// The same for the same module at the same place.
    pub identity: u64,
    /// The pc relative to the module.
    pub module_offset: u64,
    /// The symbol's name, and how far behind its begin the pc is.
    pub symbol: Option<(&'a [u8], u64)>,
    /// See `Search`.
    pub search: Search,
}

/// A place for a frame.
#[derive(Clone, Copy)]
pub struct Place {
    /// 0: empty.
    pc: u64,
    module_offset: u64,
    symbol_offset: u64,
    identity: u64,
    module: At,
    symbol: At,
    /// The range of tables.
    first: u32,
    last: u32,
    /// When a sample had this frame.
    used: u32,
    is_outer: bool,
    search: Search,
}

impl Place {
    /// Empty.
    pub const EMPTY: Place = Place {
        pc: 0,
        module_offset: 0,
        symbol_offset: 0,
        identity: 0,
        module: 0,
        symbol: 0,
        first: 0,
        last: 0,
        used: 0,
        is_outer: false,
        search: Search::Pending,
    };

    fn is_of(&self, key: Key) -> bool {
        self.pc == key.pc && self.is_outer == key.is_outer && self.pc != 0
    }

    fn holds(&self, key: Key) -> bool {
        self.is_of(key) && self.first <= key.table && key.table <= self.last
    }
}

/// What the monitor has still to do about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Everything.
    Missing,
    /// Its module is known, its symbol has not been looked for.
    Pending,
    /// Nothing.
    Known,
}

/// A frame's name. Equal strings have equal places.
#[derive(Clone, Copy)]
pub struct Name<'a> {
    /// The module.
    pub module: Module<'a>,
    /// Where that is.
    pub module_at: At,
    /// The pc relative to it.
    pub module_offset: u64,
    /// The symbol, where there is one.
    pub symbol: Option<&'a [u8]>,
    /// Where that is.
    pub symbol_at: At,
    /// How far behind its begin the pc is.
    pub symbol_offset: u64,
    /// See `Search`.
    pub search: Search,
}

/// See above.
pub struct Named {
    places: &'static mut [Place],
    strings: Strings,
    /// For each set, the latest table of a frame that had to make room: what came after it is complete.
    evicted: &'static mut [u32],
    now: u32,
}

impl Named {
    /// Empty. `evicted` are zeros, one for each `WAYS` of the places.
    pub fn new(places: &'static mut [Place], evicted: &'static mut [u32], strings: Strings) -> Named {
        Named { places, strings, evicted, now: 0 }
    }

    /// The frames of another sample follow.
    pub fn begin_sample(&mut self) {
        self.now = self.now.wrapping_add(1);
    }

    /// The monitor's: is the frame here? If it is, it stays for a while. `identity` tells which module is at the place now.
    pub fn keep(&mut self, key: Key, identity: impl FnOnce() -> Option<u64>) -> Held {
        let exact = self.ways(key.pc).iter().position(|place| place.holds(key));
        let Some(number) = exact.or_else(|| self.adopt(key, identity()?)) else { return Held::Missing };
        let Some(place) = self.ways(key.pc).get(number).copied() else { return Held::Missing };
        let kept = self.strings.keep(place.module).zip(self.strings.keep(place.symbol));
        // The first may have been overwritten while room was made for the second, in a very small ring.
        let kept = kept.filter(|(module, _)| self.strings.get(*module).is_some());
        let now = self.now;
        let Some(held) = self.ways_mut(key.pc).get_mut(number) else { return Held::Missing };
        let Some((module, symbol)) = kept else {
            *held = Place::EMPTY;
            return Held::Missing;
        };
        (held.module, held.symbol, held.used) = (module, symbol, now);
        if place.search == Search::Pending { Held::Pending } else { Held::Known }
    }

    /// The same frame by an earlier table with the same module holds for this table, too.
    fn adopt(&mut self, key: Key, identity: u64) -> Option<usize> {
        let ways = self.ways(key.pc);
        let same = |place: &&Place| place.is_of(key) && place.identity == identity && place.last < key.table;
        let last = ways.iter().filter(same).map(|place| place.last).max()?;
        let number = ways.iter().position(|place| same(&place) && place.last == last)?;
        let found = *ways.get(number)?;
        // Between the two tables another module may have been there: then there is, or was, a place that says so.
        let was_another = ways.iter().any(|place| place.is_of(key) && place.last > last)
            || self.evicted.get(self.set(key.pc)).is_none_or(|evicted| *evicted > last);
        if was_another {
            return self.fill(key, Place { first: key.table, last: key.table, ..found });
        }
        self.ways_mut(key.pc).get_mut(number)?.last = key.table;
        Some(number)
    }

    /// The monitor's: keeps what it has found out.
    pub fn put(&mut self, key: Key, found: &Found) {
        let mut record = [0; RECORD];
        let length = found.module.write(&mut record);
        let module = self.strings.put(record.get(..length).unwrap_or_default());
        let symbol = found.symbol.map_or(0, |(name, _)| self.strings.put(name));
        if key.pc == 0 || module == 0 {
            return;
        }
        let place = Place {
            pc: key.pc,
            module_offset: found.module_offset,
            symbol_offset: found.symbol.map_or(0, |(_, offset)| offset),
            identity: found.identity,
            module,
            symbol,
            first: key.table,
            last: key.table,
            used: self.now,
            is_outer: key.is_outer,
            search: found.search,
        };
        match self.ways_mut(key.pc).iter_mut().find(|held| held.holds(key)) {
            // Its module is the same; what was pending has been looked for.
            Some(held) => *held = Place { first: held.first, last: held.last, ..place },
            None => {
                self.fill(key, place);
            }
        }
    }

    /// Puts a frame in the place of the one that was not seen for longest.
    fn fill(&mut self, key: Key, place: Place) -> Option<usize> {
        let now = self.now;
        let rank = |held: &Place| if held.pc == 0 { u32::MAX } else { now.wrapping_sub(held.used) };
        let (number, oldest) = self.ways_mut(key.pc).iter_mut().enumerate().max_by_key(|(_, held)| rank(held))?;
        let before = core::mem::replace(oldest, place);
        let set = self.set(key.pc);
        let evicted = self.evicted.get_mut(set)?;
        *evicted = (*evicted).max(before.last);
        Some(number)
    }

    /// The writer's: a frame's name, unless it had to make room.
    pub fn find(&self, key: Key) -> Option<Name<'_>> {
        let place = self.ways(key.pc).iter().find(|place| place.holds(key))?;
        let symbol = self.strings.get(place.symbol);
        Some(Name {
            module: Module::read(self.strings.get(place.module)?)?,
            module_at: place.module,
            module_offset: place.module_offset,
            symbol,
            symbol_at: place.symbol,
            symbol_offset: place.symbol_offset,
            search: place.search,
        })
    }

    /// The writer's: the module's file was searched, and had this symbol or none that is better. Says where the name is.
    pub fn searched(&mut self, key: Key, symbol: Option<(&[u8], u64)>) -> At {
        let stored = symbol.map(|(name, offset)| (self.strings.put(name), offset));
        let Some(held) = self.ways_mut(key.pc).iter_mut().find(|held| held.holds(key)) else { return 0 };
        held.search = Search::Done;
        if let Some((at, offset)) = stored {
            (held.symbol, held.symbol_offset) = (at, offset);
        }
        held.symbol
    }

    fn set(&self, pc: u64) -> usize {
        (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.evicted.len().max(1)
    }

    fn ways(&self, pc: u64) -> &[Place] {
        self.places.get(self.set(pc) * WAYS..).and_then(|rest| rest.get(..WAYS)).unwrap_or_default()
    }

    fn ways_mut(&mut self, pc: u64) -> &mut [Place] {
        let first = self.set(pc) * WAYS;
        self.places.get_mut(first..).and_then(|rest| rest.get_mut(..WAYS)).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
