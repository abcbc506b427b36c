//! The Java stack of a loop that is late: wanted by the monitor, taken by a thread that may wait for the VM, read by the
//! writer. Nobody waits for it: what is not there by then is not in the report.

use crate::sys::bell::Bell;
use crate::sys::clock::Ticks;
use crate::sys::lock::Lock;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// Bytes of a stack's text that are kept.
pub const TEXT: usize = 8 * 1024;
/// Bytes of the name of a message that are kept.
pub const WHAT: usize = 255;
/// Stretches whose stacks are kept: blocks that wait for the writer have theirs.
const STACKS: usize = 8;

/// The stack of one stretch, and what is known of its message.
pub struct Stack {
    /// The loop's slot.
    pub slot: u8,
    /// Names the stretch among the loop's; 0 for none.
    pub stretch: usize,
    /// When it was taken.
    pub at: Ticks,
    /// Elements left out.
    pub frames_cut: u32,
    what: [u8; WHAT],
    what_length: usize,
    text: [u8; TEXT],
    text_length: usize,
}

impl Stack {
    /// Of no stretch.
    pub const NONE: Stack = Stack {
        slot: 0,
        stretch: 0,
        at: Ticks(0),
        frames_cut: 0,
        what: [0; WHAT],
        what_length: 0,
        text: [0; TEXT],
        text_length: 0,
    };

    /// Elements in Java's words, innermost first, each ending in a line feed.
    pub fn text(&self) -> &[u8] {
        self.text.get(..self.text_length).unwrap_or(&[])
    }

    /// The message, if it is known.
    pub fn what(&self) -> Option<&[u8]> {
        self.what.get(..self.what_length).filter(|what| !what.is_empty())
    }

    /// Room for one more element's text; the rest of it stays untold.
    pub fn room(&mut self) -> &mut [u8] {
        self.text.get_mut(self.text_length..).unwrap_or(&mut [])
    }

    /// So many bytes of that room are an element.
    pub fn push(&mut self, length: usize) {
        let end = self.text_length.saturating_add(length);
        if let Some(feed) = self.text.get_mut(end) {
            *feed = b'\n';
            self.text_length = end + 1;
        }
    }

    /// The message is called so.
    pub fn name(&mut self, what: &[u8]) {
        self.what_length = self.what.iter_mut().zip(what).map(|(to, from)| *to = *from).count();
    }

    /// Forgets what it says.
    pub fn clear(&mut self) {
        (self.stretch, self.frames_cut, self.what_length, self.text_length) = (0, 0, 0, 0);
    }
}

/// The token of the loop that is Java's main thread; 0 for none.
static LOOP: AtomicUsize = AtomicUsize::new(0);
/// The stretch whose stack is wanted; 0 for none.
static WANTED: AtomicUsize = AtomicUsize::new(0);
static KEPT: Lock<[Stack; STACKS]> = Lock::new([Stack::NONE; STACKS]);
/// A Java debugger is attached, as it was with the latest stack.
static IS_DEBUGGED: AtomicBool = AtomicBool::new(false);

/// Wakes the thread that takes stacks.
pub static BELL: Bell = Bell::new();

/// This loop is Java's main thread from now on; 0: none is.
pub fn set_loop(token: usize) {
    LOOP.store(token, Release);
}

/// The loop that is Java's main thread; 0: none is.
pub fn current_loop() -> usize {
    LOOP.load(Acquire)
}

/// A loop is late in this stretch: if it is Java's, its stack is wanted.
pub fn want(token: usize, stretch: usize) {
    if token != 0 && token == LOOP.load(Relaxed) {
        WANTED.store(stretch, Release);
        BELL.ring();
    }
}

/// The stretch whose stack is wanted, once.
pub fn take_wanted() -> Option<usize> {
    Some(WANTED.swap(0, AcqRel)).filter(|stretch| *stretch != 0)
}

/// Keeps a stack, in place of an earlier one of the same stretch, else of the oldest.
pub fn keep(stack: &Stack) {
    let mut kept = KEPT.lock();
    let same = kept.iter().position(|old| (old.slot, old.stretch) == (stack.slot, stack.stretch));
    let oldest = kept.iter().enumerate().min_by_key(|(_, old)| old.at).map_or(0, |(place, _)| place);
    if let Some(place) = kept.get_mut(same.unwrap_or(oldest)) {
        *place = Stack { ..*stack };
    }
}

/// The stack that was kept of a stretch which began then.
pub fn with<T>(slot: u8, stretch: usize, from: Ticks, read: impl FnOnce(&Stack) -> T) -> Option<T> {
    let kept = KEPT.lock();
    kept.iter().find(|stack| (stack.slot, stack.stretch) == (slot, stretch) && stack.at >= from).map(read)
}

/// A Java debugger is attached, or not.
pub fn set_debugged(is_debugged: bool) {
    IS_DEBUGGED.store(is_debugged, Relaxed);
}

/// Is a Java debugger attached, where a loop is Java's?
pub fn is_debugged(token: usize) -> bool {
    token == LOOP.load(Relaxed) && IS_DEBUGGED.load(Relaxed)
}

/// In a child of fork.
pub fn reset_after_fork() {
    KEPT.free_after_fork();
    reset();
}

/// Nothing is kept and nobody is Java's.
pub fn reset() {
    LOOP.store(0, Release);
    WANTED.store(0, Release);
    IS_DEBUGGED.store(false, Relaxed);
    KEPT.lock().iter_mut().for_each(|stack| (stack.stretch, stack.at) = (0, Ticks(0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(stretch: usize, at: u64, text: &[u8]) -> Stack {
        let mut stack = Stack { slot: 7, stretch, at: Ticks(at), ..Stack::NONE };
        stack.room()[..text.len()].copy_from_slice(text);
        stack.push(text.len());
        stack
    }

    #[test]
    fn stacks_belong_to_their_stretch() {
        reset();
        for stretch in 1..=9 {
            keep(&stack(stretch, stretch as u64 * 10, b"early"));
        }
        keep(&stack(9, 95, b"late"));
        let text = |stretch, from| with(7, stretch, Ticks(from), |stack| stack.text().to_vec());
        assert_eq!(text(9, 90).unwrap(), b"late\n");
        assert_eq!(text(2, 20).unwrap(), b"early\n");
        // The oldest gave way; another loop has none; a stretch that began later is another one of the same name.
        assert_eq!((text(1, 10), with(8, 2, Ticks(0), |_| ()), text(2, 21)), (None, None, None));
        set_loop(99);
        want(98, 3);
        assert_eq!(take_wanted(), None);
        want(99, 3);
        assert_eq!((take_wanted(), take_wanted()), (Some(3), None));
        reset();
        assert_eq!(text(9, 0), None);
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut stack = Stack::NONE;
        while stack.room().len() > 100 {
            stack.push(99);
        }
        let before = stack.text().len();
        let rest = stack.room().len();
        stack.push(rest);
        assert_eq!(stack.text().len(), before);
        stack.push(rest - 1);
        assert!(stack.text().len() == TEXT && stack.text().ends_with(b"\n") && stack.room().is_empty());
        stack.name(&[b'x'; 400]);
        assert_eq!(stack.what().unwrap().len(), WHAT);
        stack.clear();
        assert_eq!((stack.what(), stack.text().len()), (None, 0));
    }
}
