//! A late stretch and what is known of it: what becomes a block when it passes its limit.

use super::account::Account;
use super::cpu::Reading;
use super::what::What;
use crate::sys::clock::Ticks;

/// Bytes of a loop's name that are kept.
pub const NAME: usize = 63;

/// Where a case stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nobody's.
    Free,
    /// Sampled, not over its limit: may yet come to nothing.
    Late,
    /// A block that goes on.
    Open,
    /// A block that has ended; the writer frees it.
    Ended,
    /// Over its limit, and not told: a debugger was attached then.
    Excused,
}

/// Which states of a block wait for the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// It has passed its limit.
    pub ongoing: bool,
    /// More is known of it than the flight recorder holds.
    pub record: bool,
    /// It has passed the hang threshold.
    pub hang: bool,
    /// It has ended.
    pub ended: bool,
    /// It has ended and was stored, and the queue to the listeners was full.
    pub telling: bool,
}

impl Due {
    /// Is there anything to be stored?
    pub fn any(&self) -> bool {
        self.ongoing || self.record || self.hang || self.ended
    }
}

/// Written by the monitor, read and freed by the writer, under the lock of the evidence.
#[derive(Clone, Copy)]
pub struct Case {
    /// Where it stands.
    pub phase: Phase,
    /// What the writer has to do.
    pub due: Due,
    /// Counts the cases that became blocks: the order in which they are written.
    pub order: u64,
    /// The block's id.
    pub id: u64,
    /// The loop's slot.
    pub slot: u8,
    /// The loop's thread.
    pub tid: i32,
    /// The loop's name, ending in a NUL.
    pub loop_name: [u8; NAME + 1],
    /// Names the stretch among the loop's.
    pub stretch: usize,
    /// Begin.
    pub from: Ticks,
    /// Begin on the wall clock.
    pub start_unix_ms: i64,
    /// The limit, ns.
    pub limit_ns: u64,
    /// The sample interval, ns.
    pub interval_ns: u64,
    /// The innermost open dispatch's.
    pub what: What,
    /// The innermost open dispatch's.
    pub tag: u64,
    /// The table of modules that the function was named by that `tag` is the address of, if it is one.
    pub table: u32,
    /// Duration, so far or in all, less what is excused.
    pub wall_ns: u64,
    /// Time of it in which the process did not run, ns.
    pub excused_ns: u64,
    /// The last CPU reading before the begin.
    pub cpu_before: Reading,
    /// The first inside.
    pub cpu_first: Reading,
    /// The latest.
    pub cpu_last: Reading,
    /// What its time went to, as far as was seen.
    pub account: Account,
    /// Its first sample, a number in the pool.
    pub first_sample: Option<u32>,
    /// Its first sample of another thread.
    pub first_other: Option<u32>,
    /// Its last sample.
    pub last_sample: Option<u32>,
    /// Its samples.
    pub sample_count: u32,
    /// Sample ticks so far.
    pub ticks: u64,
    /// Every so many ticks one is kept; doubles when the case is thinned.
    pub stride: u64,
    /// It was told as a hang.
    pub is_hang: bool,
    /// The writer has made its files; each further state writes them again.
    pub is_stored: bool,
    /// When the flight recorder was last told of it.
    pub recorded: Ticks,
    /// What the filter has said, once it has been asked.
    pub is_wanted: Option<bool>,
    /// The block whose report it shares, 0 for none.
    pub shares: u64,
    /// Which repeat of that one it is.
    pub repeat: u32,
    /// The stacks of all threads are to be taken for it.
    pub wants_threads: bool,
    /// While they are taken, none of its states is written before this time.
    pub held: Option<Ticks>,
    /// Threads whose stacks it lacks, of those that it should have; `None`: it should have none.
    pub threads_left_out: Option<u32>,
}

impl Case {
    /// Nobody's.
    pub const FREE: Case = Case {
        phase: Phase::Free,
        due: Due { ongoing: false, record: false, hang: false, ended: false, telling: false },
        order: 0,
        id: 0,
        slot: 0,
        tid: 0,
        loop_name: [0; NAME + 1],
        stretch: 0,
        from: Ticks(0),
        start_unix_ms: 0,
        limit_ns: 0,
        interval_ns: 0,
        what: What::NONE,
        tag: 0,
        table: 0,
        wall_ns: 0,
        excused_ns: 0,
        cpu_before: Reading::NONE,
        cpu_first: Reading::NONE,
        cpu_last: Reading::NONE,
        account: Account::NEW,
        first_sample: None,
        first_other: None,
        last_sample: None,
        sample_count: 0,
        ticks: 0,
        stride: 1,
        is_hang: false,
        is_stored: false,
        recorded: Ticks(0),
        is_wanted: None,
        shares: 0,
        repeat: 0,
        wants_threads: false,
        held: None,
        threads_left_out: None,
    };

    /// Is it a block that goes on, or one whose end is still to be stored?
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open || (self.phase == Phase::Ended && self.due.ended)
    }

    /// The moment of sample tick number `ticks + 1`, counted from the begin.
    pub fn next_tick(&self) -> Ticks {
        self.from.plus(self.interval_ns.saturating_mul(self.ticks.saturating_add(1)))
    }
}
