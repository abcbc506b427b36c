//! Recorders of processes that are gone, and the blocks in them.
//!
//! Whoever has the lock of a recorder, or has been born with it, may be its owner; the owner named in it lives only if a
//! process of this id began when it says. Both together mean that it is in use. One of the processes that find a dead one
//! takes it, by giving it a name of its own: the others then do not find it any more.

use super::decode::Record;
use super::empty_other;
use super::layout::{self, HALF, HEAD_USED, Head, Owner, SAME_HALF, read_half};
use super::name::{Kind, Name, parse};
use super::space::Buffer;
use crate::log_warn;
use crate::report::sink::Lossy;
use crate::sys::directory;
use crate::sys::fd::Fd;
use crate::sys::{clock, files, process};
use core::ffi::CStr;

/// How many starts try to store the report of a block: what does not let them may never go away.
const MOST_TRIES: u32 = 10;

/// The blocks of dead processes, one after the other. Used by one thread at a time.
pub struct Recovery<'m> {
    owner: Owner,
    /// The next name for a file that is taken; counts up from behind our own recorder's.
    number: u64,
    /// Files with names of ours from this one on were taken since `find` has last found nothing.
    first: u64,
    /// The file that was taken, and its next place.
    taken: Option<Taken>,
    space: &'m mut Buffer,
    /// Files older than this that cannot be read go, too.
    age_s: Option<u32>,
}

struct Taken {
    file: Fd,
    name: Name,
    places: u32,
    next: u32,
    /// What that place holds.
    found: Option<Found>,
    /// A block that was told of keeps its place until its report is stored.
    is_owed: bool,
    /// Some place says still what it may not say any more.
    is_stale: bool,
}

/// The newest half of a place that is whole.
#[derive(Clone, Copy)]
struct Found {
    half: u8,
    sequence: u64,
    owner: Owner,
    tries: u32,
}

impl<'m> Recovery<'m> {
    /// For a process. Nothing has been looked at yet.
    pub fn new(owner: Owner, number: u64, age_s: Option<u32>, space: &'m mut Buffer) -> Recovery<'m> {
        Recovery { owner, number, first: number, taken: None, space, age_s }
    }

    /// Looks for the next block; `names` holds names of the directory for that long. `false`: there is none.
    pub fn find(&mut self, directory: &Fd, names: &mut [u8]) -> bool {
        loop {
            if self.taken.is_none() && !self.take(directory, names) {
                self.first = self.number;
                return false;
            }
            let Some(taken) = &mut self.taken else { return false };
            while taken.next < taken.places {
                taken.found = newest(&taken.file, taken.next, &mut self.space.halves);
                let held = taken.found.and_then(|found| self.space.halves.get(usize::from(found.half)));
                if held.and_then(|half| read_half(half)).is_some_and(|half| Record::read(half.held).is_some()) {
                    return true;
                }
                taken.next += 1;
            }
            if taken.is_stale || !taken.is_owed {
                let _ = files::remove(directory, taken.name.file().as_c_str());
            }
            self.taken = None;
        }
    }

    /// The block that was found.
    pub fn record(&self) -> Option<Record<'_>> {
        let found = self.taken.as_ref()?.found?;
        Record::read(read_half(self.space.halves.get(usize::from(found.half))?)?.held)
    }

    /// The listeners have been told of it, by an earlier `owe`.
    pub fn is_told(&self) -> bool {
        self.taken.as_ref().and_then(|taken| taken.found).is_some_and(|found| found.tries > 0)
    }

    /// Its report is stored.
    pub fn free(&mut self) {
        self.settle(0);
    }

    /// Its report could not be stored. That is tried again with the next start, but not for ever; the block is not told
    /// again.
    pub fn owe(&mut self) {
        let tries = self.taken.as_ref().and_then(|taken| taken.found).map_or(0, |found| found.tries).saturating_add(1);
        self.settle(if tries < MOST_TRIES { tries } else { 0 });
    }

    /// Says so over the front of the half that counts, where the disk need not have room; then comes the next place.
    fn settle(&mut self, tries: u32) {
        let Some(taken) = &mut self.taken else { return };
        if let Some(Found { half, sequence, owner, .. }) = taken.found.take() {
            let bytes = self.space.halves.get(usize::from(half));
            let held = bytes.and_then(|bytes| read_half(bytes)).filter(|_| tries > 0).map_or(&[][..], |half| half.held);
            let sequence = sequence.saturating_add(SAME_HALF);
            let top = layout::top(sequence, owner, tries, held);
            let is_said = files::write_at(&taken.file, layout::half_at(taken.next, half), &top).is_ok();
            if is_said {
                empty_other(&taken.file, taken.next, sequence, owner);
            }
            taken.is_owed |= tries > 0;
            taken.is_stale |= !is_said;
        }
        taken.next += 1;
    }

