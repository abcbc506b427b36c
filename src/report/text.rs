//! A block as BlockCanary's own log, for the tools and eyes that know it.
//!
//! Its readers go line by line, match keys by their first letters, give up at a key without a value or at a number that
//! is none, and take everything after `stack` as stack entries. So a value that is missing has no line, keys of ours
//! begin with none of theirs, and everything of ours stands before `stack`. Ours are in `own.rs`.

use super::block::{Block, Context, CpuTick, JavaStack};
use super::hot::HotStacks;
use super::own;
use super::sink::Sink;
use super::view::{Frame, Sample};
use crate::sys::calendar::{Civil, local_ms};

/// Writes the log of a block.
pub fn write(sink: &mut Sink, block: &Block, context: &Context) {
    header(sink, context);
    program(sink, context);
    times(sink, block, context);
    cpu(sink, block, context);
    own::write(sink, block, context);
    stack(sink, block, context);
}

/// Begins a line `key = value`.
pub(super) fn key(sink: &mut Sink, key: &str) {
    sink.text(key);
    sink.text(" = ");
}

/// Ends a line.
pub(super) fn end(sink: &mut Sink) {
    sink.text("\r\n");
}

/// A line `key = number`.
pub(super) fn number(sink: &mut Sink, name: &str, value: u64) {
    key(sink, name);
    sink.decimal(value);
    end(sink);
}

/// A line `key = value`, if there is a value. The separator within a value would cut it off for readers, so that it
/// becomes a colon (which, unlike a shorter `=`, makes no new one with what stands around it).
pub(super) fn value(sink: &mut Sink, name: &str, value: Option<&[u8]>) {
    const SEPARATOR: &[u8] = b" = ";
    let Some(mut value) = value.filter(|value| !value.is_empty()) else { return };
    key(sink, name);
    while let Some(position) = value.windows(SEPARATOR.len()).position(|part| part == SEPARATOR) {
        sink.plain(value.get(..position).unwrap_or_default());
        sink.text(":");
        value = value.get(position + SEPARATOR.len()..).unwrap_or_default();
    }
    sink.plain(value);
    end(sink);
}

fn header(sink: &mut Sink, context: &Context) {
    let now = Civil::from_ms(local_ms(context.now_unix_ms, context.utc_offset_s));
    end(sink);
    sink.text("**********************");
    end(sink);
    sink.padded(now.year.clamp(0, 9999).unsigned_abs(), 4);
    sink.text("-");
    day(sink, now);
    clock(sink, now);
    sink.text("(write log time)");
    end(sink);
    end(sink);
}

fn program(sink: &mut Sink, context: &Context) {
    // Readers take the code for a Java int and drop the rest of the log if it is none.
    let (code, other_code) = match context.version_code {
        Some(code) if is_java_int(code) => (Some(code), None),
        other => (None, other),
    };
    value(sink, "qua", context.qualifier);
    value(sink, "versionName", context.version_name);
    value(sink, "versionCode", code);
    value(sink, "app-version-code", other_code);
    value(sink, "uid", context.user_id);
    value(sink, "network", context.network_type);
    value(sink, "model", Some(context.model));
    value(sink, "api-level", Some(context.api_level));
    if context.cores > 0 {
        number(sink, "cpu-core", context.cores.into());
    }
    value(sink, "process", Some(context.process_name));
    if context.free_memory_kb > 0 {
        number(sink, "freeMemory", context.free_memory_kb);
    }
    if context.total_memory_kb > 0 {
        number(sink, "totalMemory", context.total_memory_kb);
    }
}

fn is_java_int(text: &[u8]) -> bool {
    core::str::from_utf8(text).is_ok_and(|text| text.parse::<i32>().is_ok())
}

fn times(sink: &mut Sink, block: &Block, context: &Context) {
    number(sink, "time", block.wall_ns / 1_000_000);
    number(sink, "thread-time", block.cpu_ns / 1_000_000);
    key(sink, "time-start");
    stamp(sink, block, context, block.start_ns);
    end(sink);
    key(sink, "time-end");
    stamp(sink, block, context, block.start_ns.saturating_add(block.wall_ns));
    end(sink);
}

fn cpu(sink: &mut Sink, block: &Block, context: &Context) {
    key(sink, "cpu-busy");
    sink.text(if is_busy(block, context.sample_interval_ns) { "true" } else { "false" });
    end(sink);
    let Some((first, others)) = block.cpu.split_first() else { return };
    key(sink, "cpu-rate");
    rate(sink, block, context, first);
    for tick in others {
        rate(sink, block, context, tick);
    }
    // This line tells readers that the rates are over.
    end(sink);
}

/// BlockCanary's test: of the looks at the CPU within one interval before and after the begin, two neighbours lie more
/// than 1.2 intervals apart, because whoever should have looked had no processor either.
fn is_busy(block: &Block, interval_ns: u64) -> bool {
    let (from, to) = (block.start_ns.saturating_sub(interval_ns), block.start_ns.saturating_add(interval_ns));
    let near = |tick: &&CpuTick| from < tick.time_ns && tick.time_ns < to;
    let late = interval_ns.saturating_add(interval_ns / 5);
    let neighbours = block.cpu.iter().filter(near).zip(block.cpu.iter().filter(near).skip(1));
    block.wall_ns > interval_ns
        && neighbours.map(|(one, two)| two.time_ns.saturating_sub(one.time_ns)).any(|gap| gap > late)
}

