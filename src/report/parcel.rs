//! One state of one block, with memory for all that belongs to it: made by the writer, read by the reporter.
#![allow(unsafe_code)]

use super::block::{Block, Context, CpuTick, JavaStack, OtherThreads, Progress, Reasons, Repeats};
use super::detail::{self, DETAIL, Words};
use super::facts::{self, Now};
use super::hot;
use super::merge::Stacks;
use super::module_list::ModuleList;
use super::resolve::{Resolver, unresolved};
use super::sink::{Memory, Sink};
use super::text_space::{TextSpace, bytes_of};
use super::view::Samples;
use crate::abi::{bc_block, bc_block_state, bc_frame, bc_sample};
use crate::sample::case::Case;
use crate::sample::cause::{Cause, Facts, judge};
use crate::sample::cpu::{CpuTime, between, queue_wait};
use crate::sample::evidence::{Evidence, OtherThread, Sample};
use crate::sample::named::Key;
use crate::sample::what::Kind;
use crate::sys::counters::SAMPLES_LOST;
use core::ffi::c_char;
use core::ptr;
use past::Past;

mod past;
mod restore;

/// Room for a path.
const PATH: usize = super::place::PATH_SIZE + 128;

/// See above. Its pointers lead into its own memory.
pub struct Parcel {
    /// The block but for samples; its pointers are filled in when it is handed out.
    pub case: Case,
    /// What the block has come to.
    pub state: bc_block_state,
    /// CPU time and its bound.
    pub cpu: CpuTime,
    /// See `Block`.
    pub progress: Option<Progress>,
    /// Why.
    pub cause: Cause,
    what: *const c_char,
    /// What reports say beside it, once that was looked up.
    pub now: Option<Now>,
    /// What they say of the block's own process, where that is another one.
    past: Option<Past>,
    /// Later blocks that share the report, this one among them if it does.
    pub repeats: Repeats,
    /// The report's path and a NUL, nothing while there is no report.
    path: [u8; PATH],
    has_path: bool,
    detail: *const c_char,
    /// The Java stack: when, its text (null for none), elements left out.
    java: (u64, *const c_char, u32),
    /// Those of other threads, then the block's own.
    samples: &'static mut [bc_sample],
    sample_count: usize,
    others: &'static mut [Option<OtherThread>],
    other_count: usize,
    /// Those of all samples, one sample's behind the other's.
    frames: &'static mut [bc_frame],
    frame_count: usize,
    ticks: &'static mut [CpuTick],
    tick_count: usize,
    text: TextSpace,
}

// SAFETY: the pointers lead into memory that goes with the parcel, which one thread holds at a time.
unsafe impl Send for Parcel {}

impl Parcel {
    /// Empty. Room for so many samples, other threads among them, frames of all samples together, CPU ticks and bytes of
    /// text.
    pub fn new(
        samples: &'static mut [bc_sample],
        others: &'static mut [Option<OtherThread>],
        frames: &'static mut [bc_frame],
        ticks: &'static mut [CpuTick],
        text: &'static mut [u8],
    ) -> Parcel {
        Parcel {
            case: Case::FREE,
            state: bc_block_state::BC_BLOCK_ENDED,
            cpu: CpuTime::default(),
            progress: None,
            cause: Cause::UNKNOWN,
            what: ptr::null(),
            now: None,
            past: None,
            repeats: Repeats::default(),
            path: [0; PATH],
            has_path: false,
            detail: ptr::null(),
            java: (0, ptr::null(), 0),
            samples,
            sample_count: 0,
            others,
            other_count: 0,
            frames,
            frame_count: 0,
            ticks,
            tick_count: 0,
            text: TextSpace::new(text),
        }
    }

    /// No state of the block comes after this one.
    pub fn is_last(&self) -> bool {
        matches!(self.state, bc_block_state::BC_BLOCK_ENDED | bc_block_state::BC_BLOCK_KILLED)
    }