    /// Takes the next recorder of a dead process.
    fn take(&mut self, directory: &Fd, names: &mut [u8]) -> bool {
        let mut found = None;
        let result = directory::each(directory, names, &mut |entry| {
            let named = parse(entry.name.to_bytes());
            let was_taken = |name: Name| name.pid == self.owner.pid && (self.first..self.number).contains(&name.number);
            if let Some((_, kind)) = named.filter(|(name, _)| !was_taken(*name) && entry.is_file(directory)) {
                found = self.try_to_take(directory, entry.name, kind);
            }
            found.is_none()
        });
        self.taken = found;
        result.is_ok() && self.taken.is_some()
    }

    fn try_to_take(&mut self, directory: &Fd, name: &CStr, kind: Kind) -> Option<Taken> {
        let file = files::open_shared(directory, name).ok()?;
        let mut page = [0; HEAD_USED];
        let length = files::read_at(&file, 0, &mut page);
        let head = layout::read_head(page.get(..length)?);
        let size = files::status(directory, name).ok()?.size;
        let places = layout::places_in(size);
        let owner = match head {
            Head::Of(owner) => Some(owner),
            Head::OtherVersion(_) => None,
            // Its places say as well whose they are.
            Head::Unreadable => {
                (0..places).find_map(|place| newest(&file, place, &mut self.space.halves).map(|found| found.owner))
            }
        };
        // One that is locked is in use, or its owner has left it to a child. Where there are no locks, only the owner tells.
        let is_ours = files::lock(&file).is_ok();
        if !is_ours && owner.is_none_or(|owner| process::lives_since(owner.pid, owner.started)) {
            return None;
        }
        if owner.is_none() || kind == Kind::Unfinished {
            self.remove_useless(directory, name, kind, head);
            return None;
        }
        let own = Name { pid: self.owner.pid, number: self.number };
        self.number = self.number.wrapping_add(1);
        // Before it has a name that others may find, so that they see that it is in use; and again when it is ours alone,
        // because another may have written there that came too late.
        let claim = layout::head(self.owner, places);
        files::write_at(&file, 0, &claim).ok()?;
        files::rename(directory, name, own.file().as_c_str()).ok()?;
        let _ = files::write_at(&file, 0, &claim);
        Some(Taken { file, name: own, places, next: 0, found: None, is_owed: false, is_stale: false })
    }

    /// One that was never finished holds nothing. One of another version may be of use to who wrote it, and one that cannot
    /// be read may be no recorder: they stay for as long as reports do.
    fn remove_useless(&self, directory: &Fd, name: &CStr, kind: Kind, head: Head) {
        let changed_ns = files::status(directory, name).map_or(i64::MAX, |status| status.modified_ns);
        let end_ms = self.age_s.map(|age_s| (changed_ns / 1_000_000).saturating_add(i64::from(age_s) * 1000));
        if kind == Kind::Unfinished || end_ms.is_some_and(|end_ms| end_ms < clock::unix_ms()) {
            let _ = files::remove(directory, name);
            return;
        }
        let name = Lossy(name.to_bytes());
        match head {
            Head::OtherVersion(version) => log_warn!("{name}: a flight recorder of version {version}, left alone"),
            _ => log_warn!("{name}: no flight recorder, or a damaged one, left alone"),
        }
    }
}

/// Reads both halves of a place.
fn newest(file: &Fd, place: u32, halves: &mut [[u8; HALF]; 2]) -> Option<Found> {
    let mut newest: Option<Found> = None;
    for (half, bytes) in (0u8..).zip(halves) {
        let length = files::read_at(file, layout::half_at(place, half), bytes);
        if let Some(rest) = bytes.get_mut(length..) {
            rest.fill(0);
        }
        if let Some(read) = read_half(bytes)
            && newest.is_none_or(|newest| newest.sequence < read.sequence)
        {
            newest = Some(Found { half, sequence: read.sequence, owner: read.owner, tries: read.tries });
        }
    }
    newest
}
