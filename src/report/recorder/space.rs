//! Memory of recorders, in the installation's mapping: all zeros are nothing in it yet.
#![allow(unsafe_code)]

use super::encode::Known;
use super::layout::{HALF, MOST_PLACES, ROOM, TOP};
use crate::sys::mapping::Zeroed;

/// What a recorder needs.
#[repr(C)]
pub struct Space {
    pub(super) places: [Place; MOST_PLACES as usize],
    pub(super) known: Known,
    pub(super) top: [u8; TOP],
    pub(super) held: [u8; ROOM],
}

/// One block's.
#[derive(Clone, Copy)]
pub struct Place {
    /// The block, 0 for none.
    pub id: u64,
    /// Of the last write.
    pub sequence: u64,
}

/// What reading those of others needs: both halves of a place.
#[repr(C)]
pub struct Buffer {
    pub(super) halves: [[u8; HALF]; 2],
}

// SAFETY: numbers.
unsafe impl Zeroed for Space {}
// SAFETY: numbers.
unsafe impl Zeroed for Buffer {}
