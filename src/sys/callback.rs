//! A function of the program's that can be replaced while it may be running.

use super::futex;
use super::lock::Lock;
use super::thread;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::*};

/// Threads that may be inside at a time; a further one leaves its call out.
const RUNNERS: usize = 16;

/// A callback and its user data. `F` is an optional function pointer.
pub struct Callback<F> {
    /// Which function, held only while it is read or replaced.
    current: Lock<Option<Entry<F>>>,
    /// Whether there is one: a glance without the lock.
    is_set: AtomicBool,
    /// The threads inside, 0 for a free place.
    runners: [AtomicI32; RUNNERS],
    /// Counts the times that a thread came out; waited for by `replace`.
    came_out: AtomicU32,
}

#[derive(Clone, Copy)]
struct Entry<F> {
    function: F,
    /// A `*mut c_void`, kept as a number because the library only hands it back.
    user_data: usize,
}

impl<T: Copy> Callback<Option<T>> {
    /// None yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Callback {
            current: Lock::new(None),
            is_set: AtomicBool::new(false),
            runners: [const { AtomicI32::new(0) }; RUNNERS],
            came_out: AtomicU32::new(0),
        }
    }

    /// Puts another in its place, or none, and waits until the old one runs on no other thread.
    pub fn replace(&self, function: Option<T>, user_data: *mut c_void) {
        let own = thread::tid();
        {
            let mut current = self.current.lock();
            *current = Some(Entry { function, user_data: user_data.expose_provenance() });
            self.is_set.store(function.is_some(), Release);
        }
        // Who entered from here on runs the new one, but cannot be told apart: waiting for it too is harmless.
        for runner in &self.runners {
            let inside = runner.load(Acquire);
            if inside == 0 || inside == own {
                continue;
            }
            loop {
                let seen = self.came_out.load(Acquire);
                if runner.load(Acquire) != inside {
                    break;
                }
                futex::wait(&self.came_out, seen, None);
            }
        }
    }

    /// Is there one?
    #[inline]
    pub fn is_set(&self) -> bool {
        self.is_set.load(Acquire)
    }

    /// Runs it, if there is one and not too many threads are inside.
    pub fn run(&self, call: impl FnOnce(Option<T>, *mut c_void)) {
        let own = thread::tid();
        let Some(place) = self.runners.iter().find(|place| place.compare_exchange(0, own, AcqRel, Relaxed).is_ok())
        else {
            return;
        };
        // Read after the place was taken: `replace` either is seen here, or sees this thread inside.
        let entry = *self.current.lock();
        if let Some(Entry { function: Some(function), user_data }) = entry {
            call(Some(function), core::ptr::with_exposed_provenance_mut(user_data));
        }
        place.store(0, Release);
        self.came_out.fetch_add(1, Release);
        futex::wake_all(&self.came_out);
    }

    /// Is the calling thread inside?
    pub fn is_inside(&self) -> bool {
        // Nobody inside is the usual case and needs no system call.
        if self.runners.iter().all(|runner| runner.load(Relaxed) == 0) {
            return false;
        }
        let own = thread::tid();
        self.runners.iter().any(|runner| runner.load(Relaxed) == own)
    }

    /// Is any thread inside?
    pub fn is_running(&self) -> bool {
        self.runners.iter().any(|runner| runner.load(Acquire) != 0)
    }

    /// In a child of fork the threads that were inside exist no more.
    pub fn forget_runners(&self) {
        self.current.free_after_fork();
        self.runners.iter().for_each(|runner| runner.store(0, Release));
    }
}