    /// Copies a case and its samples, in a state; the frames have no names yet. Done while the evidence is held, hence quick.
    pub fn copy(&mut self, evidence: &Evidence, case: &Case, state: bc_block_state) {
        self.case = *case;
        self.state = state;
        self.cpu = between(case.cpu_before, case.from, case.cpu_first, case.cpu_last);
        // A thread's CPU clock and the monotonic one tick apart by a little.
        self.cpu.cpu_ns = self.cpu.cpu_ns.min(case.wall_ns);
        let wait_ns = queue_wait(case.cpu_before, case.from, case.cpu_first, case.cpu_last);
        let wait_ns = wait_ns.map(|wait_ns| wait_ns.min(case.wall_ns.saturating_sub(self.cpu.cpu_ns)));
        self.cause = judge(&Facts {
            was_suspended: case.excused_ns > 0,
            ..case.account.facts(case.wall_ns, self.cpu.cpu_ns, wait_ns)
        });
        (self.sample_count, self.tick_count) = (0, 0);
        self.past = None;
        self.text.clear();
        // First, so that no length of symbols takes their room.
        self.what = if case.what.is_some { self.text.put(case.what.bytes()) } else { ptr::null() };
        (self.repeats, self.has_path) = (Repeats::default(), false);
        self.detail = ptr::null();
        self.copy_java(case);
        self.copy_others(evidence, case);
        let room = self.frames.len().saturating_sub(self.frame_count);
        let needed: usize = evidence.samples(case).map(|(_, pcs)| pcs.len()).sum();
        // More frames than there is room for: samples are left out evenly.
        let stride = needed.div_ceil(room.max(1)).max(1);
        for (number, (sample, pcs)) in evidence.samples(case).enumerate() {
            if let Some((tick, place)) = sample.cpu.zip(self.ticks.get_mut(self.tick_count)) {
                *place = tick;
                self.tick_count += 1;
            }
            if sample.is_listed && (number % stride != 0 || !self.keep(sample, pcs)) {
                SAMPLES_LOST.add_one();
            }
        }
    }

    /// Copies the Java stack, and what the message is called, where the thread has one.
    fn copy_java(&mut self, case: &Case) {
        self.java = (0, ptr::null(), 0);
        #[cfg(feature = "jni")]
        crate::sample::java::with(case.slot, case.stretch, case.from, |stack| {
            self.java = (stack.at.0, self.text.put(stack.text()), stack.frames_cut);
            if let Some(what) = stack.what().filter(|_| !case.what.is_some) {
                self.what = self.text.put(what);
            }
        });
        #[cfg(not(feature = "jni"))]
        let _ = case;
    }

    fn copy_others(&mut self, evidence: &Evidence, case: &Case) {
        (self.other_count, self.frame_count) = (0, 0);
        for (sample, pcs) in evidence.others(case) {
            let other = self.other_count;
            if other < self.others.len() && self.keep(sample, pcs) {
                self.others.iter_mut().skip(other).take(1).for_each(|place| *place = sample.other);
                (self.other_count, self.sample_count) = (other + 1, 0);
            } else if let Some(left_out) = &mut self.case.threads_left_out {
                *left_out += 1;
            }
        }
    }

    /// Keeps a sample behind all others; `false` where there is no room.
    fn keep(&mut self, sample: &Sample, pcs: &[u64]) -> bool {
        let used = self.frame_count;
        let place = self.samples.get_mut(self.other_count.saturating_add(self.sample_count));
        let frames = self.frames.get_mut(used..).and_then(|rest| rest.get_mut(..pcs.len()));
        let Some((place, frames)) = place.zip(frames) else { return false };
        for (depth, (frame, pc)) in frames.iter_mut().zip(pcs).enumerate() {
            *frame = unresolved(Key { pc: *pc, is_outer: sample.is_outer(depth), table: sample.table });
        }
        *place = with_frames(sample, frames);
        self.sample_count += 1;
        self.frame_count = used.saturating_add(pcs.len());
        true
    }

    /// Puts in modules and symbols of all frames, and names what nobody named.
    pub fn resolve(&mut self, resolver: &mut Resolver) {
        resolver.begin_block();
        self.tell_cause(resolver.redacts_paths());
        if self.case.what.kind == Kind::Callback {
            let key = Key { pc: self.case.tag, is_outer: false, table: self.case.table };
            let symbol = resolver.name(key, &mut self.text).symbol;
            self.what = if symbol.is_null() { self.what } else { symbol };
        }
        let mut rest = &mut *self.frames;
        for sample in self.samples.iter().take(self.other_count.saturating_add(self.sample_count)) {
            let Some((frames, behind)) = core::mem::take(&mut rest).split_at_mut_checked(sample.frame_count) else {
                break;
            };
            rest = behind;
            for frame in frames {
                *frame = resolver.resolve(frame, &mut self.text);
            }
        }
        resolver.end_block();
        self.progress = hot::progress(self.view(), self.cpu.cpu_ns, self.case.wall_ns);
    }

    /// The cause in words.
    fn tell_cause(&mut self, redact_paths: bool) {
        let mut bytes = [0; DETAIL];
        let mut memory = Memory::new(&mut bytes);
        let mut sink = Sink::new(&mut memory, &mut []);
        let words = Words { cause: &self.cause, cpu_ns: self.cpu.cpu_ns, redact_paths };
        detail::write(&mut sink, &self.case, &words);
        let length = memory.needed().min(DETAIL);
        let whole = bytes.get(..length).and_then(|cut| cut.utf8_chunks().next()).map_or("", |chunk| chunk.valid());
        self.detail = if whole.is_empty() { ptr::null() } else { self.text.put(whole.as_bytes()) };
    }

