//! A block in one of the two forms, wherever that goes.

use super::block::{Block, Context};
use super::names::Format;
use super::sink::{Memory, Sink};
use super::{json, text};

/// Writes it.
pub fn write(sink: &mut Sink, format: Format, block: &Block, context: &Context) {
    match format {
        Format::Text => text::write(sink, block, context),
        Format::Json => json::write(sink, block, context),
    }
}

/// Writes as much of it as fits, with a NUL behind it if there is room for anything. How long all of it is.
pub fn to_memory(memory: &mut [u8], format: Format, block: &Block, context: &Context) -> usize {
    let room = memory.len().saturating_sub(1);
    let (text, _nul) = memory.split_at_mut_checked(room).unwrap_or_default();
    let mut output = Memory::new(text);
    write(&mut Sink::new(&mut output, &mut []), format, block, context);
    let needed = output.needed();
    if let Some(end) = memory.get_mut(needed.min(room)) {
        *end = 0;
    }
    needed
}
