//! Taking one sample of a late thread: its state, and its stack by a signal.

use super::answer::Answer;
use super::evidence::Sample;
use super::request::{Ask, Requests, Silence};
use super::stack::AnsweredStack;
use crate::abi::bc_sample_method;
use crate::ring::version::Version;
use crate::sys::clock::Ticks;
use crate::sys::counters::{SAMPLES_LOST, SAMPLES_TAKEN, SAMPLES_UNANSWERED, SIGNALS_SENT};
use crate::sys::maps::OwnMaps;
use crate::sys::memory::OwnMemory;
use crate::sys::procfs::{ProcFile, ThreadStat, pending_signals};
use crate::unwind::cache::Cached;
use crate::unwind::elf::Span;
use crate::unwind::modules::ModuleTable;
use crate::unwind::walk::{Stack, walk};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How long a thread may take to answer. One that runs answers in microseconds; one that other threads keep from running
/// gets its turn within a few times the scheduler's slice.
const PATIENCE_NS: u64 = 20_000_000;

/// A table of modules that missed a pc is not made anew more often than this.
const REFRESH_NS: u64 = 200_000_000;

/// Somebody else's handler stands where ours was.
pub static SIGNAL_TAKEN_OVER: AtomicBool = AtomicBool::new(false);
/// There is a signal to sample with.
pub static SIGNAL_AVAILABLE: AtomicBool = AtomicBool::new(false);

/// The thread that is sampled.
pub struct Subject<'a> {
    /// Its id.
    pub tid: i32,
    /// Its `stat` and `status`, where they can be had.
    pub files: Option<&'a SubjectFiles>,
    /// When it was started, as its `stat` says: another time is another thread under the same id.
    pub start_time: u64,
    /// The version of its loop's marks, and the one of the stretch that is to be sampled.
    pub marks: &'static Version,
    /// See `marks`.
    pub version: usize,
    /// Its stack; empty where not known.
    pub stack: Span,
    /// A signal of ours may still be pending for it.
    pub may_be_pending: bool,
}

/// Files of a thread that stay open while it is watched.
pub struct SubjectFiles {
    /// `stat`.
    pub stat: ProcFile,
    /// `status`.
    pub status: ProcFile,
}

/// What came of it.
pub enum Taken {
    /// A sample, with as many frames as it says in `frames`.
    Sample(Sample),
    /// The stretch ended meanwhile.
    Over,
}

/// Takes samples, one at a time; the monitor's.
pub struct Sampler {
    requests: Requests,
    modules: ModuleTable<'static>,
    refreshed: Ticks,
    frames: &'static mut [u64],
    /// Take stacks at all.
    stacks: bool,
}

impl Sampler {
    /// `frames` has room for the deepest stack that is kept.
    pub fn new(
        answer: &'static mut Answer,
        modules: ModuleTable<'static>,
        frames: &'static mut [u64],
        stacks: bool,
    ) -> Sampler {
        Sampler { requests: Requests::new(answer), modules, refreshed: Ticks(0), frames, stacks }
    }

    /// Watching begins: takes a signal.
    pub fn start(&mut self, wanted: i32) {
        SIGNAL_TAKEN_OVER.store(false, Relaxed);
        let available = self.stacks && self.requests.take_signal(wanted);
        SIGNAL_AVAILABLE.store(available, Relaxed);
        if self.stacks && !available {
            crate::log_warn!("no signal is free: blocks are reported without stacks");
        }
    }

    /// Watching ends: gives the signal back. `false`: a thread is still inside the handler.
    pub fn stop(&mut self) -> bool {
        SIGNAL_AVAILABLE.store(false, Relaxed);
        self.requests.give_back(PATIENCE_NS)
    }

    /// The frames of the last sample.
    pub fn frames(&self) -> &[u64] {
        self.frames
    }

