//! CPU time: of a block, and of process and machine between two looks.

use crate::sys::clock::{self, Ticks};
use crate::sys::procfs::{MachineTime, ProcFile};

/// The CPU clock of a thread at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// The moment.
    pub at: Ticks,
    /// The clock, ns.
    pub cpu_ns: u64,
    /// Time ready to run and without a processor, ns, where known.
    pub queue_wait_ns: Option<u64>,
}

impl Reading {
    /// None taken.
    pub const NONE: Reading = Reading { at: Ticks(0), cpu_ns: 0, queue_wait_ns: None };
}

/// CPU time of a stretch and by how much that may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// ns.
    pub cpu_ns: u64,
    /// ns.
    pub uncertainty_ns: u64,
}

/// CPU time from `from` to `end`. A mark reads no CPU clock, so the time before `first`, the first reading inside, is
/// known within bounds only: it is at most what passed, and at least what cannot have been used before the begin.
pub fn between(before: Reading, from: Ticks, first: Reading, end: Reading) -> CpuTime {
    let used = first.cpu_ns.saturating_sub(before.cpu_ns);
    let most = used.min(first.at.since(from));
    let least = used.saturating_sub(from.since(before.at)).min(most);
    let known = end.cpu_ns.saturating_sub(first.cpu_ns);
    let half = (most - least) / 2;
    CpuTime {
        cpu_ns: known.saturating_add(least).saturating_add(half),
        uncertainty_ns: half.max((most - least) - half),
    }
}

/// Time from `from` to `end` that the thread was ready to run and without a processor, bounded in the same way. The kernel
/// counts a wait when it is over; `end` may be read a little later than the end of the stretch, and hold some more.
pub fn queue_wait(before: Reading, from: Ticks, first: Reading, end: Reading) -> Option<u64> {
    let reading = |reading: Reading| Some(Reading { cpu_ns: reading.queue_wait_ns?, ..reading });
    let end = reading(end)?;
    // Without an earlier reading that much is sure that came after the first.
    let first = reading(first).unwrap_or(end);
    Some(between(reading(before).unwrap_or(first), from, first, end).cpu_ns)
}

/// CPU load between the previous look and this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTick {
    /// When, on CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// This process, hundredths of a percent of one core: 0 to 10,000 times the cores.
    pub process: u32,
    /// Everything, the same unit: 0 to 10,000 (all cores busy). What `/proc/stat` says, where it is readable.
    pub system: Option<SystemLoad>,
}

/// Shares of the machine's time, hundredths of a percent of all cores together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemLoad {
    /// Not idle.
    pub busy: u16,
    /// In programs.
    pub user: u16,
    /// In the kernel.
    pub system: u16,
    /// Idle with a device pending.
    pub io_wait: u16,
}

/// Measures process and machine from look to look.
pub struct Meter {
    cores: u32,
    machine: Option<ProcFile>,
    last: Option<(Ticks, u64, Option<MachineTime>)>,
    /// What the latest look has told.
    latest: Option<CpuTick>,
}

/// A shorter time shows nothing but the taking of samples itself.
const SHORTEST_NS: u64 = 5_000_000;

impl Meter {
    /// `cores` of this machine. Opens what may be read.
    pub fn new(cores: u32) -> Meter {
        let mut meter = Meter { cores, machine: ProcFile::open(c"/proc/stat").ok(), last: None, latest: None };
        if meter.machine_time().is_none() {
            meter.machine = None;
        }
        meter
    }

    /// The machine's load can be read.
    pub fn knows_machine(&self) -> bool {
        self.machine.is_some()
    }

    fn machine_time(&self) -> Option<MachineTime> {
        let mut text = [0; 256];
        MachineTime::parse(self.machine.as_ref()?.read(&mut text).ok()?)
    }

    /// A stretch becomes late: load is measured from now on.
    pub fn begin(&mut self, now: Ticks) {
        self.tick(now);
        self.latest = None;
    }

    /// Load since the last look, or what that has told if it was just now; `None` at the first.
    pub fn tick(&mut self, now: Ticks) -> Option<CpuTick> {
        if self.last.as_ref().is_some_and(|(then, ..)| now.since(*then) < SHORTEST_NS) {
            return self.latest.map(|latest| CpuTick { time_ns: now.0, ..latest });
        }
        let process_ns = clock::process_cpu();
        let machine = self.machine_time();
        let (then, process_then, machine_then) = self.last.replace((now, process_ns, machine))?;
        self.latest = Some(CpuTick {
            time_ns: now.0,
            process: process_load(process_ns.saturating_sub(process_then), now.since(then), self.cores),
            system: machine_then.zip(machine).and_then(|(then, now)| machine_load(&then, &now)),
        });
        self.latest
    }
}

