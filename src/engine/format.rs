//! Blocks that the program has, as text.

use super::life;
use crate::abi::bc_block;
use crate::report::names::Format;
use crate::report::{render, shown, told};
use crate::sys::procfs::ProcFile;

/// Writes a block to memory, as `render::to_memory` does; 0 without an installation, and for what is no block.
///
/// # Safety
/// As for `told::with`.
#[allow(unsafe_code)]
pub unsafe fn block(block: *const bc_block, format: Format, memory: &mut [u8]) -> usize {
    if let Some(first) = memory.first_mut() {
        *first = 0;
    }
    let Ok(user) = life::use_it() else { return 0 };
    let facts = user.facts;
    let whole =
        shown::with(block, |parcel| Some(render::to_memory(memory, format, &parcel.block(), &parcel.context(facts)?)));
    if let Some(length) = whole.flatten() {
        return length;
    }
    let now = facts.look(ProcFile::open(c"/proc/meminfo").ok().as_ref());
    // SAFETY: the caller's promise.
    let told = unsafe { told::with(block, |block| render::to_memory(memory, format, block, &facts.context(&now, 0))) };
    told.unwrap_or(0)
}
