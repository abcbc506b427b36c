//! Samples and frames in C's layout, seen safely.
//!
//! They are walked by the sizes that came with them, because a block may come from a caller that was built against
//! another version; fields are read as plain integers and checked before they become an enumeration or a bool.
#![allow(unsafe_code)]

use super::text_space::bytes_of;
use crate::abi::{bc_frame, bc_sample, bc_sample_method};
use core::ffi::c_char;
use core::marker::PhantomData;

/// The samples of a block, oldest first.
#[derive(Clone, Copy)]
pub struct Samples<'a> {
    first: *const bc_sample,
    count: usize,
    sample_size: usize,
    frame_size: usize,
    owner: PhantomData<&'a bc_sample>,
}

/// One sample.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    /// When, on CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// How it was taken; `None` for a number that is no method.
    pub method: Option<bc_sample_method>,
    /// Frames left out because of the depth limit.
    pub frames_cut: u32,
    /// State letter as in `/proc`, where known.
    pub thread_state: Option<u8>,
    /// The root was not reached or frames were cut.
    pub truncated: bool,
    /// Some step could not be verified.
    pub approximate: bool,
    /// Innermost first.
    pub frames: Frames<'a>,
}

/// The frames of a sample, innermost first.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    first: *const bc_frame,
    count: usize,
    frame_size: usize,
    owner: PhantomData<&'a bc_frame>,
}

/// One frame. Strings may hold any bytes.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// Address as found.
    pub pc: u64,
    /// The same relative to the module; without meaning without one.
    pub module_offset: u64,
    /// Distance from the begin of the symbol; without one, from that of the function, 0 if that is not known either.
    pub symbol_offset: u64,
    /// Full path.
    pub module: Option<&'a [u8]>,
    /// Lower-case hexadecimal.
    pub build_id: Option<&'a [u8]>,
    /// As it stands in the module.
    pub symbol: Option<&'a [u8]>,
}

impl<'a> Samples<'a> {
    /// No samples.
    pub const NONE: Samples<'static> =
        Samples { first: core::ptr::null(), count: 0, sample_size: 0, frame_size: 0, owner: PhantomData };

    /// Samples of this library's own making.
    ///
    /// # Safety
    /// Everything that the samples point to (frames, strings that end in a NUL) stays valid and unchanged for `'a`.
    pub unsafe fn new(samples: &'a [bc_sample]) -> Samples<'a> {
        // SAFETY: a slice has as many elements as it says, this far apart; the rest is the caller's promise.
        unsafe { Samples::from_raw(samples.as_ptr(), samples.len(), size_of::<bc_sample>(), size_of::<bc_frame>()) }
    }

    /// Samples as a `bc_block` tells of them. None if there is no pointer or a size is below the first version's.
    ///
    /// # Safety
    /// `first` is NULL or leads to `count` samples `sample_size` bytes apart, each of which leads to its frames
    /// `frame_size` bytes apart; these, and the strings they point to, stay valid and unchanged for `'a`.
    pub unsafe fn from_raw(
        first: *const bc_sample,
        count: usize,
        sample_size: usize,
        frame_size: usize,
    ) -> Samples<'a> {
        if first.is_null() || sample_size < size_of::<bc_sample>() || frame_size < size_of::<bc_frame>() {
            return Samples::NONE;
        }
        Samples { first, count, sample_size, frame_size, owner: PhantomData }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The sample at a place.
    pub fn get(&self, index: usize) -> Option<Sample<'a>> {
        if index >= self.count {
            return None;
        }
        let sample = self.first.wrapping_byte_add(index.wrapping_mul(self.sample_size));
        // SAFETY: the maker of this view promised a sample here. Each field is read as an integer of its size, at any
        // alignment, since the distance between samples is the caller's.
        unsafe {
            let first = (&raw const (*sample).frames).read_unaligned();
            let count = (&raw const (*sample).frame_count).read_unaligned();
            let state = (&raw const (*sample).thread_state).cast::<u8>().read();
            Some(Sample {
                time_ns: (&raw const (*sample).time_ns).read_unaligned(),
                method: method((&raw const (*sample).method).cast::<u32>().read_unaligned()),
                frames_cut: (&raw const (*sample).frames_cut).read_unaligned(),
                thread_state: (state != 0).then_some(state),
                truncated: (&raw const (*sample).truncated).cast::<u8>().read() != 0,
                approximate: (&raw const (*sample).approximate).cast::<u8>().read() != 0,
                frames: Frames {
                    first,
                    count: if first.is_null() { 0 } else { count },
                    frame_size: self.frame_size,
                    owner: PhantomData,
                },
            })
        }
    }

    /// All, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Sample<'a>> {
        (0..self.count).filter_map(move |index| self.get(index))
    }
}

impl<'a> Frames<'a> {
    /// No frames.
    pub const NONE: Frames<'static> = Frames { first: core::ptr::null(), count: 0, frame_size: 0, owner: PhantomData };

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The frame at a place.
    #[inline(never)]
    pub fn get(&self, index: usize) -> Option<Frame<'a>> {
        if index >= self.count {
            return None;
        }
        let frame = self.first.wrapping_byte_add(index.wrapping_mul(self.frame_size));
        // SAFETY: the maker of the view promised a frame here and strings behind its pointers.
        unsafe {
            let frame = frame.read_unaligned();
            Some(Frame {
                pc: frame.pc,
                module_offset: frame.module_offset,
                symbol_offset: frame.symbol_offset,
                module: string(frame.module),
                build_id: string(frame.build_id),
                symbol: string(frame.symbol),
            })
        }
    }

    /// All, innermost first.
    pub fn iter(self) -> impl Iterator<Item = Frame<'a>> {
        (0..self.count).filter_map(move |index| self.get(index))
    }
}

impl<'a> Frame<'a> {
    /// The module without its folders.
    pub fn module_base_name(&self) -> Option<&'a [u8]> {
        self.module.map(base_name)
    }
}

/// What stands after the last slash of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

fn method(value: u32) -> Option<bc_sample_method> {
    use bc_sample_method::*;
    [BC_SAMPLE_NO_STACK, BC_SAMPLE_KERNEL_STATE, BC_SAMPLE_SIGNAL].into_iter().find(|&known| known as u32 == value)
}

/// # Safety
/// The pointer is NULL or leads to a string that ends in a NUL and stays for `'a`.
unsafe fn string<'a>(pointer: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(pointer) };
    // Nothing has an empty name: it is not known then.
    bytes.filter(|bytes| !bytes.is_empty())
}
