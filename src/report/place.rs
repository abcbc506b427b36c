//! The report directory: its path, kept, and its descriptor, found again when somebody took the directory away.

use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files::{self, Status};
use core::ffi::CStr;

/// Bytes of the longest path, with its NUL.
pub const PATH_SIZE: usize = libc::PATH_MAX as usize;

/// A directory that is to be there.
pub struct Place<'m> {
    path: &'m [u8; PATH_SIZE],
    length: usize,
    open: Option<(Fd, Status)>,
}

impl<'m> Place<'m> {
    /// Keeps the path, made absolute so that it stays the same whatever the working directory becomes, without slashes at
    /// its end so that a link there is seen as one.
    pub fn new(path: &CStr, memory: &'m mut [u8; PATH_SIZE]) -> Result<Place<'m>, Errno> {
        let mut length = 0;
        let path = path.to_bytes();
        if path.is_empty() {
            return Err(Errno(libc::ENOENT));
        }
        if !path.starts_with(b"/") {
            length = files::working_directory(memory)?;
            append(memory, &mut length, b"/")?;
        }
        append(memory, &mut length, path)?;
        while length > 1 && memory.get(length - 1) == Some(&b'/') {
            length -= 1;
        }
        // The NUL.
        append(memory, &mut length, b"\0")?;
        Ok(Place { path: memory, length: length - 1, open: None })
    }

    /// The path.
    pub fn path(&self) -> &[u8] {
        self.path.get(..self.length).unwrap_or_default()
    }

    /// The same, ending in a NUL.
    pub fn c_path(&self) -> &'m CStr {
        CStr::from_bytes_until_nul(self.path).unwrap_or_default()
    }

    /// The directory's descriptor, and whether it is another directory than the last time. Made again if it is gone.
    pub fn directory(&mut self) -> Result<(&Fd, bool), Errno> {
        let there = files::status_of_path(self.c_path());
        let kept = self
            .open
            .take()
            .filter(|(_, kept)| there.is_ok_and(|there| (there.device, there.inode) == (kept.device, kept.inode)))
            .filter(|(directory, _)| directory.is_intact());
        let changed = kept.is_none();
        let open = match kept {
            Some(open) => open,
            None => {
                let directory = self.make()?;
                let status = files::status_of_directory(&directory)?;
                (directory, status)
            }
        };
        let (directory, _) = self.open.insert(open);
        Ok((directory, changed))
    }

    /// The descriptor that `directory` gave last, without another look.
    pub fn kept(&self) -> Result<&Fd, Errno> {
        self.open.as_ref().map(|(directory, _)| directory).ok_or(Errno(libc::ENOENT))
    }

    /// Opens the directory, makes it and whatever is missing above it first if need be.
    fn make(&self) -> Result<Fd, Errno> {
        match files::open_directory(self.c_path()) {
            Err(Errno(libc::ENOENT)) => {}
            other => return other,
        }
        // Upwards to the first folder that is there, then down again: folders that are there may not even be looked at
        // more than needed, since many of them refuse an app that asks to make them.
        let mut length = self.length;
        let mut down = false;
        loop {
            let mut prefix = *self.path;
            if let Some(end) = prefix.get_mut(length) {
                *end = 0;
            }
            let made = files::make_directory(CStr::from_bytes_until_nul(&prefix).unwrap_or_default());
            match made {
                Err(Errno(libc::ENOENT)) if !down => match self.slash_before(length) {
                    Some(slash) => length = slash,
                    None => return Err(Errno(libc::ENOENT)),
                },
                Ok(()) | Err(Errno(libc::EEXIST)) => {
                    if length >= self.length {
                        return files::open_directory(self.c_path());
                    }
                    down = true;
                    length = self.slash_after(length + 1);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn slash_before(&self, length: usize) -> Option<usize> {
        let before = self.path.get(..length)?.iter().rposition(|&byte| byte == b'/')?;
        (before > 0).then_some(before)
    }

    fn slash_after(&self, from: usize) -> usize {
        let rest = self.path.get(from..self.length).unwrap_or_default();
        rest.iter().position(|&byte| byte == b'/').map_or(self.length, |position| from + position)
    }
}

/// Appends to a text in fixed memory.
pub fn append(memory: &mut [u8], length: &mut usize, bytes: &[u8]) -> Result<(), Errno> {
    let end = length.saturating_add(bytes.len());
    let room = memory.get_mut(*length..end).ok_or(Errno(libc::ENAMETOOLONG))?;
    room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    *length = end;
    Ok(())
}
