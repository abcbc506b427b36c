//! Loops, their marks, and the monitor that looks at them.

pub mod allowances;
pub mod bell;
pub mod buckets;
pub mod endings;
pub mod gaps;
pub mod gate;
pub mod handover;
pub mod judge;
pub mod late;
pub mod ledger;
pub mod looks;
pub mod mark;
pub mod marks;
pub mod monitor;
pub mod orders;
pub mod pinging;
pub mod probe;
pub mod reasons;
pub mod registry;
pub mod saturation;
pub mod slot;
pub mod statistics;
pub mod surveys;
pub mod tally;
pub mod token;
pub mod track;
