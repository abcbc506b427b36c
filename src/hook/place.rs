//! One interposed module: which of its words lead to our functions, and what they held before.
//!
//! Who may write a word: the linker, when the module is loaded and, where it binds lazily, once more with the first call;
//! we, in a callback of the loader's and with our table locked, by exchanging what we have read for ours or ours for what
//! was there; and others like us, of whom nothing is known but that they may come at any time. So
//!
//! * a word that does not hold what we expect is not ours and stays as it is, when interposing as when restoring;
//! * who has interposed before us is called by our functions, and who comes after us calls ours: these stay for ever;
//! * a word that the linker has bound behind our back is found by the next look and exchanged again.
#![allow(unsafe_code)]

use super::alooper::{NAMES, SYSTEM};
use super::imports::{self, Import, Unreadable, Use};
use super::stand_ins::{self, SETS};
use crate::sys::errno::Errno;
use crate::sys::loader::{Access, Staying};
use crate::sys::maps::{Lines, Mapping, OwnMaps};
use crate::unwind::dynamic;
use crate::unwind::elf::Image;
use crate::unwind::memory::Memory;
use arrayvec::ArrayVec;
use core::fmt::{self, Display, Formatter};

/// Words of one module at most.
pub const WORDS: usize = 32;
/// Longest line of the maps of which all is read that matters here.
const LINE: usize = 512;

/// Why a module is not interposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no ELF file that we can read.
    Unreadable,
    /// It imports none of the functions.
    NoImports,
    /// It imports some, and none of its words is bound to one.
    Unbound,
    /// There is no looper to go on to.
    NoLooper,
    /// It has more words than there is room for.
    Room,
    /// A page could not be made writable.
    Page(Errno),
    /// A word did not keep what was written.
    Word,
}

impl Display for Refusal {
    fn fmt(&self, to: &mut Formatter) -> fmt::Result {
        match self {
            Refusal::Unreadable => to.write_str("cannot be made out: its tables are missing or cut off"),
            Refusal::NoImports => to.write_str("imports no function of ALooper's that could be interposed"),
            Refusal::Unbound => to.write_str("imports functions of ALooper's, and none of them is bound"),
            Refusal::NoLooper => to.write_str("calls ALooper, which is not there"),
            Refusal::Room => write!(to, "has no room: {SETS} modules and {WORDS} words of each can be interposed"),
            Refusal::Page(error) => write!(to, "has a page that cannot be written to: {error}"),
            Refusal::Word => to.write_str("has a word that does not stay as it was written"),
        }
    }
}

impl From<Unreadable> for Refusal {
    fn from(_: Unreadable) -> Refusal {
        Refusal::Unreadable
    }
}

/// A word that leads to us.
#[derive(Clone, Copy, Debug)]
struct Word {
    at: u64,
    name: usize,
    before: usize,
}

/// A module that is interposed.
pub struct Place {
    /// Where it is mapped.
    pub base: u64,
    /// Tells it from another one at the same place.
    pub identity: u64,
    /// Number of its stand-ins.
    set: usize,
    words: ArrayVec<Word, WORDS>,
}

