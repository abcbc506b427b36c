//! Reports on their way to whoever collects them: zipped, handed over on bc-reporter, removed when they have arrived.
//!
//! One upload at a time in a directory, whoever's: the directory is locked meanwhile. Beside the archive lies a list of
//! what is in it; the list's new name is what says that all of it has arrived, however much of it is still to be removed
//! when the process dies.

use super::archive::collect;
use super::names::{FileName, Name};
use super::shelf::Shelf;
use super::sink::Sink;
use super::zip::{Archive, BUFFER, ToFile};
use crate::abi::bc_uploader;
use crate::sample::evidence::Evidence;
use crate::sys::bell::Bell;
use crate::sys::callback::Callback;
use crate::sys::clock::Ticks;
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files;
use crate::sys::lock::Lock;
use crate::{log_info, log_warn};
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// The program's uploader.
pub static UPLOADER: Callback<bc_uploader> = Callback::new();

const ARCHIVE: &CStr = c"blockcanary-upload.zip";
const UNFINISHED: &CStr = c".blockcanary-upload.zip";
const LIST: &CStr = c".blockcanary-upload.list";
const ARRIVED: &CStr = c".blockcanary-upload.sent";

/// How long the writer is waited for: it may be in the program's filter.
const SEAL_NS: u64 = 500_000_000;

/// Asks the writer to write what it still owes of stored reports, and to add to none of them any more.
pub struct Seal {
    asked: AtomicU32,
    done: AtomicU32,
}

impl Seal {
    /// Nothing asked.
    pub const fn new() -> Seal {
        Seal { asked: AtomicU32::new(0), done: AtomicU32::new(0) }
    }

    /// What the writer is asked, if it is: to be given back by `answer`.
    pub fn question(&self) -> Option<u32> {
        let asked = self.asked.load(Acquire);
        (asked != self.done.load(Relaxed)).then_some(asked)
    }

    /// The writer has done so.
    pub fn answer(&self, question: u32) {
        self.done.store(question, Release);
    }

    /// Asks, and waits for a while. Whoever removes reports afterwards removes them for good.
    pub fn ask(&self, writer: &Bell, progress: &Bell) {
        let question = self.asked.fetch_add(1, AcqRel).wrapping_add(1);
        writer.ring();
        let end = Ticks::now().plus(SEAL_NS);
        loop {
            let heard = progress.heard();
            let left = end.since(Ticks::now());
            // Another question that came later is answered by then, too.
            if left == 0 || self.done.load(Acquire).wrapping_sub(question) as i32 >= 0 {
                return;
            }
            progress.sleep(heard, Some(left));
        }
    }
}

impl Default for Seal {
    fn default() -> Seal {
        Seal::new()
    }
}

/// What an upload needs; bc-reporter's.
pub struct Uploads {
    /// Where the reports are.
    pub shelf: Shelf<'static>,
    /// Tells which blocks go on.
    pub evidence: &'static Lock<Evidence>,
    /// See `Seal`.
    pub seal: &'static Seal,
    /// Wakes the writer.
    pub writer: &'static Bell,
    /// Rung when the writer has got on.
    pub progress: &'static Bell,
    /// Somebody has asked for one.
    pub is_wanted: &'static AtomicBool,
}

/// A directory, locked as long as this lives.
struct Locked(Fd);

impl Drop for Locked {
    fn drop(&mut self) {
        files::unlock(&self.0);
    }
}

impl Uploads {
    /// Ends what a process that died has left: what had arrived is removed, what had not is as if it had never been.
    pub fn finish_interrupted(&self) {
        if let Ok(Some(locked)) = self.lock() {
            self.tidy(&locked.0);
        }
    }

    /// Uploads all reports that may go, in as many archives as it takes, while it `may_go_on`.
    pub fn run(&self, may_go_on: &dyn Fn() -> bool) {
        match self.lock() {
            Ok(Some(locked)) => {
                self.tidy(&locked.0);
                self.seal.ask(self.writer, self.progress);
                let result = loop {
                    match self.once(&locked.0, may_go_on) {
                        Ok(true) if may_go_on() => {}
                        other => break other,
                    }
                };
                if let Err(error) = result {
                    log_warn!("the reports could not be uploaded: {error}");
                }
                self.tidy(&locked.0);
            }
            Ok(None) => {}
            Err(Errno(libc::EWOULDBLOCK)) => log_info!("another process uploads the reports of this directory"),
            Err(error) => log_warn!("the reports could not be uploaded: {error}"),
        }
    }

    fn lock(&self) -> Result<Option<Locked>, Errno> {
        let Some(directory) = self.shelf.directory()? else { return Ok(None) };
        files::lock(&directory)?;
        Ok(Some(Locked(directory)))
    }

