//! The names of recorders, `recorder-<pid>-<number>.bcr`, and nothing else.

use crate::report::sink::{Memory, Sink};
use core::ffi::CStr;

const PREFIX: &[u8] = b"recorder-";
const END: &[u8] = b".bcr";
const HIDDEN: &[u8] = b".";
const UNFINISHED: &[u8] = b".tmp";
/// The longest, hidden and with its NUL.
const SIZE: usize = 64;

/// A file's name.
#[derive(Clone, Copy)]
pub struct FileName {
    bytes: [u8; SIZE],
    pid: i32,
    number: u64,
}

impl FileName {
    /// Of a process, and what tells it from its others.
    pub fn new(pid: i32, number: u64) -> FileName {
        FileName { bytes: written(b"", pid, number, b""), pid, number }
    }

    /// The name that the file has until it is whole.
    pub fn unfinished(&self) -> FileName {
        FileName { bytes: written(HIDDEN, self.pid, self.number, UNFINISHED), ..*self }
    }

    /// The name for a call.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// What kind of name it is, if it is one of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One that is whole.
    Whole,
    /// One that was never finished.
    Unfinished,
}

/// Reads a file's name.
pub fn parse(name: &[u8]) -> Option<Kind> {
    let (name, kind) = match name.strip_prefix(HIDDEN) {
        Some(rest) => (rest.strip_suffix(UNFINISHED)?, Kind::Unfinished),
        None => (name, Kind::Whole),
    };
    let rest = name.strip_prefix(PREFIX)?.strip_suffix(END)?;
    let mut parts = rest.split(|byte| *byte == b'-');
    let is_number = |part: &[u8]| !part.is_empty() && part.len() <= 20 && part.iter().all(u8::is_ascii_digit);
    let is_one = is_number(parts.next()?) && is_number(parts.next()?) && parts.next().is_none();
    is_one.then_some(kind)
}

fn written(before: &[u8], pid: i32, number: u64, after: &[u8]) -> [u8; SIZE] {
    let mut name = [0; SIZE];
    let (memory, _nul) = name.split_at_mut(SIZE - 1);
    let mut memory = Memory::new(memory);
    let mut sink = Sink::new(&mut memory, &mut []);
    sink.bytes(before);
    sink.bytes(PREFIX);
    sink.decimal(pid.unsigned_abs().into());
    sink.bytes(b"-");
    sink.decimal(number);
    sink.bytes(END);
    sink.bytes(after);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_not() {
        let name = FileName::new(i32::MAX, u64::MAX);
        assert_eq!(name.as_c_str(), c"recorder-2147483647-18446744073709551615.bcr");
        assert_eq!(parse(name.as_c_str().to_bytes()), Some(Kind::Whole));
        assert_eq!(name.unfinished().as_c_str(), c".recorder-2147483647-18446744073709551615.bcr.tmp");
        assert_eq!(parse(name.unfinished().as_c_str().to_bytes()), Some(Kind::Unfinished));
        for other in [
            "",
            "recorder-1-2.bcr.tmp",
            ".recorder-1-2.bcr",
            "recorder-1.bcr",
            "recorder-1-2-3.bcr",
            "recorder--2.bcr",
            "recorder-1-x.bcr",
            "recorder-1-2.bcr~",
            "looper-1-2.bcr",
        ] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
