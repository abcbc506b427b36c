//! The types of the C interface: layouts, values and nothing that acts.
//!
//! Names are C's own, because the generated header takes them from here.
#![allow(non_camel_case_types)]

mod block;
mod config;
mod health;
mod status;

pub use block::*;
pub use config::*;
pub use health::*;
pub use status::*;
