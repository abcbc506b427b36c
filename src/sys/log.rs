//! Messages for whoever looks into a program, handed to one handler of the program's choice, or else to Android's log.

use super::callback::Callback;
use super::lock::Lock;
use super::logcat;
use super::thread;
use crate::abi::{bc_log_handler, bc_log_level};
use arrayvec::{ArrayString, ArrayVec};
use core::ffi::c_void;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::*};

static HANDLER: Callback<bc_log_handler> = Callback::new();

/// An uninstall waits for the handler to come to rest.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Longest message, bytes; a longer one is cut.
const LONGEST: usize = 511;

/// A message, ending in a NUL.
type Text = ArrayString<{ LONGEST + 1 }>;

/// The thread whose messages are handed over by another one, 0 for none: while the program's handler runs, that thread
/// could do nothing else, and the handler's calls could not be answered by it.
static DEFERS: AtomicI32 = AtomicI32::new(0);
static DEFERRED: Lock<ArrayVec<(bc_log_level, Text), 4>> = Lock::new(ArrayVec::new_const());
static HAS_DEFERRED: AtomicBool = AtomicBool::new(false);

/// Replaces the handler and waits until the old one is not running on another thread.
pub fn set_handler(handler: bc_log_handler, user_data: *mut c_void) {
    HANDLER.replace(handler, user_data);
}

/// Is the calling thread inside the handler?
pub fn is_inside() -> bool {
    HANDLER.is_inside()
}

/// Is any thread inside the handler?
pub fn is_running() -> bool {
    HANDLER.is_running()
}

/// Hands nothing over for a while.
pub fn silence(is_silent: bool) {
    SILENT.store(is_silent, Release);
}

/// After fork: the threads that were inside the handler are gone, and so are messages.
pub fn forget_runners() {
    HANDLER.forget_runners();
    DEFERRED.free_after_fork();
    DEFERRED.lock().clear();
    HAS_DEFERRED.store(false, Relaxed);
    DEFERS.store(0, Relaxed);
}

/// From now on the calling thread's messages wait for `tell_deferred`; or they do so no more.
pub fn defer(defers: bool) {
    DEFERS.store(if defers { thread::tid() } else { 0 }, Relaxed);
}

/// Are there any?
pub fn has_deferred() -> bool {
    HAS_DEFERRED.load(Acquire)
}

/// Hands them over, by another thread.
pub fn tell_deferred() {
    while HAS_DEFERRED.load(Acquire) {
        let next = {
            let mut deferred = DEFERRED.lock();
            let next = deferred.pop_at(0);
            HAS_DEFERRED.store(!deferred.is_empty(), Release);
            next
        };
        if let Some((level, text)) = next.filter(|_| !SILENT.load(Acquire)) {
            tell(level, &text);
        }
    }
}

/// Formats and hands over one message; costs next to nothing where nobody wants it.
pub fn write(level: bc_log_level, message: core::fmt::Arguments<'_>) {
    // What happens inside the handler is not told to it.
    if !(HANDLER.is_set() || logcat::is_there()) || SILENT.load(Acquire) || is_inside() {
        return;
    }
    let mut text = Text::new();
    let _ = Cut(&mut text).write_fmt(message);
    text.push('\0');
    if DEFERS.load(Relaxed) == thread::tid() {
        // They are few; what has no room is nobody's.
        let _ = DEFERRED.lock().try_push((level, text));
        HAS_DEFERRED.store(true, Release);
        return;
    }
    tell(level, &text);
}

fn tell(level: bc_log_level, text: &Text) {
    if HANDLER.is_set() {
        HANDLER.run(|handler, user_data| hand_over(handler, level, text.as_bytes(), user_data));
    } else {
        logcat::write(level, text.as_bytes());
    }
}

#[allow(unsafe_code)]
fn hand_over(handler: bc_log_handler, level: bc_log_level, text: &[u8], user_data: *mut c_void) {
    if let Some(handler) = handler {
        // SAFETY: the program gave the handler for this, with this user data; the text ends in a NUL.
        unsafe { handler(level, text.as_ptr().cast(), user_data) };
    }
}

/// Takes as much of each piece as fits, keeps one byte free, and leaves no NUL inside.
struct Cut<'a>(&'a mut Text);

impl Write for Cut<'_> {
    fn write_str(&mut self, piece: &str) -> core::fmt::Result {
        for letter in piece.chars() {
            let letter = if letter == '\0' { '?' } else { letter };
            if self.0.remaining_capacity() <= letter.len_utf8() {
                return Err(core::fmt::Error);
            }
            self.0.push(letter);
        }
        Ok(())
    }
}

/// An error message; see `write`.
#[macro_export]
#[doc(hidden)]
macro_rules! log_error { ($($text:tt)*) => { $crate::sys::log::write($crate::abi::bc_log_level::BC_LOG_ERROR, format_args!($($text)*)) } }
/// A warning; see `write`.
#[macro_export]
#[doc(hidden)]
macro_rules! log_warn { ($($text:tt)*) => { $crate::sys::log::write($crate::abi::bc_log_level::BC_LOG_WARN, format_args!($($text)*)) } }
/// A message about what goes on; see `write`.
#[macro_export]
#[doc(hidden)]
macro_rules! log_info { ($($text:tt)*) => { $crate::sys::log::write($crate::abi::bc_log_level::BC_LOG_INFO, format_args!($($text)*)) } }
