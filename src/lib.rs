//! blockcanary finds out why a game froze.
//!
//! A Rust static library with a C interface. It watches looper threads, measures each dispatch, and when one takes
//! too long it captures why: the blocked thread's stacks, its CPU time, the state it was in. Users read
//! `include/blockcanary.h`; how the library is built is in `ARCHITECTURE.md`.
//!
//! Where a panic aborts, which is every build but a test's, the library is `no_std` and has no allocator: what is not
//! there cannot allocate. Tests always unwind and so get `std`.
#![cfg_attr(panic = "abort", no_std)]
#![deny(unsafe_code)]

pub mod abi;
pub mod report;
pub mod ring;
pub mod sample;
pub mod sys;
pub mod unwind;
pub mod watch;

#[cfg(panic = "abort")]
mod panic;
