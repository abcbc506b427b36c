//! The store: a directory of reports that holds no more than it may and never shows half a file.
//!
//! A file is written whole under a hidden name and then renamed, in place of the same block's earlier state. No data is
//! synced to the device: a report survives the program's death, which is what it is for, not the machine's.

use super::names::{Format, Name};
use super::owners::{Owners, Tenure};
use super::place::{PATH_SIZE, Place, append};
use super::retention::{self, Oldest, SLOTS};
use super::shelf::Shelf;
use super::sink::{Output, Sink};
use super::{amend, block::Repeats};
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files::Kind;
use crate::sys::mapping::Zeroed;
use crate::sys::{clock, files, process};
use core::ffi::CStr;

/// What a store needs: 69,664 bytes (less where numbers are aligned less), of which all zeros are a valid value.
#[repr(C)]
pub struct Space {
    /// Text on its way into a file; names on their way out of the directory.
    buffer: [u8; 16 * 1024],
    path: [u8; PATH_SIZE],
    oldest: [Name; SLOTS],
    tenure: Tenure,
}

// SAFETY: numbers.
#[allow(unsafe_code)]
unsafe impl Zeroed for Space {}

impl Space {
    /// Nothing in it yet.
    pub const fn new() -> Space {
        Space {
            buffer: [0; 16 * 1024],
            path: [0; PATH_SIZE],
            oldest: [Name { local_ms: 0, id: 0, pid: 0 }; SLOTS],
            tenure: Tenure::new(),
        }
    }
}

impl Default for Space {
    fn default() -> Space {
        Space::new()
    }
}

/// How much may be kept, beside the number of blocks. Without limits until they are set.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all reports together.
    pub bytes: u64,
    /// Age; `None`: any.
    pub age_s: Option<u32>,
    /// Local time, which names tell, is this much ahead of UTC.
    pub utc_offset_s: i32,
}

/// What is in the directory.
#[derive(Clone, Copy)]
struct Content {
    blocks: u32,
    bytes: u64,
}

/// A directory of reports. Used by one thread at a time.
pub struct Store<'m> {
    place: Place<'m>,
    buffer: &'m mut [u8],
    oldest: Oldest<'m>,
    /// See `Limits`.
    pub limits: Limits,
    /// What is there, while that is known.
    content: Option<Content>,
    /// It was looked through since the last time that this was asked.
    has_looked: bool,
    /// When something may have grown too old, on the wall clock, ms.
    old_after_ms: i64,
    /// New blocks that may still be added before the directory is looked through again, because other processes may have
    /// added theirs without our seeing it.
    trust: u32,
    /// The directory's time of change after our own last change: another time means that somebody else was there.
    seen_ns: i64,
    tenure: &'m Tenure,
}

impl<'m> Store<'m> {
    /// Opens a directory, made if it is missing, folders above it too. An error says that no report can be stored there.
    pub fn open(path: &CStr, space: &'m mut Space) -> Result<Store<'m>, Errno> {
        let Space { buffer, path: kept, oldest, tenure } = space;
        let mut place = Place::new(path, kept)?;
        let (directory, _) = place.directory()?;
        // Nothing but making a file tells whether one can be made.
        let probe = Name::new(0, 0, process::id(), 0).unfinished(Format::Text);
        drop(files::replace(directory, probe.as_c_str())?);
        tenure.begin(files::status(directory, probe.as_c_str())?.modified_ns);
        files::remove(directory, probe.as_c_str())?;
        retention::remove_unfinished(directory, buffer)?;
        Ok(Store {
            place,
            buffer: buffer.as_mut_slice(),
            oldest: Oldest::new(oldest),
            limits: Limits { bytes: u64::MAX, age_s: None, utc_offset_s: 0 },
            content: None,
            has_looked: false,
            old_after_ms: i64::MIN,
            trust: 0,
            seen_ns: 0,
            tenure,
        })
    }

    /// The directory's absolute path.
    pub fn path(&self) -> &[u8] {
        self.place.path()
    }

    /// For those who list and remove reports beside it.
    pub fn shelf(&self) -> Shelf<'m> {
        Shelf::new(self.place.c_path(), self.tenure)
    }

    /// The path of a report, with a NUL behind it; its length without that.
    pub fn path_of(&self, name: &Name, format: Format, out: &mut [u8]) -> Result<usize, Errno> {
        let mut length = 0;
        for part in [self.place.path(), b"/", name.file(format).as_bytes(), b"\0"] {
            append(out, &mut length, part)?;
        }
        Ok(length - 1)
    }

    /// The directory, and memory for names of what is in it.
    pub fn directory(&mut self) -> Result<(&Fd, &mut [u8]), Errno> {
        let (directory, _) = self.place.directory()?;
        Ok((directory, self.buffer))
    }

    /// The files of a block are about to be written, and are not to be removed before the last of them is there.
    pub fn begin(&self, name: &Name) {
        self.tenure.begin_writing(name.id);
    }

