//! The names of the frames of one block, copied to where the block keeps its text.
#![allow(unsafe_code)]

use super::module_file::ModuleFile;
use super::text_space::TextSpace;
use super::view::base_name;
use crate::abi::bc_frame;
use crate::sample::named::{Key, Module, Name, Named, RECORD, Search};
use crate::sample::strings::At;
use crate::sys::lock::Lock;
use core::ffi::c_char;
use core::ptr;

/// Strings of one block that are known to be copied already; more are copied once more.
pub const COPIES: usize = 1024;
/// Bytes of a symbol's name that are kept.
const SYMBOL: usize = 512;

/// A string that was copied for this block.
#[derive(Clone, Copy)]
pub struct Copy {
    at: At,
    block: u64,
    text: *const c_char,
}

impl Copy {
    /// Of nothing.
    pub const NONE: Copy = Copy { at: 0, block: 0, text: ptr::null() };
}

/// A frame of which nothing but the pc is known.
pub const fn unknown(pc: u64) -> bc_frame {
    bc_frame { pc, module_offset: 0, symbol_offset: 0, module: ptr::null(), build_id: ptr::null(), symbol: ptr::null() }
}

/// A frame that is still to be resolved: what it is looked up by stands where its offsets will.
pub const fn unresolved(key: Key) -> bc_frame {
    bc_frame { module_offset: key.table as u64, symbol_offset: key.is_outer as u64, ..unknown(key.pc) }
}

/// The writer's.
pub struct Resolver {
    named: &'static Lock<Named>,
    copies: &'static mut [Copy],
    /// Counts blocks.
    block: u64,
    redact_paths: bool,
    /// The file that was searched last, by where its module's name is; it may have been in vain.
    searched: Option<(At, Option<ModuleFile>)>,
}

// SAFETY: its pointers lead into the memory of parcels, which the thread that resolves for them holds.
unsafe impl Send for Resolver {}

impl Resolver {
    /// With room for so many copies.
    pub fn new(named: &'static Lock<Named>, copies: &'static mut [Copy], redact_paths: bool) -> Resolver {
        Resolver { named, copies, block: 0, redact_paths, searched: None }
    }

    /// Only base names of paths are told.
    pub fn redacts_paths(&self) -> bool {
        self.redact_paths
    }

    /// The frames of another block follow, whose strings go elsewhere.
    pub fn begin_block(&mut self) {
        self.block += 1;
    }

    /// There are no more frames.
    pub fn end_block(&mut self) {
        self.searched = None;
    }

    /// Resolves a frame that `unresolved` has made.
    pub fn resolve(&mut self, frame: &bc_frame, text: &mut TextSpace) -> bc_frame {
        let key = Key { pc: frame.pc, is_outer: frame.symbol_offset != 0, table: frame.module_offset as u32 };
        self.name(key, text)
    }

    /// Resolves a frame.
    pub fn name(&mut self, key: Key, text: &mut TextSpace) -> bc_frame {
        let mut frame = unknown(key.pc);
        let lock = self.named;
        let named = lock.lock();
        let Some(name) = named.find(key) else { return frame };
        frame.module_offset = name.module_offset;
        let shown = if self.redact_paths { base_name(name.module.path) } else { name.module.path };
        frame.module = self.copied(name.module_at, shown, text);
        // A module's name takes more than one byte, so no other string has this place.
        frame.build_id = self.copied(name.module_at + 1, name.module.build_id, text);
        if let Some(symbol) = name.symbol {
            frame.symbol = self.copied(name.symbol_at, symbol, text);
            frame.symbol_offset = name.symbol_offset;
        }
        if name.search == Search::Done {
            return frame;
        }
        let module_at = name.module_at;
        let mut record = Record::new();
        record.copy(&name);
        drop(named);
        let mut symbol = [0; SYMBOL];
        let found = self.search(module_at, &record, key, frame.module_offset, &mut symbol);
        // One that only comes nearest is no better than another such.
        let found = found.filter(|found| found.is_sure || frame.symbol.is_null());
        let found = found.and_then(|found| {
            Some((symbol.get(..found.name_length)?, found.offset.wrapping_add(u64::from(key.is_outer))))
        });
        let found = found.filter(|(name, _)| !name.is_empty());
        let at = lock.lock().searched(key, found);
        if let Some((name, offset)) = found {
            frame.symbol = if at == 0 { text.put(name) } else { self.copied(at, name, text) };
            frame.symbol_offset = offset;
        }
        frame
    }

    fn search(
        &mut self,
        module_at: At,
        record: &Record,
        key: Key,
        module_offset: u64,
        out: &mut [u8],
    ) -> Option<crate::unwind::symbols::Function> {
        if self.searched.as_ref().is_none_or(|(at, _)| *at != module_at) {
            self.searched = None;
            self.searched = Some((module_at, ModuleFile::open(&record.module())));
        }
        let (_, file) = self.searched.as_ref()?;
        file.as_ref()?.function(module_offset.wrapping_sub(u64::from(key.is_outer)), out)
    }

    /// The copy of a string for this block; null for an empty one and one that does not fit.
    fn copied(&mut self, at: At, string: &[u8], text: &mut TextSpace) -> *const c_char {
        let number = (at ^ at >> 10) as usize % self.copies.len().max(1);
        let known = self.copies.get(number).filter(|copy| (copy.at, copy.block) == (at, self.block));
        if let Some(copy) = known {
            return copy.text;
        }
        let copy = if string.is_empty() { ptr::null() } else { text.put(string) };
        if let Some(place) = self.copies.get_mut(number) {
            *place = Copy { at, block: self.block, text: copy };
        }
        copy
    }
}

/// A module's name, copied so that the lock need not be held.
struct Record {
    bytes: [u8; RECORD],
    path: usize,
    build_id: usize,
    file: (u64, u64),
    file_offset: u64,
    is_whole: bool,
}

impl Record {
    fn new() -> Record {
        Record { bytes: [0; RECORD], path: 0, build_id: 0, file: (0, 0), file_offset: 0, is_whole: false }
    }

    fn copy(&mut self, name: &Name) {
        let module = &name.module;
        let bytes = module.path.iter().chain(module.build_id);
        self.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        (self.path, self.build_id) = (module.path.len(), module.build_id.len());
        (self.file, self.file_offset, self.is_whole) = (module.file, module.file_offset, module.is_whole);
    }

    fn module(&self) -> Module<'_> {
        let (path, rest) = self.bytes.split_at_checked(self.path).unwrap_or_default();
        let build_id = rest.get(..self.build_id).unwrap_or_default();
        Module { path, build_id, file: self.file, file_offset: self.file_offset, is_whole: self.is_whole }
    }
}
