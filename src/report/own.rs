//! What BlockCanary's log does not have and ours does: more keys, and the leading stack as a section that `ndk-stack`
//! symbolises as it stands.

use super::block::{Block, CAUSES, Context, OtherThread, Repeats};
use super::detail;
use super::hot::HotStacks;
use super::native::{self, Program, Thread};
use super::sink::Sink;
use super::text::{end, key, number, value};
use super::words;
use crate::sample::cause;

/// Writes both; what the log's readers take for keys of their own must not begin a line here.
pub(super) fn write(sink: &mut Sink, block: &Block, context: &Context) {
    keys(sink, block);
    let program = Program { pid: context.pid, name: context.process_name, redact_paths: context.redact_paths };
    let hot = HotStacks::of(block.samples);
    let leader = context.concern.leader(block.samples, &hot);
    if let Some(sample) = leader.and_then(|leader| block.samples.get(leader)) {
        native::stack(sink, &program, block.tid, block.loop_name, sample.frames);
    }
    // A section each: whoever symbolises the first does so with the others.
    for (whose, sample) in block.reasons.others.iter() {
        let OtherThread { tid, name, role, is_watched } = &whose;
        let (tid, name, role, is_watched) = (*tid, name.bytes(), *role, *is_watched);
        native::thread(sink, &program, &Thread { tid, name, role, is_watched, call: None, loop_name: None }, &sample);
    }
}

fn keys(sink: &mut Sink, block: &Block) {
    number(sink, "block-id", block.id);
    value(sink, "block-state", Some(words::state(block.state).as_bytes()));
    value(sink, "block-cause", Some(words::cause(block.cause).as_bytes()));
    value(sink, "block-cause-detail", block.cause_detail);
    shares(sink, block);
    value(sink, "block-progress", block.progress.map(|progress| words::progress(progress).as_bytes()));
    value(sink, "loop-name", Some(block.loop_name));
    number(sink, "loop-tid", u64::from(block.tid.unsigned_abs()));
    value(sink, "dispatch-what", block.what);
    key(sink, "dispatch-tag");
    sink.text("0x");
    sink.hex(block.tag, 1);
    end(sink);
    key(sink, "limit-ms");
    sink.ms(block.threshold_ns);
    end(sink);
    if let Some(wait) = block.run_queue_wait_ns {
        key(sink, "run-queue-wait-ms");
        sink.ms(wait);
        end(sink);
    }
    let scheduling = &block.reasons.scheduling;
    let counts = [
        ("faults-minor", scheduling.minor_faults),
        ("faults-major", scheduling.major_faults),
        ("switches-voluntary", scheduling.voluntary_switches),
        ("switches-involuntary", scheduling.involuntary_switches),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            number(sink, name, count);
        }
    }
    top_threads(sink, block);
    if let Some(left_out) = block.reasons.others.left_out.filter(|left_out| *left_out > 0) {
        number(sink, "more-threads", left_out.into());
    }
    repeats(sink, &block.repeats);
    end(sink);
}

/// How the lines of `repeats` begin, and no others.
pub(super) const REPEATS: &str = "repeat-";

/// What came again of the block.
pub(super) fn repeats(sink: &mut Sink, repeats: &Repeats) {
    number(sink, "repeat-count", repeats.count.into());
    if repeats.count > 0 && repeats.wall_ns_total > 0 {
        key(sink, "repeat-ms-in-all");
        sink.ms(repeats.wall_ns_total);
        end(sink);
        key(sink, "repeat-last-unix-ms");
        sink.signed(repeats.last_unix_ms);
        end(sink);
    }
}

/// `running 12 %, sleep 88 %`, the largest share first.
fn shares(sink: &mut Sink, block: &Block) {
    let mut left = block.reasons.shares;
    let mut separator = "";
    for _ in 0..CAUSES {
        let largest = left.iter_mut().zip(cause::ALL).rev().max_by_key(|(share, _)| **share);
        // Half a percent and more, which is at least one.
        let Some((share, kind)) = largest.filter(|(share, _)| **share >= 5) else { break };
        if separator.is_empty() {
            key(sink, "block-cause-shares");
        }
        sink.text(separator);
        sink.text(words::cause(kind));
        sink.text(" ");
        sink.decimal(u64::from(*share + 5) / 10);
        sink.text(" %");
        *share = 0;
        separator = ", ";
    }
    if !separator.is_empty() {
        end(sink);
    }
}

/// `123 'Loader' 87 %, 124 'Audio' 3 %`.
fn top_threads(sink: &mut Sink, block: &Block) {
    for (place, thread) in block.reasons.top.iter().flatten().enumerate() {
        if place == 0 {
            key(sink, "busiest-threads");
        } else {
            sink.text(", ");
        }
        detail::top(sink, thread);
    }
    if block.reasons.top.iter().flatten().next().is_some() {
        end(sink);
    }
}