    /// They are written.
    pub fn end(&self) {
        self.tenure.end_writing();
    }

    /// Whether a report is there.
    pub fn has(&mut self, name: &Name, format: Format) -> bool {
        let Ok((directory, _)) = self.place.directory() else { return false };
        files::status(directory, name.file(format).as_c_str()).is_ok_and(|status| status.kind == Kind::File)
    }

    /// Stores a report, in place of the same block's earlier one. `render` may be called twice, if the directory has to be
    /// made again.
    pub fn write(
        &mut self,
        name: &Name,
        format: Format,
        is_open: &dyn Fn(u64) -> bool,
        render: &mut dyn FnMut(&mut Sink),
    ) -> Result<(), Errno> {
        if name.pid == process::id() {
            self.tenure.note(name.id);
        }
        if let Some(age_s) = self.limits.age_s {
            self.old_after_ms = self.old_after_ms.min(self.unix_ms(name).saturating_add(ms(age_s)));
        }
        let result = match self.write_once(name, format, is_open, render) {
            // Lost between the look at it and the file's making.
            Err(Errno(libc::ENOENT)) => self.write_once(name, format, is_open, render),
            other => other,
        };
        if result.is_err() {
            self.content = None;
        }
        result
    }

    /// Writes a report that is there again, with these repeats.
    pub fn amend(
        &mut self,
        name: &Name,
        format: Format,
        is_open: &dyn Fn(u64) -> bool,
        repeats: &Repeats,
    ) -> Result<(), Errno> {
        let (directory, _) = self.place.directory()?;
        let from = files::open(directory, name.file(format).as_c_str())?;
        self.write_once(name, format, is_open, &mut |sink| amend::copy(&from, sink, format, repeats))
    }

    fn write_once(
        &mut self,
        name: &Name,
        format: Format,
        is_open: &dyn Fn(u64) -> bool,
        render: &mut dyn FnMut(&mut Sink),
    ) -> Result<(), Errno> {
        self.attend()?;
        let (directory, _) = self.place.directory()?;
        let unfinished = name.unfinished(format);
        let mut file = File { file: files::replace(directory, unfinished.as_c_str())?, bytes: 0 };
        let mut sink = Sink::new(&mut file, self.buffer);
        render(&mut sink);
        let result = sink.finish();
        let bytes = file.bytes;
        drop(file);
        let result = result.and_then(|()| self.put_in(name, format, bytes, is_open));
        let directory = self.place.kept()?;
        if result.is_err() {
            let _ = files::remove(directory, unfinished.as_c_str());
        }
        self.seen_ns = changed_ns(directory);
        result
    }

    /// Gives a file that is whole its name, when there is room for it.
    fn put_in(&mut self, name: &Name, format: Format, bytes: u64, is_open: &dyn Fn(u64) -> bool) -> Result<(), Errno> {
        let (file, limit) = (name.file(format), self.limits.bytes);
        let before = files::status(self.place.kept()?, file.as_c_str()).map_or(0, |status| status.size);
        if bytes > limit {
            return Err(Errno(libc::EFBIG));
        }
        self.has_looked = false;
        let others = limit.saturating_sub(bytes).saturating_add(before);
        // Whatever is written now stays.
        let stays = |id| id == name.id || is_open(id);
        if limit != u64::MAX && !self.remove_oldest(u32::MAX, others, &stays)? {
            return Err(Errno(libc::ENOSPC));
        }
        files::rename(self.place.kept()?, name.unfinished(format).as_c_str(), file.as_c_str())?;
        if let Some(content) = &mut self.content {
            content.bytes = content.bytes.saturating_sub(before).saturating_add(bytes);
        }
        if before == 0 && self.has_looked {
            // Whether the block was counted is not known then.
            self.content = None;
        }
        Ok(())
    }

    /// Makes room for a new block below `max_reports` and counts it as there. To be called before its first file is
    /// written; `false` if there is no room, because all that is stored is of open blocks or other living processes.
    pub fn make_room(&mut self, max_reports: u32, is_open: &dyn Fn(u64) -> bool) -> Result<bool, Errno> {
        self.attend()?;
        self.remove_old(false, is_open)?;
        let room = self.trim(max_reports.saturating_sub(1), is_open)?;
        if room {
            if let Some(content) = &mut self.content {
                content.blocks = content.blocks.saturating_add(1);
            }
            self.trust = self.trust.saturating_sub(1);
        }
        Ok(room)
    }

    /// Removes what is too old, then the oldest blocks until no limit is passed.
    pub fn tidy(&mut self, max_reports: u32, is_open: &dyn Fn(u64) -> bool) -> Result<bool, Errno> {
        self.attend()?;
        self.remove_old(true, is_open)?;
        self.trim(max_reports, is_open)
    }

