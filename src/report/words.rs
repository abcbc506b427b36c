//! The words that reports use for enumerations.

use super::block::Progress;
use crate::abi::{bc_block_state, bc_cause, bc_sample_method};

/// A block's state.
pub fn state(state: bc_block_state) -> &'static str {
    match state {
        bc_block_state::BC_BLOCK_ONGOING => "ongoing",
        bc_block_state::BC_BLOCK_HANG => "hang",
        bc_block_state::BC_BLOCK_ENDED => "ended",
        bc_block_state::BC_BLOCK_KILLED => "killed",
    }
}

/// A block's cause.
pub fn cause(cause: bc_cause) -> &'static str {
    match cause {
        bc_cause::BC_CAUSE_UNKNOWN => "unknown",
        bc_cause::BC_CAUSE_RUNNING => "running",
        bc_cause::BC_CAUSE_STARVED => "starved",
        bc_cause::BC_CAUSE_LOCK => "lock",
        bc_cause::BC_CAUSE_IO => "io",
        bc_cause::BC_CAUSE_IPC => "ipc",
        bc_cause::BC_CAUSE_SLEEP => "sleep",
        bc_cause::BC_CAUSE_SUSPENDED => "suspended",
    }
}

/// How a sample was taken.
pub fn method(method: bc_sample_method) -> &'static str {
    match method {
        bc_sample_method::BC_SAMPLE_NO_STACK => "no_stack",
        bc_sample_method::BC_SAMPLE_KERNEL_STATE => "kernel_state",
        bc_sample_method::BC_SAMPLE_SIGNAL => "signal",
    }
}

/// Whether the block moved.
pub fn progress(progress: Progress) -> &'static str {
    match progress {
        Progress::Stuck => "stuck",
        Progress::Busy => "busy",
        Progress::Progressing => "progressing",
    }
}
