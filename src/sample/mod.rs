//! Evidence about a late loop: its stacks, its CPU time, the state it was in, the cause; and where that is kept.

pub mod account;
pub mod activity;
pub mod answer;
pub mod calls;
pub mod case;
pub mod cause;
pub mod census;
pub mod chain;
pub mod cpu;
pub mod desk;
pub mod doing;
pub mod evidence;
pub mod handler;
pub mod modules;
pub mod named;
pub mod namer;
pub mod owner;
pub mod request;
pub mod sampler;
pub mod scheduling;
pub mod short;
pub mod stack;
pub mod strings;
pub mod target;
pub mod wait;
pub mod what;
