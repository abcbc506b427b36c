//! Modules that are built already: their imports of ALooper, interposed.

use super::status;
use crate::abi::bc_status::{self, *};
use crate::hook::interpose::{LONGEST, State};
use crate::hook::keeper::{self, Failure};
use crate::hook::place::Refusal;
use core::ffi::{CStr, c_char};

/// Sends the `ALooper_addFd`, `ALooper_removeFd`, `ALooper_pollOnce` and `ALooper_pollAll` calls of a shared library that is
/// built already through `bc_looper_*`, while watching is on. The words with which it imports them are made to lead to us,
/// that is verified, and they hold again what they held when watching ends, each but for what somebody else has written
/// there since. `module` is the library's file name ("libgame.so") or its whole path; inside an APK the loader has a path
/// for it, too. Addresses from `dlsym` are not found. What the library called before, another one's hook perhaps, is
/// called on.
///
/// The name stays wanted until `bc_module_restore` or an uninstall: such a library is interposed within a second or two of
/// being loaded, also when it is loaded again, for which a thread wakes once a second while watching is on. The log says
/// what was done or refused, when calls have come through, and in the end if none have. With watching off, only the name is
/// kept.
///
/// A thread may wait in a poll of ours for ever. So the library that we are linked into, if it is not the program itself,
/// stays loaded from the first such call on: unloading it then does nothing, so uninstall before.
///
/// Returns BC_OK (in place; or watching is off), BC_ERROR_INVALID_ARGUMENT (NULL, empty, or longer than 255 bytes),
/// BC_ERROR_INVALID_STATE (not installed; or no such library is loaded: it is wanted all the same), BC_ERROR_TIMEOUT (it is
/// being loaded: wanted all the same), BC_ERROR_UNSUPPORTED (it imports none of the functions, or they cannot be replaced:
/// not wanted any more; or Android before 6, whose loader does not hold still), BC_ERROR_LIMIT_REACHED (more than 8
/// libraries, or 32 words of one), BC_ERROR_NO_MEMORY (no thread to look after it), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: the name is copied. Threads: any; takes the loader's lock, as `dlopen` does.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_module_interpose(module: *const c_char) -> bc_status {
    // SAFETY: null, or the caller's string.
    unsafe { name(module) }.and_then(interpose).err().unwrap_or(BC_OK)
}

/// Ends what `bc_module_interpose` began with this name: the words hold again what they held, but for those that somebody
/// else has written to since, and the name is not wanted any more. A library that is wanted by its path and by its file's
/// name stays interposed until both are given back.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL, empty, or longer than 255 bytes), BC_ERROR_INVALID_STATE (not installed,
/// or the name was not wanted), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any; takes the loader's lock, as `dlopen` does.
/// Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_module_restore(module: *const c_char) -> bc_status {
    // SAFETY: null, or the caller's string.
    unsafe { name(module) }.and_then(restore).err().unwrap_or(BC_OK)
}

unsafe fn name<'a>(module: *const c_char) -> Result<&'a [u8], bc_status> {
    if module.is_null() {
        return Err(BC_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: the caller's string.
    let name = unsafe { CStr::from_ptr(module) }.to_bytes();
    if name.is_empty() || name.len() > LONGEST {
        return Err(BC_ERROR_INVALID_ARGUMENT);
    }
    Ok(name)
}

fn interpose(name: &[u8]) -> Result<(), bc_status> {
    match keeper::interpose(name) {
        Ok(State::InPlace(_) | State::Fired(_) | State::New) => Ok(()),
        Ok(State::NotLoaded) => Err(BC_ERROR_INVALID_STATE),
        Ok(State::Loading) => Err(BC_ERROR_TIMEOUT),
        Ok(State::Refused(Refusal::Room)) | Err(Failure::Full) => Err(BC_ERROR_LIMIT_REACHED),
        Ok(State::Refused(_)) | Err(Failure::Loader) => Err(BC_ERROR_UNSUPPORTED),
        Err(Failure::Thread) => Err(BC_ERROR_NO_MEMORY),
        Err(Failure::Life(refusal)) => Err(status(Err(refusal))),
    }
}

fn restore(name: &[u8]) -> Result<(), bc_status> {
    keeper::restore(name).map_err(|refusal| status(Err(refusal)))
}
