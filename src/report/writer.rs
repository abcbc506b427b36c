//! The writer: makes a parcel of each state of a block, stores it, and hands it to the reporter.

use super::block::Context;
use super::delivery::Delivery;
use super::names::{Format, Name};
use super::parcel::Parcel;
use super::resolve::Resolver;
use super::store::Store;
use super::{json, text};
use crate::abi::bc_block_state::{self, BC_BLOCK_ENDED, BC_BLOCK_HANG, BC_BLOCK_ONGOING};
use crate::abi::{BC_FORMAT_JSON, BC_FORMAT_TEXT, bc_health};
use crate::sample::case::Phase;
use crate::sample::evidence::Evidence;
use crate::sys::bell::Bell;
use crate::sys::clock;
use crate::sys::counters::{REPORTS_FAILED, REPORTS_WRITTEN};
use crate::sys::lock::Lock;
use crate::sys::procfs::{ProcFile, memory_kb};
use crate::{log_info, log_warn};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::*};

/// Room for a path.
const PATH: usize = super::place::PATH_SIZE + 128;

/// What reports say beside the block, fixed at install.
pub struct Facts {
    /// The program's words: qualifier, version name, version code, user id, network type.
    pub words: [Option<&'static [u8]>; 5],
    /// Name of the process.
    pub process_name: &'static [u8],
    /// Its id.
    pub pid: i32,
    /// See `Context`.
    pub model: &'static [u8],
    /// See `Context`.
    pub api_level: &'static [u8],
    /// Processors.
    pub cores: u32,
    /// See `bc_config`.
    pub formats: u32,
    /// See `bc_config`.
    pub max_reports: u32,
    /// See `bc_config`.
    pub redact_paths: bool,
    /// The library's account of itself.
    pub health: fn() -> bc_health,
}

/// The thread's state.
pub struct Writer {
    /// Where cases come from.
    pub evidence: &'static Lock<Evidence>,
    /// Where parcels go.
    pub delivery: &'static Delivery,
    /// Names frames.
    pub resolver: Resolver,
    /// Where reports go, if they do.
    pub store: Option<Store<'static>>,
    /// See `Facts`.
    pub facts: Facts,
    /// `/proc/meminfo`.
    pub memory: Option<ProcFile>,
    /// Wakes this thread.
    pub bell: &'static Bell,
    /// It shall end.
    pub quit: &'static AtomicBool,
    /// Local time is this many seconds ahead of UTC; set at install and start.
    pub utc_offset_s: &'static AtomicI32,
}

impl Writer {
    /// Writes until it is told to quit and nothing is left.
    pub fn run(&mut self) {
        loop {
            let heard = self.bell.heard();
            let quit = self.quit.load(Acquire);
            while self.write_next() {}
            if quit {
                return self.close();
            }
            self.bell.sleep(heard, None);
        }
    }

    /// Closes its files.
    pub fn close(&mut self) {
        self.store = None;
        self.memory = None;
    }

    /// Deals with one state of one block; `false`: nothing is due.
    fn write_next(&mut self) -> bool {
        let Some(parcel) = self.delivery.empty() else { return false };
        let Some(number) = self.take_next(parcel) else {
            self.delivery.give_back(parcel);
            return false;
        };
        self.name(parcel);
        parcel.resolve(&mut self.resolver);
        let is_stored = self.store(parcel);
        let is_end = parcel.state == BC_BLOCK_ENDED;
        let (id, wall_ms) = (parcel.case.id, parcel.case.wall_ns / 1_000_000);
        log_info!("block {id} of {wall_ms} ms {}", super::words::state(parcel.state));
        self.delivery.post(parcel);
        let mut evidence = self.evidence.lock();
        if is_end {
            evidence.close_case(number);
        } else if let Some(case) = evidence.case_mut(number).filter(|case| case.id == id) {
            case.is_stored |= is_stored;
        }
        drop(evidence);
        self.delivery.progress.ring();
        true
    }

