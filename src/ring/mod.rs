//! Fixed storage that two threads share without a lock. Generic, and without the C library, so that loom and Miri can
//! run it.

pub mod atomic;
pub mod queue;
pub mod version;
