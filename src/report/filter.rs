//! Which blocks are wanted: what the program's filter and the configuration's list of ignored modules say.

use super::module_list::ModuleList;
use super::parcel::Parcel;
use super::shown::{self, To};
use crate::abi::{bc_block, bc_block_filter};
use crate::sys::callback::Callback;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// The program's filter.
///
/// It runs on bc-writer. While it does not return nothing is stored; the monitor goes on, and cases that it finds no
/// place for any more count as dropped.
pub static FILTER: Callback<bc_block_filter> = Callback::new();

/// What is to become of a state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is stored and delivered.
    Wanted,
    /// It is not, and no further one of the block is either.
    Refused,
    /// It is not. What follows may be: so far all samples lie in ignored modules.
    Held,
}

/// Decides.
#[derive(Clone, Copy)]
pub struct Judge {
    /// See `bc_config`.
    pub ignored: ModuleList<'static>,
    /// The filter is not to be asked any more: an uninstall is waiting for it.
    pub hold: &'static AtomicBool,
}

impl Judge {
    /// Decides on a parcel whose frames are resolved and which nothing of is on disk yet.
    pub fn judge(&self, parcel: &Parcel, is_end: bool) -> Verdict {
        match parcel.case.is_wanted {
            Some(true) => return Verdict::Wanted,
            Some(false) => return Verdict::Refused,
            None => {}
        }
        if self.ignored.holds_all(parcel.block().samples) {
            return if is_end { Verdict::Refused } else { Verdict::Held };
        }
        if !FILTER.is_set() {
            return Verdict::Wanted;
        }
        // Who may not be asked has not agreed.
        if self.hold.load(Acquire) {
            return Verdict::Refused;
        }
        let mut is_wanted = true;
        shown::show(parcel, To::Filter, |block| {
            FILTER.run(|filter, user_data| is_wanted = ask(filter, block, user_data));
        });
        if is_wanted { Verdict::Wanted } else { Verdict::Refused }
    }
}

#[allow(unsafe_code)]
fn ask(filter: bc_block_filter, block: &bc_block, user_data: *mut c_void) -> bool {
    // SAFETY: the program gave the filter for this, with this user data; the block's memory is the parcel's.
    filter.is_none_or(|filter| unsafe { filter(block, user_data) })
}