    /// Copies the next case that has something due, and says which it was.
    fn take_next(&mut self, parcel: &mut Parcel) -> Option<usize> {
        let mut evidence = self.evidence.lock();
        let number = evidence.next_due()?;
        let case = evidence.case_mut(number)?;
        let state: bc_block_state = if case.due.ended {
            // What the block was on its way to its end is nobody's interest any more.
            case.due = crate::sample::case::Due { ended: true, ..Default::default() };
            BC_BLOCK_ENDED
        } else if core::mem::take(&mut case.due.ongoing) {
            BC_BLOCK_ONGOING
        } else {
            case.due.hang = false;
            BC_BLOCK_HANG
        };
        let case = *case;
        parcel.copy(&evidence, &case, state);
        Some(number)
    }

    fn name_of(&self, parcel: &Parcel) -> Name {
        let utc_offset_s = self.utc_offset_s.load(Relaxed);
        Name::new(parcel.case.start_unix_ms, utc_offset_s, self.facts.pid, parcel.case.id)
    }

    /// The formats that are wanted; the first one's path is the report's.
    fn formats(&self) -> impl Iterator<Item = Format> + use<> {
        let formats = self.facts.formats;
        let all = [(BC_FORMAT_TEXT, Format::Text), (BC_FORMAT_JSON, Format::Json)];
        all.into_iter().filter(move |(bit, _)| formats & bit != 0).map(|(_, format)| format)
    }

    /// Puts the report's path in, before the strings of the frames take what room there is.
    fn name(&self, parcel: &mut Parcel) {
        let mut path = [0; PATH];
        let name = self.name_of(parcel);
        let Some((store, format)) = self.store.as_ref().zip(self.formats().next()) else { return };
        if let Ok(length) = store.path_of(&name, format, &mut path) {
            parcel.set_path(path.get(..length).unwrap_or(&[]));
        }
    }

    /// Stores all formats; answers whether the first, which the path names, was stored.
    fn store(&mut self, parcel: &mut Parcel) -> bool {
        let name = self.name_of(parcel);
        let formats = self.formats();
        let utc_offset_s = self.utc_offset_s.load(Relaxed);
        let Some(store) = &mut self.store else { return false };
        let evidence = self.evidence;
        let is_open = |id| {
            evidence.lock().cases().iter().any(|case| case.id == id && matches!(case.phase, Phase::Open | Phase::Ended))
        };
        let room = parcel.case.is_stored || store.make_room(self.facts.max_reports, &is_open).unwrap_or(true);
        if !room {
            REPORTS_FAILED.add_one();
            log_warn!("no room for the report of block {}", parcel.case.id);
            return false;
        }
        let health = (self.facts.health)();
        let mut text_buffer = [0; 512];
        let memory = self.memory.as_ref().and_then(|file| file.read(&mut text_buffer).ok()).unwrap_or(&[]);
        let words = &self.facts.words;
        let context = Context {
            qualifier: words[0],
            version_name: words[1],
            version_code: words[2],
            user_id: words[3],
            network_type: words[4],
            process_name: self.facts.process_name,
            pid: self.facts.pid,
            model: self.facts.model,
            api_level: self.facts.api_level,
            cores: self.facts.cores,
            free_memory_kb: memory_kb(memory, b"MemAvailable").or_else(|| memory_kb(memory, b"MemFree")).unwrap_or(0),
            total_memory_kb: memory_kb(memory, b"MemTotal").unwrap_or(0),
            now_unix_ms: clock::unix_ms(),
            utc_offset_s,
            sample_interval_ns: parcel.case.interval_ns,
            redact_paths: self.facts.redact_paths,
            health: &health,
        };
        let mut is_stored = None;
        for format in formats {
            let block = parcel.block();
            let result = store.write(&name, format, &mut |sink| match format {
                Format::Text => text::write(sink, &block, &context),
                Format::Json => json::write(sink, &block, &context),
            });
            is_stored = is_stored.or(Some(result.is_ok()));
            match result {
                Ok(()) => REPORTS_WRITTEN.add_one(),
                Err(error) => {
                    REPORTS_FAILED.add_one();
                    log_warn!("a report could not be written: error {}", error.0);
                }
            }
        }
        if is_stored == Some(true) {
            parcel.is_stored();
        }
        is_stored == Some(true)
    }
}
