//! What the log says of a block: one line that a human can use.

use super::parcel::Parcel;
use super::sink::Lossy;
use super::words;
use crate::abi::bc_block_state::{self, BC_BLOCK_HANG, BC_BLOCK_ONGOING};
use crate::abi::bc_cause;
use crate::{log_info, log_warn};
use core::fmt::{Display, Formatter, Result};

/// Logs a state of a block: `loop "game": "frame" blocked for 312 ms (running) → path`.
pub fn block(parcel: &Parcel) {
    let line = Line(parcel);
    match parcel.state {
        BC_BLOCK_ONGOING => log_info!("{line}"),
        _ => log_warn!("{line}"),
    }
}

struct Line<'a>(&'a Parcel);

impl Display for Line<'_> {
    fn fmt(&self, line: &mut Formatter) -> Result {
        let block = self.0.block();
        write!(line, "loop \"{}\": ", Lossy(block.loop_name))?;
        if let Some(what) = block.what {
            write!(line, "\"{}\" ", Lossy(what))?;
        }
        let (verb, addition) = match self.0.state {
            bc_block_state::BC_BLOCK_ENDED => ("blocked", ""),
            bc_block_state::BC_BLOCK_KILLED => ("blocked", " when the process died"),
            BC_BLOCK_ONGOING => ("has been blocked", ""),
            BC_BLOCK_HANG => ("hangs: it has been blocked", ""),
        };
        write!(line, "{verb} for {} ms{addition}", block.wall_ns / 1_000_000)?;
        if block.cause != bc_cause::BC_CAUSE_UNKNOWN {
            write!(line, " ({})", words::cause(block.cause))?;
        }
        if let Some(path) = self.0.path() {
            write!(line, " → {}", Lossy(path))?;
        }
        match block.repeats.count {
            0 => Ok(()),
            count => write!(line, ", the report of one like it (repeat {count})"),
        }
    }
}
