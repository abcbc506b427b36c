//! The monitor's table of modules, kept up to date: libraries come and go while threads are watched.
//!
//! A library that goes and one that comes in its place are noticed by each stack that has a frame in it, because the bytes
//! that name it are compared. A library that only comes is noticed when a stretch becomes late, and by a stack that leads
//! into it. Reading the maps takes the longer the more is mapped, so only a part of the time goes into it.

use crate::sys::clock::Ticks;
use crate::sys::maps::OwnMaps;
use crate::sys::memory::OwnMemory;
use crate::unwind::cache::Cached;
use crate::unwind::memory::Memory;
use crate::unwind::modules::{Module, ModuleTable};
use crate::unwind::walk::Stack;
use arrayvec::ArrayVec;

/// After a look at the maps there is none for so many times as long as it took.
const PAUSE: u64 = 20;
/// A stack that ends early for another reason than an unknown address is no reason to look more often than this.
const HINT_NS: u64 = 200_000_000;
/// Modules that are remembered as looked at while a stack is checked.
const CHECKED: usize = 8;

/// See above.
pub struct Modules {
    table: ModuleTable<'static>,
    /// No look before this.
    next: Ticks,
    hinted: Ticks,
}

impl Modules {
    /// With this table, which is made when it is first needed.
    pub fn new(table: ModuleTable<'static>) -> Modules {
        Modules { table, next: Ticks(0), hinted: Ticks(0) }
    }

    /// As of the last look.
    pub fn table(&self) -> &ModuleTable<'static> {
        &self.table
    }

    /// A stretch is late: libraries that came or went since the last one are taken into account.
    pub fn new_stretch(&mut self) {
        self.look_if_affordable();
    }

    /// After a walk by the table: did the table lack something, so that the walk is to be done again by the new one?
    pub fn have_changed(&mut self, stack: &Stack, memory: &impl Memory) -> bool {
        if !self.are_there(stack, memory) {
            self.refresh();
            return true;
        }
        let ends_early = stack.truncated && stack.frames_cut == 0;
        if !ends_early {
            return false;
        }
        let now = Ticks::now();
        if !stack.strayed && now.since(self.hinted) < HINT_NS {
            return false;
        }
        self.hinted = now;
        self.look_if_affordable()
    }

    /// The modules of all frames are those that the table has.
    fn are_there(&self, stack: &Stack, memory: &impl Memory) -> bool {
        let mut checked = ArrayVec::<u64, CHECKED>::new();
        let modules = stack.pcs().iter().enumerate().filter_map(|(number, pc)| {
            let address = pc.wrapping_sub(u64::from(!stack.is_interrupted(number)));
            let module = self.table.find(address)?;
            let is_checked = checked.contains(&module.code.start);
            if checked.is_full() && !is_checked {
                checked.clear();
            }
            (!is_checked && checked.try_push(module.code.start).is_ok()).then_some(module)
        });
        Module::are_there(modules, memory)
    }

    fn look_if_affordable(&mut self) -> bool {
        let begin = Ticks::now();
        if begin < self.next {
            return false;
        }
        let changed = OwnMaps::open().is_ok_and(|maps| self.table.changed(maps).unwrap_or(true));
        if changed {
            self.refresh();
        } else {
            self.pause_since(begin);
        }
        changed
    }

    fn refresh(&mut self) {
        let begin = Ticks::now();
        refresh(&mut self.table, &Cached::new(OwnMemory::new()));
        self.pause_since(begin);
    }

    fn pause_since(&mut self, begin: Ticks) {
        let end = Ticks::now();
        self.next = end.plus(PAUSE * end.since(begin));
    }
}

/// Makes a table of modules anew from the process's own maps.
pub fn refresh(modules: &mut ModuleTable, memory: &impl Memory) {
    if let Ok(maps) = OwnMaps::open() {
        let _ = modules.refresh(maps, memory);
    }
}
