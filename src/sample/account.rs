//! What the time of a late stretch went to, kept up from look to look. Thinned samples count in it like others.

use super::cause::{CAUSES, Facts};
use super::chain::Chain;
use super::scheduling::Scheduling;
use super::short::Short;
use super::wait::Wait;
use crate::abi::bc_cause;
use crate::sys::clock::Ticks;

/// Threads that a report lists as the busiest.
pub const TOP: usize = 5;

/// A thread and its part of the processors' time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopThread {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: Short<15>,
    /// Hundredths of a percent of one processor.
    pub load: u32,
}

/// See above.
#[derive(Clone, Copy)]
pub struct Account {
    /// Time that looks stand for which found the thread waiting, ns, by cause.
    waited_ns: [u64; CAUSES],
    /// See `Facts`.
    ready_ns: u64,
    /// See `Facts`.
    ready_looks: u32,
    /// Until when the time is accounted for; 0 before the first look.
    until: Ticks,
    /// The latest look that found it ready to run.
    ready: Option<Scheduling>,
    /// The last wait of each cause.
    waits: [Option<Wait>; CAUSES],
    /// Counters at the first look.
    first: Scheduling,
    /// Counters at the latest look.
    latest: Scheduling,
    /// Who holds the lock that it waits for, and what they wait for.
    pub chain: Chain,
    /// The name of the first of them.
    pub holder_name: Short<15>,
    /// The busiest threads of the process, busiest first.
    pub top: [Option<TopThread>; TOP],
}

impl Account {
    /// Nothing yet.
    pub const NEW: Account = Account {
        waited_ns: [0; CAUSES],
        ready_ns: 0,
        ready_looks: 0,
        until: Ticks(0),
        ready: None,
        waits: [None; CAUSES],
        first: Scheduling::NONE,
        latest: Scheduling::NONE,
        chain: Chain::NONE,
        holder_name: Short::EMPTY,
        top: [None; TOP],
    };

    /// As it was kept elsewhere: what came between the looks, and the busiest threads.
    pub fn restored(scheduling: Scheduling, top: impl Iterator<Item = Option<TopThread>>) -> Account {
        let mut account = Account { latest: scheduling, first: scheduling.begin(), ..Account::NEW };
        account.top.iter_mut().zip(top).for_each(|(to, from)| *to = from);
        account
    }

    /// The first look at a stretch that began at `from`.
    pub fn begin(&mut self, from: Ticks, scheduling: Scheduling) {
        (self.until, self.first, self.latest) = (from, scheduling, scheduling);
    }

    /// A look: the thread waits, or is ready to run if `is_ready`, or neither is known.
    pub fn add(&mut self, wait: Option<Wait>, is_ready: bool, scheduling: Scheduling) {
        let passed = scheduling.at.since(self.until);
        self.until = self.until.max(scheduling.at);
        self.latest = scheduling;
        let cause = wait.map_or(bc_cause::BC_CAUSE_UNKNOWN, |wait| wait.cause) as usize;
        if let Some(wait) = wait {
            if let Some(waited) = self.waited_ns.get_mut(cause) {
                *waited = waited.saturating_add(passed);
            }
            if let Some(place) = self.waits.get_mut(cause) {
                if wait.cause == bc_cause::BC_CAUSE_LOCK && place.is_none_or(|before| before.lock() != wait.lock()) {
                    (self.chain, self.holder_name) = (Chain::NONE, Short::EMPTY);
                }
                *place = Some(wait);
            }
        }
        let is_ready = is_ready && wait.is_none();
        self.ready_looks = self.ready_looks.saturating_add(u32::from(is_ready));
        let before = core::mem::replace(&mut self.ready, is_ready.then_some(scheduling));
        if let Some(before) = before.filter(|before| is_ready && stayed_ready(before, &scheduling)) {
            let run_ns = scheduling.cpu_ns.saturating_sub(before.cpu_ns);
            let without = scheduling.at.since(before.at).saturating_sub(run_ns);
            self.ready_ns = self.ready_ns.saturating_add(without);
        }
    }

    /// The last wait of this cause.
    pub fn wait(&self, cause: bc_cause) -> Option<&Wait> {
        self.waits.get(cause as usize)?.as_ref()
    }

    /// What came between the first look and the latest.
    pub fn scheduling(&self) -> Scheduling {
        self.latest.since(&self.first)
    }

    /// What the cause is judged by.
    pub fn facts(&self, wall_ns: u64, cpu_ns: u64, queue_wait_ns: Option<u64>) -> Facts {
        Facts {
            wall_ns,
            cpu_ns,
            queue_wait_ns,
            ready_ns: self.ready_ns,
            ready_looks: self.ready_looks,
            waited_ns: self.waited_ns,
            major_faults: self.scheduling().major_faults.unwrap_or(0),
            was_suspended: false,
        }
    }
}

/// It has not given its processor up of itself, as it does for each wait.
fn stayed_ready(before: &Scheduling, now: &Scheduling) -> bool {
    before.voluntary_switches.is_some() && before.voluntary_switches == now.voluntary_switches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::doing::Doing;
    use crate::sample::target::Target;
    use crate::sys::memory::OwnMemory;

    fn at(at: u64, cpu_ns: u64, switches: u64) -> Scheduling {
        Scheduling { at: Ticks(at), cpu_ns, voluntary_switches: Some(switches), ..Scheduling::NONE }
    }

    fn wait(doing: Doing, state: u8) -> Option<Wait> {
        Wait::of(doing, state, &OwnMemory::new(), |_| (Target::File, Short::EMPTY))
    }

    #[test]
    fn looks_stand_for_the_time_before_them() {
        let mut account = Account::NEW;
        account.begin(Ticks(100), at(125, 0, 1));
        account.add(wait(Doing::WaitsForPage, b'D'), false, at(125, 0, 1));
        account.add(None, true, at(150, 10, 2));
        account.add(wait(Doing::WaitsUnseen, b'S'), false, at(200, 10, 3));
        let facts = account.facts(100, 10, None);
        assert_eq!((facts.waited_ns[bc_cause::BC_CAUSE_IO as usize], facts.waited_ns[0], facts.ready_ns), (25, 50, 0));
        assert!(account.wait(bc_cause::BC_CAUSE_IO).is_some() && account.wait(bc_cause::BC_CAUSE_LOCK).is_none());
    }

    #[test]
    fn ready_without_a_switch_is_starved() {
        let mut account = Account::NEW;
        account.begin(Ticks(0), at(10, 0, 1));
        account.add(None, true, at(10, 0, 1));
        account.add(None, true, at(20, 3, 1));
        account.add(None, true, at(30, 3, 1));
        // It waited in between.
        account.add(None, true, at(40, 4, 2));
        account.add(None, false, at(50, 4, 2));
        account.add(None, true, at(60, 4, 2));
        assert_eq!(account.facts(60, 4, None).ready_ns, 17);
    }
}
