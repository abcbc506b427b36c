//! A block as one JSON object, `blockcanary.report/1`.
//!
//! Every key is always there, in the same order; what is not known is `null`. A line for each key, sample, frame and
//! stack keeps the object readable without a tool.

use super::block::{Block, Context, CpuTick, OtherThread, Repeats, Scheduling, TopThread};
use super::hot::HotStacks;
use super::sink::Sink;
use super::view::{Frame, Frames, Sample, base_name};
use super::words;
use crate::abi::bc_health;
use crate::sample::cause;

/// Writes the report of a block.
pub fn write(sink: &mut Sink, block: &Block, context: &Context) {
    let json = &mut Json { sink, redact_paths: context.redact_paths };
    json.sink.text("{\"schema\":\"blockcanary.report/1\"");
    head(json, block);
    verdict(json, block);
    json.key("samples");
    json.list(block.samples.iter(), |json, sample| write_sample(json, block, &sample));
    json.key("java_stack");
    java_stack(json, block);
    json.key("hot_stacks");
    hot_stacks(json, block);
    json.key("cpu");
    json.list(block.cpu.iter(), |json, tick| cpu_tick(json, block, tick, context.cores));
    json.key("scheduling");
    scheduling(json, &block.reasons.scheduling);
    json.key("top_threads");
    json.list(block.reasons.top.iter().flatten(), |json, thread| top_thread(json, thread, context.cores));
    json.key("threads");
    let others = &block.reasons.others;
    match others.whose {
        [] if others.left_out.is_none() => json.sink.text("null"),
        _ => json.list(block.reasons.others.iter(), |json, (whose, sample)| other_thread(json, block, &whose, &sample)),
    }
    json.key("threads_left_out");
    match others.left_out {
        Some(count) => json.sink.decimal(count.into()),
        None => json.sink.text("null"),
    }
    surroundings(json, context);
    json.key("health");
    health(json, context.health);
    json.sink.text("\n}\n");
}

struct Json<'s, 'a> {
    sink: &'s mut Sink<'a>,
    redact_paths: bool,
}

impl Json<'_, '_> {
    /// A key of the report itself, after another one.
    #[inline(never)]
    fn key(&mut self, name: &str) {
        self.sink.text(",\n");
        self.name(name);
    }

    /// A key of an object within it, after another one.
    #[inline(never)]
    fn inner(&mut self, name: &str) {
        self.sink.text(",");
        self.name(name);
    }

    fn name(&mut self, name: &str) {
        self.sink.text("\"");
        self.sink.text(name);
        self.sink.text("\":");
    }

    /// A list, one item a line.
    fn list<T>(&mut self, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.sink.text("[");
        let mut separator = "\n";
        for item in items {
            if self.sink.failed() {
                return;
            }
            self.sink.text(separator);
            write(self, item);
            separator = ",\n";
        }
        self.sink.text("]");
    }

    fn word(&mut self, word: Option<&str>) {
        self.sink.json_optional(word.map(str::as_bytes));
    }

    /// A hexadecimal string.
    fn hex(&mut self, value: Option<u64>) {
        match value {
            Some(value) => {
                self.sink.text("\"0x");
                self.sink.hex(value, 1);
                self.sink.text("\"");
            }
            None => self.sink.text("null"),
        }
    }

    /// A number that is not known when it is zero.
    fn known(&mut self, value: u64) {
        match value {
            0 => self.sink.text("null"),
            value => self.sink.decimal(value),
        }
    }

    fn optional_ms(&mut self, ns: Option<u64>) {
        match ns {
            Some(ns) => self.sink.ms(ns),
            None => self.sink.text("null"),
        }
    }

    fn flag(&mut self, flag: bool) {
        self.sink.text(if flag { "true" } else { "false" });
    }
}

fn head(json: &mut Json, block: &Block) {
    json.key("id");
    json.sink.decimal(block.id);
    json.key("state");
    json.word(Some(words::state(block.state)));
    json.key("loop");
    json.sink.text("{\"name\":");
    json.sink.json_string(block.loop_name);
    json.inner("tid");
    json.sink.signed(block.tid.into());
    json.sink.text("}");
    json.key("what");
    json.sink.json_optional(block.what);
    json.key("tag");
    json.hex(Some(block.tag));
    json.key("start_unix_ms");
    json.sink.signed(block.start_unix_ms);
    json.key("wall_ms");
    json.sink.ms(block.wall_ns);
    json.key("cpu_ms");
    json.sink.ms(block.cpu_ns);
    json.key("cpu_uncertainty_ms");
    json.optional_ms(block.cpu_uncertainty_ns);
    json.key("threshold_ms");
    json.sink.ms(block.threshold_ns);
}

