//! What the monitor keeps of a loop from look to look.

use super::gate::GATE;
use super::pinging::Pulse;
use super::saturation::Saturation;
use super::slot::Slot;
use crate::sample::cpu::Reading;
use crate::sample::sampler::{PATIENCE_NS, Runs, Subject, SubjectFiles};
use crate::sample::scheduling::{Scheduling, queue_wait_ns};
use crate::sys::clock::{self, Ticks};
use crate::sys::dumpable;
use crate::sys::maps::{Lines, Mapping, OwnMaps};
use crate::sys::procfs::{ProcFile, open_of_thread, tracer};
use crate::unwind::elf::Span;
use core::sync::atomic::Ordering::*;

/// See above. The files close when it goes.
pub struct Track {
    /// The life of the slot that this is about; 0 for none.
    pub token: usize,
    /// Version of the marks at the last look.
    pub version: usize,
    /// The stretch that was last posted or closed, by name and begin: it is told once.
    pub posted: (usize, Ticks),
    /// The thread's CPU clock at the last look.
    pub reading: Reading,
    /// Closings of the gate that have been dealt with.
    pub closings: u64,
    /// The heartbeat, of a loop that has one.
    pub pulse: Pulse,
    /// Whether it always has something to do.
    pub saturation: Saturation,
    runs: Runs,
    files: Option<SubjectFiles>,
    /// The thread's counters and state letter when they were last read.
    counters: (Scheduling, u8),
    stack: Span,
    /// The thread was known when this was made.
    is_known: bool,
}

impl Track {
    /// Of nothing.
    pub const NONE: Track = Track {
        token: 0,
        version: 0,
        posted: (0, Ticks(0)),
        reading: Reading::NONE,
        closings: 0,
        pulse: Pulse::NEW,
        saturation: Saturation::NEW,
        runs: Runs::UNKNOWN,
        files: None,
        counters: (Scheduling::NONE, 0),
        stack: Span { start: 0, end: 0 },
        is_known: false,
    };

    /// Of a loop that is seen for the first time.
    pub fn new(token: usize, slot: &Slot, dumpable_window: bool) -> Track {
        let tid = slot.tid.load(Relaxed);
        let now = Ticks::now_inlined();
        let mut track = Track { token, closings: GATE.closings(), ..Track::NONE };
        if tid == 0 {
            return track;
        }
        track.is_known = true;
        track.files = open(tid, dumpable_window);
        let queue_wait_ns = track.queue_wait_ns();
        track.reading = Reading { at: now, cpu_ns: clock::thread_cpu(tid).unwrap_or(0), queue_wait_ns };
        track.look_at_stack(slot);
        track
    }

    /// Finds out how far the thread's stack is mapped now: the main thread's grows, and a program may have carved another
    /// stack out of one, with a page between that nobody may touch.
    pub fn look_at_stack(&mut self, slot: &Slot) {
        if self.is_known {
            self.stack = stack_around(slot.stack_hint.load(Relaxed), slot.owner.load(Relaxed) as u64);
        }
    }

    /// The thread's files.
    pub fn files(&self) -> Option<&SubjectFiles> {
        self.files.as_ref()
    }

    /// The thread's counters now. One that has not run since they were read has the same.
    pub fn scheduling(&mut self, tid: i32) -> Scheduling {
        let (before, _) = self.counters;
        if before.at == Ticks(0) || clock::thread_cpu(tid) != Some(before.cpu_ns) {
            self.counters = Scheduling::read(tid, self.files.as_ref());
        }
        self.counters.0.at = Ticks::now_inlined();
        self.counters.0
    }

    /// Time that the thread has been ready to run and without a processor in its life, ns.
    pub fn queue_wait_ns(&self) -> Option<u64> {
        queue_wait_ns(self.files.as_ref()?)
    }

    /// Has the thread of a heartbeat told who it is, since this was made?
    pub fn learns_thread(&self, slot: &Slot) -> bool {
        self.files.is_none() && !self.is_known && slot.tid.load(Acquire) != 0
    }

    /// The thread, to be sampled in this stretch.
    pub fn subject(&mut self, slot: &'static Slot, stretch: usize) -> Subject<'_> {
        Subject {
            handle: slot.owner.load(Relaxed),
            tid: slot.tid.load(Relaxed),
            files: self.files.as_ref(),
            state: Some((self.counters.0.cpu_ns, self.counters.1)).filter(|(_, state)| *state != 0),
            stretch_word: slot.stretch(),
            stretch,
            stack: self.stack,
            runs: &mut self.runs,
            is_watched: true,
            patience_ns: PATIENCE_NS,
            in_passing: false,
        }
    }
}

impl Track {
    /// The thread's `syscall` file.
    pub fn system_call(&self) -> Option<&ProcFile> {
        self.files.as_ref()?.system_call.as_ref()
    }

    /// A debugger is attached to the thread.
    pub fn is_traced(&self) -> bool {
        let mut text = [0; 2048];
        let status = self.files.as_ref().and_then(|files| files.status.read(&mut text).ok());
        status.and_then(tracer).is_some_and(|tracer| tracer != 0)
    }
}

/// Opens a thread's files.
pub fn open(tid: i32, dumpable_window: bool) -> Option<SubjectFiles> {
    let file = |name: &str, may_change: bool| open_of_thread(tid, name, |path| dumpable::open(path, may_change)).ok();
    Some(SubjectFiles {
        stat: file("stat", false)?,
        status: file("status", false)?,
        system_call: file("syscall", dumpable_window),
        schedule: file("schedstat", false),
    })
}

/// The stack that an address lies in, as far as it is sure to stay mapped while the thread lives; empty where that is not
/// known. The main thread's is told by its name. For others the C library keeps the thread's own record, which `handle`
/// points to, behind the stack in the same mapping; without it there the address lies in a fiber's stack, whose memory
/// may go at any time.
fn stack_around(hint: u64, handle: u64) -> Span {
    let mut buffer = [0; 512];
    let Ok(maps) = OwnMaps::open() else { return Span::default() };
    let mut lines = Lines::new(maps, &mut buffer);
    while let Ok(Some(line)) = lines.next_line() {
        let Some(mapping) = Mapping::parse(line) else { continue };
        if (mapping.start..mapping.end).contains(&hint) {
            return match mapping.path {
                b"[stack]" => Span { start: mapping.start, end: mapping.end },
                _ if (hint..mapping.end).contains(&handle) => Span { start: mapping.start, end: handle },
                _ => Span::default(),
            };
        }
    }
    Span::default()
}
