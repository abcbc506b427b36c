//! Whose blocks must stay: those that go on, and those of other processes that live.

use super::names::{Format, Name};
use super::retention::Liveness;
use crate::sys::fd::Fd;
use crate::sys::{files, process};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Which reports an open store has made: told by the thread that stores, asked by all that list or remove.
///
/// Read piece by piece without more: ids only ever widen, and a report is there only after its id was noted. All zeros are
/// a valid value.
#[repr(C)]
pub struct Tenure {
    /// When the store was opened, by the file system's own clock.
    opened_ns: AtomicI64,
    /// First and last id stored, each with one added; 0 for none.
    first: AtomicU64,
    last: AtomicU64,
    /// The id of the block whose files are being written, with one added; 0 for none.
    writing: AtomicU64,
}

impl Tenure {
    /// Nothing stored.
    pub const fn new() -> Tenure {
        Tenure {
            opened_ns: AtomicI64::new(0),
            first: AtomicU64::new(0),
            last: AtomicU64::new(0),
            writing: AtomicU64::new(0),
        }
    }

    /// The store is opened.
    pub(super) fn begin(&self, opened_ns: i64) {
        self.opened_ns.store(opened_ns, Relaxed);
        self.first.store(0, Relaxed);
        self.last.store(0, Relaxed);
        self.writing.store(0, Relaxed);
    }

    /// A report of this block is about to be stored.
    pub(super) fn note(&self, id: u64) {
        let (id, first, last) = (id.saturating_add(1), self.first.load(Relaxed), self.last.load(Relaxed));
        if first == 0 || id < first {
            self.first.store(id, Relaxed);
        }
        if id > last {
            self.last.store(id, Relaxed);
        }
    }

    /// From now until `end_writing` the files of this block come.
    pub(super) fn begin_writing(&self, id: u64) {
        self.writing.store(id.saturating_add(1), Relaxed);
    }

    /// All of them are there.
    pub(super) fn end_writing(&self) {
        self.writing.store(0, Relaxed);
    }

    fn has(&self, id: u64) -> bool {
        let first = self.first.load(Relaxed);
        first != 0 && (first..=self.last.load(Relaxed)).contains(&id.saturating_add(1))
    }
}

impl Default for Tenure {
    fn default() -> Tenure {
        Tenure::new()
    }
}

/// See above. Remembers what it found out about processes, so it is made anew for each row of questions.
pub struct Owners<'a> {
    alive: Liveness,
    tenure: &'a Tenure,
}

impl<'a> Owners<'a> {
    /// Nothing found out yet.
    pub fn new(tenure: &'a Tenure) -> Owners<'a> {
        Owners { alive: Liveness::default(), tenure }
    }

    /// May the reports of this name be removed?
    pub fn may_go(&mut self, directory: &Fd, name: &Name, is_open: &dyn Fn(u64) -> bool) -> bool {
        if self.tenure.writing.load(Relaxed) == name.id.saturating_add(1) {
            return false;
        }
        if name.pid != process::id() {
            return !self.alive.is(name.pid);
        }
        if self.tenure.has(name.id) {
            return !is_open(name.id);
        }
        // Our process id, not our block: by an earlier process that had the id, unless it was written after this store
        // was opened. Then a second copy of the library in this process has it.
        let opened_ns = self.tenure.opened_ns.load(Relaxed);
        let newer = |format| {
            files::status(directory, name.file(format).as_c_str()).is_ok_and(|status| status.modified_ns > opened_ns)
        };
        !is_open(name.id) && !newer(Format::Text) && !newer(Format::Json)
    }
}