fn verdict(json: &mut Json, block: &Block) {
    json.key("run_queue_wait_ms");
    json.optional_ms(block.run_queue_wait_ns);
    json.key("cause");
    json.sink.text("{\"kind\":");
    json.word(Some(words::cause(block.cause)));
    json.inner("detail");
    json.sink.json_optional(block.cause_detail);
    json.inner("shares");
    shares(json, block);
    json.sink.text("}");
    json.key("progress");
    json.word(block.progress.map(words::progress));
    json.sink.text(",\n");
    repeats(json.sink, &block.repeats);
}

/// The key and its value, a line of its own.
pub(super) fn repeats(sink: &mut Sink, repeats: &Repeats) {
    sink.text("\"repeats\":{\"count\":");
    sink.decimal(repeats.count.into());
    sink.text(",\"wall_ms_total\":");
    match (repeats.count, repeats.wall_ns_total) {
        (1.., 0) => sink.text("null"),
        (_, total) => sink.ms(total),
    }
    sink.text(",\"last_unix_ms\":");
    match repeats.last_unix_ms {
        0 => sink.text("null"),
        last => sink.signed(last),
    }
    sink.text("}");
}

/// Parts of the block's time by cause, 0 to 1; those of nothing are left out.
fn shares(json: &mut Json, block: &Block) {
    json.sink.text("{");
    let shares = cause::ALL.iter().zip(block.reasons.shares).filter(|(_, share)| *share > 0);
    for (place, (kind, share)) in shares.enumerate() {
        if place > 0 {
            json.sink.text(",");
        }
        json.name(words::cause(*kind));
        json.sink.fixed(share.into(), 3);
    }
    json.sink.text("}");
}

/// What the kernel counted.
fn scheduling(json: &mut Json, scheduling: &Scheduling) {
    let counts = [
        ("slices", scheduling.slices),
        ("minor_faults", scheduling.minor_faults),
        ("major_faults", scheduling.major_faults),
        ("voluntary_switches", scheduling.voluntary_switches),
        ("involuntary_switches", scheduling.involuntary_switches),
    ];
    let mut separator = "{";
    for (name, count) in counts {
        json.sink.text(separator);
        json.name(name);
        match count {
            Some(count) => json.sink.decimal(count),
            None => json.sink.text("null"),
        }
        separator = ",";
    }
    json.sink.text("}");
}

/// One of the busiest threads.
fn top_thread(json: &mut Json, thread: &TopThread, cores: u32) {
    json.sink.text("{\"tid\":");
    json.sink.signed(thread.tid.into());
    json.inner("name");
    json.sink.json_string(thread.name.bytes());
    json.inner("percent");
    json.sink.fixed(u64::from(thread.load).min(u64::from(cores.max(1)) * 10_000), 2);
    json.sink.text("}");
}

/// A thread that has to do with the block, or any, if all are told.
fn other_thread(json: &mut Json, block: &Block, whose: &OtherThread, sample: &Sample) {
    json.sink.text("{\"tid\":");
    json.sink.signed(whose.tid.into());
    json.inner("name");
    json.sink.json_string(whose.name.bytes());
    json.inner("role");
    json.word(whose.role);
    json.inner("watched");
    json.flag(whose.is_watched);
    json.sink.text(",");
    sample_members(json, block, sample, "state");
    json.sink.text("}");
}

fn write_sample(json: &mut Json, block: &Block, sample: &Sample) {
    json.sink.text("{");
    sample_members(json, block, sample, "thread_state");
    json.sink.text("}");
}

fn sample_members(json: &mut Json, block: &Block, sample: &Sample, state: &str) {
    json.name("offset_ms");
    json.sink.ms_between(block.start_ns, sample.time_ns);
    json.inner("method");
    json.word(sample.method.map(words::method));
    json.inner(state);
    json.sink.json_optional(sample.thread_state.as_ref().map(core::slice::from_ref));
    json.inner("truncated");
    json.flag(sample.truncated);
    json.inner("frames_cut");
    json.sink.decimal(sample.frames_cut.into());
    json.inner("approximate");
    json.flag(sample.approximate);
    json.inner("frames");
    write_frames(json, sample.frames);
}

fn write_frames(json: &mut Json, frames: Frames) {
    json.list(frames.iter(), |json, frame| write_frame(json, &frame));
}

fn write_frame(json: &mut Json, frame: &Frame) {
    let module = if json.redact_paths { frame.module.map(base_name) } else { frame.module };
    json.sink.text("{\"pc\":");
    json.hex(Some(frame.pc));
    json.inner("module");
    json.sink.json_optional(module);
    json.inner("module_offset");
    json.hex(frame.module.map(|_| frame.module_offset));
    json.inner("build_id");
    json.sink.json_optional(frame.build_id);
    json.inner("symbol");
    json.sink.json_optional(frame.symbol);
    json.inner("symbol_offset");
    json.hex(frame.symbol.map(|_| frame.symbol_offset));
    json.sink.text("}");
}

