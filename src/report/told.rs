//! A block as the program has it, read back: a copy of what a listener was given, or one of the program's own making.
#![allow(unsafe_code)]

use super::block::{Block, Reasons, Repeats};
use super::hot;
use super::text_space::bytes_of;
use super::view::Samples;
use crate::abi::{bc_block, bc_block_state, bc_cause};
use crate::sample::cause;
use core::ffi::c_char;
use core::mem::MaybeUninit;
use core::ptr;

/// `bc_block` with integers in the place of enumerations, which a caller may have filled with anything.
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    struct_size: usize,
    id: u64,
    state: u32,
    cause: u32,
    tid: i32,
    repeats: u32,
    tag: u64,
    start_unix_ms: i64,
    start_ns: u64,
    wall_ns: u64,
    cpu_ns: u64,
    threshold_ns: u64,
    loop_name: *const c_char,
    what: *const c_char,
    cause_detail: *const c_char,
    report_path: *const c_char,
    sample_count: usize,
    sample_size: usize,
    frame_size: usize,
    samples: *const crate::abi::bc_sample,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Raw>() == size_of::<bc_block>());
    assert!(offset_of!(Raw, tid) == offset_of!(bc_block, tid));
    assert!(offset_of!(Raw, threshold_ns) == offset_of!(bc_block, threshold_ns));
    assert!(offset_of!(Raw, samples) == offset_of!(bc_block, samples));
};

/// Calls `read` with what a block says; `None` if its size, its state or its cause is none that there is.
///
/// # Safety
/// `block` leads to as many bytes as its first word says; its strings are null or end in a NUL, its samples and frames are
/// as many and as large as it says.
pub unsafe fn with<T>(block: *const bc_block, read: impl FnOnce(&Block) -> T) -> Option<T> {
    let mut raw = MaybeUninit::<Raw>::uninit();
    // SAFETY: the caller vouches for as many bytes as the first word says; all bits are valid for integers and pointers.
    let raw = unsafe {
        if block.cast::<usize>().read_unaligned() < size_of::<Raw>() {
            return None;
        }
        ptr::copy_nonoverlapping(block.cast::<u8>(), raw.as_mut_ptr().cast(), size_of::<Raw>());
        raw.assume_init()
    };
    // SAFETY: the caller vouches for the strings.
    let text = |text| unsafe { bytes_of(text) };
    // SAFETY: the caller vouches for samples and frames.
    let samples = unsafe { Samples::from_raw(raw.samples, raw.sample_count, raw.sample_size, raw.frame_size) };
    Some(read(&Block {
        id: raw.id,
        state: STATES.into_iter().find(|state| *state as u32 == raw.state)?,
        cause: cause::ALL.into_iter().find(|cause: &bc_cause| *cause as u32 == raw.cause)?,
        cause_detail: text(raw.cause_detail),
        loop_name: text(raw.loop_name).unwrap_or_default(),
        tid: raw.tid,
        what: text(raw.what),
        tag: raw.tag,
        start_unix_ms: raw.start_unix_ms,
        start_ns: raw.start_ns,
        wall_ns: raw.wall_ns,
        cpu_ns: raw.cpu_ns,
        cpu_uncertainty_ns: None,
        threshold_ns: raw.threshold_ns,
        run_queue_wait_ns: None,
        repeats: Repeats { count: raw.repeats, ..Repeats::default() },
        progress: hot::progress(samples, raw.cpu_ns, raw.wall_ns),
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
