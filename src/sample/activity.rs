//! What a thread is doing right now, seen from outside: does it wait, and may it be signalled?
//!
//! A signal cuts most timed waits short, although the handler is installed to restart them. So only a thread that runs is
//! signalled: one that two looks both find running, that has used its processor in between, and that has not given it up
//! of itself, as its count of voluntary switches tells. A thread that has just been woken would pass neither: its wait
//! is over, but not yet told. One that is ready and kept from running by others is looked at until it has run a little,
//! and left alone if that takes too long.

use super::doing::Doing;
use super::sampler::SubjectFiles;
use crate::sys::clock::{Ticks, thread_cpu};
use crate::sys::procfs::{KernelState, ThreadStat, Waiting, voluntary_switches};
use crate::sys::thread;

/// CPU time that a thread has used since the first look when it counts as running.
const RUNNING_NS: u64 = 30_000;
/// Between two looks.
const APART_NS: u64 = 60_000;
/// Between two looks at a thread that is kept from running.
const STARVED_NS: u64 = 500_000;
/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It waits in the kernel. `cpu_ns` is its CPU clock then: as long as that stands, it has not moved.
    Waits {
        /// Where.
        at: Waiting,
        /// See above.
        cpu_ns: u64,
    },
    /// It waits, and where cannot be had.
    WaitsUnseen,
    /// It has been running, and has given up its processor of itself so often in its life.
    Runs {
        /// See above.
        switches: u64,
    },
    /// None of them for as long as it was looked at.
    Unsettled,
    /// It is gone.
    Gone,
}

enum Glance {
    Running,
    Waiting(Waiting),
    WaitingUnseen,
}

/// Looks at a thread until it is clear what it does, for so long at most while it neither waits nor runs. `in_passing`: one
/// that is kept from running is not waited for, and this thread does not sleep, which may cost it its own processor.
pub fn observe(tid: i32, files: &SubjectFiles, patience_ns: u64, in_passing: bool) -> Activity {
    let end = Ticks::now().plus(patience_ns);
    // CPU clock and voluntary switches at the first look of an unbroken run.
    let mut first: Option<(u64, u64)> = None;
    loop {
        let Some(cpu_ns) = thread_cpu(tid) else { return Activity::Gone };
        match glance(files) {
            Some(Glance::Waiting(at)) => return Activity::Waits { at, cpu_ns },
            Some(Glance::WaitingUnseen) => return Activity::WaitsUnseen,
            Some(Glance::Running) => {}
            None => return Activity::Gone,
        }
        let switches = switches(files);
        let pause_ns = match first {
            Some((cpu_then, switches_then)) if switches_then == switches => {
                let used_ns = cpu_ns.saturating_sub(cpu_then);
                if used_ns >= RUNNING_NS {
                    return Activity::Runs { switches };
                }
                if used_ns == 0 && in_passing {
                    return Activity::Unsettled;
                }
                if used_ns == 0 { STARVED_NS } else { APART_NS }
            }
            _ => {
                first = Some((cpu_ns, switches));
                APART_NS
            }
        };
        if Ticks::now() > end {
            return Activity::Unsettled;
        }
        if in_passing {
            thread::spin(pause_ns);
        } else {
            thread::nap(pause_ns);
        }
    }
}

/// Does it run, at this very moment?
pub fn is_running(files: &SubjectFiles) -> bool {
    matches!(glance(files), Some(Glance::Running))
}

/// What it does, and its state letter, by one look, which may be at the moment of a change.
pub fn glimpse(files: &SubjectFiles) -> (Doing, u8) {
    let doing = match glance(files) {
        Some(Glance::Running) => Doing::Running,
        Some(Glance::Waiting(at)) => Doing::waits(&at),
        Some(Glance::WaitingUnseen) => Doing::WaitsUnseen,
        None => Doing::Unknown,
    };
    (doing, state(files).unwrap_or(0))
}

/// Its state letter.
pub fn state(files: &SubjectFiles) -> Option<u8> {
    let mut text = [0; 512];
    ThreadStat::parse(files.stat.read(&mut text).ok()?).map(|stat| stat.state)
}

/// Times that the thread has given up its processor of itself.
pub fn switches(files: &SubjectFiles) -> u64 {
    let mut text = [0; 2048];
    files.status.read(&mut text).ok().and_then(voluntary_switches).unwrap_or(0)
}

fn glance(files: &SubjectFiles) -> Option<Glance> {
    if let Some(file) = &files.system_call {
        let mut text = [0; 512];
        return match KernelState::parse(file.read(&mut text).ok()?)? {
            KernelState::Running => Some(Glance::Running),
            KernelState::Waiting(waiting) => Some(Glance::Waiting(waiting)),
        };
    }
    // Without that file the state letter still tells the one from the other.
    match state(files)? {
        b'R' => Some(Glance::Running),
        _ => Some(Glance::WaitingUnseen),
    }
}
