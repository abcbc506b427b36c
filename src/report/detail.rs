//! The cause of a block in words: one line of at most some 250 bytes.

use super::sink::Sink;
use super::view::base_name;
use crate::abi::bc_cause::*;
use crate::sample::account::TopThread;
use crate::sample::case::Case;
use crate::sample::cause::Cause;
use crate::sample::wait::Wait;

/// What is told beside the case's own account.
pub struct Words<'a> {
    /// The verdict.
    pub cause: &'a Cause,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Only base names of paths are told.
    pub redact_paths: bool,
}

/// Room that a detail takes at most; what is longer is cut.
pub const DETAIL: usize = 320;

/// Writes nothing where nothing is known.
pub fn write(sink: &mut Sink, case: &Case, words: &Words) {
    match words.cause.kind {
        BC_CAUSE_RUNNING => running(sink, case, words.cpu_ns),
        BC_CAUSE_STARVED => starved(sink, case, words.cause),
        BC_CAUSE_SUSPENDED => sink.text("the process was stopped or suspended"),
        BC_CAUSE_UNKNOWN => {
            let call = case.account.wait(BC_CAUSE_UNKNOWN).and_then(|wait| wait.call);
            if let Some((number, _)) = call {
                sink.text("waits in system call ");
                sink.decimal(number.into());
            }
        }
        kind => match case.account.wait(kind) {
            Some(wait) => {
                waiting(sink, wait, words.redact_paths);
                if kind == BC_CAUSE_LOCK {
                    holders(sink, case);
                }
            }
            // No sample has met it, but storage was read.
            None => faults(sink, case),
        },
    }
}

fn running(sink: &mut Sink, case: &Case, cpu_ns: u64) {
    sink.text("running, ");
    percent(sink, cpu_ns, case.wall_ns);
    sink.text(" of one processor");
    let faults = case.account.scheduling();
    let (minor, major) = (faults.minor_faults.unwrap_or(0), faults.major_faults.unwrap_or(0));
    // More than one in 20 us: they take a good part of the time.
    if major > 0 || minor > case.wall_ns / 20_000 {
        sink.text("; ");
        sink.decimal(minor.saturating_add(major));
        sink.text(" page faults");
        if major > 0 {
            sink.text(", ");
            sink.decimal(major);
            sink.text(" of them from storage");
        }
    }
}

fn starved(sink: &mut Sink, case: &Case, cause: &Cause) {
    let share = u64::from(cause.shares.get(BC_CAUSE_STARVED as usize).copied().unwrap_or(0));
    sink.text("ready to run, ");
    sink.decimal((case.wall_ns / 1000).saturating_mul(share) / 1_000_000);
    sink.text(" ms without a processor");
    // The thread itself is not what keeps it from running.
    let others = case.account.top.iter().flatten().filter(|thread| thread.tid != case.tid);
    for (place, thread) in others.take(3).enumerate() {
        sink.text(if place == 0 { "; busiest: " } else { ", " });
        top(sink, thread);
    }
}

/// `123 'Loader' 87 %`.
pub(super) fn top(sink: &mut Sink, thread: &TopThread) {
    named(sink, thread.tid, thread.name.bytes());
    sink.text(" ");
    sink.decimal(u64::from(thread.load) / 100);
    sink.text(" %");
}

fn named(sink: &mut Sink, tid: i32, name: &[u8]) {
    sink.signed(tid.into());
    if !name.is_empty() {
        sink.text(" '");
        sink.plain(name);
        sink.text("'");
    }
}

fn percent(sink: &mut Sink, part: u64, whole: u64) {
    // In microseconds, so that the product does not overflow.
    sink.decimal((part / 1000).saturating_mul(100) / (whole / 1000).max(1));
    sink.text(" %");
}

fn waiting(sink: &mut Sink, wait: &Wait, redact_paths: bool) {
    let Some((number, arguments)) = wait.call else { return sink.text("page fault") };
    let Some(call) = wait.known_call() else {
        sink.text("waits in system call ");
        return sink.decimal(number.into());
    };
    sink.text(call.name);
    let path = if redact_paths { base_name(wait.path.bytes()) } else { wait.path.bytes() };
    let count = match call.kind {
        crate::sample::calls::Kind::Poll => Some(arguments[1]),
        crate::sample::calls::Kind::Select => Some(arguments[0]),
        _ => None,
    };
    if call.kind == crate::sample::calls::Kind::Futex {
        sink.text(" 0x");
        sink.hex(arguments[0], 1);
    } else if let Some(count) = count.filter(|count| *count > 0) {
        sink.text(" of ");
        sink.decimal(count & u64::from(u32::MAX));
        sink.text(if count == 1 { " descriptor" } else { " descriptors" });
    } else if let Some(target) = wait.target {
        sink.text("(");
        if let Some(word) = target.word() {
            sink.text(word);
            sink.text(", ");
        }
        sink.text("fd ");
        sink.signed((arguments[0] as i32).into());
        if !path.is_empty() {
            sink.text(if path.len() == wait.path.room() { " → …" } else { " → " });
            sink.plain(path);
        }
        sink.text(")");
    }
    if let Some(limit_ns) = wait.limit_ns {
        sink.text(if wait.cause == BC_CAUSE_SLEEP { " of " } else { " for at most " });
        sink.ms(limit_ns);
        sink.text(" ms");
    }
}

fn holders(sink: &mut Sink, case: &Case) {
    let chain = &case.account.chain;
    if let Some(first) = chain.holders().first() {
        sink.text(if chain.is_join { ", the end of tid " } else { " held by tid " });
        named(sink, *first, case.account.holder_name.bytes());
    }
    if let Some(closes_at) = chain.closes_at {
        sink.text("; deadlock: ");
        for tid in chain.cycle(case.tid) {
            sink.signed(tid.into());
            sink.text(" → ");
        }
        sink.signed(closes_at.into());
    }
}

fn faults(sink: &mut Sink, case: &Case) {
    if let Some(major) = case.account.scheduling().major_faults.filter(|major| *major > 0) {
        sink.decimal(major);
        sink.text(" page faults that waited for storage");
    }
}
