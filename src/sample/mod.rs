//! Evidence about a late loop: its stacks, its CPU time, the state it was in; and where that is kept.

pub mod activity;
pub mod answer;
pub mod case;
pub mod cpu;
pub mod evidence;
pub mod handler;
pub mod modules;
pub mod named;
pub mod namer;
pub mod request;
pub mod sampler;
pub mod stack;
pub mod strings;
pub mod what;
