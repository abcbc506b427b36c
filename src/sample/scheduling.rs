//! Counters that the kernel keeps of a thread: how often it ran, waited and faulted.

use super::sampler::SubjectFiles;
use crate::sys::clock::{Ticks, thread_cpu};
use crate::sys::procfs::{SchedStat, ThreadStat, involuntary_switches, voluntary_switches};

/// Since the thread's begin, but for `at`. What could not be read is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// When it was read.
    pub at: Ticks,
    /// The thread's CPU clock, ns.
    pub cpu_ns: u64,
    /// Times that it got a processor.
    pub slices: Option<u64>,
    /// Page faults: all but those of `major_faults`.
    pub minor_faults: Option<u64>,
    /// Page faults that had to wait for storage.
    pub major_faults: Option<u64>,
    /// Times that it gave its processor up of itself, which is when it waits.
    pub voluntary_switches: Option<u64>,
    /// Times that its processor was taken from it.
    pub involuntary_switches: Option<u64>,
}

impl Scheduling {
    /// Nothing read.
    pub const NONE: Scheduling = Scheduling {
        at: Ticks(0),
        cpu_ns: 0,
        slices: None,
        minor_faults: None,
        major_faults: None,
        voluntary_switches: None,
        involuntary_switches: None,
    };

    /// Reads them, and the state letter, which has come after the CPU clock; 0 where it is not known.
    pub fn read(tid: i32, files: Option<&SubjectFiles>) -> (Scheduling, u8) {
        let mut now = Scheduling { at: Ticks::now(), cpu_ns: thread_cpu(tid).unwrap_or(0), ..Scheduling::default() };
        let mut state = 0;
        let Some(files) = files else { return (now, state) };
        let mut text = [0; 2048];
        if let Some(stat) = files.stat.read(&mut text).ok().and_then(ThreadStat::parse) {
            (now.minor_faults, now.major_faults, state) =
                (Some(stat.minor_faults), Some(stat.major_faults), stat.state);
        }
        if let Ok(status) = files.status.read(&mut text) {
            now.voluntary_switches = voluntary_switches(status);
            now.involuntary_switches = involuntary_switches(status);
        }
        now.slices = schedule(files).map(|schedule| schedule.slices);
        (now, state)
    }

    /// Where these counts began: nothing of all that is known.
    pub fn begin(&self) -> Scheduling {
        let nothing = |count: Option<u64>| count.map(|_| 0);
        Scheduling {
            at: self.at,
            cpu_ns: 0,
            slices: nothing(self.slices),
            minor_faults: nothing(self.minor_faults),
            major_faults: nothing(self.major_faults),
            voluntary_switches: nothing(self.voluntary_switches),
            involuntary_switches: nothing(self.involuntary_switches),
        }
    }

    /// What came since an earlier reading.
    pub fn since(&self, earlier: &Scheduling) -> Scheduling {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Scheduling {
            at: self.at,
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            slices: grown(self.slices, earlier.slices),
            minor_faults: grown(self.minor_faults, earlier.minor_faults),
            major_faults: grown(self.major_faults, earlier.major_faults),
            voluntary_switches: grown(self.voluntary_switches, earlier.voluntary_switches),
            involuntary_switches: grown(self.involuntary_switches, earlier.involuntary_switches),
        }
    }
}

fn schedule(files: &SubjectFiles) -> Option<SchedStat> {
    let mut text = [0; 128];
    SchedStat::parse(files.schedule.as_ref()?.read(&mut text).ok()?)
}

/// Time that a thread has been ready to run and without a processor, ns.
pub fn queue_wait_ns(files: &SubjectFiles) -> Option<u64> {
    schedule(files).map(|schedule| schedule.wait_ns)
}