    fn own_samples(&self) -> &[bc_sample] {
        let behind = self.samples.get(self.other_count..);
        behind.and_then(|behind| behind.get(..self.sample_count)).unwrap_or(&[])
    }

    /// Samples of other threads, and whose they are.
    fn other_threads(&self) -> OtherThreads<'_> {
        let samples = self.samples.get(..self.other_count).unwrap_or(&[]);
        // SAFETY: as above.
        let samples = unsafe { Samples::new(samples) };
        OtherThreads {
            whose: self.others.get(..self.other_count).unwrap_or(&[]),
            samples,
            left_out: self.case.threads_left_out,
        }
    }

    fn view(&self) -> Samples<'_> {
        // SAFETY: the samples point to frames and strings of this parcel, which is borrowed for as long.
        unsafe { Samples::new(self.own_samples()) }
    }

    /// Its stacks, to be compared with those of others.
    pub fn stacks(&self, concern: &ModuleList) -> Stacks {
        Stacks::of(self.view(), concern)
    }

    /// The report is at the path that `write` writes with a NUL behind it.
    pub fn set_path<E>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, E>) {
        self.has_path = write(&mut self.path).is_ok();
    }

    /// Where the report is, if there is one.
    pub fn path(&self) -> Option<&[u8]> {
        self.has_path.then(|| name(&self.path))
    }

    /// What the text and JSON forms say beside it.
    pub fn context<'a>(&'a self, facts: &'a facts::Facts) -> Option<Context<'a>> {
        let now = facts.context(self.now.as_ref()?, self.case.interval_ns);
        Some(match &self.past {
            // SAFETY: its strings are this parcel's own, which is borrowed for as long.
            Some(past) => unsafe { past.context(now) },
            None => now,
        })
    }

    /// For the text and JSON forms.
    pub fn block(&self) -> Block<'_> {
        // SAFETY: null, or a string of this parcel's own, which is borrowed for as long.
        let text = |text| unsafe { bytes_of(text) };
        Block {
            id: self.case.id,
            state: self.state,
            cause: self.cause.kind,
            cause_detail: text(self.detail),
            loop_name: name(&self.case.loop_name),
            tid: self.case.tid,
            what: text(self.what),
            tag: self.case.tag,
            start_unix_ms: self.case.start_unix_ms,
            start_ns: self.case.from.0,
            wall_ns: self.case.wall_ns,
            cpu_ns: self.cpu.cpu_ns,
            cpu_uncertainty_ns: Some(self.cpu.uncertainty_ns),
            threshold_ns: self.case.limit_ns,
            run_queue_wait_ns: self.cause.queue_wait_ns,
            repeats: self.repeats,
            progress: self.progress,
            samples: self.view(),
            cpu: self.ticks.get(..self.tick_count).unwrap_or(&[]),
            reasons: Reasons {
                shares: self.cause.shares,
                scheduling: self.case.account.scheduling(),
                top: &self.case.account.top,
                others: self.other_threads(),
                java: text(self.java.1).map(|text| JavaStack { time_ns: self.java.0, text, frames_cut: self.java.2 }),
            },
        }
    }

    /// For listeners; valid while the parcel stays as it is.
    pub fn c_block(&self) -> bc_block {
        bc_block {
            struct_size: size_of::<bc_block>(),
            id: self.case.id,
            state: self.state,
            cause: self.cause.kind,
            tid: self.case.tid,
            repeats: self.repeats.count,
            tag: self.case.tag,
            start_unix_ms: self.case.start_unix_ms,
            start_ns: self.case.from.0,
            wall_ns: self.case.wall_ns,
            cpu_ns: self.cpu.cpu_ns,
            threshold_ns: self.case.limit_ns,
            loop_name: self.case.loop_name.as_ptr().cast(),
            what: self.what,
            cause_detail: self.detail,
            report_path: if self.has_path { self.path.as_ptr().cast() } else { ptr::null() },
            sample_count: self.sample_count,
            sample_size: size_of::<bc_sample>(),
            frame_size: size_of::<bc_frame>(),
            samples: if self.sample_count == 0 { ptr::null() } else { self.own_samples().as_ptr() },
        }
    }
}

fn name(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(&[])
}

/// A sample as listeners get it.
pub(super) fn with_frames(sample: &Sample, frames: &[bc_frame]) -> bc_sample {
    bc_sample {
        time_ns: sample.at.0,
        method: sample.method,
        frames_cut: sample.frames_cut,
        frame_count: frames.len(),
        frames: if frames.is_empty() { ptr::null() } else { frames.as_ptr() },
        thread_state: sample.thread_state as c_char,
        truncated: sample.truncated,
        approximate: sample.approximate,
    }
}
