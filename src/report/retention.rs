//! Which reports go when there are too many: the oldest, found in a table of fixed size.
//!
//! One look through the directory fills the table, and removals use it up before the next look. So a full directory of
//! 100,000 files costs a look for every `SLOTS` new blocks, not for each.

use super::names::{Format, Name};
use crate::sys::directory::{self, Entry};
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files::Status;
use crate::sys::{files, process};

/// Names in the table.
pub const SLOTS: usize = 2048;

/// The oldest names of all that were offered: a heap with the newest of them in front while it is filled, sorted from
/// newest to oldest afterwards.
pub struct Oldest<'m> {
    slots: &'m mut [Name],
    used: usize,
}

impl<'m> Oldest<'m> {
    /// An empty table in this memory.
    pub fn new(slots: &'m mut [Name]) -> Oldest<'m> {
        Oldest { slots, used: 0 }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Keeps the name if there is room or a newer one to give way. Not after `sort`.
    pub fn offer(&mut self, name: Name) {
        if let Some(free) = self.slots.get_mut(self.used) {
            *free = name;
            self.rise(self.used);
            self.used += 1;
        } else if let Some(newest) = self.slots.first_mut()
            && name < *newest
        {
            *newest = name;
            sink_down(self.slots);
        }
    }

    /// Makes it ready for `take`. (A heap sort, because the library's sorts are large and may panic.)
    pub fn sort(&mut self) {
        let mut names = self.slots.get_mut(..self.used).unwrap_or_default();
        while let Some((last, rest)) = names.split_last_mut() {
            if let Some(newest) = rest.first_mut() {
                core::mem::swap(newest, last);
            }
            sink_down(rest);
            names = rest;
        }
        // A heap sort ends with the newest behind; they are wanted in front.
        self.slots.get_mut(..self.used).unwrap_or_default().reverse();
    }

    /// Takes out the oldest.
    pub fn take(&mut self) -> Option<Name> {
        self.used = self.used.checked_sub(1)?;
        self.slots.get(self.used).copied()
    }

    /// Moves the name at `place` towards the front until the one before it is newer.
    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let before = (place - 1) / 2;
            let Ok([upper, lower]) = self.slots.get_disjoint_mut([before, place]) else { return };
            if *upper >= *lower {
                return;
            }
            core::mem::swap(upper, lower);
            place = before;
        }
    }
}

/// Moves the first name of a heap away from the front until those behind it are older.
fn sink_down(heap: &mut [Name]) {
    let mut place = 0;
    loop {
        let left = place * 2 + 1;
        let Some(mut newer) = heap.get(left).copied() else { return };
        let mut behind = left;
        if let Some(right) = heap.get(left + 1)
            && *right > newer
        {
            (newer, behind) = (*right, left + 1);
        }
        let Ok([upper, lower]) = heap.get_disjoint_mut([place, behind]) else { return };
        if *upper >= newer {
            return;
        }
        core::mem::swap(upper, lower);
        place = behind;
    }
}

/// Calls `visit` with every report file until it returns false; answers whether it never did.
pub fn each_file(
    directory: &Fd,
    buffer: &mut [u8],
    visit: &mut dyn FnMut(Name, Format, &Entry) -> bool,
) -> Result<bool, Errno> {
    directory::each(directory, buffer, &mut |entry| match Name::parse(entry.name.to_bytes()) {
        Some((name, format)) if entry.is_file(directory) => visit(name, format, entry),
        _ => true,
    })
}

/// Calls `visit` once for every block that has report files, with the status of one of them.
pub fn each_block(directory: &Fd, buffer: &mut [u8], visit: &mut dyn FnMut(Name, Status)) -> Result<(), Errno> {
    each_file(directory, buffer, &mut |name, format, entry| {
        if stands_for_block(directory, &name, format)
            && let Ok(status) = files::status(directory, entry.name)
        {
            visit(name, status);
        }
        true
    })
    .map(drop)
}

/// Of the files of a block, one stands for it: the text, if there is one.
pub fn stands_for_block(directory: &Fd, name: &Name, format: Format) -> bool {
    format == Format::Text || files::status(directory, name.file(Format::Text).as_c_str()).is_err()
}

/// Removes the files of a block, and tells how many bytes they had. What is gone already is no error.
pub fn remove(directory: &Fd, name: Name) -> Result<u64, Errno> {
    let mut bytes = 0u64;
    for format in [Format::Text, Format::Json] {
        let file = name.file(format);
        let size = files::status(directory, file.as_c_str()).map_or(0, |status| status.size);
        match files::remove(directory, file.as_c_str()) {
            Ok(()) => bytes = bytes.saturating_add(size),
            Err(Errno(libc::ENOENT)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Removes files that were never finished: by processes that are gone, or under our own id by an earlier process.
pub fn remove_unfinished(directory: &Fd, buffer: &mut [u8]) -> Result<(), Errno> {
    let mut alive = Liveness::default();
    directory::each(directory, buffer, &mut |entry| {
        if let Some((name, _)) = Name::parse_unfinished(entry.name.to_bytes())
            && (name.pid == process::id() || !alive.is(name.pid))
        {
            // What can't be removed now stays for the next time: it counts for nothing and nobody reads it.
            let _ = files::remove(directory, entry.name);
        }
        true
    })
    .map(drop)
}

/// Whether processes live, asked once for a row of files by the same one.
#[derive(Default)]
pub struct Liveness {
    last: Option<(i32, bool)>,
}

impl Liveness {
    /// Whether this one does.
    pub fn is(&mut self, pid: i32) -> bool {
        match self.last {
            Some((last, alive)) if last == pid => alive,
            _ => {
                let alive = process::is_alive(pid);
                self.last = Some((pid, alive));
                alive
            }
        }
    }
}
