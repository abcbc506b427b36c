//! What calls tell the monitor, and what it has done of that.

use super::bell;
use crate::sys::clock::Ticks;
use crate::sys::futex;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// Written by calls that hold the life-cycle lock; `looks_done` by the monitor.
pub struct Orders {
    is_running: AtomicBool,
    quit: AtomicBool,
    /// When watching ends by itself, 0 for never.
    until: AtomicU64,
    /// Signals that the thread which started watching waits for, perhaps.
    avoid: AtomicU64,
    /// Looks asked for.
    looks_wanted: AtomicU32,
    /// The number of `looks_wanted` that the last whole look has seen at its begin.
    looks_done: AtomicU32,
}

/// Orders at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Watching is on.
    pub is_running: bool,
    /// End.
    pub quit: bool,
    /// When watching ends by itself.
    pub until: Option<Ticks>,
    looks_wanted: u32,
}

impl Orders {
    /// Not running.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Orders {
        Orders {
            is_running: AtomicBool::new(false),
            quit: AtomicBool::new(false),
            until: AtomicU64::new(0),
            avoid: AtomicU64::new(0),
            looks_wanted: AtomicU32::new(0),
            looks_done: AtomicU32::new(0),
        }
    }

    /// By the monitor, before a look.
    pub fn read(&self) -> Read {
        let looks_wanted = self.looks_wanted.load(Acquire);
        let is_running = self.is_running.load(Acquire);
        // After `is_running`, which is written behind it.
        let until = Some(Ticks(self.until.load(Relaxed))).filter(|until| is_running && *until != Ticks(0));
        Read { is_running, quit: self.quit.load(Acquire), until, looks_wanted }
    }

    /// By the monitor, after it.
    pub fn done(&self, read: &Read) {
        if self.looks_done.swap(read.looks_wanted, AcqRel) != read.looks_wanted {
            futex::wake_all(&self.looks_done);
        }
    }

    /// Watching that is to be turned on will end by itself then, `None`: it will not.
    pub fn set_end(&self, until: Option<Ticks>) {
        self.until.store(until.map_or(0, |until| until.0), Relaxed);
    }

    /// Is watching on, and its time over?
    pub fn is_over(&self, now: Ticks) -> bool {
        self.read().until.is_some_and(|until| until <= now)
    }

    /// Watching is on or off from now on.
    pub fn set_running(&self, is_running: bool) {
        self.is_running.store(is_running, Release);
    }

    /// Signals that are not to be taken.
    pub fn avoid_signals(&self, signals: u64) {
        self.avoid.store(signals, Release);
    }

    /// See `avoid_signals`.
    pub fn signals_to_avoid(&self) -> u64 {
        self.avoid.load(Acquire)
    }

    /// The monitor shall end.
    pub fn quit(&self) {
        self.quit.store(true, Release);
        bell::MONITOR.ring();
    }

    /// Has the monitor look, and waits until it has, at most this long. `false`: it has not.
    pub fn look_now(&self, patience_ns: u64) -> bool {
        let wanted = self.looks_wanted.fetch_add(1, AcqRel).wrapping_add(1);
        bell::MONITOR.ring();
        let end = Ticks::now().plus(patience_ns);
        loop {
            let done = self.looks_done.load(Acquire);
            if wanted.wrapping_sub(done) as i32 <= 0 {
                return true;
            }
            let left = end.since(Ticks::now());
            if left == 0 {
                return false;
            }
            futex::wait(&self.looks_done, done, Some(left));
        }
    }
}
