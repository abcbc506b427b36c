//! The main Looper of a Java app: its thread is watched by a heartbeat, or by marks that a Printer makes, and the stack of
//! a late message is taken by the VM, on a thread that may wait for it (`attached.rs`).

pub mod attached;
mod embedded;
mod env;
mod hooked;
mod line;
mod looper;
mod modified;
mod stack;

pub use looper::watch;

use super::probe;

/// Why the main Looper cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// See `probe::Failure`.
    Probe(probe::Failure),
    /// Its thread has no ALooper.
    NoLooper,
    /// The main thread cannot be sent a message: the VM cannot be entered, or it has no main Looper, or the class that
    /// other threads need is not there. The log has been told which.
    NotSent,
    /// No thread could be made.
    Thread,
    /// The main thread did not come to it in time.
    Timeout,
}