/// The stack of the blocked thread in Java's words.
fn java_stack(json: &mut Json, block: &Block) {
    let Some(stack) = &block.reasons.java else { return json.sink.text("null") };
    json.sink.text("{\"offset_ms\":");
    json.sink.ms_between(block.start_ns, stack.time_ns);
    json.inner("frames_cut");
    json.sink.decimal(stack.frames_cut.into());
    json.inner("frames");
    json.list(stack.elements(), |json, element| json.sink.json_string(element));
    json.sink.text("}");
}

fn hot_stacks(json: &mut Json, block: &Block) {
    let hot = HotStacks::of(block.samples);
    json.list(hot.iter(), |json, stack| {
        json.sink.text("{\"samples\":");
        json.sink.decimal(stack.samples as u64);
        json.inner("share");
        let (samples, total) = (stack.samples as u64, hot.total.max(1) as u64);
        json.sink.fixed(samples.saturating_mul(1000).saturating_add(total / 2) / total, 3);
        json.inner("frames");
        write_frames(json, block.samples.get(stack.index).map_or(Frames::NONE, |sample| sample.frames));
        json.sink.text("}");
    });
}

fn cpu_tick(json: &mut Json, block: &Block, tick: &CpuTick, cores: u32) {
    json.sink.text("{\"offset_ms\":");
    json.sink.ms_between(block.start_ns, tick.time_ns);
    json.inner("process_percent");
    // Counters that are read one after the other can come out a little above what the cores can do.
    json.sink.fixed(u64::from(tick.process).min(u64::from(cores.max(1)) * 10_000), 2);
    json.inner("system_percent");
    match tick.system {
        Some(system) => json.sink.fixed(u64::from(system.busy.min(10_000)), 2),
        None => json.sink.text("null"),
    }
    json.sink.text("}");
}

fn surroundings(json: &mut Json, context: &Context) {
    json.key("process");
    json.sink.text("{\"name\":");
    json.sink.json_string(context.process_name);
    json.inner("pid");
    json.sink.signed(context.pid.into());
    json.sink.text("}");
    json.key("device");
    json.sink.text("{\"model\":");
    json.sink.json_optional(Some(context.model).filter(|model| !model.is_empty()));
    json.inner("api_level");
    json.sink.json_optional(Some(context.api_level).filter(|level| !level.is_empty()));
    json.inner("cores");
    json.known(context.cores.into());
    json.inner("free_memory_kb");
    json.known(context.free_memory_kb);
    json.inner("total_memory_kb");
    json.known(context.total_memory_kb);
    json.sink.text("}");
    json.key("app");
    json.sink.text("{\"qualifier\":");
    json.sink.json_optional(context.qualifier);
    json.inner("version_name");
    json.sink.json_optional(context.version_name);
    json.inner("version_code");
    json.sink.json_optional(context.version_code);
    json.inner("user_id");
    json.sink.json_optional(context.user_id);
    json.inner("network_type");
    json.sink.json_optional(context.network_type);
    json.sink.text("}");
}

fn health(json: &mut Json, health: &bc_health) {
    let counts = [
        ("loops_watched", health.loops_watched),
        ("loops_refused", health.loops_refused),
        ("calls_misused", health.calls_misused),
        ("blocks_seen", health.blocks_seen),
        ("blocks_delivered", health.blocks_delivered),
        ("blocks_dropped", health.blocks_dropped),
        ("blocks_filtered", health.blocks_filtered),
        ("samples_taken", health.samples_taken),
        ("samples_lost", health.samples_lost),
        ("samples_unanswered", health.samples_unanswered),
        ("signals_sent", health.signals_sent),
        ("waits_cut", health.waits_cut),
        ("reports_written", health.reports_written),
        ("reports_failed", health.reports_failed),
        ("reports_merged", health.reports_merged),
        ("listener_overruns", health.listener_overruns),
        ("monitor_late", health.monitor_late),
        ("dumpable_windows", health.dumpable_windows),
        ("memory_bytes", health.memory_bytes),
    ];
    let flags = [
        ("signal_free_available", health.signal_free_available),
        ("signal_available", health.signal_available),
        ("signal_taken_over", health.signal_taken_over),
        ("system_cpu_available", health.system_cpu_available),
    ];
    let mut separator = "{";
    for (name, count) in counts {
        json.sink.text(separator);
        json.name(name);
        json.sink.decimal(count);
        separator = ",";
    }
    for (name, flag) in flags {
        json.inner(name);
        json.flag(flag);
    }
    json.sink.text("}");
}
