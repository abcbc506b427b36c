//! From a block to text, JSON and a file.

pub mod block;
pub mod view;
