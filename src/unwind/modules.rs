//! Which module a pc lies in: a table of everything executable, made from the maps and the mapped ELF headers.

use core::ffi::CStr;

use super::dynamic::Dynamic;
use super::elf::{BUILD_ID, Image, Span, hexadecimal};
use super::heads::{Head, Heads, Seen};
use super::memory::Memory;
use super::proof::Proof;
use super::symbols::{self, Function};
use crate::sys::errno::Errno;
use crate::sys::maps::{Lines, Mapping, Source};

/// Longest line of the maps that is read whole: a path of 4096 bytes and the numbers before it.
const LINE: usize = 4352;
/// Longest library name that is put behind its archive's.
const NAME: usize = 128;

/// One executable mapping, and what is known of the file behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Module {
    /// The mapping.
    pub code: Span,
    /// The ELF file; empty for code without one (made at run time, headers unreadable).
    pub image: Image,
    /// The file was deleted or replaced since it was mapped.
    pub deleted: bool,
    /// The file's device and inode, as the maps tell them.
    pub file: (u64, u64),
    /// Where in that file the ELF file begins: not 0 in an archive.
    pub file_offset: u64,
    /// The same for the same file at the same place, from one table to the next.
    pub identity: u64,
    proof: Proof,
    /// Where in the table's text the strings begin.
    path: usize,
    build_id: usize,
}

impl Module {
    /// The pc relative to the ELF file, as symbolizers want it; in code without headers, its offset in the file.
    pub fn offset_of(&self, pc: u64) -> u64 {
        pc.wrapping_sub(self.image.bias)
    }

    /// The function that `address` lies in; see [`symbols::function`].
    pub fn function(&self, memory: &impl Memory, address: u64, out: &mut [u8]) -> Option<Function> {
        symbols::function(&self.image, memory, address, out)
    }

    /// They are still what lies there, all of them.
    pub fn are_there<'m>(modules: impl Iterator<Item = &'m Module>, memory: &impl Memory) -> bool {
        Proof::hold(modules.map(|module| &module.proof), memory)
    }
}

/// The modules, sorted by address, in memory that the caller gives.
pub struct ModuleTable<'m> {
    slots: &'m mut [Module],
    count: usize,
    text: &'m mut [u8],
    used: usize,
    /// What `changed` compares with.
    seen: Option<u64>,
    missed: usize,
    unnamed: usize,
    made: u64,
}

