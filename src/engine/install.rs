//! Making an installation and taking it down.

use super::facts::{self, Text};
use super::health::{self, MEMORY_BYTES, SYSTEM_CPU_AVAILABLE};
use super::life;
use super::memory::{self, Parts};
use super::settings::Settings;
use super::threads;
use crate::report::delivery::Delivery;
use crate::report::dump::Page;
use crate::report::facts::Facts;
use crate::report::filing::Filing;
use crate::report::filter::Judge;
use crate::report::merge::Recent;
use crate::report::module_list::ModuleList;
use crate::report::recorder::Recorder;
use crate::report::recorder::layout::Owner;
use crate::report::recorder::recover::Recovery;
use crate::report::reporter::Reporter;
use crate::report::resolve::Resolver;
use crate::report::shelf::Shelf;
use crate::report::store::Store;
use crate::report::text_space::TextSpace;
use crate::report::upload::{Seal, Uploads};
use crate::report::writer::Writer;
use crate::sample::census::Census;
use crate::sample::cpu::Meter;
use crate::sample::evidence::Evidence;
use crate::sample::named::Named;
use crate::sample::sampler::Sampler;
use crate::sample::strings::Strings;
use crate::sys::bell::Bell;
use crate::sys::clock::{self, Ticks};
use crate::sys::errno::Errno;
use crate::sys::lock::Lock;
use crate::sys::mapping::Mapping;
use crate::sys::process;
use crate::sys::procfs::ProcFile;
use crate::sys::thread::{self, Thread};
use crate::watch::handover::Handover;
use crate::watch::ledger::Ledger;
use crate::watch::looks::{Looks, Terms};
use crate::watch::monitor::Monitor;
use crate::watch::orders::Orders;
use crate::watch::surveys::Rounds;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::*};

/// Why there is no installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Memory or a thread could not be had.
    NoMemory,
    /// The report directory cannot be used.
    Directory(Errno),
}

/// What calls need of an installation. All of it lies in the installation's memory.
#[derive(Clone, Copy)]
pub struct Handles {
    /// Cases and samples.
    pub evidence: &'static Lock<Evidence>,
    /// The way to the listener.
    pub delivery: &'static Delivery,
    /// The monitor's orders.
    pub orders: &'static Orders,
    /// Where dumps are asked for.
    pub handover: &'static Handover,
    /// What they are written with.
    pub page: &'static Lock<(Page, &'static mut [u8])>,
    /// What reports say beside their block.
    pub facts: &'static Facts,
    /// The reports, if there are any.
    pub shelf: Option<Shelf<'static>>,
    switches: &'static Switches,
}

struct Switches {
    writer: Bell,
    writer_quits: AtomicBool,
    writer_tidies: AtomicBool,
    seal: Seal,
    uploads: AtomicBool,
    filter_holds: AtomicBool,
    reporter_holds: AtomicBool,
    reporter_quits: AtomicBool,
    utc_offset_s: AtomicI32,
}

/// An installation.
pub struct Engine {
    /// See `Handles`.
    pub handles: Handles,
    mapping: Mapping,
    monitor: Thread,
    writer: Thread,
    reporter: Thread,
}

