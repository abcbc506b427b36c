//! One state of one block, with memory for all that belongs to it: made by the writer, read by the reporter.
#![allow(unsafe_code)]

use super::block::{Block, CpuTick, Progress, Repeats};
use super::hot::HotStacks;
use super::merge;
use super::module_list::ModuleList;
use super::resolve::{Resolver, unknown};
use super::text_space::TextSpace;
use super::view::Samples;
use crate::abi::{bc_block, bc_block_state, bc_cause, bc_frame, bc_sample};
use crate::sample::case::Case;
use crate::sample::cpu::{CpuTime, between};
use crate::sample::evidence::Evidence;
use crate::sample::what::Kind;
use crate::sys::counters::SAMPLES_LOST;
use core::ffi::{CStr, c_char};
use core::ptr;

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
    what: *const c_char,
    /// Later blocks that share the report, this one among them if it does.
    pub repeats: Repeats,
    /// The report's path and a NUL, nothing while there is no report.
    path: [u8; PATH],
    has_path: bool,
    samples: &'static mut [bc_sample],
    sample_count: usize,
    frames: &'static mut [bc_frame],
    ticks: &'static mut [CpuTick],
    tick_count: usize,
    text: TextSpace,
}

// SAFETY: the pointers lead into memory that goes with the parcel, which one thread holds at a time.
unsafe impl Send for Parcel {}

impl Parcel {
    /// Empty. Room for so many samples, frames of all samples together, CPU ticks and bytes of text.
    pub fn new(
        samples: &'static mut [bc_sample],
        frames: &'static mut [bc_frame],
        ticks: &'static mut [CpuTick],
        text: &'static mut [u8],
    ) -> Parcel {
        Parcel {
            case: Case::FREE,
            state: bc_block_state::BC_BLOCK_ENDED,
            cpu: CpuTime::default(),
            progress: None,
            what: ptr::null(),
            repeats: Repeats::default(),
            path: [0; PATH],
            has_path: false,
            samples,
            sample_count: 0,
            frames,
            ticks,
            tick_count: 0,
            text: TextSpace::new(text),
        }
    }

    /// Copies a case and its samples, in a state; the frames are pcs only. Done while the evidence is held, hence quick.
    pub fn copy(&mut self, evidence: &Evidence, case: &Case, state: bc_block_state) {
        self.case = *case;
        self.state = state;
        self.cpu = between(case.cpu_before, case.from, case.cpu_first, case.cpu_last);
        // A thread's CPU clock and the monotonic one tick apart by a little.
        self.cpu.cpu_ns = self.cpu.cpu_ns.min(case.wall_ns);
        (self.sample_count, self.tick_count) = (0, 0);
        self.text.clear();
        // First, so that no length of symbols takes their room.
        self.what = if case.what.is_some { self.text.put(case.what.bytes()) } else { ptr::null() };
        (self.repeats, self.has_path) = (Repeats::default(), false);
        let needed: usize = evidence.samples(case).map(|(_, pcs)| pcs.len()).sum();
        // More frames than there is room for: samples are left out evenly.
        let stride = needed.div_ceil(self.frames.len().max(1)).max(1);
        let mut rest = &mut *self.frames;
        for (number, (sample, pcs)) in evidence.samples(case).enumerate() {
            if let Some((tick, place)) = sample.cpu.zip(self.ticks.get_mut(self.tick_count)) {
                *place = tick;
                self.tick_count += 1;
            }
            if !sample.is_listed {
                continue;
            }
            let Some(place) = self.samples.get_mut(self.sample_count) else { break };
            if number % stride != 0 || pcs.len() > rest.len() {
                SAMPLES_LOST.add_one();
                continue;
            }
            let (frames, behind) = core::mem::take(&mut rest).split_at_mut(pcs.len());
            rest = behind;
            frames.iter_mut().zip(pcs).for_each(|(frame, pc)| *frame = unknown(*pc));
            *place = bc_sample {
                time_ns: sample.at.0,
                method: sample.method,
                frames_cut: sample.frames_cut,
                frame_count: frames.len(),
                frames: if frames.is_empty() { ptr::null() } else { frames.as_ptr() },
                thread_state: sample.thread_state as c_char,
                truncated: sample.truncated,
                approximate: sample.approximate,
            };
            self.sample_count += 1;
        }
    }