    /// Removes the oldest blocks until no more than `max_reports` are left, and no more bytes than may be; `false` if that
    /// many can't be removed.
    pub fn trim(&mut self, max_reports: u32, is_open: &dyn Fn(u64) -> bool) -> Result<bool, Errno> {
        self.attend()?;
        let trimmed = self.remove_oldest(max_reports, self.limits.bytes, is_open);
        self.seen_ns = changed_ns(self.place.kept()?);
        trimmed
    }

    fn remove_oldest(
        &mut self,
        max_reports: u32,
        max_bytes: u64,
        is_open: &dyn Fn(u64) -> bool,
    ) -> Result<bool, Errno> {
        let mut owners = Owners::new(self.tenure);
        // Whether anything was removed since the last look: without, another look would find the same.
        let mut worth_looking = true;
        loop {
            let content = match self.content {
                Some(content) if self.trust > 0 => content,
                _ => {
                    worth_looking = false;
                    self.look(is_open)?
                }
            };
            if content.blocks <= max_reports && content.bytes <= max_bytes {
                return Ok(true);
            }
            let Some(name) = self.oldest.take() else {
                if !worth_looking {
                    return Ok(false);
                }
                self.content = None;
                continue;
            };
            // Blocks may have become open again and processes come to life since the look.
            let directory = self.place.kept()?;
            if !owners.may_go(directory, &name, is_open) {
                continue;
            }
            let Ok(bytes) = retention::remove(directory, name) else { continue };
            self.content =
                Some(Content { blocks: content.blocks.saturating_sub(1), bytes: content.bytes.saturating_sub(bytes) });
            worth_looking = true;
        }
    }

    /// Removes blocks that are too old, if there may be any. A report is as old as its name says, or its file if that is
    /// older: the clock may have been wrong for either.
    fn remove_old(&mut self, now_at_once: bool, is_open: &dyn Fn(u64) -> bool) -> Result<(), Errno> {
        let Some(age_ms) = self.limits.age_s.map(ms) else { return Ok(()) };
        let now = clock::unix_ms();
        if !now_at_once && now < self.old_after_ms {
            return Ok(());
        }
        let mut owners = Owners::new(self.tenure);
        let offset_ms = i64::from(self.limits.utc_offset_s) * 1000;
        let directory = self.place.kept()?;
        let mut next = now.saturating_add(age_ms);
        let mut removed = false;
        retention::each_block(directory, self.buffer, &mut |name, status| {
            let born = name.local_ms.saturating_sub(offset_ms).min(status.modified_ns / 1_000_000);
            let end = born.saturating_add(age_ms);
            if end >= now {
                next = next.min(end);
            } else if owners.may_go(directory, &name, is_open) {
                removed |= retention::remove(directory, name).is_ok();
            } else {
                // When its block has ended or its process is gone.
                next = next.min(now.saturating_add(AGAIN_MS));
            }
        })?;
        self.old_after_ms = next.saturating_add(1);
        if removed {
            self.content = None;
        }
        Ok(())
    }

    fn unix_ms(&self, name: &Name) -> i64 {
        name.local_ms.saturating_sub(i64::from(self.limits.utc_offset_s) * 1000)
    }

    /// Looks whether the directory is still the one that was counted.
    fn attend(&mut self) -> Result<(), Errno> {
        let seen = self.seen_ns;
        let (directory, another) = self.place.directory()?;
        if another || changed_ns(directory) != seen {
            self.content = None;
        }
        Ok(())
    }

    /// Counts what is there and notes the oldest of those that may go.
    fn look(&mut self, is_open: &dyn Fn(u64) -> bool) -> Result<Content, Errno> {
        let mut owners = Owners::new(self.tenure);
        let directory = self.place.kept()?;
        let mut content = Content { blocks: 0, bytes: 0 };
        let oldest = &mut self.oldest;
        oldest.clear();
        retention::each_file(directory, self.buffer, &mut |name, format, entry| {
            let status = files::status(directory, entry.name);
            content.bytes = content.bytes.saturating_add(status.map_or(0, |status| status.size));
            if retention::stands_for_block(directory, &name, format) {
                content.blocks = content.blocks.saturating_add(1);
                if owners.may_go(directory, &name, is_open) {
                    oldest.offer(name);
                }
            }
            true
        })?;
        oldest.sort();
        self.content = Some(content);
        self.has_looked = true;
        // Looking costs as much as there are files: seldom enough to vanish beside the writing of them.
        self.trust = (content.blocks / 16).max(64);
        Ok(content)
    }
}

/// What is too old and may not go is looked at again after so long.
const AGAIN_MS: i64 = 1000;

fn ms(seconds: u32) -> i64 {
    i64::from(seconds) * 1000
}

/// When a name in the directory last changed; 0, which is no such time, if that can't be told.
fn changed_ns(directory: &Fd) -> i64 {
    files::status_of_directory(directory).map_or(0, |status| status.modified_ns)
}

struct File {
    file: Fd,
    bytes: u64,
}

impl Output for File {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        files::write_all(&self.file, bytes)
    }
}
