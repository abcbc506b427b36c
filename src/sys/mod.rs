//! The only door to the C library and the kernel. Each file wraps one of their subjects in safe functions.

pub mod bell;
pub mod calendar;
pub mod callback;
pub mod clock;
pub mod context;
pub mod counters;
pub mod cpu_timer;
pub mod directory;
pub mod dumpable;
pub mod errno;
pub mod fault;
pub mod fd;
pub mod files;
pub mod fork;
pub mod futex;
pub mod lock;
pub mod log;
pub mod machine;
pub mod mapping;
pub mod maps;
pub mod memory;
pub mod process;
pub mod procfs;
pub mod signal;
pub mod thread;
