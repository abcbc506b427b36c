//! A block and what its report says beside it, as bytes for a recorder. `docs/recorder.md` tells the form.
//!
//! What is said once is referred to afterwards: strings, which the parcel holds once each, and whole stacks. When the room
//! is used up, samples are left out: threads that have nothing to do with the block go first, the last and the first sample
//! of the block are the last to go.

use crate::report::block::{Block, Context, CpuTick, JavaStack, OtherThread};
use crate::report::view::{Frame, Frames, Sample};
use crate::sample::evidence::INTERNAL;

/// A string that there is none of, and one that stands somewhere before.
pub const NO_STRING: u16 = u16::MAX;
/// See `NO_STRING`.
pub const EARLIER_STRING: u16 = u16::MAX - 1;
/// A stack that has not come before.
pub const NEW_STACK: u32 = u32::MAX;
/// A number that is not known.
pub const UNKNOWN: u64 = u64::MAX;
/// What follows: nothing, a sample of another thread, one of the loop's, the loop's Java stack.
pub const END: u8 = 0;
/// See `END`.
pub const OTHER: u8 = 1;
/// See `END`.
pub const OWN: u8 = 2;
/// See `END`.
pub const JAVA: u8 = 3;
/// Most looks at the CPU load that are kept, the latest.
pub const TICKS: usize = 128;

/// Strings and stacks that are found again.
const STRINGS: usize = 1024;
const STACKS: usize = 64;

/// Where strings and stacks of the block stand. All zeros are a value.
pub struct Known {
    /// By the string's address: that, and where it stands.
    strings: [(usize, u32); STRINGS],
    /// A sum over the stack, and where it stands.
    stacks: [(u64, u32); STACKS],
    stack_count: usize,
}

impl Known {
    /// Nothing.
    pub const NONE: Known = Known { strings: [(0, 0); STRINGS], stacks: [(0, 0); STACKS], stack_count: 0 };
}

struct Encoder<'a> {
    room: &'a mut [u8],
    used: usize,
    is_full: bool,
    known: &'a mut Known,
}

/// Writes it; how many bytes. `None` if not even the block without a sample fits.
pub fn encode(block: &Block, context: &Context, known: &mut Known, room: &mut [u8]) -> Option<usize> {
    *known = Known::NONE;
    // One byte stays for the end.
    let most = room.len().checked_sub(1)?;
    let mut encoder = Encoder { room: room.get_mut(..most)?, used: 0, is_full: false, known };
    encoder.head(block);
    encoder.surroundings(context);
    encoder.reasons(block);
    encoder.ticks(block.cpu);
    if encoder.is_full {
        return None;
    }
    let samples = &block.samples;
    let own = |number: usize| samples.get(number);
    let last = samples.len().checked_sub(1);
    for sample in last.into_iter().chain(last.filter(|last| *last > 0).map(|_| 0)).filter_map(own) {
        encoder.item(|encoder| encoder.own(&sample));
    }
    if let Some(java) = &block.reasons.java {
        encoder.item(|encoder| encoder.java(java));
    }
    let has_to_do = |other: &(OtherThread, Sample)| other.0.role.is_some_and(|role| role != INTERNAL);
    for (whose, sample) in block.reasons.others.iter().filter(has_to_do) {
        encoder.item(|encoder| encoder.other(&whose, &sample));
    }
    for sample in (1..last.unwrap_or(0)).rev().filter_map(own) {
        encoder.item(|encoder| encoder.own(&sample));
    }
    for (whose, sample) in block.reasons.others.iter().filter(|other| !has_to_do(other)) {
        encoder.item(|encoder| encoder.other(&whose, &sample));
    }
    let used = encoder.used;
    *room.get_mut(used)? = END;
    Some(used + 1)
}

