//! Where text goes on its way out: a fixed buffer before any kind of output.
//!
//! The first error is kept and everything after it is dropped, so that what writes a report need not look at each line.

use crate::sys::errno::Errno;

/// Takes bytes.
pub trait Output {
    /// Takes all of them, or says what went wrong.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno>;
}

/// Memory as an output: takes what fits and counts the rest, as `snprintf` does.
pub struct Memory<'a> {
    memory: &'a mut [u8],
    needed: usize,
}

impl<'a> Memory<'a> {
    /// Starts at the begin of the memory.
    pub fn new(memory: &'a mut [u8]) -> Memory<'a> {
        Memory { memory, needed: 0 }
    }

    /// Bytes that all of it takes, whether they fitted or not.
    pub fn needed(&self) -> usize {
        self.needed
    }
}

impl Output for Memory<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        copy(self.memory.get_mut(self.needed..).unwrap_or_default(), bytes);
        self.needed = self.needed.saturating_add(bytes.len());
        Ok(())
    }
}

/// Copies as much as fits, answers how much.
fn copy(to: &mut [u8], from: &[u8]) -> usize {
    let count = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..count), from.get(..count)) {
        to.copy_from_slice(from);
    }
    count
}

/// Bytes of any kind as text for a message: what is no UTF-8 or no visible character becomes a question mark.
pub struct Lossy<'a>(pub &'a [u8]);

impl core::fmt::Display for Lossy<'_> {
    fn fmt(&self, to: &mut core::fmt::Formatter) -> core::fmt::Result {
        use core::fmt::Write;
        for chunk in self.0.utf8_chunks() {
            for letter in chunk.valid().chars() {
                to.write_char(if letter.is_control() { '?' } else { letter })?;
            }
            if !chunk.invalid().is_empty() {
                to.write_char('?')?;
            }
        }
        Ok(())
    }
}

/// Gathers text for an output. `finish` sends the last of it and tells whether all went well.
pub struct Sink<'a> {
    output: &'a mut dyn Output,
    buffer: &'a mut [u8],
    used: usize,
    error: Option<Errno>,
}

impl<'a> Sink<'a> {
    /// A sink in front of `output`. With an empty buffer everything goes through at once.
    pub fn new(output: &'a mut dyn Output, buffer: &'a mut [u8]) -> Sink<'a> {
        Sink { output, buffer, used: 0, error: None }
    }

    /// Whether something went wrong; more need not be said then.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// What went wrong first.
    pub fn error(&self) -> Option<Errno> {
        self.error
    }

    /// Something went wrong in the making of what is written here.
    pub fn fail(&mut self, error: Errno) {
        self.error = self.error.or(Some(error));
    }

    /// Sends what is left.
    pub fn finish(mut self) -> Result<(), Errno> {
        self.flush();
        self.error.map_or(Ok(()), Err)
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.error.is_none() {
            if self.buffer.is_empty() {
                self.error = self.output.write(bytes).err();
                return;
            }
            let copied = copy(self.buffer.get_mut(self.used..).unwrap_or_default(), bytes);
            bytes = bytes.get(copied..).unwrap_or_default();
            self.used = self.used.saturating_add(copied);
            if self.used >= self.buffer.len() {
                self.flush();
            }
        }
    }

    /// Text as it is.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Sends what has been gathered so far.
    pub fn flush(&mut self) {
        let filled = self.buffer.get(..self.used).unwrap_or_default();
        if self.error.is_none() && !filled.is_empty() {
            self.error = self.output.write(filled).err();
        }
        self.used = 0;
    }
}
