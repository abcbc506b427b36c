//! Strings of one block, each ending in a NUL, in memory of a fixed size; and strings of C's read back.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};
use core::ptr;

/// See above. Strings stay where they are until `clear`.
pub struct TextSpace {
    memory: &'static mut [u8],
    used: usize,
}

impl TextSpace {
    /// Empty.
    pub fn new(memory: &'static mut [u8]) -> TextSpace {
        TextSpace { memory, used: 0 }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Puts a string in; null where it does not fit. A NUL inside ends it.
    pub fn put(&mut self, text: &[u8]) -> *const c_char {
        let text = text.split(|byte| *byte == 0).next().unwrap_or(&[]);
        let end = self.used.saturating_add(text.len());
        let Some(room) = self.memory.get_mut(self.used..=end) else { return ptr::null() };
        room.iter_mut().zip(text.iter().chain(&[0])).for_each(|(to, from)| *to = *from);
        self.used = end + 1;
        room.as_ptr().cast()
    }

    /// The same, null for an empty one.
    pub fn put_some(&mut self, text: &CStr) -> *const c_char {
        if text.is_empty() { ptr::null() } else { self.put(text.to_bytes()) }
    }
}

/// The bytes of a string; `None` for null.
///
/// # Safety
/// The pointer is null or leads to a string that ends in a NUL and stays as it is for `'a`.
pub unsafe fn bytes_of<'a>(string: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_null() {
        let mut space = TextSpace::new(vec![0xff; 8].leak());
        assert!(!space.put(b"abc").is_null());
        assert!(space.put(b"abcd").is_null());
        assert!(!space.put(b"abc\0de").is_null());
        assert!(space.put(b"").is_null());
        space.clear();
        assert!(!space.put(b"abcdefg").is_null());
        assert_eq!(space.memory, b"abcdefg\0");
        assert!(space.put_some(c"").is_null());
    }
}
