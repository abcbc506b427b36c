//! The store: a directory of reports that holds no more than so many blocks and never shows half a file.
//!
//! A file is written whole under a hidden name and then renamed, in place of the same block's earlier state. No data is
//! synced to the device: a report survives the program's death, which is what it is for, not the machine's.

use super::names::{Format, Name};
use super::place::{PATH_SIZE, Place, append};
use super::retention::{self, Liveness, Oldest, SLOTS};
use super::sink::{Output, Sink};
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::{files, process};
use core::ffi::CStr;

/// What a store needs: 69,632 bytes, of which all zeros are a valid value.
#[repr(C)]
pub struct Space {
    /// Text on its way into a file; names on their way out of the directory.
    buffer: [u8; 16 * 1024],
    path: [u8; PATH_SIZE],
    oldest: [Name; SLOTS],
}

impl Space {
    /// Nothing in it yet.
    pub const fn new() -> Space {
        Space { buffer: [0; 16 * 1024], path: [0; PATH_SIZE], oldest: [Name { local_ms: 0, id: 0, pid: 0 }; SLOTS] }
    }
}

impl Default for Space {
    fn default() -> Space {
        Space::new()
    }
}

/// A directory of reports. Used by one thread at a time.
pub struct Store<'m> {
    place: Place<'m>,
    buffer: &'m mut [u8],
    oldest: Oldest<'m>,
    /// Blocks in the directory, while that is known.
    count: Option<u32>,
    /// New blocks that may still be added before the directory is looked through again, because other processes may have
    /// added theirs without our seeing it.
    trust: u32,
    /// The directory's time of change after our own last change: another time means that somebody else was there.
    seen_ns: i64,
    /// When the store was opened, by the file system's own clock.
    opened_ns: i64,
    /// First and last id stored here.
    own_ids: Option<(u64, u64)>,
}