impl<'m> ModuleTable<'m> {
    /// An empty table of at most `slots.len()` modules, whose paths and build ids share `text` (some 100 bytes each).
    pub fn new(slots: &'m mut [Module], text: &'m mut [u8]) -> ModuleTable<'m> {
        ModuleTable { slots, count: 0, text, used: 0, seen: None, missed: 0, unnamed: 0, made: 0 }
    }

    /// The modules.
    pub fn all(&self) -> &[Module] {
        self.slots.get(..self.count).unwrap_or_default()
    }

    /// How many executable mappings found no slot.
    pub fn missed(&self) -> usize {
        self.missed
    }

    /// How many paths and build ids found no room.
    pub fn unnamed(&self) -> usize {
        self.unnamed
    }

    /// How often the table was made: what was derived from it holds until it is made anew.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// The module whose code `pc` lies in. For a return address pass the address before it.
    pub fn find(&self, pc: u64) -> Option<&Module> {
        let all = self.all();
        let before = all.partition_point(|module| module.code.start <= pc);
        all.get(before.checked_sub(1)?).filter(|module| module.code.holds(pc))
    }

    /// The file's path, with `!libx.so` behind it for a library inside an archive; empty where there is none.
    pub fn path(&self, module: &Module) -> &CStr {
        self.string(module.path)
    }

    /// The build id in lower-case hex; empty where there is none.
    pub fn build_id(&self, module: &Module) -> &CStr {
        self.string(module.build_id)
    }

    fn string(&self, at: usize) -> &CStr {
        let text = self.text.get(at..).unwrap_or_default();
        CStr::from_bytes_until_nul(text).unwrap_or(c"")
    }

    /// Did executable mappings come or go since the last refresh?
    pub fn changed(&self, maps: impl Source) -> Result<bool, Errno> {
        let mut buffer = [0; LINE];
        let mut lines = Lines::new(maps, &mut buffer);
        let mut seen = Seen::new();
        while let Some(line) = lines.next_line()? {
            if Mapping::parse(line).is_some_and(|mapping| mapping.executable) {
                seen.add(line);
            }
        }
        Ok(self.seen != Some(seen.0))
    }

    /// Makes the table anew. After an error it holds what was found until then.
    pub fn refresh(&mut self, maps: impl Source, memory: &impl Memory) -> Result<(), Errno> {
        (self.count, self.used, self.seen, self.missed, self.unnamed) = (0, 0, None, 0, 0);
        self.made += 1;
        // The string at 0 is the empty one.
        self.put(b"");
        let mut buffer = [0; LINE];
        let mut lines = Lines::new(maps, &mut buffer);
        let mut seen = Seen::new();
        let mut heads = Heads::default();
        while let Some(line) = lines.next_line()? {
            let Some(mapping) = Mapping::parse(line) else { continue };
            heads.add(&mapping);
            if mapping.executable {
                seen.add(line);
                let mut identity = Seen::new();
                identity.add(line);
                self.add(&mapping, identity, &heads, memory);
            }
        }
        self.seen = Some(seen.0);
        Ok(())
    }

    fn add(&mut self, mapping: &Mapping, mut identity: Seen, heads: &Heads, memory: &impl Memory) {
        let code = Span { start: mapping.start, end: mapping.end };
        let last = self.count.checked_sub(1).and_then(|last| self.slots.get_mut(last));
        // A second piece of the same image: a hook or the loader has changed the protection of a part.
        if let Some(last) = last.filter(|last| last.image.span.holds(code.start)) {
            if last.code.end == code.start {
                last.code.end = code.end;
                return;
            }
            let more = Module { code, ..*last };
            return self.push(more);
        }
        // Code made at run time may have any number of mappings; libraries come first.
        if mapping.path.is_empty() && self.count >= self.slots.len() / 4 * 3 {
            self.missed += 1;
            return;
        }
        let mut module = Module { code, deleted: mapping.deleted, file: mapping.file, ..Module::default() };
        let image_at = |head: Head| Image::read(memory, head.start).filter(|image| image.span.holds(code.start));
        let mut found = None;
        for (head, image) in heads.of(mapping).filter_map(|head| Some((head, image_at(head)?))) {
            if image.has_code(code.start, mapping.offset.wrapping_sub(head.offset)) {
                found = Some((head, image));
                break;
            }
            found = found.or(Some((head, image)));
        }
        match found {
            Some((head, image)) => {
                module.image = image;
                let mut name = [0; NAME];
                // A library that begins in the middle of a file lies in an archive, which may hold more of them.
                let name = (head.offset != 0)
                    .then(|| Dynamic::read(&image, memory)?.name(memory, &mut name))
                    .flatten()
                    .and_then(|length| name.get(..length))
                    .unwrap_or_default();
                module.path = self.join(mapping.path, name);
                module.file_offset = head.offset;
                let id = image.build_id_note(memory);
                module.proof = Proof::of(&image, id.as_ref(), memory);
                let id = id.as_ref().and_then(|id| id.bytes.get(..id.length)).unwrap_or_default();
                identity.add(id);
                module.build_id = self.hex(id);
            }
            None => {
                module.image.bias = code.start.wrapping_sub(mapping.offset);
                module.path = self.join(mapping.path, b"");
            }
        }
        module.identity = identity.0;
        self.push(module);
    }

    /// Puts a module in its place: the last one, unless the maps were not sorted.
    fn push(&mut self, module: Module) {
        let at = self.all().partition_point(|other| other.code.start <= module.code.start);
        match self.slots.get_mut(..=self.count) {
            Some(slots) => {
                let mut moved = module;
                slots.iter_mut().skip(at).for_each(|slot| core::mem::swap(slot, &mut moved));
                self.count += 1;
            }
            None => self.missed += 1,
        }
    }

    fn join(&mut self, path: &[u8], name: &[u8]) -> usize {
        match name {
            [] => self.put(path),
            _ => {
                let mut joined = [0; LINE + NAME];
                let pieces = path.iter().chain(b"!").chain(name);
                let length = joined.iter_mut().zip(pieces).map(|(to, from)| *to = *from).count();
                self.put(joined.get(..length).unwrap_or_default())
            }
        }
    }

    fn hex(&mut self, id: &[u8]) -> usize {
        let mut digits = [0; 2 * BUILD_ID];
        let length = hexadecimal(id, &mut digits);
        self.put(digits.get(..length).unwrap_or_default())
    }

    /// Stores a string and says where; one that doesn't fit is counted and is the empty one.
    fn put(&mut self, string: &[u8]) -> usize {
        if string.is_empty() && self.used > 0 {
            return 0;
        }
        let at = self.used;
        let Some(place) = self.text.get_mut(at..).and_then(|text| text.get_mut(..string.len() + 1)) else {
            self.unnamed += 1;
            return 0;
        };
        place.iter_mut().zip(string.iter().chain(&[0])).for_each(|(to, from)| *to = *from);
        self.used = at + string.len() + 1;
        at
    }
}
