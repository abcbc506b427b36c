//! Naming the frames of a sample that was just taken, as long as their modules are there.

use super::named::{Found, Held, Key, Module, Named, RECORD, Search};
use crate::sys::clock::Ticks;
use crate::sys::lock::Lock;
use crate::sys::memory::OwnMemory;
use crate::unwind::cache::Cached;
use crate::unwind::modules::{self, ModuleTable};

/// Looking for symbols takes so long for one sample; a large library has some hundred thousand. What is left over is looked
/// for when the next sample has the frame, or by the writer in the module's file.
const SEARCH_NS: u64 = 2_000_000;
/// Bytes of a symbol's name that are kept.
const SYMBOL: usize = 512;

/// See above. `frames` are pcs; `true`: the pc is a return address. Answers which table they were named by.
pub fn name(named: &Lock<Named>, table: &ModuleTable, frames: impl Iterator<Item = (u64, bool)>) -> u32 {
    let made = table.made() as u32;
    let end = Ticks::now().plus(SEARCH_NS);
    named.lock().begin_sample();
    for (pc, is_outer) in frames {
        let key = Key { pc, is_outer, table: made };
        let inside = pc.wrapping_sub(u64::from(is_outer));
        // The lock is not held while memory is read.
        let held = named.lock().keep(key, || table.find(inside).map(|module| module.identity));
        if held == Held::Known {
            continue;
        }
        let may_search = Ticks::now() < end;
        if (held == Held::Missing || may_search)
            && let Some(module) = table.find(inside)
        {
            name_frame(named, table, module, key, inside, may_search);
        }
    }
    made
}

fn name_frame(
    named: &Lock<Named>,
    table: &ModuleTable,
    module: &modules::Module,
    key: Key,
    inside: u64,
    may_search: bool,
) {
    let memory = Cached::new(OwnMemory::new());
    let mut name = [0; SYMBOL];
    let function = if may_search { module.function(&memory, inside, &mut name) } else { None };
    // A thread that runs may have closed it meanwhile, and opened another.
    if !modules::Module::are_there(core::iter::once(module), &OwnMemory::new()) {
        return;
    }
    let (path, build_id) = (table.path(module).to_bytes(), table.build_id(module).to_bytes());
    let room = RECORD.saturating_sub(64 + build_id.len());
    let symbol = function.and_then(|function| {
        Some((name.get(..function.name_length)?, function.offset.wrapping_add(u64::from(key.is_outer))))
    });
    let is_elf = !module.image.span.is_empty();
    let found = Found {
        module: Module {
            path: path.get(..path.len().min(room)).unwrap_or_default(),
            build_id,
            file: module.file,
            file_offset: module.file_offset,
            is_whole: is_elf && !module.deleted,
        },
        identity: module.identity,
        module_offset: module.offset_of(key.pc),
        symbol: symbol.filter(|(name, _)| !name.is_empty()),
        search: match function {
            _ if !may_search && is_elf => Search::Pending,
            Some(function) if function.is_sure => Search::Done,
            _ if !is_elf => Search::Done,
            _ => Search::InMemory,
        },
    };
    named.lock().put(key, &found);
}
