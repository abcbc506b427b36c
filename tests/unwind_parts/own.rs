//! This process's memory, read softly.

pub use blockcanary::sys::memory::OwnMemory;
