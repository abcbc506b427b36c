//! From a block to text, JSON and a file.

pub mod block;
pub mod delivery;
mod escape;
pub mod hot;
pub mod json;
mod module_file;
pub mod names;
mod number;
mod own;
pub mod parcel;
pub mod place;
pub mod reporter;
pub mod resolve;
pub mod retention;
pub mod sink;
pub mod store;
pub mod text;
pub mod text_space;
pub mod view;
mod words;
pub mod writer;
