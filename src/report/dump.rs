//! All threads as text: the dump that a program asks for.
#![allow(unsafe_code)]

use super::native::{self, Program, Thread};
use super::parcel::with_frames;
use super::resolve::{Resolver, unresolved};
use super::sink::Sink;
use super::text::{clock, day};
use super::text_space::TextSpace;
use super::view::Samples;
use crate::abi::bc_frame;
use crate::sample::calls;
use crate::sample::doing::Doing;
use crate::sample::evidence::Sample;
use crate::sample::named::Key;
use crate::sample::survey::Member;
use crate::sys::calendar::{Civil, local_ms};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Bytes that are gathered before they are written.
pub const BUFFER: usize = 4096;

/// What writing a dump needs; whoever has the survey has it, too.
pub struct Page {
    /// Names frames.
    pub resolver: Resolver,
    /// Room for the deepest stack.
    pub frames: &'static mut [bc_frame],
    /// Room for the strings of one thread.
    pub text: TextSpace,
    /// The process.
    pub pid: i32,
    /// Its name.
    pub process_name: &'static [u8],
    /// Only base names of modules are told.
    pub redact_paths: bool,
    /// Local time is this many seconds ahead of UTC.
    pub utc_offset_s: &'static AtomicI32,
}

// SAFETY: its pointers lead into its own memory, which goes with it.
unsafe impl Send for Page {}

impl Page {
    /// What a dump begins with.
    pub fn begin(&self, sink: &mut Sink, now_unix_ms: i64, threads: usize) {
        let now = Civil::from_ms(local_ms(now_unix_ms, self.utc_offset_s.load(Relaxed)));
        sink.text("----- pid ");
        sink.signed(self.pid.into());
        sink.text(" at ");
        sink.padded(now.year.clamp(0, 9999).unsigned_abs(), 4);
        sink.text("-");
        day(sink, now);
        clock(sink, now);
        sink.text(".");
        sink.padded(now.milli.into(), 3);
        sink.text(" -----\nCmd line: ");
        sink.plain(self.process_name);
        sink.text("\nthreads: ");
        sink.decimal(threads as u64);
        sink.text("\n\n");
    }

    /// A thread.
    pub fn thread(&mut self, sink: &mut Sink, member: &Member, pcs: &[u64]) {
        self.text.clear();
        self.resolver.begin_block();
        let (sample, mut count) = (&member.sample, 0);
        for (depth, (frame, pc)) in self.frames.iter_mut().zip(pcs).enumerate() {
            let unnamed = unresolved(Key { pc: *pc, is_outer: sample.is_outer(depth), table: sample.table });
            *frame = self.resolver.resolve(&unnamed, &mut self.text);
            count = depth + 1;
        }
        self.resolver.end_block();
        let sample = [with_frames(sample, self.frames.get(..count).unwrap_or(&[]))];
        // SAFETY: the sample points to frames and strings of this page, which nothing changes before they are written.
        let samples = unsafe { Samples::new(&sample) };
        let Some(sample) = samples.get(0) else { return };
        let name = member.thread.name.bytes();
        let loop_name = member.loop_name.split(|byte| *byte == 0).next();
        let thread = Thread {
            tid: member.thread.tid,
            name,
            call: call_of(&member.sample),
            is_watched: member.thread.is_watched,
            loop_name: loop_name.filter(|loop_name| !loop_name.is_empty() && *loop_name != name),
            role: member.thread.role,
        };
        let program = Program { pid: self.pid, name: self.process_name, redact_paths: self.redact_paths };
        native::thread(sink, &program, &thread, &sample);
    }

    /// What a dump ends with; `more` threads are not in it.
    pub fn end(&self, sink: &mut Sink, more: usize) {
        if more > 0 {
            sink.text("(");
            sink.decimal(more as u64);
            sink.text(" more threads)\n\n");
        }
        sink.text("----- end ");
        sink.signed(self.pid.into());
        sink.text(" -----\n");
    }
}

fn call_of(sample: &Sample) -> Option<&'static str> {
    match sample.doing {
        Doing::Waits((number, _)) => calls::find(number).map(|call| call.name),
        _ => None,
    }
}