    /// Finds modules and symbols of all frames, and names what nobody named.
    pub fn resolve(&mut self, resolver: &mut Resolver) {
        resolver.begin_block();
        if self.case.what.kind == Kind::Callback {
            let symbol = resolver.resolve(self.case.tag, false, &mut self.text).symbol;
            self.what = if symbol.is_null() { self.what } else { symbol };
        }
        let mut rest = &mut *self.frames;
        for sample in self.samples.iter().take(self.sample_count) {
            let Some((frames, behind)) = core::mem::take(&mut rest).split_at_mut_checked(sample.frame_count) else {
                break;
            };
            rest = behind;
            for (depth, frame) in frames.iter_mut().enumerate() {
                *frame = resolver.resolve(frame.pc, depth > 0, &mut self.text);
            }
        }
        self.progress = self.judge_progress();
    }

    fn judge_progress(&self) -> Option<Progress> {
        let stacks = HotStacks::of(self.view());
        match stacks.iter().count() {
            0 => None,
            1 if self.cpu.cpu_ns < self.case.wall_ns / 2 => Some(Progress::Stuck),
            1 => Some(Progress::Busy),
            _ => Some(Progress::Progressing),
        }
    }

    fn view(&self) -> Samples<'_> {
        let samples = self.samples.get(..self.sample_count).unwrap_or(&[]);
        // SAFETY: the samples point to frames and strings of this parcel, which is borrowed for as long.
        unsafe { Samples::new(samples) }
    }

    /// What leads the report, named as in `merge::stack`.
    pub fn leading_stack(&self, concern: &ModuleList) -> Option<u64> {
        let samples = self.view();
        let leader = concern.leader(samples, &HotStacks::of(samples))?;
        samples.get(leader).map(|sample| merge::stack(sample.frames))
    }

    /// The report is at the path that `write` writes with a NUL behind it.
    pub fn set_path<E>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, E>) {
        self.has_path = write(&mut self.path).is_ok();
    }

    /// Where the report is, if there is one.
    pub fn path(&self) -> Option<&[u8]> {
        self.has_path.then(|| name(&self.path))
    }

    /// For the text and JSON forms.
    pub fn block(&self) -> Block<'_> {
        let text = |text: *const c_char| {
            // SAFETY: null, or a string of this parcel's own, which is borrowed for as long.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
        };
        Block {
            id: self.case.id,
            state: self.state,
            cause: bc_cause::BC_CAUSE_UNKNOWN,
            cause_detail: None,
            loop_name: name(&self.case.loop_name),
            tid: self.case.tid,
            what: text(self.what),
            tag: self.case.tag,
            start_unix_ms: self.case.start_unix_ms,
            start_ns: self.case.from.0,
            wall_ns: self.case.wall_ns,
            cpu_ns: self.cpu.cpu_ns,
            cpu_uncertainty_ns: self.cpu.uncertainty_ns,
            threshold_ns: self.case.limit_ns,
            run_queue_wait_ns: None,
            repeats: self.repeats,
            progress: self.progress,
            samples: self.view(),
            cpu: self.ticks.get(..self.tick_count).unwrap_or(&[]),
        }
    }

    /// For listeners; valid while the parcel stays as it is.
    pub fn c_block(&self) -> bc_block {
        bc_block {
            struct_size: size_of::<bc_block>(),
            id: self.case.id,
            state: self.state,
            cause: bc_cause::BC_CAUSE_UNKNOWN,
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
            cause_detail: ptr::null(),
            report_path: if self.has_path { self.path.as_ptr().cast() } else { ptr::null() },
            sample_count: self.sample_count,
            sample_size: size_of::<bc_sample>(),
            frame_size: size_of::<bc_frame>(),
            samples: if self.sample_count == 0 { ptr::null() } else { self.samples.as_ptr() },
        }
    }
}

fn name(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(&[])
}
