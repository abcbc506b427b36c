//! The names in a directory, as the kernel hands them over.

use super::errno::Errno;
use super::fd::Fd;
use super::files::{self, Kind, Status};
use core::ffi::CStr;

/// One name in a directory.
pub struct Entry<'a> {
    /// The name.
    pub name: &'a CStr,
    /// What it stands for; `None` where the file system does not tell along with the name.
    pub kind: Option<Kind>,
}

impl Entry<'_> {
    /// Whether it is a regular file; asks the file system if need be.
    pub fn is_file(&self, directory: &Fd) -> bool {
        let kind = self.kind.or_else(|| files::status(directory, self.name).ok().map(|Status { kind, .. }| kind));
        kind == Some(Kind::File)
    }
}

/// Calls `visit` with every name until it returns false; answers whether it never did. `buffer` holds some of the names
/// at a time, 1 KiB at least.
///
/// Names that come or go meanwhile may be seen or not, all others are seen once. `visit` may remove names.
pub fn each(directory: &Fd, buffer: &mut [u8], visit: &mut dyn FnMut(&Entry) -> bool) -> Result<bool, Errno> {
    let directory = files::reopen_directory(directory)?;
    loop {
        let filled = files::read_directory(&directory, buffer)?;
        if filled == 0 {
            return Ok(true);
        }
        for entry in Entries(buffer.get(..filled).unwrap_or_default()) {
            if !visit(&entry) {
                return Ok(false);
            }
        }
    }
}

/// Takes apart what `files::read_directory` has filled in: the kernel's `linux_dirent64`, one after the other.
pub struct Entries<'a>(pub &'a [u8]);

// Inode number and position, 8 bytes each, come first and are of no interest.
const LENGTH: usize = 16;
const KIND: usize = 18;
const NAME: usize = 19;

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let length = self.0.get(LENGTH..)?.first_chunk::<2>()?;
        let (entry, rest) = self.0.split_at_checked(usize::from(u16::from_ne_bytes(*length)))?;
        self.0 = rest;
        let name = CStr::from_bytes_until_nul(entry.get(NAME..)?).ok()?;
        let kind = match *entry.get(KIND)? {
            libc::DT_UNKNOWN => None,
            libc::DT_REG => Some(Kind::File),
            libc::DT_DIR => Some(Kind::Directory),
            _ => Some(Kind::Other),
        };
        Some(Entry { name, kind })
    }
}
