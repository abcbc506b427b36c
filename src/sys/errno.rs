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

impl core::fmt::Display for Errno {
    /// In words of our own, because `strerror` may allocate and changes with the program's language.
    fn fmt(&self, to: &mut core::fmt::Formatter) -> core::fmt::Result {
        let words = match self.0 {
            libc::EACCES | libc::EPERM => "no permission",
            libc::ENOENT => "there is no such file or directory",
            libc::ENOTDIR => "a file or a link stands where a directory should",
            libc::EISDIR => "a directory stands where a file should",
            libc::EEXIST => "something is there already",
            libc::ELOOP => "a link, or too many of them",
            libc::ENAMETOOLONG => "the path is too long",
            libc::EROFS => "the file system is read-only",
            libc::ENOSPC => "no room",
            libc::EDQUOT => "the quota is used up",
            libc::EFBIG => "larger than a file may be",
            libc::EIO => "the device has failed",
            libc::EMFILE | libc::ENFILE => "too many open files",
            libc::ENOMEM => "no memory",
            libc::EBADF => "it is not open for writing",
            libc::EPIPE => "nobody reads it any more",
            libc::ETIMEDOUT => "nothing was taken in time",
            libc::EBADMSG => "the file is not what was written there",
            _ => return write!(to, "error {}", self.0),
        };
        write!(to, "{words} (error {})", self.0)
    }
}

/// A result of the C library, or the error number where it says -1.
pub fn check(result: i64) -> Result<i64, Errno> {
    if result == -1 { Err(Errno::last()) } else { Ok(result) }
}
