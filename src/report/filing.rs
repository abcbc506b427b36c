//! Puts blocks into the store: each in files of its own, or into the report of an earlier one that it is like.

use super::facts::Facts;
use super::merge::{Recent, Report, State};
use super::names::{Format, Name};
use super::parcel::Parcel;
use super::place::PATH_SIZE;
use super::recorder::Recorder;
use super::recorder::recover::Recovery;
use super::render;
use super::sink::Lossy;
use super::store::Store;
use crate::abi::bc_block_state::BC_BLOCK_ENDED;
use crate::log_warn;
use crate::sample::evidence::Evidence;
use crate::sys::clock::Ticks;
use crate::sys::counters::{REPORTS_FAILED, REPORTS_MERGED, REPORTS_WRITTEN};
use crate::sys::errno::Errno;
use crate::sys::lock::Lock;
use crate::sys::procfs::ProcFile;
use core::sync::atomic::Ordering::Relaxed;

/// See above.
pub struct Filing {
    /// Where reports go, if they do.
    pub store: Option<Store<'static>>,
    /// Knows what goes on, for those who come after a kill; where there is a store.
    pub recorder: Option<Recorder<'static>>,
    /// Finds what those before us have left.
    pub recovery: Option<Recovery<'static>>,
    /// See `Facts`.
    pub facts: &'static Facts,
    /// `/proc/meminfo`.
    pub memory: Option<ProcFile>,
    /// What a block may be like.
    pub recent: Recent,
    /// Tells which blocks go on.
    pub evidence: &'static Lock<Evidence>,
    /// See `bc_config`.
    pub max_reports: u32,
}

impl Filing {
    /// Closes its files. What is left in recorders is found by who comes next.
    pub fn close(&mut self) {
        self.recorder = None;
        self.recovery = None;
        self.store = None;
        self.memory = None;
    }

    /// Watching begins: what has grown too old since, or is more than may be, goes.
    pub fn tidy(&mut self) {
        self.tell_offset();
        if let Some(store) = &mut self.store {
            // What cannot be removed now is tried again with each report.
            let _ = store.tidy(self.max_reports, &is_open(self.evidence));
        }
    }

    fn tell_offset(&mut self) {
        if let Some(store) = &mut self.store {
            store.limits.utc_offset_s = self.facts.utc_offset_s.load(Relaxed);
        }
    }

    /// Looks up what reports of this state of a block say beside it.
    pub fn look(&self, parcel: &mut Parcel) {
        parcel.now = Some(self.facts.look(self.memory.as_ref()));
    }

    /// Keeps a block that goes on in the flight recorder.
    pub fn record(&mut self, parcel: &Parcel) {
        let Some((recorder, store)) = self.recorder.as_mut().zip(self.store.as_mut()) else { return };
        let Some((context, (directory, _))) = parcel.context(self.facts).zip(store.directory().ok()) else { return };
        recorder.keep(directory, &parcel.block(), &context);
    }

    /// The block has ended and is filed.
    pub fn forget_record(&mut self, id: u64) {
        let Some((recorder, store)) = self.recorder.as_mut().zip(self.store.as_mut()) else { return };
        recorder.free(store.directory().ok().map(|(directory, _)| directory), id);
    }

    /// Files the next block that an earlier process was killed in, and says whether the listeners are to be told of it: of one
    /// whose report only could not be stored before they have been. `None`: there is none.
    pub fn recover(&mut self, parcel: &mut Parcel) -> Option<bool> {
        let (recovery, store) = self.recovery.as_mut().zip(self.store.as_mut())?;
        let is_found = store.directory().is_ok_and(|(directory, names)| recovery.find(directory, names));
        let record = recovery.record().filter(|_| is_found)?;
        let is_news = !recovery.is_told();
        let past = record.surroundings;
        let name = Name::new(record.start_unix_ms, past.utc_offset_s, past.pid, record.id);
        parcel.restore(&record);
        parcel.case.is_stored = self.facts.formats().next().is_some_and(|format| store.has(&name, format));
        self.look(parcel);
        let is_stored = self.write(parcel, &name);
        if let Some(recovery) = &mut self.recovery {
            if is_stored { recovery.free() } else { recovery.owe() }
        }
        if is_stored {
            self.tell_path(parcel, &name);
        }
        Some(is_news)
    }

