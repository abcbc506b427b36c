//! Finding out why a late stretch is late, for `Looks`.

use super::looks::Looks;
use super::slot::{self, WATCHED};
use super::track;
use crate::abi::bc_cause::BC_CAUSE_LOCK;
use crate::sample::activity;
use crate::sample::case::Phase;
use crate::sample::census;
use crate::sample::chain::{self, Chain};
use crate::sample::doing::Doing;
use crate::sample::evidence::{OtherThread, ROLES, Sample};
use crate::sample::owner;
use crate::sample::sampler::{self, Runs, Subject, Taken};
use crate::sample::scheduling::Scheduling;
use crate::sample::wait::{self, Wait};
use crate::sys::clock::{Ticks, thread_cpu};
use crate::sys::dumpable;
use crate::sys::memory::OwnMemory;
use crate::sys::procfs::{KernelState, SystemCall, open_of_thread};
use crate::sys::thread;
use crate::unwind::elf::Span;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A look at all holders begins no further one after so long.
const PATIENCE_NS: u64 = 20_000_000;

impl Looks {
    /// Enters what a loop's thread does into its case's account, with its counters, read just before.
    pub(super) fn enter(&mut self, case: usize, doing: Doing, state: u8, scheduling: Scheduling) {
        let Some((tid, is_open)) = self.evidence.lock().case(case).map(|case| (case.tid, case.phase == Phase::Open))
        else {
            return;
        };
        let wait = Wait::of(doing, state, &OwnMemory::new(), wait::behind);
        let lock = wait.filter(|wait| wait.cause == BC_CAUSE_LOCK).and_then(|wait| wait.call);
        // Before the limit is passed, only the lock's own holder is of interest.
        let chain = lock.map(|call| follow(tid, &call, if is_open { chain::MOST } else { 1 }, false));
        if let Some(case) = self.evidence.lock().case_mut(case) {
            case.account.add(wait, doing == Doing::Running, scheduling);
        }
        self.put_chain(case, chain);
    }

    /// A block passes its limit, or is told as a hang: what it waits for is looked at once more, and closer.
    pub(super) fn look_closer(&mut self, case: usize) {
        let Some(known) = self.evidence.lock().case(case).map(|case| (case.slot, case.tid, case.from)) else { return };
        let (number, tid, from) = known;
        let may_change = self.terms.dumpable_window;
        let scheduling = self.track(number).scheduling(tid);
        let Some((doing, state)) = self.track(number).files().map(activity::glimpse) else { return };
        self.enter(case, doing, state, scheduling);
        if let Doing::Waits(call) = doing {
            let cpu_ns = thread_cpu(tid);
            let chain = follow(tid, &call, chain::MOST, may_change);
            self.put_chain(case, Some(chain));
            self.sample_holders(case, &chain);
            if thread_cpu(tid) != cpu_ns {
                // It has what it waited for: what the others do now is another matter.
                self.evidence.lock().forget_others(case);
            }
        }
        self.find_busiest(case, from);
    }

    /// The busiest threads of the process since the begin of a block.
    pub(super) fn find_busiest(&mut self, case: usize, from: Ticks) {
        let top = self.census.busiest(from, Ticks::now());
        if let Some(case) = self.evidence.lock().case_mut(case)
            && top.first().is_some_and(Option::is_some)
        {
            case.account.top = top;
        }
    }

    /// Takes a stack of each thread that the blocked one waits for.
    fn sample_holders(&mut self, case: usize, chain: &Chain) {
        self.evidence.lock().forget_others(case);
        let begin = Ticks::now();
        for (place, tid) in chain.holders().iter().enumerate() {
            // Others wait for looks, too.
            if Ticks::now().since(begin) > PATIENCE_NS {
                return;
            }
            let Some(mut sample) = self.sample_other(*tid) else { continue };
            let role = ROLES[usize::from(place == 0 && chain.is_join)];
            let is_watched = slot::used().any(|(_, slot)| slot.phase() == WATCHED && slot.tid.load(Relaxed) == *tid);
            let name = census::name(*tid);
            sample.other = Some(OtherThread { tid: *tid, name, role: Some(role), is_watched });
            let frames = self.sampler.frames().get(..sample.frame_count as usize).unwrap_or(&[]);
            self.evidence.lock().add_other(case, sample, frames);
        }
    }

    /// Takes a sample of any thread but the monitor itself.
    fn sample_other(&mut self, tid: i32) -> Option<Sample> {
        static NO_STRETCH: AtomicUsize = AtomicUsize::new(0);
        if tid == thread::tid() {
            return None;
        }
        let files = track::open(tid, self.terms.dumpable_window)?;
        let mut runs = Runs::UNKNOWN;
        let mut subject = Subject {
            handle: 0,
            tid,
            files: Some(&files),
            state: None,
            stretch_word: &NO_STRETCH,
            stretch: 0,
            // Where it ends is known for loops only.
            stack: Span::default(),
            runs: &mut runs,
            is_watched: false,
            patience_ns: sampler::PATIENCE_NS,
            in_passing: false,
        };
        match self.sampler.sample(&mut subject) {
            Taken::Sample(sample) => Some(sample),
            Taken::Over => None,
        }
    }

    fn put_chain(&mut self, case: usize, chain: Option<Chain>) {
        let Some(chain) = chain.filter(|chain| *chain != Chain::NONE) else { return };
        let name = chain.holders().first().map(|tid| census::name(*tid));
        if let Some(case) = self.evidence.lock().case_mut(case) {
            let before = &case.account.chain;
            let knows_more = before.holders().len() > chain.holders().len() || before.closes_at.is_some();
            if !knows_more || !before.holders().starts_with(chain.holders()) {
                case.account.chain = chain;
            }
            if let Some(name) = name {
                case.account.holder_name = name;
            }
        }
    }
}

/// Follows from a thread that waits in `call` to who holds its lock, and so on, `most` of them at most.
fn follow(tid: i32, call: &SystemCall, most: usize, may_change: bool) -> Chain {
    let memory = OwnMemory::new();
    let mut clocks = ArrayVec::<(i32, Option<u64>), { chain::MOST + 1 }>::new();
    let mut chain = Chain::follow(tid, |at| {
        if clocks.len() >= most || clocks.try_push((at, thread_cpu(at))).is_err() {
            return None;
        }
        let call = if at == tid { *call } else { call_of(at, may_change)? };
        owner::of(&call, &memory, thread::exists)
    });
    // Each was looked at in its turn: only if none has moved since did they wait for each other at one moment.
    let have_moved = clocks.iter().any(|(tid, clock)| thread_cpu(*tid) != *clock);
    chain.closes_at = chain.closes_at.filter(|_| !have_moved);
    chain
}

/// The system call that a thread waits in.
fn call_of(tid: i32, may_change: bool) -> Option<SystemCall> {
    let file = open_of_thread(tid, "syscall", |path| dumpable::open(path, may_change)).ok()?;
    let mut text = [0; 256];
    match KernelState::parse(file.read(&mut text).ok()?)? {
        KernelState::Waiting(waiting) => waiting.call,
        KernelState::Running => None,
    }
}
