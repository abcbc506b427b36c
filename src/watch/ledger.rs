//! What the monitor's own time went to. What is left without an explanation is a time in which the process did not run.

use super::gaps::{Gaps, Passed, SHORTEST_NS, stopped_ns};
use super::registry;
use crate::report::reporter::WORK;
use crate::sys::clock::{self, Ticks};
use crate::sys::procfs::{ProcFile, SchedStat, open_of_thread};
use crate::sys::thread;
use core::sync::atomic::{AtomicI32, Ordering::*};

/// Clocks read within so long are of one moment, as far as a stop is concerned.
const AT_ONCE_NS: u64 = 1_000_000;
/// How often that is tried.
const READINGS: u32 = 4;

/// A thread of ours that sleeps nearly always, by its id; 0: none. What stops the process makes it run for a moment.
pub static WITNESS: AtomicI32 = AtomicI32::new(0);

/// See above.
pub struct Ledger {
    gaps: Gaps,
    /// This thread's `schedstat`.
    own: Option<ProcFile>,
    /// The witness's `schedstat`, and whose that is.
    witness: Option<(i32, ProcFile)>,
    /// At the latest reading.
    last: Reading,
    /// Sleep that was meant since then, ns, beside that of `thread::slept_ns`.
    meant_ns: u64,
}

#[derive(Clone, Copy)]
struct Reading {
    at: Ticks,
    cpu_ns: u64,
    slept_ns: u64,
    queued_ns: Option<u64>,
    witness_slices: Option<u64>,
    witness_work: u32,
}

impl Ledger {
    /// Of a monitor that does not run yet.
    pub const NEW: Ledger = Ledger {
        gaps: Gaps::NONE,
        own: None,
        witness: None,
        last: Reading { at: Ticks(0), cpu_ns: 0, slept_ns: 0, queued_ns: None, witness_slices: None, witness_work: 0 },
        meant_ns: 0,
    };

    /// The calling thread is the monitor.
    pub fn open(&mut self) {
        thread::explain_time();
        self.own = ProcFile::open(c"/proc/thread-self/schedstat").ok();
        (self.last, self.meant_ns) = (self.read(), 0);
    }

    /// Closes its files.
    pub fn close(&mut self) {
        (self.own, self.witness) = (None, None);
    }

    /// A sleep is over. Of it so much was meant. Answers whether the process was stopped in it.
    pub fn slept(&mut self, meant_ns: u64) -> bool {
        self.meant_ns = self.meant_ns.saturating_add(meant_ns);
        self.may_have_stopped() && self.turn_over()
    }

    /// How much of a time that is over the process did not run.
    pub fn stopped_within(&mut self, from: Ticks, to: Ticks) -> u64 {
        if self.may_have_stopped() {
            self.turn_over();
        }
        self.gaps.within(from, to)
    }

    /// Has more time passed since the last reading than was meant to? Reads nothing but the clock.
    fn may_have_stopped(&self) -> bool {
        Ticks::now().since(self.last.at) >= self.meant_by(thread::slept_ns()).saturating_add(SHORTEST_NS)
    }

    fn meant_by(&self, slept_ns: u64) -> u64 {
        self.meant_ns.saturating_add(slept_ns.saturating_sub(self.last.slept_ns))
    }

    /// A fresh page, at least once a look, so that what little goes unexplained does not add up. Finds out whether the
    /// process has stopped since the last one.
    pub fn turn_over(&mut self) -> bool {
        let (before, now) = (self.last, self.read());
        let meant_ns = self.meant_by(now.slept_ns);
        (self.last, self.meant_ns) = (now, 0);
        let grown = |then: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(then?));
        let wall_ns = now.at.since(before.at);
        // Who had something to do has run for that.
        let was_idle = before.witness_work == now.witness_work;
        let stopped_ns = stopped_ns(&Passed {
            wall_ns,
            meant_ns,
            cpu_ns: now.cpu_ns.saturating_sub(before.cpu_ns),
            queued_ns: grown(before.queued_ns, now.queued_ns),
            witnessed: grown(before.witness_slices, now.witness_slices).map(|slices| slices > 0 && was_idle),
        });
        if stopped_ns > 0 {
            // Before the time in the run queue: all threads go on at once, and others may have had their processor first.
            let from = before.at.plus(meant_ns.min(wall_ns));
            self.gaps.add(from, from.plus(stopped_ns));
            registry::was_stopped(from, from.plus(stopped_ns));
        }
        stopped_ns > 0
    }

    /// All clocks at one moment. A stop while they are read lies before that moment, and counts to the time that it ends.
    fn read(&mut self) -> Reading {
        let witness = WITNESS.load(Relaxed);
        if self.witness.as_ref().map_or(0, |(tid, _)| *tid) != witness {
            let open = |tid| Some((tid, open_of_thread(tid, "schedstat", ProcFile::open).ok()?));
            self.witness = Some(witness).filter(|tid| *tid != 0).and_then(open);
        }
        let mut tries = 0;
        loop {
            let begin = Ticks::now();
            let own = self.own.as_ref().and_then(schedule);
            let witness = self.witness.as_ref().and_then(|(_, file)| schedule(file));
            let witness_work = WORK.load(Relaxed);
            let (cpu_ns, slept_ns, at) = (clock::own_cpu(), thread::slept_ns(), Ticks::now());
            tries += 1;
            if at.since(begin) <= AT_ONCE_NS || tries == READINGS {
                let (queued_ns, witness_slices) = (own.map(|own| own.wait_ns), witness.map(|witness| witness.slices));
                return Reading { at, cpu_ns, slept_ns, queued_ns, witness_slices, witness_work };
            }
        }
    }
}

fn schedule(file: &ProcFile) -> Option<SchedStat> {
    let mut text = [0; 128];
    SchedStat::parse(file.read(&mut text).ok()?)
}
