//! A lock for the library's own threads and for calls that are not marks. No mark and no signal handler takes one.
#![allow(unsafe_code)]

use super::clock::Ticks;
use super::{futex, thread};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// 0 free, 1 held, 2 held and somebody may wait: the three-state mutex of Ulrich Drepper's "Futexes Are Tricky".
pub struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a `Held` only, and there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, while it is held.
pub struct Held<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Waits for the value.
    pub fn lock(&self) -> Held<'_, T> {
        take(&self.word);
        Held(self)
    }

    /// The value without waiting, by whoever has the only reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Frees a lock whose holder exists no more: in a child of fork, where the other threads are gone. `true`: it was
    /// held, so its value may be half written.
    pub fn free_after_fork(&self) -> bool {
        self.word.swap(0, AcqRel) != 0
    }
}

/// Once for locks of all types and all places that take one.
#[inline(never)]
fn take(word: &AtomicU32) {
    if word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
        return;
    }
    let begin = Ticks::now();
    while word.swap(2, Acquire) != 0 {
        futex::wait(word, 2, None);
    }
    thread::has_waited(Ticks::now().since(begin));
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        give_back(&self.0.word);
    }
}

#[inline(never)]
fn give_back(word: &AtomicU32) {
    if word.swap(0, Release) == 2 {
        futex::wake_all(word);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this is the one `Held` there is.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the one `Held` there is.
        unsafe { &mut *self.0.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_threads_count_together() {
        static COUNT: Lock<u64> = Lock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50_000).for_each(|_| *COUNT.lock() += 1));
            }
        });
        assert_eq!(*COUNT.lock(), 200_000);
    }
}
