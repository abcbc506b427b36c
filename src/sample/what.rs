//! What a dispatch is called, copied.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};

/// Bytes of `what` that are kept.
pub const WHAT: usize = 127;

/// Stands for `what` in the time from a poll's return to the next poll; the tag is what the poll returned.
pub static BETWEEN_POLLS: &CStr = c"between polls";
/// Stands for `what` in a looper's callback; the tag is the callback's address.
pub static CALLBACK: &CStr = c"fd callback";
/// `what` in the time from one frame to the next; the tag is the display's time of the first one.
pub static FRAME: &CStr = c"frame";

/// Who named a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program, or the library by a name that says all.
    Named,
    /// Nobody: the time between two polls.
    BetweenPolls,
    /// Nobody: a looper's callback.
    Callback,
}

impl Kind {
    /// From the address of the text, which tells the two of the library's own that do not name all.
    pub fn of(what: *const c_char) -> Kind {
        if what == BETWEEN_POLLS.as_ptr() {
            Kind::BetweenPolls
        } else if what == CALLBACK.as_ptr() {
            Kind::Callback
        } else {
            Kind::Named
        }
    }
}

/// A copy of `what`, as long as is kept of it.
#[derive(Clone, Copy)]
pub struct What {
    /// Who named it.
    pub kind: Kind,
    /// There was a text.
    pub is_some: bool,
    length: u8,
    bytes: [u8; WHAT],
}

impl What {
    /// No text.
    pub const NONE: What = What { kind: Kind::Named, is_some: false, length: 0, bytes: [0; WHAT] };

    /// Copies it.
    ///
    /// # Safety
    /// `what` is null or a text that ends in a NUL and stays as it is for the call.
    pub unsafe fn copy(what: *const c_char) -> What {
        let mut copy = What { kind: Kind::of(what), is_some: !what.is_null(), ..What::NONE };
        if !what.is_null() {
            for (place, byte) in copy.bytes.iter_mut().enumerate() {
                // SAFETY: all bytes before were not the NUL, so this one still belongs to the text.
                *byte = unsafe { what.add(place).read() } as u8;
                if *byte == 0 {
                    break;
                }
                copy.length += 1;
            }
        }
        copy
    }

    /// From bytes that may end in a NUL.
    pub fn from_bytes(what: *const c_char, bytes: &[u8]) -> What {
        let mut copy = What { kind: Kind::of(what), is_some: true, ..What::NONE };
        for (place, byte) in copy.bytes.iter_mut().zip(bytes.iter().take_while(|byte| **byte != 0)) {
            *place = *byte;
            copy.length += 1;
        }
        copy
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}
