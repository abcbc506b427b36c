//! A late end, posted by the thread that marks it.

use crate::sample::what::What;
use crate::sys::clock::Ticks;

/// One stretch that was longer than its limit, exact.
#[derive(Clone, Copy)]
pub struct LateEnd {
    /// The loop's token: a slot may be taken anew before the monitor comes by.
    pub token: usize,
    /// Names it among the loop's stretches.
    pub stretch: usize,
    /// Begin, as far as it counts.
    pub from: Ticks,
    /// End.
    pub to: Ticks,
    /// The thread's own CPU clock at the end, ns.
    pub cpu_ns: u64,
    /// The limit, ns.
    pub limit_ns: u64,
    /// The innermost open dispatch's.
    pub tag: u64,
    /// The innermost open dispatch's.
    pub what: What,
}
