//! A function of the program's that can be replaced while it may be running.

use super::futex;
use super::lock::Lock;
use super::thread;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};

/// Threads that may be inside at a time; a further one leaves its call out.
const RUNNERS: usize = 16;

/// How long a wait goes on before it looks again whether its end has come unheard.
const GLANCE_NS: u64 = 5_000_000;

/// Threads that wait in `replace`, 0 for a free place.
static WAITERS: [AtomicI32; RUNNERS] = [const { AtomicI32::new(0) }; RUNNERS];

/// A callback and its user data. `F` is an optional function pointer.
pub struct Callback<F> {
    /// Which function, held only while it is read or replaced.
    current: Lock<Current<F>>,
    /// Whether there is one: a glance without the lock.
    is_set: AtomicBool,
    /// The threads inside: the thread id in the upper half, and in the lower one the generation of the function that it
    /// runs, 0 while it has not read that yet. 0 for a free place.
    runners: [AtomicU64; RUNNERS],
    /// Counts the times that a thread came out; waited for by `replace`.
    came_out: AtomicU32,
}

struct Current<F> {
    entry: Option<Entry<F>>,
    /// Counts replacements, from 1.
    generation: u32,
}

/// Tells what was put in before from what was put in since.
#[derive(Clone, Copy)]
pub struct Generation(u32);

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
            current: Lock::new(Current { entry: None, generation: 1 }),
            is_set: AtomicBool::new(false),
            runners: [const { AtomicU64::new(0) }; RUNNERS],
            came_out: AtomicU32::new(0),
        }
    }

    /// Puts another in its place, or none, and waits until the old one runs on no other thread. Where that thread waits
    /// for the calling one in the same way, waiting would never end: then it is not waited for.
    pub fn replace(&self, function: Option<T>, user_data: *mut c_void) {
        self.wait_until(self.put(function, user_data));
    }

    /// The first half of `replace`: puts another in its place, and gives what `wait_until` is to be told.
    pub fn put(&self, function: Option<T>, user_data: *mut c_void) -> Generation {
        let mut current = self.current.lock();
        current.entry = Some(Entry { function, user_data: user_data.expose_provenance() });
        current.generation = current.generation.checked_add(1).unwrap_or(1);
        self.is_set.store(function.is_some(), Release);
        Generation(current.generation)
    }

    /// The second half of `replace`: waits until none from before that `put` runs on another thread.
    pub fn wait_until(&self, Generation(generation): Generation) {
        let own = thread::tid();
        let mark = WAITERS.iter().find(|place| place.compare_exchange(0, own, AcqRel, Relaxed).is_ok());
        for runner in &self.runners {
            loop {
                let seen = self.came_out.load(Acquire);
                let inside = runner.load(Acquire);
                let (tid, runs) = ((inside >> 32) as i32, inside as u32);
                let is_newer = runs != 0 && runs.wrapping_sub(generation) as i32 >= 0;
                if inside == 0 || tid == own || is_newer || (is_waiting(tid) && is_anywhere_inside(own)) {
                    break;
                }
                futex::wait(&self.came_out, seen, Some(GLANCE_NS));
            }
        }
        if let Some(mark) = mark {
            mark.store(0, Release);
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
        let unread = u64::from(own as u32) << 32;
        let Some(place) = self.runners.iter().find(|place| place.compare_exchange(0, unread, AcqRel, Relaxed).is_ok())
        else {
            return;
        };
        let inside = enter(own);
        // Read after the place was taken: `replace` either is seen here, or sees this thread inside.
        let (entry, generation) = {
            let current = self.current.lock();
            (current.entry, current.generation)
        };
        place.store(unread | u64::from(generation), Release);
        if let Some(Entry { function: Some(function), user_data }) = entry {
            call(Some(function), core::ptr::with_exposed_provenance_mut(user_data));
        }
        leave(inside);
        place.store(0, Release);
        self.came_out.fetch_add(1, Release);
        futex::wake_all(&self.came_out);
    }

    /// Is the calling thread inside?
    pub fn is_inside(&self) -> bool {
        // Nobody inside is the usual case and needs no system call.
        if !self.is_running() {
            return false;
        }
        let own = thread::tid() as u64;
        self.runners.iter().any(|runner| runner.load(Relaxed) >> 32 == own)
    }

    /// Is any thread inside?
    pub fn is_running(&self) -> bool {
        self.runners.iter().any(|runner| runner.load(Acquire) != 0)
    }

    /// In a child of fork the threads that were inside exist no more.
    pub fn forget_runners(&self) {
        self.current.free_after_fork();
        self.runners.iter().for_each(|runner| runner.store(0, Release));
        WAITERS.iter().chain(&INSIDE).for_each(|place| place.store(0, Release));
    }
}

/// Threads that are inside any callback, 0 for a free place.
static INSIDE: [AtomicI32; 2 * RUNNERS] = [const { AtomicI32::new(0) }; 2 * RUNNERS];

fn enter(own: i32) -> Option<&'static AtomicI32> {
    INSIDE.iter().find(|place| place.compare_exchange(0, own, AcqRel, Relaxed).is_ok())
}

fn leave(place: Option<&'static AtomicI32>) {
    if let Some(place) = place {
        place.store(0, Release);
    }
}

fn is_waiting(tid: i32) -> bool {
    WAITERS.iter().any(|place| place.load(Acquire) == tid)
}

fn is_anywhere_inside(tid: i32) -> bool {
    INSIDE.iter().any(|place| place.load(Acquire) == tid)
}
