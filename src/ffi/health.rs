//! The library's account of itself.

use super::status;
use crate::abi::bc_health;
use crate::abi::bc_status::{self, *};
use crate::engine::{health, life};
use core::ptr;

/// Tells what was done, lost, or could not be done. The caller sets `health->struct_size`; at most so many bytes are
/// written, and none unless BC_OK.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL, or a size below the first version's), BC_ERROR_INVALID_STATE (not
/// installed), BC_ERROR_INTERNAL.
///
/// Units: counts and bytes. Ownership: the caller's memory. Threads: any.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_health_get(health: *mut bc_health) -> bc_status {
    if health.is_null() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    // SAFETY: the caller's structure begins with its size.
    let given = unsafe { health.cast::<usize>().read_unaligned() };
    if given < size_of::<bc_health>() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    let mut known = health::health();
    known.struct_size = given;
    // SAFETY: the caller has at least as many bytes as we write.
    unsafe { ptr::copy_nonoverlapping((&raw const known).cast::<u8>(), health.cast(), size_of::<bc_health>()) };
    BC_OK
}
