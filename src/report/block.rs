//! What a report says of one block. Samples and frames stand in the layout that listeners get, so that they exist once.

use super::view::{Sample, Samples};
use crate::abi::{bc_block_state, bc_cause};
pub use crate::sample::account::TopThread;
pub use crate::sample::cause::CAUSES;
pub use crate::sample::cpu::{CpuTick, SystemLoad};
pub use crate::sample::evidence::OtherThread;
pub use crate::sample::scheduling::Scheduling;

/// One block, complete for a report. Byte strings may hold anything: they come from programs.
pub struct Block<'a> {
    /// Names the block in all its states.
    pub id: u64,
    /// What has become of it.
    pub state: bc_block_state,
    /// Why.
    pub cause: bc_cause,
    /// The cause in words.
    pub cause_detail: Option<&'a [u8]>,
    /// Name of the loop.
    pub loop_name: &'a [u8],
    /// The blocked thread.
    pub tid: i32,
    /// The innermost open dispatch's.
    pub what: Option<&'a [u8]>,
    /// The innermost open dispatch's.
    pub tag: u64,
    /// Begin on the wall clock.
    pub start_unix_ms: i64,
    /// Begin on CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Duration, so far or in all.
    pub wall_ns: u64,
    /// CPU time of the thread.
    pub cpu_ns: u64,
    /// By how much `cpu_ns` may be off, where known.
    pub cpu_uncertainty_ns: Option<u64>,
    /// The limit that was passed.
    pub threshold_ns: u64,
    /// Time it was ready to run and did not, where known.
    pub run_queue_wait_ns: Option<u64>,
    /// Later blocks that share this report.
    pub repeats: Repeats,
    /// Whether it moved, where stacks tell.
    pub progress: Option<Progress>,
    /// Oldest first.
    pub samples: Samples<'a>,
    /// CPU load, oldest first.
    pub cpu: &'a [CpuTick],
    /// What the cause was judged by.
    pub reasons: Reasons<'a>,
}

/// What the cause of a block was judged by, and who had to do with it.
#[derive(Clone, Copy, Default)]
pub struct Reasons<'a> {
    /// Shares of the causes by their numbers, thousandths.
    pub shares: [u16; CAUSES],
    /// What the kernel counted between the first look at the block and the latest.
    pub scheduling: Scheduling,
    /// The busiest threads of the process, busiest first; `None`s are no threads.
    pub top: &'a [Option<TopThread>],
    /// Threads that the blocked one waited for.
    pub others: OtherThreads<'a>,
    /// The blocked thread's Java stack, where it has one.
    pub java: Option<JavaStack<'a>>,
}

/// The Java stack of a thread.
#[derive(Clone, Copy)]
pub struct JavaStack<'a> {
    /// When it was taken, on CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Its elements in Java's words, innermost first, each ending in a line feed.
    pub text: &'a [u8],
    /// Elements left out, the outermost.
    pub frames_cut: u32,
}

impl<'a> JavaStack<'a> {
    /// Its elements, innermost first.
    pub fn elements(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.text.split(|byte| *byte == b'\n').filter(|element| !element.is_empty())
    }
}

/// Other threads that have to do with a block, and a stack of each.
#[derive(Clone, Copy)]
pub struct OtherThreads<'a> {
    /// Who they are.
    pub whose: &'a [Option<OtherThread>],
    /// A sample of each.
    pub samples: Samples<'a>,
    /// If all threads are to be told: how many are not among them.
    pub left_out: Option<u32>,
}

impl Default for OtherThreads<'_> {
    fn default() -> Self {
        OtherThreads { whose: &[], samples: Samples::NONE, left_out: None }
    }
}

impl<'a> OtherThreads<'a> {
    /// Each with its sample.
    pub fn iter(self) -> impl Iterator<Item = (OtherThread, Sample<'a>)> {
        self.whose.iter().zip(self.samples.iter()).filter_map(|(whose, sample)| Some(((*whose)?, sample)))
    }
}

/// Blocks that came again.
#[derive(Clone, Copy, Default)]
pub struct Repeats {
    /// How many.
    pub count: u32,
    /// Their durations together; 0 unknown.
    pub wall_ns_total: u64,
    /// When the last one began, on the wall clock; 0 unknown, or with none.
    pub last_unix_ms: i64,
}

/// What the samples of a block say of its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// One stack throughout and no CPU time.
    Stuck,
    /// Running in one place.
    Busy,
    /// Different stacks.
    Progressing,
}

/// What a report says beside its block. Strings that the program did not give are left out.
pub struct Context<'a> {
    /// The program's own words, from the configuration.
    pub qualifier: Option<&'a [u8]>,
    /// See `qualifier`.
    pub version_name: Option<&'a [u8]>,
    /// See `qualifier`.
    pub version_code: Option<&'a [u8]>,
    /// See `qualifier`.
    pub user_id: Option<&'a [u8]>,
    /// See `qualifier`.
    pub network_type: Option<&'a [u8]>,
    /// Name of the process.
    pub process_name: &'a [u8],
    /// Its id.
    pub pid: i32,
    /// The device's model (Android) or machine (elsewhere).
    pub model: &'a [u8],
    /// Android's `SDK RELEASE`, elsewhere the kernel's name and release.
    pub api_level: &'a [u8],
    /// Processors.
    pub cores: u32,
    /// Memory that is free and that there is, kB; 0 unknown.
    pub free_memory_kb: u64,
    /// See `free_memory_kb`.
    pub total_memory_kb: u64,
    /// When the report is written, milliseconds since 1970.
    pub now_unix_ms: i64,
    /// Local time is this much ahead of UTC.
    pub utc_offset_s: i32,
    /// Sample interval in force, for `cpu-busy`.
    pub sample_interval_ns: u64,
    /// Only the base names of modules are told.
    pub redact_paths: bool,
    /// Modules whose stacks lead the text.
    pub concern: super::module_list::ModuleList<'a>,
    /// The library's account of itself at this time.
    pub health: &'a crate::abi::bc_health,
}
