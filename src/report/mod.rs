//! From a block to text, JSON and a file.

pub mod block;
mod escape;
pub mod hot;
pub mod json;
pub mod names;
mod number;
mod own;
pub mod place;
pub mod retention;
pub mod sink;
pub mod store;
pub mod text;
pub mod view;
mod words;
