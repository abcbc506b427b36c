//! `/proc/self/maps`: what is mapped where.
#![allow(unsafe_code)]

use super::errno::{Errno, check};
use super::fd::Fd;
use super::files;
use core::ffi::CStr;

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// It may be read.
    pub readable: bool,
    /// It may be written.
    pub writable: bool,
    /// It may be executed.
    pub executable: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file's device (major and minor number in one) and inode; 0 where no file is mapped.
    pub file: (u64, u64),
    /// The file as the kernel names it (a newline as `\012`), without its mark of deletion; a name in brackets; or
    /// nothing.
    pub path: &'a [u8],
    /// The file was deleted or replaced since it was mapped.
    pub deleted: bool,
}

impl Mapping<'_> {
    /// Reads a line; `None` where it isn't one.
    pub fn parse(line: &[u8]) -> Option<Mapping<'_>> {
        let (start, rest) = number(line, 16)?;
        let (end, rest) = number(rest.strip_prefix(b"-")?, 16)?;
        let (permissions, rest) = rest.strip_prefix(b" ")?.split_first_chunk::<4>()?;
        let (offset, rest) = number(rest.strip_prefix(b" ")?, 16)?;
        let (major, rest) = number(rest.strip_prefix(b" ")?, 16)?;
        let (minor, rest) = number(rest.strip_prefix(b":")?, 16)?;
        let (inode, rest) = number(rest.strip_prefix(b" ")?, 10)?;
        let [read, write, execute, _] = permissions;
        let path = rest.trim_ascii_start();
        let alive = path.strip_suffix(b" (deleted)");
        (start < end).then_some(Mapping {
            start,
            end,
            readable: *read == b'r',
            writable: *write == b'w',
            executable: *execute == b'x',
            offset,
            file: (major << 32 | minor & 0xffff_ffff, inode),
            path: alive.unwrap_or(path),
            deleted: alive.is_some(),
        })
    }
}

/// The number at the begin of `text`, which must have a digit and fit, and what follows it.
fn number(text: &[u8], base: u32) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    let mut digits = 0;
    for byte in text {
        let Some(digit) = char::from(*byte).to_digit(base) else { break };
        value = value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))?;
        digits += 1;
    }
    (digits > 0).then_some((value, text.get(digits..)?))
}

/// Where text comes from, piece by piece.
pub trait Source {
    /// Fills a part of `out`, which is never empty, and says how much; 0 at the end.
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Errno>;
}

impl<S: Source> Source for &mut S {
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Errno> {
        (**self).fill(out)
    }
}

impl Source for &[u8] {
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Errno> {
        let (piece, rest) = self.split_at(self.len().min(out.len()));
        out.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        *self = rest;
        Ok(piece.len())
    }
}

/// The maps of the own process.
#[derive(Debug)]
pub struct OwnMaps(Fd);

impl OwnMaps {
    /// Opens the file.
    pub fn open() -> Result<OwnMaps, Errno> {
        // The process's own file is empty once its first thread has ended; a thread's is not there before Linux 3.17, and
        // under an emulator of another processor it shows the emulator's mappings.
        let maps = OwnMaps::open_at(c"/proc/self/maps");
        if maps.as_ref().is_ok_and(OwnMaps::has_text) {
            return maps;
        }
        OwnMaps::open_at(c"/proc/thread-self/maps").or(maps)
    }

    fn open_at(path: &CStr) -> Result<OwnMaps, Errno> {
        // SAFETY: the path is a C string.
        Fd::opened(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }).map(OwnMaps)
    }

    fn has_text(&self) -> bool {
        files::read_at(&self.0, 0, &mut [0]) == 1
    }

    /// Begins again with the first mapping, as things are now.
    pub fn rewind(&mut self) -> Result<(), Errno> {
        // SAFETY: lseek takes numbers only.
        check(unsafe { libc::lseek(self.0.number(), 0, libc::SEEK_SET) } as i64).map(drop)
    }
}

impl Source for OwnMaps {
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Errno> {
        files::read(&self.0, out)
    }
}

/// The lines of a source, read through a buffer. A line longer than the buffer is cut to its length.
pub struct Lines<'b, S> {
    source: S,
    buffer: &'b mut [u8],
    start: usize,
    end: usize,
    /// The rest of a cut line comes next and is nobody's.
    skipping: bool,
    ended: bool,
}

impl<'b, S: Source> Lines<'b, S> {
    /// Lines of `source` by way of `buffer`.
    pub fn new(source: S, buffer: &'b mut [u8]) -> Lines<'b, S> {
        Lines { source, buffer, start: 0, end: 0, skipping: false, ended: false }
    }

    /// The next line, without its end; `None` at the end of the text.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, Errno> {
        loop {
            let held = self.buffer.get(self.start..self.end).unwrap_or_default();
            if let Some(length) = held.iter().position(|byte| *byte == b'\n') {
                let line = self.start..self.start + length;
                self.start = line.end + 1;
                if !core::mem::take(&mut self.skipping) {
                    return Ok(self.buffer.get(line));
                }
            } else if self.ended || held.len() == self.buffer.len() {
                // The last line may lack its end; a full buffer is a line that doesn't fit.
                let (line, skipped) = (self.start..self.end, self.skipping);
                (self.start, self.end, self.skipping) = (0, 0, !self.ended);
                if !skipped && !line.is_empty() {
                    return Ok(self.buffer.get(line));
                }
                if self.ended || self.buffer.is_empty() {
                    return Ok(None);
                }
            } else {
                self.more()?;
            }
        }
    }

    /// Reads on behind what is held, which first moves to the front.
    fn more(&mut self) -> Result<(), Errno> {
        if self.start <= self.end && self.end <= self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        (self.start, self.end) = (0, self.end.saturating_sub(self.start));
        let length = self.source.fill(self.buffer.get_mut(self.end..).unwrap_or_default())?;
        self.end = self.end.saturating_add(length).min(self.buffer.len());
        self.ended = length == 0;
        Ok(())
    }
}

#[cfg(test)]
#[path = "maps_tests.rs"]
mod tests;