/// Hundredths of a percent of one core.
fn process_load(cpu_ns: u64, wall_ns: u64, cores: u32) -> u32 {
    let most = 10_000u64.saturating_mul(u64::from(cores));
    let load = u128::from(cpu_ns) * 10_000 / u128::from(wall_ns.max(1));
    load.min(u128::from(most)) as u32
}

/// `None` where the counters did not move, or went backwards.
fn machine_load(then: &MachineTime, now: &MachineTime) -> Option<SystemLoad> {
    let total = now.total.checked_sub(then.total).filter(|total| *total > 0)?;
    let share = |now: u64, then: u64| {
        let part = now.checked_sub(then)?.min(total);
        Some((u128::from(part) * 10_000 / u128::from(total)) as u16)
    };
    Some(SystemLoad {
        busy: 10_000u16.checked_sub(share(now.idle, then.idle)?)?,
        user: share(now.user, then.user)?,
        system: share(now.system, then.system)?,
        io_wait: share(now.io_wait, then.io_wait)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: u64, cpu_ns: u64) -> Reading {
        Reading { at: Ticks(at), cpu_ns, queue_wait_ns: None }
    }

    #[test]
    fn a_thread_that_runs_all_the_time_is_exact() {
        let cpu = between(reading(100, 1000), Ticks(150), reading(200, 1100), reading(500, 1400));
        assert_eq!(cpu, CpuTime { cpu_ns: 350, uncertainty_ns: 0 });
    }

    #[test]
    fn a_thread_that_slept_before_is_bounded() {
        // 30 ns used between 100 and 200, the stretch began at 150: between 0 and 30 of them are its own.
        let cpu = between(reading(100, 1000), Ticks(150), reading(200, 1030), reading(300, 1130));
        assert_eq!(cpu, CpuTime { cpu_ns: 115, uncertainty_ns: 15 });
    }

    #[test]
    fn without_a_look_inside_the_end_is_the_first_reading() {
        let end = reading(300, 1200);
        let cpu = between(reading(100, 1000), Ticks(100), end, end);
        assert_eq!(cpu, CpuTime { cpu_ns: 200, uncertainty_ns: 0 });
    }

    #[test]
    fn a_wait_is_bounded_in_the_same_way() {
        let waited = |at, cpu_ns, wait| Reading { queue_wait_ns: Some(wait), ..reading(at, cpu_ns) };
        // 50 before the first look, at least 20 of them inside and at most 30; 100 after it.
        let (before, first, end) = (waited(100, 0, 0), waited(180, 0, 50), waited(300, 0, 150));
        assert_eq!(queue_wait(before, Ticks(130), first, end), Some(135));
        assert_eq!(queue_wait(reading(100, 0), Ticks(130), first, end), Some(100));
        assert_eq!(queue_wait(before, Ticks(130), reading(180, 0), reading(300, 0)), None);
    }

    #[test]
    fn loads_stay_within_their_range() {
        assert_eq!(process_load(50, 100, 2), 5_000);
        assert_eq!(process_load(150, 100, 2), 15_000);
        assert_eq!(process_load(900, 100, 2), 20_000);
        assert_eq!(process_load(u64::MAX, 0, 2), 20_000);
        let then = MachineTime { total: 1000, idle: 500, user: 300, system: 100, io_wait: 50 };
        let now = MachineTime { total: 1100, idle: 540, user: 340, system: 110, io_wait: 55 };
        let load = machine_load(&then, &now).unwrap();
        assert_eq!((load.busy, load.user, load.system, load.io_wait), (6_000, 4_000, 1_000, 500));
        assert_eq!(machine_load(&now, &then), None);
        assert_eq!(machine_load(&now, &now), None);
    }

    #[test]
    fn a_spinning_thread_shows_in_the_process() {
        let mut meter = Meter::new(thread_count());
        assert_eq!(meter.tick(Ticks::now()), None);
        let end = Ticks::now().plus(100_000_000);
        while Ticks::now() < end {}
        let tick = meter.tick(Ticks::now()).unwrap();
        assert!(tick.process > 0 && tick.process <= 10_000 * thread_count());
        assert_eq!(tick.system.is_some(), meter.knows_machine());
    }

    #[test]
    fn a_moment_after_the_begin_tells_nothing() {
        let mut meter = Meter::new(thread_count());
        let begin = Ticks::now();
        meter.begin(begin);
        // All that the process has done since is to get here.
        assert_eq!(meter.tick(begin.plus(SHORTEST_NS - 1)), None);
        let first = meter.tick(begin.plus(SHORTEST_NS)).unwrap();
        let again = meter.tick(begin.plus(SHORTEST_NS + 1)).unwrap();
        assert_eq!(again, CpuTick { time_ns: begin.plus(SHORTEST_NS + 1).0, ..first });
        meter.begin(begin.plus(10 * SHORTEST_NS));
        assert_eq!(meter.tick(begin.plus(10 * SHORTEST_NS + 1)), None, "what was before the stretch");
    }

    fn thread_count() -> u32 {
        crate::sys::thread::cores()
    }
}
