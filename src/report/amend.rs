//! Writes a report again with other lines about repeats: blocks that came again are told in the report of the first.
//!
//! The report is copied from its file, line by line, so that nothing of the first block has to be kept in memory. The
//! lines are found by how they begin, which no other line can: strings hold no line ends there.

use super::block::Repeats;
use super::names::Format;
use super::sink::Sink;
use super::{json, own};
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files;

/// How such a line begins.
fn begin(format: Format) -> &'static [u8] {
    match format {
        Format::Text => own::REPEATS.as_bytes(),
        Format::Json => b"\"repeats\":",
    }
}

fn write_repeats(sink: &mut Sink, format: Format, repeats: &Repeats) {
    match format {
        Format::Text => own::repeats(sink, repeats),
        Format::Json => {
            json::repeats(sink, repeats);
            sink.text(",\n");
        }
    }
}

/// Where in a line the copying is.
enum At {
    /// So many bytes of it are those that a line about repeats begins with.
    Begin(usize),
    /// Within a line that stays.
    Kept,
    /// Within a line that goes.
    Dropped,
}

/// Copies an open report into `sink`, with these repeats.
pub fn copy(from: &Fd, sink: &mut Sink, format: Format, repeats: &Repeats) {
    let begin = begin(format);
    let mut buffer = [0; 4096];
    let mut at = At::Begin(0);
    let mut is_written = false;
    let mut is_past = false;
    loop {
        let chunk = match files::read(from, &mut buffer) {
            Ok(0) => break,
            Ok(count) => buffer.get(..count).unwrap_or_default(),
            Err(error) => return sink.fail(error),
        };
        let mut rest = chunk;
        while let Some((byte, behind)) = rest.split_first().filter(|_| !is_past) {
            rest = behind;
            at = match at {
                At::Begin(count) if begin.get(count) == Some(byte) => {
                    if count + 1 < begin.len() {
                        At::Begin(count + 1)
                    } else {
                        if !core::mem::replace(&mut is_written, true) {
                            write_repeats(sink, format, repeats);
                        }
                        At::Dropped
                    }
                }
                At::Begin(count) => {
                    sink.bytes(begin.get(..count).unwrap_or_default());
                    sink.bytes(&[*byte]);
                    // They stand together.
                    is_past = is_written;
                    after(*byte, At::Kept)
                }
                At::Kept => {
                    sink.bytes(&[*byte]);
                    after(*byte, At::Kept)
                }
                At::Dropped => after(*byte, At::Dropped),
            };
        }
        sink.bytes(rest);
    }
    if !is_written || !is_past {
        // It is not what was written there.
        sink.fail(Errno(libc::EBADMSG));
    }
}

fn after(byte: u8, within: At) -> At {
    if byte == b'\n' { At::Begin(0) } else { within }
}
