//! The atomics of this room: the processor's, or loom's when its model checker runs the tests.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
