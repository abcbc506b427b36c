//! What a thread does, as far as one look from outside tells.

use crate::sys::procfs::{SystemCall, Waiting};

/// See above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing is known.
    Unknown,
    /// It runs, or is ready to.
    Running,
    /// It waits in a system call.
    Waits(SystemCall),
    /// It waits and is in no system call: for a page of memory.
    WaitsForPage,
    /// It waits, and for what cannot be had.
    WaitsUnseen,
}

impl Doing {
    /// Of a thread that waits.
    pub fn waits(at: &Waiting) -> Doing {
        at.call.map_or(Doing::WaitsForPage, Doing::Waits)
    }
}
