//! The only door to the C library and the kernel. Each file wraps one of their subjects in safe functions.

pub mod errno;
pub mod maps;
pub mod memory;
