//! The names of report files, `looper-YYYY-MM-DD_HH-mm-ss.SSS-<pid>-<id>.log` and `.json`, and nothing else.
//!
//! Only files whose names have exactly this form are counted, listed or removed: the directory may be the program's.

use super::sink::{Memory, Sink};
use crate::sys::calendar::{Civil, local_ms};
use core::ffi::CStr;

/// What kind of report a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// BlockCanary's log.
    Text,
    /// One JSON object.
    Json,
}

impl Format {
    /// The end of the name.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Text => ".log",
            Format::Json => ".json",
        }
    }
}

/// The name of a block's reports, but for the format. Ordered by time. All zeros are a value of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// When the block began, as the local clock showed it: `calendar::local_ms`, within the years 0 to 9999.
    pub local_ms: i64,
    /// The block.
    pub id: u64,
    /// The process.
    pub pid: i32,
}

/// A file's name or the path of one, ending in a NUL.
#[derive(Clone, Copy)]
pub struct FileName {
    bytes: [u8; FileName::SIZE],
}

impl FileName {
    /// The longest name, with the largest numbers, hidden and with its NUL.
    pub const SIZE: usize = 80;

    /// What `write` writes; a longer name is cut.
    pub fn made(write: impl FnOnce(&mut Sink)) -> FileName {
        let mut name = FileName { bytes: [0; FileName::SIZE] };
        let (memory, _nul) = name.bytes.split_at_mut(FileName::SIZE - 1);
        let mut memory = Memory::new(memory);
        write(&mut Sink::new(&mut memory, &mut []));
        name
    }

    /// From the memory of one; `None` if it has no NUL.
    pub fn of(memory: &[u8; FileName::SIZE]) -> Option<FileName> {
        CStr::from_bytes_until_nul(memory).is_ok().then_some(FileName { bytes: *memory })
    }

    /// All of its memory: the name and NULs behind it.
    pub fn memory(&self) -> &[u8; FileName::SIZE] {
        &self.bytes
    }

    /// The name for a call.
    #[inline(never)]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// The name without its NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.as_c_str().to_bytes()
    }
}

const PREFIX: &[u8] = b"looper-";
const HIDDEN: &[u8] = b".";
const UNFINISHED: &[u8] = b".tmp";
/// 0000-01-01 00:00:00.000 and 9999-12-31 23:59:59.999.
const YEARS: (i64, i64) = (-62_167_219_200_000, 253_402_300_799_999);

impl Name {
    /// The name of a block that began at a time on the wall clock. Times beyond four-digit years are cut to them.
    pub fn new(start_unix_ms: i64, utc_offset_s: i32, pid: i32, id: u64) -> Name {
        Name { local_ms: local_ms(start_unix_ms, utc_offset_s).clamp(YEARS.0, YEARS.1), id, pid }
    }

    /// The file's name.
    pub fn file(&self, format: Format) -> FileName {
        self.written(b"", format, b"")
    }

    /// The name that the file has until it is whole. Another one for each file, so that nobody else writes there.
    pub fn unfinished(&self, format: Format) -> FileName {
        self.written(HIDDEN, format, UNFINISHED)
    }

    fn written(&self, before: &[u8], format: Format, after: &[u8]) -> FileName {
        let time = Civil::from_ms(self.local_ms);
        FileName::made(|sink| {
            sink.bytes(before);
            sink.bytes(PREFIX);
            sink.padded(time.year.unsigned_abs(), 4);
            for (separator, number) in
                [("-", time.month), ("-", time.day), ("_", time.hour), ("-", time.minute), ("-", time.second)]
            {
                sink.text(separator);
                sink.padded(number.into(), 2);
            }
            sink.text(".");
            sink.padded(time.milli.into(), 3);
            sink.text("-");
            sink.decimal(self.pid.unsigned_abs().into());
            sink.text("-");
            sink.decimal(self.id);
            sink.text(format.extension());
            sink.bytes(after);
        })
    }

    /// Reads a file's name; `None` if it is not exactly one that `file` makes.
    pub fn parse(name: &[u8]) -> Option<(Name, Format)> {
        let rest = name.strip_prefix(PREFIX)?;
        let (rest, format) = [Format::Text, Format::Json]
            .into_iter()
            .find_map(|format| Some((rest.strip_suffix(format.extension().as_bytes())?, format)))?;
        let (year, rest) = fixed(rest, 4, b'-')?;
        let (month, rest) = fixed(rest, 2, b'-')?;
        let (day, rest) = fixed(rest, 2, b'_')?;
        let (hour, rest) = fixed(rest, 2, b'-')?;
        let (minute, rest) = fixed(rest, 2, b'-')?;
        let (second, rest) = fixed(rest, 2, b'.')?;
        let (milli, rest) = fixed(rest, 3, b'-')?;
        let dash = rest.iter().position(|&byte| byte == b'-')?;
        let pid = plain_decimal(rest.get(..dash)?)?;
        let id = plain_decimal(rest.get(dash + 1..)?)?;
        let time = Civil {
            year: i64::from(year),
            month: month as u8,
            day: day as u8,
            hour: hour as u8,
            minute: minute as u8,
            second: second as u8,
            milli,
        };
        let pid = i32::try_from(pid).ok()?;
        Some((Name { local_ms: time.to_ms()?, id, pid }, format))
    }

    /// Reads the name of a file that is not yet whole.
    pub fn parse_unfinished(name: &[u8]) -> Option<(Name, Format)> {
        Name::parse(name.strip_prefix(HIDDEN)?.strip_suffix(UNFINISHED)?)
    }
}

/// A number of so many digits (four at most) and what ends it.
fn fixed(text: &[u8], width: usize, end: u8) -> Option<(u16, &[u8])> {
    let (digits, rest) = text.split_at_checked(width)?;
    let value = digits.iter().try_fold(0u16, |value, digit| {
        digit.is_ascii_digit().then(|| value.wrapping_mul(10).wrapping_add(u16::from(digit - b'0')))
    })?;
    Some((value, rest.strip_prefix(&[end])?))
}

/// A decimal number without zeros in front.
pub fn plain_decimal(text: &[u8]) -> Option<u64> {
    let plain = text == b"0" || text.first().is_some_and(|&first| first != b'0');
    let value = text.iter().try_fold(0u64, |value, digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    plain.then_some(value)
}
