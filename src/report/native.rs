//! A thread with its stack as a tombstone has it, which `ndk-stack` symbolises as it stands.
//!
//! The tool begins at the banner and ends at the first line behind the frames that is none. It reads a path up to a space
//! and looks for its base name only.

use super::sink::Sink;
use super::view::{Frame, Frames, Sample, base_name};

/// Whose threads they are.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// The process.
    pub pid: i32,
    /// Its name.
    pub name: &'a [u8],
    /// Only the base names of modules are told.
    pub redact_paths: bool,
}

/// A thread.
#[derive(Clone, Copy)]
pub struct Thread<'a> {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: &'a [u8],
    /// The system call that it waits in, where known.
    pub call: Option<&'a str>,
    /// It is a watched loop's.
    pub is_watched: bool,
    /// The loop's name, where that is another one.
    pub loop_name: Option<&'a [u8]>,
    /// What it has to do with a block.
    pub role: Option<&'a str>,
}

/// A thread of which there are frames and nothing else.
pub fn stack(sink: &mut Sink, program: &Program, tid: i32, name: &[u8], frames: Frames) {
    banner(sink, program, tid, name);
    write_frames(sink, program, frames);
    sink.text("\n");
}

/// A thread, with a line that says what it does, and whatever frames there are.
pub fn thread(sink: &mut Sink, program: &Program, thread: &Thread, sample: &Sample) {
    banner(sink, program, thread.tid, thread.name);
    state(sink, thread, sample.thread_state);
    write_frames(sink, program, sample.frames);
    if sample.frames.is_empty() {
        sink.text(match sample.thread_state {
            Some(b'R') => "    (no stack: it was running)\n",
            Some(b'Z') => "    (no stack: it has ended)\n",
            _ => "    (no stack)\n",
        });
    } else if sample.frames_cut > 0 {
        sink.text("    (");
        sink.decimal(sample.frames_cut.into());
        sink.text(" more frames)\n");
    } else if sample.truncated {
        sink.text("    (the thread's outermost frames were not found)\n");
    }
    if sample.approximate {
        sink.text("    (some of these frames could not be verified)\n");
    }
    sink.text("\n");
}

fn banner(sink: &mut Sink, program: &Program, tid: i32, name: &[u8]) {
    sink.text("*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\npid: ");
    sink.signed(program.pid.into());
    sink.text(", tid: ");
    sink.signed(tid.into());
    sink.text(", name: ");
    sink.plain(name);
    sink.text("  >>> ");
    sink.plain(program.name);
    sink.text(" <<<\n");
}

/// `state: S (sleeping) in futex, watched as "engine"`.
fn state(sink: &mut Sink, thread: &Thread, state: Option<u8>) {
    sink.text("state: ");
    match state {
        Some(letter) => {
            sink.plain(&[letter]);
            sink.text(match letter {
                b'R' => " (running)",
                b'S' => " (sleeping)",
                b'D' => " (waiting for a device)",
                b'T' => " (stopped)",
                b't' => " (held by a debugger)",
                b'Z' | b'X' => " (ended)",
                _ => "",
            });
        }
        None => sink.text("unknown"),
    }
    if let Some(call) = thread.call {
        sink.text(" in ");
        sink.text(call);
    }
    if thread.is_watched {
        sink.text(", watched");
    }
    if let Some(name) = thread.loop_name {
        sink.text(" as \"");
        sink.plain(name);
        sink.text("\"");
    }
    if let Some(role) = thread.role {
        sink.text(", ");
        sink.text(role);
    }
    sink.text("\n");
}

fn write_frames(sink: &mut Sink, program: &Program, frames: Frames) {
    for (depth, frame) in frames.iter().enumerate() {
        write_frame(sink, depth, &frame, program.redact_paths);
    }
}

fn write_frame(sink: &mut Sink, depth: usize, frame: &Frame, redact_paths: bool) {
    // A return address may already belong to the next line of source, or to the next function after a call that never
    // returns.
    let back = if depth == 0 { 0 } else { INSTRUCTION };
    let address = frame.module.map_or(frame.pc, |_| frame.module_offset);
    sink.text("    #");
    sink.padded(depth as u64, 2);
    sink.text(" pc ");
    sink.hex(address.checked_sub(back).unwrap_or(address), 16);
    sink.text("  ");
    match frame.module {
        Some(path) if redact_paths || path.contains(&b' ') => sink.plain(base_name(path)),
        Some(path) => sink.plain(path),
        None => sink.text("<unknown>"),
    }
    if let (Some(symbol), Some(offset)) = (frame.symbol, frame.symbol_offset.checked_sub(back)) {
        sink.text(" (");
        sink.plain(symbol);
        sink.text("+");
        sink.decimal(offset);
        sink.text(")");
    }
    if let Some(build_id) = frame.build_id {
        sink.text(" (BuildId: ");
        sink.plain(build_id);
        sink.text(")");
    }
    sink.text("\n");
}

/// How far a tombstone steps back from a return address: the length of the shortest call where lengths differ.
const INSTRUCTION: u64 = if cfg!(target_arch = "aarch64") {
    4
} else if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
    1
} else {
    2
};
