//! The error number of the last failed call.
#![allow(unsafe_code)]

/// An error number of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

#[cfg(target_os = "android")]
use libc::__errno as location;
#[cfg(not(target_os = "android"))]
use libc::__errno_location as location;

impl Errno {
    /// The calling thread's number.
    pub fn last() -> Errno {
        // SAFETY: the C library gives each thread a valid place for its number.
        Errno(unsafe { *location() })
    }

    /// Puts the calling thread's number back to this one.
    pub fn restore(self) {
        // SAFETY: as above.
        unsafe { *location() = self.0 }
    }
}

/// A result of the C library, or the error number where it says -1.
pub fn check(result: i64) -> Result<i64, Errno> {
    if result == -1 { Err(Errno::last()) } else { Ok(result) }
}