    /// Files one state of a block, and tells it where its report is. `true`: some other report is to be written again.
    pub fn file(&mut self, parcel: &mut Parcel) -> bool {
        if self.store.is_none() {
            return false;
        }
        let state = self.state(parcel);
        let before = parcel.case.shares;
        let joined = state.and_then(|state| self.join(parcel, &state));
        if joined.is_none() && before != 0 {
            self.recent.leave(before, Ticks::now());
        }
        parcel.case.shares = joined.map_or(0, |report| report.id);
        match joined {
            Some(report) => {
                parcel.repeats = report.repeats;
                self.tell_path(parcel, &report.name);
                if parcel.state == BC_BLOCK_ENDED {
                    REPORTS_MERGED.add_one();
                }
            }
            None => {
                let name = self.facts.name(parcel.case.start_unix_ms, parcel.case.id);
                if self.write(parcel, &name) {
                    self.tell_path(parcel, &name);
                    parcel.case.is_stored = true;
                    // One without a stack is like no other.
                    if let Some(state) = state {
                        self.recent.stored(name, &state, Ticks::now());
                    }
                }
            }
        }
        before != 0 || joined.is_some()
    }

    /// Tells a block that was filed before where its report is.
    pub fn tell(&self, parcel: &mut Parcel) {
        let case = parcel.case;
        let name = match case.shares {
            0 => case.is_stored.then(|| self.facts.name(case.start_unix_ms, case.id)),
            shares => self.recent.get(shares),
        };
        parcel.repeats.count = case.repeat;
        if let Some(name) = name {
            self.tell_path(parcel, &name);
        }
    }

    fn state(&self, parcel: &Parcel) -> Option<State> {
        let case = &parcel.case;
        let stacks = parcel.stacks(&self.facts.concern);
        (!stacks.is_empty()).then_some(State {
            of: (case.slot, case.tid),
            stacks,
            wall_ns: case.wall_ns,
            start_unix_ms: case.start_unix_ms,
            is_end: parcel.state == BC_BLOCK_ENDED,
        })
    }

    /// The report that a block joins or stays with.
    fn join(&mut self, parcel: &Parcel, state: &State) -> Option<Report> {
        let case = &parcel.case;
        if case.is_stored || case.is_hang {
            return None;
        }
        let (now, has_joined) = (Ticks::now(), case.shares != 0);
        let (id, name) = match has_joined {
            true => (case.shares, self.recent.get(case.shares).filter(|_| self.recent.still_fits(case.shares, state))?),
            false => self.recent.candidate(state, now).map(|report| (report.id, report.name))?,
        };
        // Retention or somebody else may have removed it.
        let format = self.facts.formats().next()?;
        if !self.store.as_mut().is_some_and(|store| store.has(&name, format)) {
            self.recent.forget(id);
            return None;
        }
        self.recent.join(id, has_joined, state, now)
    }

    fn tell_path(&self, parcel: &mut Parcel, name: &Name) {
        if let Some((store, format)) = self.store.as_ref().zip(self.facts.formats().next()) {
            parcel.set_path(|out| store.path_of(name, format, out));
        }
    }

    fn write(&mut self, parcel: &Parcel, name: &Name) -> bool {
        self.tell_offset();
        let Some(store) = &mut self.store else { return false };
        let is_open = is_open(self.evidence);
        let room = parcel.case.is_stored || store.make_room(self.max_reports, &is_open).unwrap_or(true);
        if !room {
            REPORTS_FAILED.add_one();
            log_warn!("no room for the report of block {}", name.id);
            return false;
        }
        let Some(context) = parcel.context(self.facts) else { return false };
        let block = parcel.block();
        let mut is_stored = None;
        store.begin(name);
        for format in self.facts.formats() {
            let result = store.write(name, format, &is_open, &mut |sink| {
                render::write(sink, format, &block, &context);
            });
            is_stored = is_stored.or(Some(result.is_ok()));
            match result {
                Ok(()) => REPORTS_WRITTEN.add_one(),
                Err(error) => failed(store, name, format, error),
            }
        }
        store.end();
        is_stored == Some(true)
    }

    /// From now on no report changes but those that an open block needs.
    pub fn seal(&mut self) {
        self.amend(true);
        let evidence = self.evidence;
        self.recent.keep(|id| evidence.lock().needs_report(id));
    }

    /// Writes reports again that others have joined: all if there is nothing else to do, else those that it is time for.
    pub fn amend(&mut self, is_idle: bool) {
        while let Some(report) = self.recent.take_different(is_idle, Ticks::now()) {
            let Some(store) = &mut self.store else { return };
            for format in self.facts.formats() {
                match store.amend(&report.name, format, &is_open(self.evidence), &report.repeats) {
                    Ok(()) => {}
                    Err(Errno(libc::ENOENT)) => self.recent.forget(report.id),
                    Err(error) => failed(store, &report.name, format, error),
                }
            }
        }
    }
}

fn is_open(evidence: &'static Lock<Evidence>) -> impl Fn(u64) -> bool {
    move |id| evidence.lock().is_open(id)
}

fn failed(store: &Store, name: &Name, format: Format, error: Errno) {
    REPORTS_FAILED.add_one();
    let mut path = [0; PATH_SIZE + 128];
    let length = store.path_of(name, format, &mut path).unwrap_or(0);
    log_warn!("{} could not be written: {error}", Lossy(path.get(..length).unwrap_or_default()));
}