/// What tells a module from others: its dynamic section, and where it lies.
pub fn identity(image: &Image, memory: &impl Memory) -> u64 {
    let mut sum = image.bias ^ 0xcbf2_9ce4_8422_2325;
    let mut add = |value: u64| sum = (sum ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    let _ = dynamic::entries(image, memory, &mut |tag, value| {
        add(tag);
        add(value);
    });
    let (id, length) = image.build_id(memory).unwrap_or_default();
    id.iter().take(length).for_each(|byte| add(u64::from(*byte)));
    sum
}

/// What the pages of these addresses may be used for.
pub fn accesses<const N: usize>(addresses: &ArrayVec<u64, N>) -> ArrayVec<Access, N> {
    let mut found: ArrayVec<Access, N> = addresses.iter().map(|_| Access::default()).collect();
    let mut buffer = [0; LINE];
    let Ok(maps) = OwnMaps::open() else { return found };
    let mut lines = Lines::new(maps, &mut buffer);
    while let Ok(Some(line)) = lines.next_line() {
        let Some(mapping) = Mapping::parse(line) else { continue };
        for (address, access) in addresses.iter().zip(&mut found) {
            if mapping.start <= *address && *address < mapping.end {
                *access = Access { read: mapping.readable, write: mapping.writable, execute: mapping.executable };
            }
        }
    }
    found
}

/// An import and what is known of its word.
#[derive(Clone, Copy)]
struct Found {
    import: Import,
    value: usize,
    access: Access,
    leads_to_code: bool,
}

impl Found {
    /// The word still leads to the module's own stub, which has the linker look for the function.
    fn is_lazy(&self, image: &Image) -> bool {
        self.import.used_as == Use::Slot && image.span.holds(self.value as u64) && self.leads_to_code
    }

    /// What a call by this word arrives at, if it is bound.
    fn target(&self, image: &Image) -> Option<usize> {
        let name = self.import.name;
        if let Some(set) = stand_ins::find(name, self.value) {
            return Some(stand_ins::set(set).functions.address(name));
        }
        let is_bound = self.leads_to_code && self.import.used_as == Use::Slot && !self.is_lazy(image);
        is_bound.then_some(self.value)
    }
}

impl Place {
    /// Interposes a module, all of its words or none; `may_lack_looper`: but for those of functions that nobody knows.
    /// `tables` may be a copy from a moment ago, `memory` not.
    pub fn make(
        set: usize,
        module: &Staying,
        image: &Image,
        tables: &impl Memory,
        memory: &impl Memory,
        may_lack_looper: bool,
    ) -> Result<Place, Refusal> {
        let found = find(image, tables, memory)?;
        let functions = &stand_ins::set(set).functions;
        for name in 0..NAMES.len() {
            let bound = found.iter().filter(|found| found.import.name == name).find_map(|found| found.target(image));
            functions.set(name, bound.unwrap_or_else(|| SYSTEM.address(name)));
        }
        let lacks_looper = found.iter().any(|found| functions.address(found.import.name) == 0);
        if lacks_looper && !may_lack_looper {
            return Err(Refusal::NoLooper);
        }
        let mut place = Place { base: module.base, identity: identity(image, tables), set, words: ArrayVec::new() };
        for found in &found {
            let (name, at, count) = (found.import.name, found.import.at, place.words.len());
            let (target, ours) = (functions.address(name), place.ours(name));
            let is_lazy = found.is_lazy(image);
            let is_stand_in = stand_ins::find(name, found.value).is_some();
            if target == 0 || !is_stand_in && !is_lazy && found.value != target {
                continue;
            }
            // A stub's word may be bound by the linker between our looks. A stand-in that nobody remembers was left by a
            // process that forked in the middle of this.
            let mut written = Ok(false);
            for from in [found.value, target] {
                // Whatever becomes of it, it is undone if it was done.
                place.words.truncate(count);
                place.words.push(Word { at, name, before: if is_stand_in { target } else { from } });
                // SAFETY: a word that the module's relocations say holds this function's address, and it does.
                written = unsafe { module.exchange(at, found.access, from, ours) };
                if written != Ok(false) {
                    break;
                }
            }
            let refusal = match written {
                Ok(_) if memory.word(at) == Some(ours as u64) => continue,
                Ok(_) => Refusal::Word,
                Err(error) => Refusal::Page(error),
            };
            place.restore(module, memory);
            return Err(refusal);
        }
        match place.words.len() {
            0 if lacks_looper => Err(Refusal::NoLooper),
            0 => Err(Refusal::Unbound),
            _ => Ok(place),
        }
    }

    fn ours(&self, name: usize) -> usize {
        stand_ins::addresses(self.set).get(name).copied().unwrap_or(0)
    }

    /// How many words lead to us.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Number of its stand-ins.
    pub fn set(&self) -> usize {
        self.set
    }

    /// Words that have been bound behind our back, or again because the module was loaded again, lead to us again.
    pub fn renew(&self, module: &Staying, memory: &impl Memory) {
        let functions = &stand_ins::set(self.set).functions;
        for word in &self.words {
            let value = memory.word(word.at).map_or(0, |value| value as usize);
            if value != 0 && (value == word.before || value == functions.address(word.name)) {
                self.exchange(module, word, value, self.ours(word.name));
            }
        }
    }

    /// Puts back what the words held. How many of them are not ours any more, and stay. Who has written to those may call
    /// ours: while there is one, these stand-ins are for this module alone, or a call could come round to them again.
    pub fn restore(&self, module: &Staying, memory: &impl Memory) -> usize {
        let functions = &stand_ins::set(self.set).functions;
        let mut lost = 0;
        for word in &self.words {
            let ours = self.ours(word.name);
            let value = memory.word(word.at).map(|value| value as usize);
            let is_back = match value {
                Some(value) if value == ours => self.exchange(module, word, ours, word.before),
                Some(value) => value == word.before || value == functions.address(word.name),
                None => false,
            };
            lost += usize::from(!is_back);
        }
        lost
    }

    fn exchange(&self, module: &Staying, word: &Word, from: usize, to: usize) -> bool {
        let access = accesses(&ArrayVec::from([word.at]));
        // SAFETY: a word of the module's that held both before.
        let exchange = |access| unsafe { module.exchange(word.at, access, from, to) };
        access.first().is_some_and(|access| exchange(*access) == Ok(true))
    }
}

/// Reads all imports and their words.
fn find(image: &Image, tables: &impl Memory, memory: &impl Memory) -> Result<ArrayVec<Found, WORDS>, Refusal> {
    let names = NAMES.map(|name| name.to_bytes());
    let mut imports = ArrayVec::<Import, WORDS>::new();
    let mut has_room = true;
    imports::each(image, tables, &names, &mut |import| {
        if !imports.iter().any(|known| known.at == import.at) {
            has_room &= imports.try_push(import).is_ok();
        }
    })?;
    if imports.is_empty() {
        return Err(Refusal::NoImports);
    }
    if !has_room {
        return Err(Refusal::Room);
    }
    let values: ArrayVec<u64, WORDS> = imports.iter().map(|import| memory.word(import.at).unwrap_or(0)).collect();
    let addresses: ArrayVec<u64, { 2 * WORDS }> =
        imports.iter().map(|import| import.at).chain(values.iter().copied()).collect();
    let accesses = accesses(&addresses);
    let (words, targets) = accesses.split_at(imports.len());
    let both = words.iter().zip(targets);
    let found = imports.iter().zip(&values).zip(both).map(|((import, value), (access, target))| Found {
        import: *import,
        value: *value as usize,
        access: *access,
        leads_to_code: target.execute,
    });
    Ok(found.collect())
}