impl Encoder<'_> {
    #[inline(never)]
    fn bytes(&mut self, bytes: &[u8]) {
        let end = self.used.saturating_add(bytes.len());
        match self.room.get_mut(self.used..end) {
            Some(room) if !self.is_full => {
                room.copy_from_slice(bytes);
                self.used = end;
            }
            _ => self.is_full = true,
        }
    }

    fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    fn known_or(&mut self, value: Option<u64>) {
        self.u64(value.unwrap_or(UNKNOWN));
    }

    /// Something that may be left out where there is no room for it.
    fn item(&mut self, write: impl FnOnce(&mut Self)) {
        let before = (self.used, self.known.stack_count);
        write(self);
        if self.is_full {
            // Strings know where they stand: what lies behind `used` is not believed.
            (self.used, self.known.stack_count) = before;
            self.is_full = false;
        }
    }

    fn string(&mut self, string: Option<&[u8]>) {
        let Some(string) = string else { return self.u16(NO_STRING) };
        let string = string.get(..usize::from(EARLIER_STRING) - 1).unwrap_or(string);
        let address = string.as_ptr().addr();
        let number = (address ^ address >> 10) % STRINGS;
        let known = self.known.strings.get(number).copied().filter(|(there, _)| *there == address && address != 0);
        if let Some((_, at)) = known.filter(|(_, at)| self.holds(*at as usize, string)) {
            self.u16(EARLIER_STRING);
            return self.u32(at);
        }
        if let Some(place) = self.known.strings.get_mut(number) {
            *place = (address, self.used as u32);
        }
        self.u16(string.len() as u16);
        self.bytes(string);
    }

    /// Does this string stand there?
    fn holds(&self, at: usize, string: &[u8]) -> bool {
        let there = self.room.get(..self.used).and_then(|written| written.get(at..));
        let there = there.and_then(|rest| rest.strip_prefix(&(string.len() as u16).to_le_bytes()));
        there.is_some_and(|rest| rest.starts_with(string))
    }

    fn head(&mut self, block: &Block) {
        self.u64(block.id);
        self.u8(block.cause as u8);
        self.u32(block.tid.cast_unsigned());
        self.u64(block.tag);
        self.u64(block.start_unix_ms.cast_unsigned());
        for number in
            [block.start_ns, block.wall_ns, block.cpu_ns, block.cpu_uncertainty_ns.unwrap_or(0), block.threshold_ns]
        {
            self.u64(number);
        }
        self.known_or(block.run_queue_wait_ns);
        self.string(Some(block.loop_name));
        self.string(block.what);
        self.string(block.cause_detail);
    }

    fn surroundings(&mut self, context: &Context) {
        self.u64(context.sample_interval_ns);
        self.u32(context.utc_offset_s.cast_unsigned());
        self.u32(context.pid.cast_unsigned());
        self.u32(context.cores);
        self.u64(context.free_memory_kb);
        self.u64(context.total_memory_kb);
        for word in [
            context.qualifier,
            context.version_name,
            context.version_code,
            context.user_id,
            context.network_type,
            Some(context.process_name),
            Some(context.model),
            Some(context.api_level),
        ] {
            self.string(word);
        }
    }

    fn reasons(&mut self, block: &Block) {
        let reasons = &block.reasons;
        reasons.shares.iter().for_each(|share| self.u16(*share));
        let scheduling = &reasons.scheduling;
        self.u64(scheduling.cpu_ns);
        for count in [
            scheduling.slices,
            scheduling.minor_faults,
            scheduling.major_faults,
            scheduling.voluntary_switches,
            scheduling.involuntary_switches,
        ] {
            self.known_or(count);
        }
        self.u8(reasons.top.iter().flatten().count() as u8);
        for thread in reasons.top.iter().flatten() {
            self.u32(thread.tid.cast_unsigned());
            self.u32(thread.load);
            self.string(Some(thread.name.bytes()));
        }
        let others = &reasons.others;
        let threads = others.left_out.map(|left_out| u64::from(left_out) + others.iter().count() as u64);
        self.known_or(threads);
    }

    fn ticks(&mut self, ticks: &[CpuTick]) {
        let latest = ticks.get(ticks.len().saturating_sub(TICKS)..).unwrap_or_default();
        self.u16(latest.len() as u16);
        for tick in latest {
            self.u64(tick.time_ns);
            self.u32(tick.process);
            self.u8(u8::from(tick.system.is_some()));
            let system = tick.system.unwrap_or_default();
            for part in [system.busy, system.user, system.system, system.io_wait] {
                self.u16(part);
            }
        }
    }

    fn java(&mut self, stack: &JavaStack) {
        self.u8(JAVA);
        self.u64(stack.time_ns);
        self.u32(stack.frames_cut);
        self.string(Some(stack.text));
    }

    fn own(&mut self, sample: &Sample) {
        self.u8(OWN);
        self.sample(sample);
    }

    fn other(&mut self, whose: &OtherThread, sample: &Sample) {
        self.u8(OTHER);
        self.u32(whose.tid.cast_unsigned());
        self.string(Some(whose.name.bytes()));
        self.string(whose.role.map(str::as_bytes));
        self.u8(u8::from(whose.is_watched));
        self.sample(sample);
    }

    fn sample(&mut self, sample: &Sample) {
        self.u64(sample.time_ns);
        self.u8(sample.method.map_or(0, |method| method as u8));
        self.u8(sample.thread_state.unwrap_or(0));
        self.u8(u8::from(sample.truncated) | u8::from(sample.approximate) << 1);
        self.u32(sample.frames_cut);
        self.stack(&sample.frames);
    }

    fn stack(&mut self, frames: &Frames) {
        let sum = sum(frames);
        let count = self.known.stack_count;
        let known = self.known.stacks.get(..count).unwrap_or_default();
        if let Some((_, at)) = known.iter().find(|(there, _)| *there == sum).copied() {
            return self.u32(at);
        }
        self.u32(NEW_STACK);
        let at = self.used as u32;
        let kept = frames.len().min(usize::from(u16::MAX));
        self.u16(kept as u16);
        frames.iter().take(kept).for_each(|frame| self.frame(&frame));
        if let Some(place) = self.known.stacks.get_mut(count).filter(|_| !self.is_full) {
            *place = (sum, at);
            self.known.stack_count = count + 1;
        }
    }

    fn frame(&mut self, frame: &Frame) {
        self.u64(frame.pc);
        self.u64(frame.module_offset);
        self.u64(frame.symbol_offset);
        self.string(frame.module);
        self.string(frame.build_id);
        self.string(frame.symbol);
    }
}

/// Over the places of all frames and where their modules' names stand, which are the same for the same module of a block.
fn sum(frames: &Frames) -> u64 {
    let words =
        frames.iter().flat_map(|frame| [frame.pc, frame.module.map_or(0, |module| module.as_ptr().addr() as u64)]);
    words.fold(0xcbf2_9ce4_8422_2325 ^ frames.len() as u64, |sum, word| {
        (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}
