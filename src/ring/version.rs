//! A version that tells whether a group of words was read whole: a sequence lock (Hans Boehm, "Can Seqlocks Get Along
//! With Programming Language Memory Models?", MSPC 2012) with one writer, which never waits.

use super::atomic::{AtomicUsize, Ordering::*, fence};

/// Guards words that one thread writes and others read. The words themselves are atomics, written and read relaxed.
///
/// Encoding: odd while a write is under way, and two more after each, so an even value names one state of the words (it
/// repeats after 2^31 writes on 32-bit machines; whoever keeps one for long compares a time as well).
///
/// Orderings: the odd value must be visible before any word of the write, which the release fence does, and the even
/// one after all of them, which its release store does. A reader's acquire load sees the words of the version it read
/// or later ones; its acquire fence keeps the second look behind the words.
pub struct Version(AtomicUsize);

impl Version {
    /// No write yet.
    #[cfg(not(loom))]
    pub const fn new() -> Version {
        Version(AtomicUsize::new(0))
    }

    /// No write yet.
    #[cfg(loom)]
    pub fn new() -> Version {
        Version(AtomicUsize::new(0))
    }

    /// Writes words; by the one writer only, and not inside another write. `words` is told the version that they will have.
    #[inline(always)]
    pub fn write(&self, words: impl FnOnce(usize)) {
        let version = self.begin();
        words(version);
        self.end(version);
    }

    /// Begins a write; answers the version that the words will have.
    #[inline(always)]
    pub fn begin(&self) -> usize {
        let version = self.0.load(Relaxed);
        self.0.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        version.wrapping_add(2)
    }

    /// Ends the write that `begin` has begun and given this version.
    #[inline(always)]
    pub fn end(&self, version: usize) {
        self.0.store(version, Release);
    }

    /// Reads words and the version they are of; `None` while a write is under way or came in between.
    #[inline]
    pub fn read<T>(&self, words: impl FnOnce() -> T) -> Option<(T, usize)> {
        let before = self.0.load(Acquire);
        if before & 1 == 1 {
            return None;
        }
        let value = words();
        fence(Acquire);
        (self.0.load(Relaxed) == before).then_some((value, before))
    }

    /// The version now, odd while a write is under way.
    #[inline]
    pub fn current(&self) -> usize {
        self.0.load(Acquire)
    }
}

impl Default for Version {
    fn default() -> Version {
        Version::new()
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::ring::atomic::AtomicU64;
    use loom::sync::Arc;

    #[test]
    fn no_reader_sees_half_a_write() {
        loom::model(|| {
            let shared = Arc::new((Version::new(), AtomicU64::new(0), AtomicU64::new(0)));
            let writer = shared.clone();
            let thread = loom::thread::spawn(move || {
                for value in 1..=2 {
                    writer.0.write(|_| {
                        writer.1.store(value, Relaxed);
                        writer.2.store(value, Relaxed);
                    });
                }
            });
            if let Some(((first, second), version)) = shared.0.read(|| (shared.1.load(Relaxed), shared.2.load(Relaxed)))
            {
                assert_eq!(first, second);
                assert_eq!(version as u64, 2 * first);
            }
            thread.join().unwrap();
        });
    }
}
