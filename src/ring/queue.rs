//! A fixed queue between one thread that puts and one that takes: Lamport's ring ("Proving the Correctness of
//! Multiprocess Programs", 1977) with release and acquire in the place of sequential consistency.
#![allow(unsafe_code)]

use super::atomic::{AtomicUsize, Ordering::*};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// `N` places. `put` by one thread, `take` by one thread; neither ever waits.
///
/// `head` counts what was taken, `tail` what was put; both only grow and wrap. The place of count `c` is `c % N`, hence
/// N is a power of two. A place belongs to the putting thread from the release of `head` beyond it to the release of
/// `tail` beyond it, and to the taking thread otherwise.
pub struct Queue<T, const N: usize> {
    head: AtomicUsize,
    tail: AtomicUsize,
    places: [UnsafeCell<MaybeUninit<T>>; N],
}

// SAFETY: a place is reached by one thread at a time, as `head` and `tail` say.
unsafe impl<T: Copy + Send, const N: usize> Sync for Queue<T, N> {}

impl<T: Copy, const N: usize> Queue<T, N> {
    const POWER_OF_TWO: () = assert!(N.is_power_of_two());

    /// An empty queue.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        let () = Self::POWER_OF_TWO;
        Queue {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            places: [const { UnsafeCell::new(MaybeUninit::uninit()) }; N],
        }
    }

    /// An empty queue.
    #[cfg(loom)]
    pub fn new() -> Self {
        let () = Self::POWER_OF_TWO;
        Queue {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            places: [const { UnsafeCell::new(MaybeUninit::uninit()) }; N],
        }
    }

    /// Puts a value, written in place by `fill`; `false`, with `fill` not called, when the queue is full.
    pub fn put(&self, fill: impl FnOnce() -> T) -> bool {
        let tail = self.tail.load(Relaxed);
        if tail.wrapping_sub(self.head.load(Acquire)) >= N {
            return false;
        }
        let Some(place) = self.places.get(tail % N) else { return false };
        // SAFETY: the place was taken (or never put) and `tail` is not beyond it yet, so it is this thread's.
        unsafe { (*place.get()).write(fill()) };
        self.tail.store(tail.wrapping_add(1), Release);
        true
    }

    /// Takes the oldest value.
    pub fn take(&self) -> Option<T> {
        let head = self.head.load(Relaxed);
        if head == self.tail.load(Acquire) {
            return None;
        }
        let place = self.places.get(head % N)?;
        // SAFETY: `tail` is beyond the place, so it was written and is this thread's until `head` is beyond it too.
        let value = unsafe { (*place.get()).assume_init_read() };
        self.head.store(head.wrapping_add(1), Release);
        Some(value)
    }

    /// How many are in it; at once out of date, unless the caller is one of the two threads.
    pub fn len(&self) -> usize {
        self.tail.load(Acquire).wrapping_sub(self.head.load(Acquire))
    }

    /// Is nothing in it?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy, const N: usize> Default for Queue<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_a_full_queue_refuses() {
        let queue = Queue::<u32, 4>::new();
        assert_eq!(queue.take(), None);
        for round in 0..3 {
            assert!((0..4).all(|n| queue.put(|| round * 10 + n)));
            assert!(!queue.put(|| unreachable!()));
            assert_eq!(queue.len(), 4);
            assert!((0..4).all(|n| queue.take() == Some(round * 10 + n)));
        }
        assert!(queue.is_empty());
    }

    #[test]
    fn nothing_is_lost_between_two_threads() {
        let count = if cfg!(miri) { 200 } else { 200_000 };
        let queue = Queue::<u64, 8>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..count {
                    while !queue.put(|| n) {
                        std::thread::yield_now();
                    }
                }
            });
            for n in 0..count {
                let value = loop {
                    match queue.take() {
                        Some(value) => break value,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(value, n);
            }
        });
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn values_arrive_whole_and_in_order() {
        loom::model(|| {
            let queue = Arc::new(Queue::<(u32, u32), 2>::new());
            let other = queue.clone();
            let thread = loom::thread::spawn(move || (1..=3).filter(|n| other.put(|| (*n, *n))).count());
            let mut last = 0;
            for _ in 0..3 {
                if let Some((first, second)) = queue.take() {
                    assert_eq!(first, second);
                    assert!(first > last);
                    last = first;
                }
            }
            assert!(thread.join().unwrap() >= 2);
        });
    }
}
