//! The names of recorders, `recorder-<pid>-<number>.bcr`, and nothing else.

use crate::report::names::{FileName, plain_decimal};

const PREFIX: &[u8] = b"recorder-";
const END: &[u8] = b".bcr";
const HIDDEN: &[u8] = b".";
const UNFINISHED: &[u8] = b".tmp";

/// Of a process, and what tells it from its others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The process.
    pub pid: i32,
    /// Its number there.
    pub number: u64,
}

impl Name {
    /// The file's name.
    pub fn file(&self) -> FileName {
        self.written(b"", b"")
    }

    /// The name that the file has until it is whole.
    pub fn unfinished(&self) -> FileName {
        self.written(HIDDEN, UNFINISHED)
    }

    fn written(&self, before: &[u8], after: &[u8]) -> FileName {
        FileName::made(|sink| {
            sink.bytes(before);
            sink.bytes(PREFIX);
            sink.decimal(self.pid.unsigned_abs().into());
            sink.bytes(b"-");
            sink.decimal(self.number);
            sink.bytes(END);
            sink.bytes(after);
        })
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
pub fn parse(name: &[u8]) -> Option<(Name, Kind)> {
    let (name, kind) = match name.strip_prefix(HIDDEN) {
        Some(rest) => (rest.strip_suffix(UNFINISHED)?, Kind::Unfinished),
        None => (name, Kind::Whole),
    };
    let rest = name.strip_prefix(PREFIX)?.strip_suffix(END)?;
    let mut parts = rest.split(|byte| *byte == b'-');
    let (pid, number) = (plain_decimal(parts.next()?)?, plain_decimal(parts.next()?)?);
    let name = Name { pid: i32::try_from(pid).ok()?, number };
    parts.next().is_none().then_some((name, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_not() {
        let name = Name { pid: i32::MAX, number: u64::MAX };
        assert_eq!(name.file().as_c_str(), c"recorder-2147483647-18446744073709551615.bcr");
        assert_eq!(parse(name.file().as_bytes()), Some((name, Kind::Whole)));
        assert_eq!(name.unfinished().as_c_str(), c".recorder-2147483647-18446744073709551615.bcr.tmp");
        assert_eq!(parse(name.unfinished().as_bytes()), Some((name, Kind::Unfinished)));
        for other in [
            "",
            "recorder-1-2.bcr.tmp",
            ".recorder-1-2.bcr",
            "recorder-1.bcr",
            "recorder-1-2-3.bcr",
            "recorder--2.bcr",
            "recorder-1-x.bcr",
            "recorder-1-18446744073709551616.bcr",
            "recorder-2147483648-2.bcr",
            "recorder-1-2.bcr~",
            "looper-1-2.bcr",
        ] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
