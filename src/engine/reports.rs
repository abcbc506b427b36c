//! What calls of the interface do with stored reports.

use super::life::{self, Refusal};
use crate::log_error;
use crate::report::archive::{self, Failure};
use crate::report::filter::FILTER;
use crate::report::place::PATH_SIZE;
use crate::report::shelf::{self, Shelf};
use crate::report::sink::Lossy;
use crate::report::upload::UPLOADER;
use crate::sys::errno::Errno;
use crate::sys::log;
use core::ffi::CStr;

/// Visits every report until `visit` returns false. Needs the installation no longer than it takes to begin, so that the
/// visit may take its time.
pub fn each(visit: &mut dyn FnMut(&CStr) -> bool) -> Result<(), Refusal> {
    let mut memory = [0; PATH_SIZE];
    {
        let user = life::use_it()?;
        let path = user.shelf.ok_or(Refusal::State)?.path().to_bytes();
        memory.iter_mut().zip(path).for_each(|(to, from)| *to = *from);
    }
    let path = CStr::from_bytes_until_nul(&memory).unwrap_or_default();
    shelf::each(path, &mut |path, _, _| visit(path)).map_err(|error| failed("bc_reports_each", path, error))
}

/// Removes every report that may go.
pub fn delete_all() -> Result<(), Refusal> {
    let user = life::use_it()?;
    let shelf = user.shelf.ok_or(Refusal::State)?;
    // What is about to be written again would come back. On the writer's own thread there is no waiting for it.
    if !FILTER.is_inside() && !log::is_inside() {
        user.seal();
    }
    let is_needed = |id| user.evidence.lock().needs_report(id);
    shelf.delete_all(&is_needed).map_err(|error| failed("bc_reports_delete_all", shelf.path(), error))
}

/// Puts all reports into an archive.
pub fn zip(path: &CStr) -> Result<(), Refusal> {
    let user = life::use_it()?;
    let shelf = user.shelf.ok_or(Refusal::State)?;
    archive::of_all(&shelf, path).map_err(|failure| match failure {
        Failure::Io(error) => failed("bc_reports_zip", path, error),
        Failure::Full => {
            let path = Lossy(path.to_bytes());
            log_error!("bc_reports_zip: {path}: more than 65534 files or 4 GiB of reports");
            Refusal::Full
        }
    })
}

/// Has the reports uploaded, soon.
pub fn upload() -> Result<(), Refusal> {
    let user = life::use_it()?;
    let _: Shelf = user.shelf.ok_or(Refusal::State)?;
    if !UPLOADER.is_set() {
        return Err(Refusal::State);
    }
    user.upload();
    Ok(())
}

fn failed(call: &str, path: &CStr, error: Errno) -> Refusal {
    log_error!("{call}: {}: {error}", Lossy(path.to_bytes()));
    Refusal::Io
}
