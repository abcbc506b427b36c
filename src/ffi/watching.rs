//! What every call that begins a watch does around it.

use super::status;
use crate::abi::bc_loop;
use crate::abi::bc_status::{self, *};
use crate::engine::life;
use crate::report::text_space::bytes_of;
use crate::watch::token::Token;
use core::ffi::c_char;
use core::ptr;

/// Watches by `watch`, which gets the caller's name, and writes the token to the caller's place, or NULL. `is_whole`: what
/// else the call takes is there.
///
/// # Safety
/// `name` is null or a string; `place` is null or may be written to.
pub(super) unsafe fn begin(
    place: *mut *mut bc_loop,
    name: *const c_char,
    is_whole: bool,
    watch: impl FnOnce(Option<&[u8]>) -> Result<Token, bc_status>,
) -> bc_status {
    if place.is_null() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: the caller vouches for the name.
    let name = unsafe { bytes_of(name) };
    let result = may_begin(is_whole).and_then(|()| watch(name));
    let token = result.map_or(ptr::null_mut(), |token| ptr::without_provenance_mut(token.raw()));
    // SAFETY: not null, so the caller's place for a token.
    unsafe { place.write(token) };
    result.err().unwrap_or(BC_OK)
}

fn may_begin(is_whole: bool) -> Result<(), bc_status> {
    if !is_whole {
        return Err(BC_ERROR_INVALID_ARGUMENT);
    }
    life::check_installed().map_err(|refusal| status(Err(refusal)))?;
    if life::is_in_callback() { Err(BC_ERROR_WRONG_THREAD) } else { Ok(()) }
}