impl<'m> Store<'m> {
    /// Opens a directory, made if it is missing, folders above it too. An error says that no report can be stored there.
    pub fn open(path: &CStr, space: &'m mut Space) -> Result<Store<'m>, Errno> {
        let Space { buffer, path: kept, oldest } = space;
        let mut place = Place::new(path, kept)?;
        let (directory, _) = place.directory()?;
        // Nothing but making a file tells whether one can be made.
        let probe = Name::new(0, 0, process::id(), 0).unfinished(Format::Text);
        drop(create(directory, probe.as_c_str())?);
        let opened_ns = files::status(directory, probe.as_c_str())?.modified_ns;
        files::remove(directory, probe.as_c_str())?;
        retention::remove_unfinished(directory, buffer)?;
        Ok(Store {
            place,
            buffer: buffer.as_mut_slice(),
            oldest: Oldest::new(oldest),
            count: None,
            trust: 0,
            seen_ns: 0,
            opened_ns,
            own_ids: None,
        })
    }

    /// The directory's absolute path.
    pub fn path(&self) -> &[u8] {
        self.place.path()
    }

    /// The path of a report, with a NUL behind it; its length without that.
    pub fn path_of(&self, name: &Name, format: Format, out: &mut [u8]) -> Result<usize, Errno> {
        let mut length = 0;
        for part in [self.place.path(), b"/", name.file(format).as_bytes(), b"\0"] {
            append(out, &mut length, part)?;
        }
        Ok(length - 1)
    }

    /// Stores a report, in place of the same block's earlier one. `render` may be called twice, if the directory has to be
    /// made again.
    pub fn write(&mut self, name: &Name, format: Format, render: &mut dyn FnMut(&mut Sink)) -> Result<(), Errno> {
        let own = self.own_ids.get_or_insert((name.id, name.id));
        *own = (own.0.min(name.id), own.1.max(name.id));
        let result = match self.write_once(name, format, render) {
            // Lost between the look at it and the file's making.
            Err(Errno(libc::ENOENT)) => self.write_once(name, format, render),
            other => other,
        };
        if result.is_err() {
            self.count = None;
        }
        result
    }

    fn write_once(&mut self, name: &Name, format: Format, render: &mut dyn FnMut(&mut Sink)) -> Result<(), Errno> {
        self.attend()?;
        let (directory, _) = self.place.directory()?;
        let unfinished = name.unfinished(format);
        let mut file = File(create(directory, unfinished.as_c_str())?);
        let mut sink = Sink::new(&mut file, self.buffer);
        render(&mut sink);
        let mut result = sink.finish();
        drop(file);
        if result.is_ok() {
            result = files::rename(directory, unfinished.as_c_str(), name.file(format).as_c_str());
        }
        if result.is_err() {
            let _ = files::remove(directory, unfinished.as_c_str());
        }
        self.seen_ns = changed_ns(directory);
        result
    }

    /// Makes room for a new block below `max_reports` and counts it as there. To be called before its first file is
    /// written; `false` if there is no room, because all that is stored is of open blocks or other living processes.
    pub fn make_room(&mut self, max_reports: u32, is_open: &dyn Fn(u64) -> bool) -> Result<bool, Errno> {
        let room = self.trim(max_reports.saturating_sub(1), is_open)?;
        if room {
            self.count = self.count.map(|count| count.saturating_add(1));
            self.trust = self.trust.saturating_sub(1);
        }
        Ok(room)
    }

    /// Removes the oldest blocks until no more than `max_reports` are left; `false` if that many can't be removed.
    pub fn trim(&mut self, max_reports: u32, is_open: &dyn Fn(u64) -> bool) -> Result<bool, Errno> {
        self.attend()?;
        // Whether anything was removed since the last look: without, another look would find the same.
        let mut worth_looking = true;
        loop {
            let count = match self.count {
                Some(count) if self.trust > 0 => count,
                _ => {
                    worth_looking = false;
                    self.look(is_open)?
                }
            };
            if count <= max_reports {
                return Ok(true);
            }
            let Some(name) = self.oldest.take() else {
                if !worth_looking {
                    return Ok(false);
                }
                self.count = None;
                continue;
            };
            // Blocks may have become open again and processes come to life since the look.
            let mut owners = self.owners();
            let (directory, _) = self.place.directory()?;
            if !owners.may_go(directory, &name, is_open) || retention::remove(directory, name).is_err() {
                continue;
            }
            self.count = Some(count.saturating_sub(1));
            self.seen_ns = changed_ns(directory);
            worth_looking = true;
        }
    }

    /// Calls `visit` with the path of every report, which ends in a NUL, until it returns false.
    pub fn for_each(&mut self, visit: &mut dyn FnMut(&CStr, Name, Format) -> bool) -> Result<(), Errno> {
        let mut path = [0; PATH_SIZE];
        let mut length = 0;
        append(&mut path, &mut length, self.place.path())?;
        append(&mut path, &mut length, b"/")?;
        let (directory, _) = self.place.directory()?;
        retention::each_file(directory, self.buffer, &mut |name, format, entry| {
            let mut end = length;
            match append(&mut path, &mut end, entry.name.to_bytes_with_nul()) {
                Ok(()) => visit(CStr::from_bytes_until_nul(&path).unwrap_or_default(), name, format),
                Err(_) => true,
            }
        })
        .map(drop)
    }

    /// Looks whether the directory is still the one that was counted.
    fn attend(&mut self) -> Result<(), Errno> {
        let seen = self.seen_ns;
        let (directory, another) = self.place.directory()?;
        if another || changed_ns(directory) != seen {
            self.count = None;
        }
        Ok(())
    }

    /// Counts the blocks and notes the oldest of those that may go.
    fn look(&mut self, is_open: &dyn Fn(u64) -> bool) -> Result<u32, Errno> {
        let mut owners = self.owners();
        let (directory, _) = self.place.directory()?;
        let seen_ns = changed_ns(directory);
        let mut count = 0u32;
        let oldest = &mut self.oldest;
        oldest.clear();
        retention::each_block(directory, self.buffer, &mut |name| {
            count = count.saturating_add(1);
            if owners.may_go(directory, &name, is_open) {
                oldest.offer(name);
            }
        })?;
        oldest.sort();
        self.count = Some(count);
        self.seen_ns = seen_ns;
        // Looking costs as much as there are files: seldom enough to vanish beside the writing of them.
        self.trust = (count / 16).max(64);
        Ok(count)
    }

    fn owners(&self) -> Owners {
        Owners { alive: Liveness::default(), own_ids: self.own_ids, opened_ns: self.opened_ns }
    }
}

/// Whose blocks must stay.
struct Owners {
    alive: Liveness,
    own_ids: Option<(u64, u64)>,
    opened_ns: i64,
}

impl Owners {
    fn may_go(&mut self, directory: &Fd, name: &Name, is_open: &dyn Fn(u64) -> bool) -> bool {
        if name.pid != process::id() {
            return !self.alive.is(name.pid);
        }
        if self.own_ids.is_some_and(|(first, last)| (first..=last).contains(&name.id)) {
            return !is_open(name.id);
        }
        // Our process id, not our block: by an earlier process that had the id, unless it was written after this store
        // was opened. Then a second copy of the library in this process has it.
        let newer = |format| {
            files::status(directory, name.file(format).as_c_str())
                .is_ok_and(|status| status.modified_ns > self.opened_ns)
        };
        !is_open(name.id) && !newer(Format::Text) && !newer(Format::Json)
    }
}

/// When a name in the directory last changed; 0, which is no such time, if that can't be told.
fn changed_ns(directory: &Fd) -> i64 {
    files::status_of_directory(directory).map_or(0, |status| status.modified_ns)
}

/// Makes a file of a hidden name. Whatever has that name is a leftover or a trap, and goes.
fn create(directory: &Fd, name: &CStr) -> Result<Fd, Errno> {
    match files::create(directory, name) {
        Err(Errno(libc::EEXIST)) => {
            files::remove(directory, name)?;
            files::create(directory, name)
        }
        other => other,
    }
}

struct File(Fd);

impl Output for File {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        files::write_all(&self.0, bytes)
    }
}
