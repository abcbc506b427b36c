//! Reports put into an archive, which nobody sees before it is whole.

use super::names::{FileName, Format, Name};
use super::retention;
use super::shelf::{NAMES, Shelf};
use super::sink::Lossy;
use super::zip::{Archive, BUFFER, Refused, ToFile};
use crate::log_warn;
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files::{self, Status};
use crate::sys::shield::Shield;
use crate::sys::thread;
use core::ffi::CStr;

/// Why there is no archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A file or directory could not be used.
    Io(Errno),
    /// More than 65,534 files, or 4 GiB of them.
    Full,
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Failure {
        Failure::Io(error)
    }
}

/// Puts all reports into an archive at a path, in place of what was there.
pub fn of_all(shelf: &Shelf, path: &CStr) -> Result<(), Failure> {
    let _shield = Shield::from(libc::SIGXFSZ);
    let (parent, base) = open_parent(path)?;
    let unfinished = unfinished();
    let file = files::replace(&parent, unfinished.as_c_str())?;
    let fill = || {
        let (mut output, mut buffer) = (ToFile(&file), [0; BUFFER]);
        let mut archive = Archive::new(&file, &mut output, &mut buffer);
        if let Some(directory) = shelf.directory()?
            && !collect(&directory, &mut archive, &mut |_| true, &mut |_, _| Ok(()))?
        {
            return Err(Failure::Full);
        }
        archive.finish()?;
        Ok(files::rename(&parent, unfinished.as_c_str(), base)?)
    };
    let result = fill();
    if result.is_err() {
        let _ = files::remove(&parent, unfinished.as_c_str());
    }
    result
}

/// Adds the reports of all blocks that are wanted, and tells of each file. `false`: there was no room for all of them.
pub fn collect(
    directory: &Fd,
    archive: &mut Archive,
    is_wanted: &mut dyn FnMut(&Name) -> bool,
    added: &mut dyn FnMut(&FileName, &Status) -> Result<(), Errno>,
) -> Result<bool, Errno> {
    let mut result = Ok(true);
    let mut add = |name: &Name, format| {
        let file_name = name.file(format);
        let opened = files::open(directory, file_name.as_c_str());
        let opened = opened.and_then(|file| files::status_of_file(&file).map(|status| (file, status)));
        let outcome = match opened {
            // Removed since.
            Err(Errno(libc::ENOENT)) => return true,
            Err(error) => Err(Refused::Source(error)),
            Ok((file, status)) => archive
                .add(&file, file_name.as_bytes(), name.local_ms)
                .and_then(|()| added(&file_name, &status).map_err(Refused::Archive)),
        };
        match outcome {
            Ok(()) => {}
            Err(Refused::Source(error)) => {
                log_warn!("{} is left out of the archive: {error}", Lossy(file_name.as_bytes()));
            }
            Err(Refused::Full) => result = Ok(false),
            Err(Refused::Archive(error)) => result = Err(error),
        }
        result == Ok(true)
    };
    retention::each_file(directory, &mut [0; NAMES], &mut |name, format, _| {
        let stands = retention::stands_for_block(directory, &name, format);
        !stands || !is_wanted(&name) || [Format::Text, Format::Json].into_iter().all(|format| add(&name, format))
    })?;
    result
}

/// The directory that a path leads through, links in it followed, and the name that is left.
fn open_parent(path: &CStr) -> Result<(Fd, &CStr), Errno> {
    let bytes = path.to_bytes_with_nul();
    let begin = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (parent, base) = bytes.split_at_checked(begin).unwrap_or_default();
    let base = CStr::from_bytes_until_nul(base).unwrap_or_default();
    if matches!(base.to_bytes(), b"" | b"." | b"..") {
        return Err(Errno(if path.is_empty() { libc::ENOENT } else { libc::EISDIR }));
    }
    let mut memory = [0; super::place::PATH_SIZE];
    let mut length = 0;
    super::place::append(&mut memory, &mut length, parent)?;
    super::place::append(&mut memory, &mut length, b".\0")?;
    let parent = files::open_directory(CStr::from_bytes_until_nul(&memory).unwrap_or_default())?;
    Ok((parent, base))
}

/// A hidden name that nobody else writes to: one thread is in one such call at a time.
fn unfinished() -> FileName {
    FileName::made(|sink| {
        sink.text(".blockcanary-");
        sink.decimal(u64::from(thread::tid().unsigned_abs()));
        sink.text(".zip.tmp");
    })
}
