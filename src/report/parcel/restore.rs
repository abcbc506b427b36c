//! A parcel from what a recorder holds of a block whose process died inside it.

use super::Parcel;
use super::past::Past;
use crate::abi::bc_block_state::BC_BLOCK_KILLED;
use crate::abi::{bc_frame, bc_sample};
use crate::report::block::{Repeats, TopThread};
use crate::report::hot;
use crate::report::recorder::decode::{Item, Other, Record};
use crate::report::resolve::unknown;
use crate::report::text_space::TextSpace;
use crate::sample::account::Account;
use crate::sample::case::Case;
use crate::sample::cause::Cause;
use crate::sample::cpu::CpuTime;
use crate::sample::evidence::{OtherThread, ROLES};
use crate::sample::short::Short;
use crate::sys::clock::Ticks;
use crate::sys::counters::SAMPLES_LOST;
use core::ffi::c_char;
use core::ptr;

/// Strings that are known to be copied already; more are copied once more.
const COPIES: usize = 512;
/// Stacks that are known to be copied already.
const STACKS: usize = 64;

/// What has been copied, by where it stood.
struct Copied {
    strings: [(usize, *const c_char); COPIES],
    /// Where it stood, and its first frame and their number.
    stacks: [(u32, usize, usize); STACKS],
    stack_count: usize,
}

impl Parcel {
    /// Makes it the block of a record, killed.
    pub fn restore(&mut self, record: &Record) {
        let mut case = Case {
            id: record.id,
            tid: record.tid,
            tag: record.tag,
            start_unix_ms: record.start_unix_ms,
            from: Ticks(record.start_ns),
            wall_ns: record.wall_ns,
            limit_ns: record.threshold_ns,
            interval_ns: record.surroundings.sample_interval_ns,
            ..Case::FREE
        };
        let room = case.loop_name.split_last_mut().map_or(&mut [][..], |(_, room)| room);
        room.iter_mut().zip(record.loop_name).for_each(|(to, from)| *to = *from);
        let tops =
            record.top().map(|top| Some(TopThread { tid: top.tid, name: Short::end_of(top.name), load: top.load }));
        case.account = Account::restored(record.scheduling, tops);
        self.case = case;
        self.state = BC_BLOCK_KILLED;
        self.cpu = CpuTime { cpu_ns: record.cpu_ns, uncertainty_ns: record.cpu_uncertainty_ns };
        self.cause = Cause { kind: record.cause, shares: record.shares, queue_wait_ns: record.run_queue_wait_ns };
        (self.repeats, self.has_path) = (Repeats::default(), false);
        (self.sample_count, self.other_count, self.frame_count, self.tick_count) = (0, 0, 0, 0);
        self.text.clear();
        let put = |text: &mut TextSpace, string: Option<&[u8]>| string.map_or(ptr::null(), |string| text.put(string));
        self.what = put(&mut self.text, record.what);
        self.detail = put(&mut self.text, record.cause_detail);
        let java = record.java();
        self.java = java.map_or((0, ptr::null(), 0), |java| (java.time_ns, self.text.put(java.text), java.frames_cut));
        self.past = Some(Past::new(&record.surroundings, &mut self.text));
        for (place, tick) in self.ticks.iter_mut().zip(record.ticks()) {
            *place = tick;
            self.tick_count += 1;
        }
        let mut copied = Copied { strings: [(0, ptr::null()); COPIES], stacks: [(0, 0, 0); STACKS], stack_count: 0 };
        for item in record.items() {
            let Some(Other { tid, name, role, is_watched }) = item.other else { continue };
            let Some(whose) = self.others.get_mut(self.other_count) else { break };
            let role = role.and_then(|role| ROLES.into_iter().find(|known| known.as_bytes() == role));
            *whose = Some(OtherThread { tid, name: Short::end_of(name), role, is_watched });
            let place = self.other_count;
            self.other_count += usize::from(self.put_sample(record, &item, place, &mut copied));
        }
        let threads = record.threads.map(|threads| u32::try_from(threads).unwrap_or(u32::MAX));
        self.case.threads_left_out = threads.map(|threads| threads.saturating_sub(self.other_count as u32));
        for item in record.items().filter(|item| item.other.is_none()) {
            let place = self.other_count.saturating_add(self.sample_count);
            self.sample_count += usize::from(self.put_sample(record, &item, place, &mut copied));
        }
        let own = self.other_count..self.other_count.saturating_add(self.sample_count);
        if let Some(own) = self.samples.get_mut(own) {
            sort(own);
        }
        self.progress = hot::progress(self.view(), self.cpu.cpu_ns, self.case.wall_ns);
    }

    fn put_sample(&mut self, record: &Record, item: &Item, place: usize, copied: &mut Copied) -> bool {
        let known = copied.stacks.get(..copied.stack_count).unwrap_or_default();
        let known = known.iter().find(|(at, ..)| *at == item.stack).map(|(_, first, count)| (*first, *count));
        let Some((first, count)) = known.or_else(|| self.put_stack(record, item.stack, copied)) else {
            SAMPLES_LOST.add_one();
            return false;
        };
        let frames = self.frames.get(first..).and_then(|rest| rest.get(..count)).unwrap_or_default();
        let Some(sample) = self.samples.get_mut(place) else {
            SAMPLES_LOST.add_one();
            return false;
        };
        *sample = bc_sample {
            time_ns: item.time_ns,
            method: item.method,
            frames_cut: item.frames_cut,
            frame_count: frames.len(),
            frames: if frames.is_empty() { ptr::null() } else { frames.as_ptr() },
            thread_state: item.thread_state as c_char,
            truncated: item.truncated,
            approximate: item.approximate,
        };
        true
    }

    /// Where its frames are, and how many there are.
    fn put_stack(&mut self, record: &Record, stack: u32, copied: &mut Copied) -> Option<(usize, usize)> {
        let first = self.frame_count;
        let mut end = first;
        for frame in record.frames(stack) {
            let text = &mut self.text;
            let module = copied.string(frame.module, text);
            let build_id = copied.string(frame.build_id, text);
            let symbol = copied.string(frame.symbol, text);
            let (module_offset, symbol_offset) = (frame.module_offset, frame.symbol_offset);
            *self.frames.get_mut(end)? =
                bc_frame { module, module_offset, build_id, symbol, symbol_offset, ..unknown(frame.pc) };
            end += 1;
        }
        self.frame_count = end;
        if let Some(place) = copied.stacks.get_mut(copied.stack_count) {
            *place = (stack, first, end - first);
            copied.stack_count += 1;
        }
        Some((first, end - first))
    }
}

impl Copied {
    fn string(&mut self, string: Option<&[u8]>, text: &mut TextSpace) -> *const c_char {
        let Some(string) = string.filter(|string| !string.is_empty()) else { return ptr::null() };
        let at = string.as_ptr().addr();
        let Some(place) = self.strings.get_mut(at % COPIES) else { return ptr::null() };
        if place.0 != at {
            *place = (at, text.put(string));
        }
        place.1
    }
}

/// By time. They come in at most two runs, one rising and one falling, and there are few.
fn sort(samples: &mut [bc_sample]) {
    for end in 1..samples.len() {
        let mut at = end;
        while at > 0 {
            let Ok([before, here]) = samples.get_disjoint_mut([at - 1, at]) else { return };
            if before.time_ns <= here.time_ns {
                break;
            }
            core::mem::swap(before, here);
            at -= 1;
        }
    }
}
