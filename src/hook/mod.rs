//! Who leaves the marks, where it is not the program itself.

pub mod alooper;
pub mod attended;
pub mod brackets;
pub mod choreographer;
pub mod frames;
pub mod imports;
pub mod interpose;
#[cfg(feature = "jni")]
pub mod java;
pub mod keeper;
mod packed;
pub mod place;
pub mod probe;
pub mod records;
pub mod stand_ins;
