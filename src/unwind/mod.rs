//! Walking a stack, given registers and a memory that can be read without faulting; and which module a pc lies in.
//!
//! Nothing here takes the loader's lock, opens a module's file or dereferences an address that it was told.

pub mod memory;
pub mod registers;