impl Engine {
    /// Reserves all memory, opens what must be open, makes the threads. Allocates.
    pub fn new(settings: &Settings) -> Result<Engine, Failure> {
        let mut parts = memory::reserve(settings).map_err(|_| Failure::NoMemory)?;
        let Parts { cases, samples, pcs, frames, tools, answer, tracks, monitor_modules, .. } = parts;
        let mut store = match settings.report_dir.map(|path| Store::open(path, parts.store)).transpose() {
            Ok(store) => store,
            Err(error) => {
                give_back(parts.mapping);
                return Err(Failure::Directory(error));
            }
        };
        if let Some(store) = &mut store {
            store.limits.bytes = settings.max_report_bytes;
            store.limits.age_s = Some(settings.report_max_age_s);
        }
        let mut words = Words(parts.words);
        let mapping = &mut parts.mapping;
        let switches = Switches {
            writer: Bell::new(),
            writer_quits: AtomicBool::new(false),
            writer_tidies: AtomicBool::new(false),
            seal: Seal::new(),
            uploads: AtomicBool::new(false),
            filter_holds: AtomicBool::new(false),
            reporter_holds: AtomicBool::new(false),
            reporter_quits: AtomicBool::new(false),
            utc_offset_s: AtomicI32::new(clock::utc_offset_s()),
        };
        let built = (|| {
            let switches = &*mapping.place(switches)?;
            let facts = facts_of(settings, mapping, &mut words, &switches.utc_offset_s)?;
            let (text, index) = parts.names;
            let named = Named::new(parts.places, parts.evicted, Strings::new(text, index));
            let named = &*mapping.place(Lock::new(named))?;
            let (page_frames, page_text, page_copies, page_buffer) = parts.page;
            let page = Page {
                resolver: Resolver::new(named, page_copies, settings.redact_paths),
                frames: page_frames,
                text: TextSpace::new(page_text),
                pid: thread::pid(),
                process_name: facts.process_name,
                redact_paths: settings.redact_paths,
                utc_offset_s: &switches.utc_offset_s,
            };
            let handles = Handles {
                evidence: mapping.place(Lock::new(Evidence::new(cases, samples, pcs, settings.depth, parts.others)))?,
                delivery: mapping.place(Delivery::new(parts.parcels))?,
                orders: mapping.place(Orders::new())?,
                shelf: store.as_ref().map(Store::shelf),
                handover: mapping.place(Handover::new(parts.dump))?,
                page: mapping.place(Lock::new((page, page_buffer)))?,
                facts,
                switches,
            };
            let meter = settings.cpu.then(|| Meter::new(thread::cores()));
            SYSTEM_CPU_AVAILABLE.store(meter.as_ref().is_some_and(Meter::knows_machine), Relaxed);
            let looks = Looks {
                tracks,
                evidence: handles.evidence,
                sampler: Sampler::new(answer, monitor_modules, named, frames, tools, settings.method),
                meter,
                census: Census::new(parts.clocks),
                writer: &handles.switches.writer,
                terms: Terms {
                    interval_ns: settings.interval_ns,
                    limit_ns: settings.limit_ns,
                    hang_ns: settings.hang_ns,
                    report_ongoing: settings.report_ongoing,
                    records: settings.report_dir.is_some(),
                    dumpable_window: settings.dumpable_window,
                    while_debugging: settings.while_debugging,
                },
                ledger: Ledger::NEW,
                next_id: first_id(),
                rounds: parts.rounds.map(Rounds::new),
                has_told_misuse: false,
            };
            let (orders, handover) = (handles.orders, handles.handover);
            let monitor = mapping.place(Monitor::new(looks, orders, handover, settings.signal, life::end_by_itself))?;
            let (space, buffer) = parts.recorder;
            let (pid, number) = (thread::pid(), first_id());
            let owner = Owner { pid, started: process::started(pid).unwrap_or(0) };
            let has_store = store.is_some();
            let filing = Filing {
                store,
                recorder: has_store.then(|| Recorder::new(owner, number, settings.max_loops as u32, space)),
                recovery: has_store
                    .then(|| Recovery::new(owner, number.wrapping_add(1), Some(settings.report_max_age_s), buffer)),
                facts,
                memory: ProcFile::open(c"/proc/meminfo").ok(),
                recent: Recent::new(settings.merge_window_ns),
                evidence: handles.evidence,
                max_reports: settings.max_reports,
            };
            let ignored = words.list(settings.ignore_modules)?;
            let writer = mapping.place(Writer {
                evidence: handles.evidence,
                delivery: handles.delivery,
                resolver: Resolver::new(named, parts.copies, settings.redact_paths),
                judge: Judge { ignored, hold: &handles.switches.filter_holds },
                filing,
                bell: &handles.switches.writer,
                quit: &handles.switches.writer_quits,
                tidy: &handles.switches.writer_tidies,
                seal: &handles.switches.seal,
            })?;
            let reporter = mapping.place(Reporter {
                delivery: handles.delivery,
                evidence: handles.evidence,
                writer: &handles.switches.writer,
                uploads: handles.shelf.map(|shelf| Uploads {
                    shelf,
                    evidence: handles.evidence,
                    seal: &handles.switches.seal,
                    writer: &handles.switches.writer,
                    progress: &handles.delivery.progress,
                    is_wanted: &handles.switches.uploads,
                }),
                hold: &handles.switches.reporter_holds,
                quit: &handles.switches.reporter_quits,
            })?;
            Some((handles, monitor, writer, reporter))
        })();
        let Some((handles, monitor, writer, reporter)) = built else {
            give_back(parts.mapping);
            return Err(Failure::NoMemory);
        };
        MEMORY_BYTES.store(parts.mapping.bytes() as u64, Relaxed);
        let threads = start(&handles, monitor, writer, reporter);
        let Some([monitor, writer, reporter]) = threads else {
            give_back(parts.mapping);
            return Err(Failure::NoMemory);
        };
        Ok(Engine { handles, mapping: parts.mapping, monitor, writer, reporter })
    }

    /// Ends the threads and gives everything back. The reporter must not be in a callback.
    pub fn take_down(self) {
        self.handles.orders.quit();
        self.monitor.join();
        self.handles.quit_writer();
        self.writer.join();
        self.handles.quit_reporter();
        self.reporter.join();
        give_back(self.mapping);
        MEMORY_BYTES.store(0, Relaxed);
        SYSTEM_CPU_AVAILABLE.store(false, Relaxed);
    }

