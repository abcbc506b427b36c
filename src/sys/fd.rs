//! An open descriptor that closes itself.
#![allow(unsafe_code)]

use super::descriptors;
use super::errno::Errno;

/// Owns a descriptor.
#[derive(Debug)]
pub struct Fd(i32);

impl Fd {
    /// Takes what a call that opens something returned, or its error number.
    pub(super) fn opened(result: i32) -> Result<Fd, Errno> {
        if result < 0 {
            return Err(Errno::last());
        }
        descriptors::opened(result);
        Ok(Fd(result))
    }

    /// Is it open still? Only a program that closes what it has not opened makes it otherwise.
    pub fn is_intact(&self) -> bool {
        descriptors::is_intact(self.0)
    }

    /// The number, for a call that borrows it.
    pub fn number(&self) -> i32 {
        self.0
    }
}

impl Drop for Fd {
    #[inline(never)]
    fn drop(&mut self) {
        if !descriptors::closes(self.0) {
            return;
        }
        // SAFETY: the number came from the kernel, is owned by this value alone and not used after it. Linux frees it
        // even when it answers EINTR, so there is no second try.
        unsafe { libc::close(self.0) };
    }
}
