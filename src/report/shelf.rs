//! The report directory for those who list and remove reports while the store goes on: it is looked up by its path each
//! time and shares nothing with the store but what it has made.

use super::names::{Format, Name};
use super::owners::{Owners, Tenure};
use super::place::{PATH_SIZE, append};
use super::retention;
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files;
use core::ffi::CStr;

/// Bytes for names on their way out of a directory; on the stack of whoever calls.
pub const NAMES: usize = 4096;

/// See above.
#[derive(Clone, Copy)]
pub struct Shelf<'m> {
    path: &'m CStr,
    tenure: &'m Tenure,
}

impl<'m> Shelf<'m> {
    /// Of an open store, which tells both.
    pub(super) fn new(path: &'m CStr, tenure: &'m Tenure) -> Shelf<'m> {
        Shelf { path, tenure }
    }

    /// The directory's absolute path.
    pub fn path(&self) -> &'m CStr {
        self.path
    }

    /// The directory; `None` while there is none, and so no report.
    pub fn directory(&self) -> Result<Option<Fd>, Errno> {
        open(self.path)
    }

    /// Says which reports may go.
    pub fn owners(&self) -> Owners<'m> {
        Owners::new(self.tenure)
    }

    /// Removes every report that may go; `is_held` says of which blocks that is not true. The first error of many is told,
    /// and the others are removed all the same.
    pub fn delete_all(&self, is_held: &dyn Fn(u64) -> bool) -> Result<(), Errno> {
        let Some(directory) = self.directory()? else { return Ok(()) };
        let mut owners = self.owners();
        let mut result = Ok(());
        retention::each_file(&directory, &mut [0; NAMES], &mut |name, _, _| {
            if owners.may_go(&directory, &name, is_held) {
                result = result.and(retention::remove(&directory, name).map(drop));
            }
            true
        })?;
        result
    }
}

/// Calls `visit` with the path of every report until it returns false. `path` is the directory's.
pub fn each(path: &CStr, visit: &mut dyn FnMut(&CStr, Name, Format) -> bool) -> Result<(), Errno> {
    let Some(directory) = open(path)? else { return Ok(()) };
    let mut file = [0; PATH_SIZE];
    let mut length = 0;
    append(&mut file, &mut length, path.to_bytes())?;
    append(&mut file, &mut length, b"/")?;
    retention::each_file(&directory, &mut [0; NAMES], &mut |name, format, entry| {
        let mut end = length;
        match append(&mut file, &mut end, entry.name.to_bytes_with_nul()) {
            Ok(()) => visit(CStr::from_bytes_until_nul(&file).unwrap_or_default(), name, format),
            // Whoever was told of it could not open it.
            Err(_) => true,
        }
    })
    .map(drop)
}

fn open(path: &CStr) -> Result<Option<Fd>, Errno> {
    match files::open_directory(path) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno(libc::ENOENT)) => Ok(None),
        Err(error) => Err(error),
    }
}
