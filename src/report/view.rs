//! Samples and frames in C's layout, seen safely.
#![allow(unsafe_code)]

use crate::abi::{bc_frame, bc_sample};
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

impl<'a> Samples<'a> {
    /// Samples of this library's own making.
    ///
    /// # Safety
    /// Everything that the samples point to (frames, strings that end in a NUL) stays valid and unchanged for `'a`.
    pub unsafe fn new(samples: &'a [bc_sample]) -> Samples<'a> {
        Samples {
            first: samples.as_ptr(),
            count: samples.len(),
            sample_size: size_of::<bc_sample>(),
            frame_size: size_of::<bc_frame>(),
            owner: PhantomData,
        }
    }
}