    /// One archive. `true`: it has arrived, and there is more than fitted in.
    fn once(&self, directory: &Fd, may_go_on: &dyn Fn() -> bool) -> Result<bool, Errno> {
        let list = files::replace(directory, LIST)?;
        let file = files::replace(directory, UNFINISHED)?;
        let (mut listed, mut memory) = (ToFile(&list), [0; 1024]);
        let mut records = Sink::new(&mut listed, &mut memory);
        let (mut output, mut buffer) = (ToFile(&file), [0; BUFFER]);
        let mut archive = Archive::new(&file, &mut output, &mut buffer);
        let mut owners = self.shelf.owners();
        let is_needed = |id| self.evidence.lock().needs_report(id);
        let is_whole = collect(
            directory,
            &mut archive,
            &mut |name| owners.may_go(directory, name, &is_needed),
            &mut |name, status| {
                Record { name: *name, modified_ns: status.modified_ns, inode: status.inode }.write(&mut records);
                records.error().map_or(Ok(()), Err)
            },
        )?;
        let count = archive.entries();
        archive.finish()?;
        records.finish()?;
        // An uninstall may have begun meanwhile.
        if count == 0 || !may_go_on() {
            return Ok(false);
        }
        files::rename(directory, UNFINISHED, ARCHIVE)?;
        drop(file);
        if !self.hand_over() {
            log_warn!("the uploader has not taken the reports: {count} files stay for the next time");
            return Ok(false);
        }
        // From here on they have arrived.
        let renamed = files::rename(directory, LIST, ARRIVED);
        self.remove_listed(directory, &list);
        log_info!("{count} report files have been uploaded");
        renamed.map(|()| !is_whole)
    }

    fn hand_over(&self) -> bool {
        let mut path = [0; super::place::PATH_SIZE];
        let mut length = 0;
        let parts = [self.shelf.path().to_bytes(), b"/", ARCHIVE.to_bytes_with_nul()];
        let fits = parts.into_iter().all(|part| super::place::append(&mut path, &mut length, part).is_ok());
        let mut has_arrived = false;
        if fits {
            let path = CStr::from_bytes_until_nul(&path).unwrap_or_default();
            UPLOADER.run(|uploader, user_data| has_arrived = call(uploader, path, user_data));
        }
        has_arrived
    }

    /// Removes what has arrived and what is left of an upload.
    fn tidy(&self, directory: &Fd) {
        if let Ok(list) = files::open(directory, ARRIVED) {
            self.remove_listed(directory, &list);
        }
        for name in [ARRIVED, LIST, UNFINISHED, ARCHIVE] {
            // What stays is no report, and is tried again with the next upload.
            let _ = files::remove(directory, name);
        }
    }

    /// Removes the files of a list that are still what they were. One that has changed since holds more than has arrived.
    fn remove_listed(&self, directory: &Fd, list: &Fd) {
        let mut owners = self.shelf.owners();
        let is_needed = |id| self.evidence.lock().needs_report(id);
        let (mut at, mut bytes) = (0, [0; Record::SIZE]);
        while files::read_at(list, at, &mut bytes) == bytes.len() {
            at += bytes.len() as u64;
            // The list may be anybody's.
            let Some(record) = Record::read(&bytes) else { continue };
            let Some((name, _)) = Name::parse(record.name.as_bytes()) else { continue };
            let is_same = files::status(directory, record.name.as_c_str())
                .is_ok_and(|now| (now.modified_ns, now.inode) == (record.modified_ns, record.inode));
            if is_same && owners.may_go(directory, &name, &is_needed) {
                let _ = files::remove(directory, record.name.as_c_str());
            }
        }
    }
}

/// A file in the archive, and which one it was.
struct Record {
    name: FileName,
    modified_ns: i64,
    inode: u64,
}

impl Record {
    const SIZE: usize = FileName::SIZE + 16;

    fn write(&self, sink: &mut Sink) {
        sink.bytes(self.name.memory());
        sink.bytes(&self.modified_ns.to_ne_bytes());
        sink.bytes(&self.inode.to_ne_bytes());
    }

    fn read(bytes: &[u8; Record::SIZE]) -> Option<Record> {
        let (name, rest) = bytes.split_first_chunk()?;
        let (modified_ns, rest) = rest.split_first_chunk()?;
        let (modified_ns, inode) = (i64::from_ne_bytes(*modified_ns), u64::from_ne_bytes(*rest.first_chunk()?));
        Some(Record { name: FileName::of(name)?, modified_ns, inode })
    }
}

#[allow(unsafe_code)]
fn call(uploader: bc_uploader, path: &CStr, user_data: *mut c_void) -> bool {
    // SAFETY: the program gave the uploader for this, with this user data; the path ends in a NUL and stays meanwhile.
    uploader.is_some_and(|uploader| unsafe { uploader(path.as_ptr(), user_data) })
}
