//! Which stacks a block was seen in most often.
//!
//! Two stacks are the same if they pass through the same functions, wherever in them. A function is its module and where
//! its symbol begins, or it itself where it has no symbol but its begin is known. Else a return address stands for itself,
//! since the same call returns to the same place; the innermost frame, which may be anywhere in its function, is then known
//! by its module only.

use super::block::Progress;
use super::view::{Frame, Frames, Samples};

/// Different stacks counted at a time. A stack seen in more than one of this many samples is never missed.
const COUNTERS: usize = 128;
/// Stacks told of.
pub const LISTED: usize = 16;

/// One stack and how often it was seen.
#[derive(Clone, Copy, Default)]
pub struct HotStack {
    /// Place of the first sample that shows it.
    pub index: usize,
    /// Samples that show it.
    pub samples: usize,
    /// Tells stacks of one process apart, from one block to the next.
    pub hash: u64,
}

/// The most frequent stacks of a block, most frequent first, of equal ones the earlier first.
pub struct HotStacks {
    counters: [HotStack; COUNTERS],
    used: usize,
    /// Samples that have a stack.
    pub total: usize,
}

impl HotStacks {
    /// Looks through all samples, twice if their stacks are more than can be counted at a time.
    pub fn of(samples: Samples) -> HotStacks {
        let mut hot = HotStacks { counters: [HotStack::default(); COUNTERS], used: 0, total: 0 };
        let mut exact = true;
        for (index, frames) in stacks(samples) {
            hot.total += 1;
            exact &= hot.count(samples, index, frames);
        }
        if !exact {
            hot.recount(samples);
        }
        hot.sort();
        hot
    }

    /// At most `LISTED` of them.
    pub fn iter(&self) -> impl Iterator<Item = &HotStack> {
        self.counters.iter().take(self.used.min(LISTED))
    }

    /// Counts one; `false` if that pushed another one out.
    fn count(&mut self, samples: Samples, index: usize, frames: Frames) -> bool {
        let hash = hash(frames);
        let used = self.counters.get_mut(..self.used).unwrap_or_default();
        if let Some(same) = used.iter_mut().find(|counter| same_stack(samples, counter, hash, frames)) {
            same.samples += 1;
            return true;
        }
        if let Some(free) = self.counters.get_mut(self.used) {
            *free = HotStack { index, samples: 1, hash };
            self.used += 1;
            return true;
        }
        // The rarest makes room and leaves its count to the new one ("space saving"): counts are too high then, never
        // too low, so that a frequent stack is not pushed out for good.
        if let Some(rarest) = self.counters.iter_mut().min_by_key(|counter| counter.samples) {
            *rarest = HotStack { index, samples: rarest.samples + 1, hash };
        }
        false
    }

    fn recount(&mut self, samples: Samples) {
        for counter in &mut self.counters {
            *counter = HotStack { index: usize::MAX, samples: 0, ..*counter };
        }
        for (index, frames) in stacks(samples) {
            let hash = hash(frames);
            // The first place is found again, since a stack may have been pushed out and come back.
            if let Some(same) = self.counters.iter_mut().find(|counter| {
                counter.hash == hash && (counter.samples == 0 || same_stack(samples, counter, hash, frames))
            }) {
                same.index = same.index.min(index);
                same.samples += 1;
            }
        }
    }

    /// Brings the most frequent to the front, as many as are listed. Not the library's sort, which is large and may panic.
    fn sort(&mut self) {
        let mut rest = self.counters.get_mut(..self.used).unwrap_or_default();
        for _ in 0..LISTED {
            let Some((first, others)) = rest.split_first_mut() else { return };
            let rank = |counter: &HotStack| (core::cmp::Reverse(counter.samples), counter.index);
            if let Some(best) = others.iter_mut().min_by_key(|counter| rank(counter))
                && rank(best) < rank(first)
            {
                core::mem::swap(first, best);
            }
            rest = others;
        }
    }
}

/// What the samples of a block say of its progress.
pub fn progress(samples: Samples, cpu_ns: u64, wall_ns: u64) -> Option<Progress> {
    match HotStacks::of(samples).iter().count() {
        0 => None,
        1 if cpu_ns < wall_ns / 2 => Some(Progress::Stuck),
        1 => Some(Progress::Busy),
        _ => Some(Progress::Progressing),
    }
}

fn stacks(samples: Samples) -> impl Iterator<Item = (usize, Frames)> {
    samples.iter().map(|sample| sample.frames).enumerate().filter(|(_, frames)| !frames.is_empty())
}

fn same_stack(samples: Samples, counter: &HotStack, hash: u64, frames: Frames) -> bool {
    let Some(other) = samples.get(counter.index) else { return false };
    let other = other.frames;
    counter.hash == hash
        && other.len() == frames.len()
        && other
            .iter()
            .zip(frames.iter())
            .enumerate()
            .all(|(depth, (one, two))| function(&one, depth) == function(&two, depth))
}

/// What a frame is known by: module, whether the place is exact, the place.
fn function<'a>(frame: &Frame<'a>, depth: usize) -> (Option<&'a [u8]>, bool, u64) {
    let place = match (frame.module, frame.symbol) {
        (Some(_), symbol) if symbol.is_some() || frame.symbol_offset != 0 => {
            Some(frame.module_offset.wrapping_sub(frame.symbol_offset))
        }
        _ if depth == 0 => None,
        (Some(_), _) => Some(frame.module_offset),
        (None, _) => Some(frame.pc),
    };
    (frame.module, place.is_some(), place.unwrap_or(0))
}

/// FNV-1a by words over the frames' places and the lengths of their modules' names; equal ones are compared in full.
fn hash(frames: Frames) -> u64 {
    frames.iter().enumerate().fold(0xcbf2_9ce4_8422_2325, |hash, (depth, frame)| {
        let (module, exact, place) = function(&frame, depth);
        let length = module.map_or(0, |module| module.len() as u64 + 1);
        [place, length * 2 + u64::from(exact)].into_iter().fold(hash, |hash: u64, word| {
            let mixed = (hash ^ word).wrapping_mul(0x100_0000_01b3);
            mixed ^ (mixed >> 32)
        })
    })
}