    /// Takes one sample.
    pub fn sample(&mut self, subject: &mut Subject) -> Taken {
        let mut sample = Sample::EMPTY;
        sample.at = Ticks::now();
        sample.is_listed = self.stacks;
        let mut text = [0; 512];
        if let Some(files) = subject.files {
            let stat = files.stat.read(&mut text).ok().and_then(ThreadStat::parse);
            if stat.is_some_and(|stat| stat.start_time != subject.start_time) {
                return Taken::Over;
            }
            sample.thread_state = stat.map_or(0, |stat| stat.state);
        }
        if self.stacks && SIGNAL_AVAILABLE.load(Relaxed) && !self.still_pending(subject) {
            self.take_stack(subject, &mut sample);
        }
        if subject.marks.current() != subject.version {
            SAMPLES_LOST.add_one();
            return Taken::Over;
        }
        SAMPLES_TAKEN.add_one();
        Taken::Sample(sample)
    }

    /// A thread that has not taken up the last signal gets no other: they would pile up.
    fn still_pending(&self, subject: &mut Subject) -> bool {
        if !subject.may_be_pending {
            return false;
        }
        let Some(number) = self.requests.signal() else { return false };
        let mut text = [0; 2048];
        let status = subject.files.and_then(|files| files.status.read(&mut text).ok());
        let pending = status.and_then(pending_signals).unwrap_or(0) >> (number - 1) & 1 == 1;
        if pending {
            SAMPLES_UNANSWERED.add_one();
        }
        subject.may_be_pending = pending;
        pending
    }

    fn take_stack(&mut self, subject: &mut Subject, sample: &mut Sample) {
        let ask = Ask {
            tid: subject.tid,
            marks: subject.marks,
            stack_low: subject.stack.start,
            stack_high: subject.stack.end,
        };
        let answer = match self.requests.ask(&ask, PATIENCE_NS) {
            Ok(answer) => answer,
            Err(Silence::TakenOver) => {
                SIGNAL_AVAILABLE.store(false, Relaxed);
                SIGNAL_TAKEN_OVER.store(true, Relaxed);
                crate::log_warn!("the sampling signal was taken over: no more stacks until the next start");
                return;
            }
            Err(Silence::NotSent) => return,
            Err(Silence::Busy) => {
                SAMPLES_UNANSWERED.add_one();
                return;
            }
            Err(Silence::Unanswered) => {
                SIGNALS_SENT.add_one();
                SAMPLES_UNANSWERED.add_one();
                subject.may_be_pending = true;
                return;
            }
        };
        SIGNALS_SENT.add_one();
        if answer.version != subject.version {
            return;
        }
        let registers = answer.registers();
        let memory = Cached::new(OwnMemory::new());
        let now = Ticks::now();
        let is_known = self.modules.find(registers.pc).is_some();
        if !is_known && now.since(self.refreshed) > REFRESH_NS {
            self.refreshed = now;
            refresh(&mut self.modules, &memory);
        }
        let stack_memory = AnsweredStack { answer, high: subject.stack.end, rest: memory };
        let mut stack = Stack::new(self.frames);
        walk(&registers, &stack_memory, &self.modules, subject.stack, &mut stack);
        sample.method = bc_sample_method::BC_SAMPLE_SIGNAL;
        sample.truncated = stack.truncated;
        sample.approximate = stack.approximate;
        sample.frames_cut = stack.frames_cut;
        sample.frame_count = stack.pcs().len() as u32;
    }

    /// A new late stretch: libraries that came or went since the last one are taken into account.
    pub fn new_stretch(&mut self, now: Ticks) {
        if now.since(self.refreshed) > REFRESH_NS {
            self.refreshed = now;
            let changed = OwnMaps::open().is_ok_and(|maps| self.modules.changed(maps).unwrap_or(true));
            if changed {
                refresh(&mut self.modules, &OwnMemory::new());
            }
        }
    }
}

/// Makes a table of modules anew from the process's own maps.
pub fn refresh(modules: &mut ModuleTable, memory: &impl crate::unwind::memory::Memory) {
    if let Ok(maps) = OwnMaps::open() {
        let _ = modules.refresh(maps, memory);
    }
}
