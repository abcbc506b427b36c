//! Stored reports: listed, removed, zipped, uploaded.

use super::status;
use crate::abi::bc_status::{self, *};
use crate::abi::{bc_report_visitor, bc_uploader};
use crate::engine::{life, reports};
use crate::report::upload::UPLOADER;
use core::ffi::{CStr, c_char, c_void};

/// Visits every file of a report below `report_dir`, of other processes too, in no order; `visitor` returns false to stop.
/// Files that come or go meanwhile may be visited or not, and none is ever half written. The visitor may remove the file
/// it is given, and call whatever the caller may. It takes 16 KiB of the caller's stack.
///
/// Returns BC_OK (also if there is no report, or the directory is gone), BC_ERROR_INVALID_ARGUMENT (NULL),
/// BC_ERROR_INVALID_STATE (not installed, or without `report_dir`), BC_ERROR_IO (the log says what), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: the path is valid until the visitor returns; `user_data` is handed back only. Threads: any; the
/// visitor runs on the calling one. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_reports_each(visitor: bc_report_visitor, user_data: *mut c_void) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    let Some(visitor) = visitor else { return BC_ERROR_INVALID_ARGUMENT };
    let visit = &mut |path: &CStr| {
        // SAFETY: the caller gave the visitor for this, with this user data; the path ends in a NUL and stays meanwhile.
        unsafe { visitor(path.as_ptr(), user_data) }
    };
    status(reports::each(visit))
}

/// Removes all reports below `report_dir` but those of blocks that go on and those of other processes that live. Other
/// files stay.
///
/// Returns BC_OK (also if there is nothing to remove), BC_ERROR_INVALID_STATE (not installed, or without `report_dir`),
/// BC_ERROR_IO (some could not be removed; the log handler is told why), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_reports_delete_all() -> bc_status {
    status(reports::delete_all())
}

/// Puts all reports below `report_dir` into a zip archive at `path`, in place of what is there. Written under another name
/// beside it and renamed when it is whole; its mode is 0600, and a link at `path` is replaced, not followed. Without
/// reports it has no entries. Nothing is compressed. A report that cannot be read is left out; the log handler is told which. It takes
/// 24 KiB of the caller's stack.
///
/// Returns BC_OK, BC_ERROR_INVALID_ARGUMENT (NULL), BC_ERROR_INVALID_STATE (not installed, or without `report_dir`),
/// BC_ERROR_LIMIT_REACHED (more than 65,534 files or 4 GiB: no archive), BC_ERROR_IO (no archive; the log handler is
/// told why), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: `path` is the caller's. Threads: any. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bc_reports_zip(path: *const c_char) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    if path.is_null() {
        return BC_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: the caller's string ends in a NUL.
    status(reports::zip(unsafe { CStr::from_ptr(path) }))
}

/// Sets the uploader, in the place of the one before; NULL: none. When this returns, the one before is not running (unless
/// this is called from it) and will not run again. `bc_uninstall` resets it.
///
/// It runs on the listeners' thread, and no listener runs meanwhile. What may be called from it is what may be called from
/// a listener.
///
/// Returns BC_OK, BC_ERROR_INVALID_STATE (not installed), BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: `user_data` is handed back only; the zip is the library's and goes when the uploader returns: to
/// keep it, open it or move it away. Threads: any. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_set_uploader(uploader: bc_uploader, user_data: *mut c_void) -> bc_status {
    if let Err(refusal) = life::check_installed() {
        return status(Err(refusal));
    }
    UPLOADER.replace(uploader, user_data);
    BC_OK
}

/// Has the reports uploaded: soon, on the listeners' thread, they are put into a zip, which is handed to the uploader. Those
/// that were in it are removed when it has returned true, and no others; after false, or when the process or the
/// installation ends before, they are sent again with the next upload. Reports of blocks that go on and of other processes
/// that live are left for later. Without reports the uploader is not called; more than one zip can hold are sent in several.
///
/// Returns BC_OK (it will be done), BC_ERROR_INVALID_STATE (not installed, without `report_dir`, or no uploader is set),
/// BC_ERROR_INTERNAL.
///
/// Units: none. Ownership: none. Threads: any. Async-signal-safe: no.
#[unsafe(no_mangle)]
pub extern "C" fn bc_reports_upload() -> bc_status {
    status(reports::upload())
}
