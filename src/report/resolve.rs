//! From a pc to module, build id and symbol, for the frames of one block.
#![allow(unsafe_code)]

use super::text_space::TextSpace;
use super::view::base_name;
use crate::abi::bc_frame;
use crate::sample::sampler::refresh;
use crate::sys::clock::Ticks;
use crate::sys::maps::OwnMaps;
use crate::sys::memory::OwnMemory;
use crate::unwind::cache::Cached;
use crate::unwind::modules::ModuleTable;
use core::ffi::c_char;
use core::ptr;

/// Places of the cache: far more than the frames that the stacks of one block have between them, as a rule.
pub const PLACES: usize = 1024;
/// Modules of one block whose strings are kept once.
const MODULES: usize = 64;
/// Bytes of a symbol's name that are kept.
const SYMBOL: usize = 512;
/// A table that missed a pc is not made anew more often than this.
const REFRESH_NS: u64 = 200_000_000;

/// A frame that was resolved for this block.
#[derive(Clone, Copy)]
pub struct Place {
    pc: u64,
    is_outer: bool,
    /// The block that it was resolved for: its strings lie in that one's memory.
    block: u64,
    frame: bc_frame,
}

/// A frame of which nothing but the pc is known.
pub const fn unknown(pc: u64) -> bc_frame {
    bc_frame { pc, module_offset: 0, symbol_offset: 0, module: ptr::null(), build_id: ptr::null(), symbol: ptr::null() }
}

impl Place {
    /// Empty.
    pub const EMPTY: Place = Place { pc: 0, is_outer: false, block: 0, frame: unknown(0) };
}

/// The writer's.
pub struct Resolver {
    modules: ModuleTable<'static>,
    places: &'static mut [Place],
    /// Strings of this block's modules, by the begin of their code.
    strings: [(u64, *const c_char, *const c_char); MODULES],
    used: usize,
    /// Counts blocks.
    block: u64,
    refreshed: Ticks,
    redact_paths: bool,
}

// SAFETY: its pointers lead into the memory of parcels, which the thread that resolves for them holds.
unsafe impl Send for Resolver {}

impl Resolver {
    /// With an empty table and `PLACES` places.
    pub fn new(modules: ModuleTable<'static>, places: &'static mut [Place], redact_paths: bool) -> Resolver {
        let strings = [(0, ptr::null(), ptr::null()); MODULES];
        Resolver { modules, places, strings, used: 0, block: 0, refreshed: Ticks(0), redact_paths }
    }

    /// Only base names of paths are told.
    pub fn redacts_paths(&self) -> bool {
        self.redact_paths
    }

    /// The frames of another block follow, whose strings go elsewhere.
    pub fn begin_block(&mut self) {
        self.block += 1;
        self.used = 0;
        self.refreshed = Ticks(0);
        let changed = OwnMaps::open().is_ok_and(|maps| self.modules.changed(maps).unwrap_or(true));
        if changed {
            refresh(&mut self.modules, &Cached::new(OwnMemory::new()));
        }
    }

    /// Resolves a frame; `is_outer`: its pc is a return address.
    pub fn resolve(&mut self, pc: u64, is_outer: bool, text: &mut TextSpace) -> bc_frame {
        // Return addresses differ in their low bits at random.
        let number = (pc ^ pc >> 10) as usize % PLACES;
        let known = self.places.get(number);
        if let Some(place) = known.filter(|known| (known.pc, known.is_outer, known.block) == (pc, is_outer, self.block))
        {
            return place.frame;
        }
        let frame = self.look_up(pc, is_outer, text);
        if let Some(place) = self.places.get_mut(number) {
            *place = Place { pc, is_outer, block: self.block, frame };
        }
        frame
    }

    fn look_up(&mut self, pc: u64, is_outer: bool, text: &mut TextSpace) -> bc_frame {
        // A call may be the last instruction of its function, and of its module.
        let inside = pc.wrapping_sub(u64::from(is_outer));
        let mut frame = unknown(pc);
        let now = Ticks::now();
        if self.modules.find(inside).is_none() && now.since(self.refreshed) > REFRESH_NS {
            self.refreshed = now;
            refresh(&mut self.modules, &Cached::new(OwnMemory::new()));
        }
        let Some(module) = self.modules.find(inside).copied() else { return frame };
        frame.module_offset = module.offset_of(pc);
        (frame.module, frame.build_id) = self.module_strings(&module, text);
        let mut name = [0; SYMBOL];
        if let Some(function) = module.function(&Cached::new(OwnMemory::new()), inside, &mut name) {
            frame.symbol = text.put(name.get(..function.name_length).unwrap_or(&[]));
            frame.symbol_offset = function.offset.wrapping_add(u64::from(is_outer));
        }
        frame
    }

    fn module_strings(
        &mut self,
        module: &crate::unwind::modules::Module,
        text: &mut TextSpace,
    ) -> (*const c_char, *const c_char) {
        let known = self.strings.iter().take(self.used).find(|(start, ..)| *start == module.code.start);
        if let Some((_, path, build_id)) = known {
            return (*path, *build_id);
        }
        let full = self.modules.path(module).to_bytes();
        let shown = if self.redact_paths { base_name(full) } else { full };
        let path = if shown.is_empty() { ptr::null() } else { text.put(shown) };
        let build_id = text.put_some(self.modules.build_id(module));
        if let Some(place) = self.strings.get_mut(self.used) {
            *place = (module.code.start, path, build_id);
            self.used += 1;
        }
        (path, build_id)
    }
}
