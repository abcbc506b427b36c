//! The only door to the C library and the kernel. Each file wraps one of their subjects in safe functions.

pub mod calendar;
pub mod directory;
pub mod errno;
pub mod fd;
pub mod files;
pub mod process;
