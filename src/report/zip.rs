//! Zip archives of stored entries: PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.4, without zip64.
//!
//! Our own few lines, because the crates that write the container need an allocator. Nothing is deflated: miniz_oxide needs
//! an allocator too, and zlib-rs, which would take one of ours, adds 49 KB to a program.

use super::sink::{Output, Sink};
use crate::sys::calendar::Civil;
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files::{self, Kind};
use crc::{CRC_32_ISO_HDLC, Crc, Table};

static CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

const LOCAL: usize = 30;
const CENTRAL: usize = 46;
const END: usize = 22;
/// Longest name of an entry.
const NAME: usize = 80;
/// Version 1.0 is all that stored entries ask for; made on Unix, whose modes the attributes tell.
const NEEDED: u16 = 10;
const MADE_BY: u16 = 3 << 8 | NEEDED;
const ATTRIBUTES: u32 = 0o100_600 << 16;

/// Bytes of memory that an archive being written needs.
pub const BUFFER: usize = 8192;

/// Why an entry was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its file could not be read. The archive is as it was.
    Source(Errno),
    /// There would be more bytes or entries than the format can tell. The archive is as it was.
    Full,
    /// The archive could not be written, and is of no use any more.
    Archive(Errno),
}

/// An archive that is being written to an empty file, which is read again for the directory at its end: what is in it
/// need not be remembered.
pub struct Archive<'a> {
    file: &'a Fd,
    sink: Sink<'a>,
    copy: &'a mut [u8],
    at: u64,
    entries: u16,
}

/// A file as an output.
pub struct ToFile<'a>(pub &'a Fd);

impl Output for ToFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        files::write_all(self.0, bytes)
    }
}

impl<'a> Archive<'a> {
    /// Begins one. `output` leads to `file`.
    pub fn new(file: &'a Fd, output: &'a mut ToFile<'a>, buffer: &'a mut [u8; BUFFER]) -> Archive<'a> {
        let (copy, rest) = buffer.split_at_mut(BUFFER / 2);
        Archive { file, sink: Sink::new(output, rest), copy, at: 0, entries: 0 }
    }

    /// Entries so far.
    pub fn entries(&self) -> u16 {
        self.entries
    }

    /// Adds what a file holds, under a name in ASCII, dated by a local time (see `calendar::local_ms`).
    pub fn add(&mut self, from: &Fd, name: &[u8], local_ms: i64) -> Result<(), Refused> {
        let status = files::status_of_file(from).map_err(Refused::Source)?;
        if status.kind != Kind::File || name.len() > NAME {
            return Err(Refused::Source(Errno(libc::EINVAL)));
        }
        let directory = (u64::from(self.entries) + 1) * (CENTRAL + NAME) as u64;
        let end = self.at.saturating_add((LOCAL + name.len()) as u64).saturating_add(status.size);
        if self.entries == u16::MAX - 1 || end.saturating_add(directory + END as u64) > u64::from(u32::MAX) {
            return Err(Refused::Full);
        }
        // Read twice, so that what cannot be read leaves no half entry behind.
        let mut digest = CRC.digest();
        parts(from, status.size, self.copy, |bytes| digest.update(bytes)).map_err(Refused::Source)?;
        let sum = digest.finalize();
        let (date, time) = dos(local_ms);
        let (sink, size) = (&mut self.sink, status.size as u32);
        sink.bytes(b"PK\x03\x04");
        words(sink, &[NEEDED, 0, 0, time, date]);
        double_words(sink, &[sum, size, size]);
        words(sink, &[name.len() as u16, 0]);
        sink.bytes(name);
        let mut digest = CRC.digest();
        let copied = parts(from, status.size, self.copy, |bytes| {
            digest.update(bytes);
            sink.bytes(bytes);
        });
        // Reports are replaced, never changed: one that differs now was changed by somebody else.
        let same = copied.and(if digest.finalize() == sum { Ok(()) } else { Err(Errno(libc::EBADMSG)) });
        same.map_err(Refused::Archive)?;
        if let Some(error) = sink.error() {
            return Err(Refused::Archive(error));
        }
        self.at = end;
        self.entries += 1;
        Ok(())
    }

    /// Writes the directory and the end.
    pub fn finish(self) -> Result<(), Errno> {
        let Archive { file, mut sink, at: begin, entries, .. } = self;
        sink.flush();
        let (mut at, mut size) = (0u64, 0u64);
        for _ in 0..entries {
            let mut header = [0; LOCAL + NAME];
            let known = files::read_at(file, at, &mut header);
            let fields = header.get(4..LOCAL).filter(|_| known >= LOCAL);
            let length = |place: usize, width: usize| {
                let bytes = fields.and_then(|fields| fields.get(place..place + width)).unwrap_or_default();
                bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
            };
            let (data, name) = (length(14, 4), length(22, 2) as usize);
            // Version to name length and extra length stand alike in both headers.
            let Some((fields, name)) = fields.zip(header.get(LOCAL..known.min(LOCAL + name))) else {
                return Err(Errno(libc::EIO));
            };
            sink.bytes(b"PK\x01\x02");
            words(&mut sink, &[MADE_BY]);
            sink.bytes(fields);
            words(&mut sink, &[0, 0, 0]);
            double_words(&mut sink, &[ATTRIBUTES, at as u32]);
            sink.bytes(name);
            at = at.saturating_add((LOCAL + name.len()) as u64).saturating_add(data);
            size = size.saturating_add((CENTRAL + name.len()) as u64);
        }
        sink.bytes(b"PK\x05\x06");
        words(&mut sink, &[0, 0, entries, entries]);
        double_words(&mut sink, &[size as u32, begin as u32]);
        words(&mut sink, &[0]);
        sink.finish()
    }
}

fn words(sink: &mut Sink, words: &[u16]) {
    words.iter().for_each(|word| sink.bytes(&word.to_le_bytes()));
}

fn double_words(sink: &mut Sink, words: &[u32]) {
    words.iter().for_each(|word| sink.bytes(&word.to_le_bytes()));
}

/// Reads so many bytes from the begin, part by part.
fn parts(from: &Fd, size: u64, buffer: &mut [u8], mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    let mut at = 0;
    while at < size {
        let wanted = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffer.len());
        let Some(part) = buffer.get_mut(..wanted) else { return Err(Errno(libc::EIO)) };
        // Less than the file holds is what a failing device gives, too.
        if files::read_at(from, at, part) != wanted {
            return Err(Errno(libc::EIO));
        }
        each(part);
        at = at.saturating_add(wanted as u64);
    }
    Ok(())
}

/// A date and a time as MS-DOS has them: from 1980 on, to two seconds.
fn dos(local_ms: i64) -> (u16, u16) {
    let time = Civil::from_ms(local_ms);
    let year = time.year.clamp(1980, 2107).abs_diff(1980) as u16;
    let date = year << 9 | u16::from(time.month) << 5 | u16::from(time.day);
    (date, u16::from(time.hour) << 11 | u16::from(time.minute) << 5 | u16::from(time.second / 2))
}
