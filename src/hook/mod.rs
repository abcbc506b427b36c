//! Who leaves the marks, where it is not the program itself.

pub mod alooper;
pub mod brackets;
pub mod choreographer;
pub mod frames;
pub mod probe;
pub mod records;
