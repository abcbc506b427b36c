//! A block as the program has it, read back: a copy of what a listener was given, or one of the program's own making.
#![allow(unsafe_code)]

use super::block::{Block, Reasons, Repeats};
use super::hot;
use super::text_space::bytes_of;
use super::view::Samples;
use crate::abi::{bc_block, bc_block_state};
use crate::sample::cause::ALL;
use core::mem::MaybeUninit;
use core::ptr;

/// Calls `read` with what a block says; `None` if its size, its state or its cause is none that there is.
///
/// # Safety
/// `block` leads to as many bytes as its first word says; its strings are null or end in a NUL, its samples and frames are
/// as many and as large as it says.
pub unsafe fn with<T>(block: *const bc_block, read: impl FnOnce(&Block) -> T) -> Option<T> {
    let mut copy = MaybeUninit::<bc_block>::uninit();
    let copied = copy.as_mut_ptr();
    // SAFETY: the caller vouches for as many bytes as the first word says. Enumerations are read as integers until they are
    // known to be ones; all bits are valid for the rest, which is integers and pointers.
    let block = unsafe {
        if block.cast::<usize>().read_unaligned() < size_of::<bc_block>() {
            return None;
        }
        ptr::copy_nonoverlapping(block.cast::<u8>(), copied.cast(), size_of::<bc_block>());
        let state = (&raw const (*copied).state).cast::<u32>().read();
        let cause = (&raw const (*copied).cause).cast::<u32>().read();
        let is_one =
            STATES.iter().any(|known| *known as u32 == state) && ALL.iter().any(|known| *known as u32 == cause);
        is_one.then(|| copy.assume_init())?
    };
    // SAFETY: the caller vouches for the strings.
    let text = |text| unsafe { bytes_of(text) };
    // SAFETY: the caller vouches for samples and frames.
    let samples = unsafe { Samples::from_raw(block.samples, block.sample_count, block.sample_size, block.frame_size) };
    Some(read(&Block {
        id: block.id,
        state: block.state,
        cause: block.cause,
        cause_detail: text(block.cause_detail),
        loop_name: text(block.loop_name).unwrap_or_default(),
        tid: block.tid,
        what: text(block.what),
        tag: block.tag,
        start_unix_ms: block.start_unix_ms,
        start_ns: block.start_ns,
        wall_ns: block.wall_ns,
        cpu_ns: block.cpu_ns,
        cpu_uncertainty_ns: None,
        threshold_ns: block.threshold_ns,
        run_queue_wait_ns: None,
        repeats: Repeats { count: block.repeats, ..Repeats::default() },
        progress: hot::progress(samples, block.cpu_ns, block.wall_ns),
        samples,
        cpu: &[],
        reasons: Reasons::default(),
    }))
}

const STATES: [bc_block_state; 4] = [
    bc_block_state::BC_BLOCK_ONGOING,
    bc_block_state::BC_BLOCK_HANG,
    bc_block_state::BC_BLOCK_ENDED,
    bc_block_state::BC_BLOCK_KILLED,
];