/// One line of `cpu-rate`. All shares are of the whole machine there, whole percents cut off. Readers keep the line as it
/// is, so that shares that are not known can be left out.
fn rate(sink: &mut Sink, block: &Block, context: &Context, tick: &CpuTick) {
    let app = tick.process / context.cores.max(1);
    stamp(sink, block, context, tick.time_ns);
    if let Some(system) = tick.system {
        share(sink, " cpu:", system.busy.into());
    }
    share(sink, " app:", app.min(10_000));
    match tick.system {
        Some(system) => {
            share(sink, " [user:", system.user.into());
            share(sink, " system:", system.system.into());
            share(sink, " ioWait:", system.io_wait.into());
            sink.text(" ]");
        }
        None => sink.text(" "),
    }
    end(sink);
}

fn share(sink: &mut Sink, name: &str, hundredths: u32) {
    sink.text(name);
    sink.decimal(u64::from(hundredths / 100));
    sink.text("%");
}

/// One entry a sample that has frames: its time, an empty line, the frames, an empty line. The entry counts for readers
/// only when they come to that last line. A Java stack is an entry before all others, one element a line.
///
/// The oldest is first, unless modules of concern are told and another one touches them and leads the report.
fn stack(sink: &mut Sink, block: &Block, context: &Context) {
    let concerned =
        |leader: &usize| block.samples.get(*leader).is_some_and(|sample| context.concern.is_touched_by(sample.frames));
    let hot = (!context.concern.is_empty()).then(|| HotStacks::of(block.samples));
    let leader = hot.and_then(|hot| context.concern.leader(block.samples, &hot)).filter(concerned);
    let numbers = leader.into_iter().chain((0..block.samples.len()).filter(|number| Some(*number) != leader));
    let entries = numbers.filter_map(|number| block.samples.get(number)).filter(|sample| !sample.frames.is_empty());
    let mut is_begun = false;
    if let Some(java) = &block.reasons.java {
        key(sink, "stack");
        is_begun = true;
        java_stack(sink, block, context, java);
    }
    for sample in entries {
        if sink.failed() {
            return;
        }
        if !core::mem::replace(&mut is_begun, true) {
            key(sink, "stack");
        }
        stamp(sink, block, context, sample.time_ns);
        end(sink);
        end(sink);
        for frame in sample.frames.iter() {
            write_frame(sink, &frame);
        }
        remarks(sink, &sample);
        end(sink);
    }
}

fn java_stack(sink: &mut Sink, block: &Block, context: &Context, java: &JavaStack) {
    stamp(sink, block, context, java.time_ns);
    end(sink);
    end(sink);
    for element in java.elements() {
        sink.plain(element);
        end(sink);
    }
    frames_cut(sink, java.frames_cut);
    end(sink);
}

fn write_frame(sink: &mut Sink, frame: &Frame) {
    match frame.symbol {
        Some(symbol) => {
            sink.plain(symbol);
            sink.text("+0x");
            sink.hex(frame.symbol_offset, 1);
        }
        None => sink.text("??"),
    }
    sink.text(" (");
    match frame.module_base_name() {
        Some(module) => {
            sink.plain(module);
            sink.text(" 0x");
            sink.hex(frame.module_offset, 1);
        }
        None => {
            sink.text("0x");
            sink.hex(frame.pc, 1);
        }
    }
    sink.text(")");
    end(sink);
}

/// What is not known about a stack.
fn remarks(sink: &mut Sink, sample: &Sample) {
    if sample.frames_cut > 0 {
        frames_cut(sink, sample.frames_cut);
    } else if sample.truncated {
        sink.text("(the thread's outermost frames were not found)");
        end(sink);
    }
    if sample.approximate {
        sink.text("(some of these frames could not be verified)");
        end(sink);
    }
}

fn frames_cut(sink: &mut Sink, count: u32) {
    if count > 0 {
        sink.text("(");
        sink.decimal(count.into());
        sink.text(" more frames)");
        end(sink);
    }
}

/// `MM-dd HH:mm:ss.SSS` of a moment on CLOCK_MONOTONIC, by way of the block's begin, which is known on both clocks.
fn stamp(sink: &mut Sink, block: &Block, context: &Context, time_ns: u64) {
    let since_start = (time_ns.wrapping_sub(block.start_ns) as i64) / 1_000_000;
    let unix_ms = block.start_unix_ms.saturating_add(since_start);
    let time = Civil::from_ms(local_ms(unix_ms, context.utc_offset_s));
    day(sink, time);
    clock(sink, time);
    sink.text(".");
    sink.padded(time.milli.into(), 3);
}

/// `MM-dd `.
pub(super) fn day(sink: &mut Sink, time: Civil) {
    sink.padded(time.month.into(), 2);
    sink.text("-");
    sink.padded(time.day.into(), 2);
    sink.text(" ");
}

/// `HH:mm:ss`.
pub(super) fn clock(sink: &mut Sink, time: Civil) {
    sink.padded(time.hour.into(), 2);
    sink.text(":");
    sink.padded(time.minute.into(), 2);
    sink.text(":");
    sink.padded(time.second.into(), 2);
}