    /// In a child of fork: the threads are gone, and our copy of the memory is nobody's.
    pub fn forget(self) {
        give_back(self.mapping);
    }
}

impl Handles {
    /// The local time's offset is looked up again.
    pub fn update_utc_offset(&self) {
        self.switches.utc_offset_s.store(clock::utc_offset_s(), Relaxed);
    }

    /// The writer looks for what earlier processes were killed in, and sees to it that nothing is too old.
    pub fn tidy(&self) {
        self.delivery.recovers.store(true, Release);
        self.switches.writer_tidies.store(true, Release);
        self.switches.writer.ring();
    }

    /// Blocks of dead processes that are not on their way yet are left to the next start.
    pub fn end_recovery(&self) {
        self.delivery.recovers.store(false, SeqCst);
    }

    /// The writer adds to no report any more that no open block needs. Waits for it a while.
    pub fn seal(&self) {
        self.switches.seal.ask(&self.switches.writer, &self.delivery.progress);
    }

    /// The reporter uploads what is stored.
    pub fn upload(&self) {
        self.switches.uploads.store(true, Release);
        self.delivery.reporter.ring();
    }

    /// No further listener or filter is begun; or it may be again.
    pub fn hold_callbacks(&self, hold: bool) {
        self.switches.filter_holds.store(hold, Release);
        self.switches.reporter_holds.store(hold, Release);
        self.delivery.reporter.ring();
    }

    /// Is no further callback begun?
    pub fn holds_callbacks(&self) -> bool {
        self.switches.reporter_holds.load(Acquire)
    }

    fn quit_reporter(&self) {
        self.switches.reporter_quits.store(true, Release);
        self.delivery.reporter.ring();
    }

    fn quit_writer(&self) {
        self.switches.writer_quits.store(true, Release);
        self.switches.writer.ring();
    }
}

fn facts_of(
    settings: &Settings,
    mapping: &mut Mapping,
    words: &mut Words,
    utc_offset_s: &'static AtomicI32,
) -> Option<&'static Facts> {
    let (model, api_level) = facts::device();
    let mut keep = |text: Text| mapping.place(text).map(|text| &**text);
    let facts = Facts {
        words: settings.words.map(|word| words.keep(word?.to_bytes())),
        process_name: keep(facts::process_name())?,
        pid: thread::pid(),
        model: keep(model)?,
        api_level: keep(api_level)?,
        cores: thread::cores(),
        formats: settings.formats,
        redact_paths: settings.redact_paths,
        concern: words.list(settings.concern_modules)?,
        health: health::health,
        utc_offset_s,
    };
    mapping.place(facts).map(|facts| &*facts)
}

/// Starts all three or none.
fn start(
    handles: &Handles,
    monitor: &'static mut Monitor,
    writer: &'static mut Writer,
    reporter: &'static mut Reporter,
) -> Option<[Thread; 3]> {
    let Ok(reporter) = threads::start_reporter(reporter) else {
        writer.close();
        monitor.close();
        return None;
    };
    let end_reporter = |reporter: Thread| {
        handles.quit_reporter();
        reporter.join();
    };
    // A thread that could not be started gives its state back, so that its files are closed.
    let writer = match threads::start_writer(writer) {
        Ok(writer) => writer,
        Err(writer) => {
            writer.close();
            end_reporter(reporter);
            monitor.close();
            return None;
        }
    };
    match threads::start_monitor(monitor) {
        Ok(monitor) => Some([monitor, writer, reporter]),
        Err(monitor) => {
            monitor.close();
            handles.quit_writer();
            writer.join();
            end_reporter(reporter);
            None
        }
    }
}

#[allow(unsafe_code)]
fn give_back(mapping: Mapping) {
    // SAFETY: the threads have ended or never begun, and `life` lets no call use an installation any more.
    unsafe { mapping.unmap() };
}

/// Copies of the configuration's strings.
struct Words(&'static mut [u8]);

impl Words {
    fn keep(&mut self, word: &[u8]) -> Option<&'static [u8]> {
        let (place, rest) = core::mem::take(&mut self.0).split_at_mut_checked(word.len())?;
        self.0 = rest;
        place.copy_from_slice(word);
        Some(place)
    }

    /// The same for a list of modules.
    fn list(&mut self, list: Option<&CStr>) -> Option<ModuleList<'static>> {
        let Some(list) = list else { return Some(ModuleList::default()) };
        self.keep(list.to_bytes()).map(ModuleList::new)
    }
}

/// Ids begin anywhere below 2^52, so that they stay below 2^53 and two installations hardly share one.
fn first_id() -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014).
    let mut bits = clock::unix_ms() as u64 ^ Ticks::now().0.rotate_left(20) ^ (thread::pid() as u64).rotate_left(44);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ bits >> 31) >> 12
}
