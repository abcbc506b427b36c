//! Finding out why a late stretch is late, for `Looks`.

use super::looks::Looks;
use crate::abi::bc_cause::BC_CAUSE_LOCK;
use crate::sample::activity;
use crate::sample::case::Phase;
use crate::sample::census;
use crate::sample::chain::{self, Chain};
use crate::sample::doing::Doing;
use crate::sample::owner;
use crate::sample::wait::{self, Wait};
use crate::sys::clock::{Ticks, thread_cpu};
use crate::sys::dumpable;
use crate::sys::memory::OwnMemory;
use crate::sys::procfs::{KernelState, SystemCall, open_of_thread};
use crate::sys::thread;
use arrayvec::ArrayVec;

impl Looks {
    /// Enters what a loop's thread does into its case's account.
    pub(super) fn enter(&mut self, number: u8, case: usize, doing: Doing, state: u8) {
        let Some((tid, is_open)) = self.evidence.lock().case(case).map(|case| (case.tid, case.phase == Phase::Open))
        else {
            return;
        };
        let wait = Wait::of(doing, state, &OwnMemory::new(), wait::behind);
        let scheduling = self.track(number).scheduling(tid);
        let lock = wait.filter(|wait| wait.cause == BC_CAUSE_LOCK).and_then(|wait| wait.call);
        // Before the limit is passed, only the lock's own holder is of interest.
        let chain = lock.map(|call| follow(tid, &call, if is_open { chain::MOST } else { 1 }, false));
        if let Some(case) = self.evidence.lock().case_mut(case) {
            case.account.add(wait, doing == Doing::Running, scheduling);
        }
        self.put_chain(case, chain);
    }

    /// A block passes its limit, or is told as a hang: what it waits for is looked at once more, and closer.
    pub(super) fn look_closer(&mut self, case: usize, is_hang: bool) {
        let Some(known) =
            self.evidence.lock().case(case).map(|case| (case.slot, case.tid, case.from, case.phase, case.is_hang))
        else {
            return;
        };
        let (number, tid, from, phase, was_hang) = known;
        if phase != Phase::Late && (was_hang || !is_hang) {
            return;
        }
        let may_change = self.terms.dumpable_window;
        let Some((doing, state)) = self.track(number).files().map(activity::glimpse) else { return };
        self.enter(number, case, doing, state);
        if let Doing::Waits(call) = doing {
            self.put_chain(case, Some(follow(tid, &call, chain::MOST, may_change)));
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
