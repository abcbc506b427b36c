//! Walking a stack, given registers and a memory that can be read without faulting; and which module a pc lies in.
//!
//! Nothing here takes the loader's lock, opens a module's file or dereferences an address that it was told.

pub mod arch;
pub mod cache;
pub mod cfi;
pub mod dynamic;
pub mod eh_frame;
pub mod elf;
mod expression;
pub mod fp;
mod heads;
pub mod memory;
pub mod modules;
pub mod registers;
pub mod symbols;
pub mod walk;
