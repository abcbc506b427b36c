//! Messages for whoever looks into a program, handed to one handler of the program's choice.

use super::callback::Callback;
use crate::abi::{bc_log_handler, bc_log_level};
use arrayvec::ArrayString;
use core::ffi::c_void;
use core::fmt::Write;

static HANDLER: Callback<bc_log_handler> = Callback::new();

/// Longest message, bytes; a longer one is cut.
const LONGEST: usize = 511;

/// Replaces the handler and waits until the old one is not running on another thread.
pub fn set_handler(handler: bc_log_handler, user_data: *mut c_void) {
    HANDLER.replace(handler, user_data);
}

/// Is the calling thread inside the handler?
pub fn is_inside() -> bool {
    HANDLER.is_inside()
}

/// After fork: the threads that were inside the handler are gone.
pub fn forget_runners() {
    HANDLER.forget_runners();
}

/// Formats and hands over one message; costs next to nothing without a handler.
pub fn write(level: bc_log_level, message: core::fmt::Arguments<'_>) {
    // What happens inside the handler is not told to it.
    if !HANDLER.is_set() || is_inside() {
        return;
    }
    let mut text = ArrayString::<{ LONGEST + 1 }>::new();
    let _ = Cut(&mut text).write_fmt(message);
    text.push('\0');
    HANDLER.run(|handler, user_data| hand_over(handler, level, text.as_bytes(), user_data));
}

#[allow(unsafe_code)]
fn hand_over(handler: bc_log_handler, level: bc_log_level, text: &[u8], user_data: *mut c_void) {
    if let Some(handler) = handler {
        // SAFETY: the program gave the handler for this, with this user data; the text ends in a NUL.
        unsafe { handler(level, text.as_ptr().cast(), user_data) };
    }
}

/// Takes as much of each piece as fits, keeps one byte free, and leaves no NUL inside.
struct Cut<'a>(&'a mut ArrayString<{ LONGEST + 1 }>);

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
