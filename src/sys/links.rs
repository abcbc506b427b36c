//! What the process's descriptors lead to, without asking the file systems: one that hangs would not answer.
#![allow(unsafe_code)]

use super::thread;
use arrayvec::ArrayString;
use core::fmt::Write;

/// The name of what a descriptor leads to, as `/proc` tells it: a path, or `pipe:[123]` and the like. What does not fit
/// is cut off at the end.
pub fn of_descriptor(fd: i32, buffer: &mut [u8]) -> Option<&[u8]> {
    let mut path = ArrayString::<64>::new();
    // Not by way of the first thread, which may have ended.
    write!(path, "/proc/self/task/{}/fd/{fd}\0", thread::tid()).ok()?;
    // SAFETY: the path ends in a NUL, the buffer is as long as we say.
    let length = unsafe { libc::readlink(path.as_ptr().cast(), buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(length).ok()?)
}

/// Is it a pipe, with a name or without?
pub fn is_pipe(fd: i32) -> bool {
    const F_GETPIPE_SZ: i32 = 1032;
    // SAFETY: takes numbers. Anything but a pipe gives an error.
    unsafe { libc::fcntl(fd, F_GETPIPE_SZ) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn descriptors_are_told_apart() {
        let mut buffer = [0; 256];
        let file = std::fs::File::open("/proc/version").unwrap();
        assert!(of_descriptor(file.as_raw_fd(), &mut buffer).unwrap().ends_with(b"/version"));
        assert!(!is_pipe(file.as_raw_fd()));
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(of_descriptor(reader.as_raw_fd(), &mut buffer).unwrap().starts_with(b"pipe:["));
        assert!(is_pipe(reader.as_raw_fd()));
        assert_eq!(of_descriptor(-1, &mut buffer), None);
        assert!(!is_pipe(-1));
    }
}
