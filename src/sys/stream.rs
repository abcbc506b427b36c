//! Writing to a descriptor of the program's, which may be anything: a file, a pipe that nobody reads, a socket that does
//! not block.
#![allow(unsafe_code)]

use super::clock::Ticks;
use super::errno::{Errno, check};
use super::shield::Shield;
use super::thread;

/// A pipe that can be written to at all takes so many bytes at once.
const AT_ONCE: usize = 4096;
/// How long the other end is waited for at a time.
const GLANCE_MS: i32 = 50;
/// Between two tries at what is said to be ready and takes nothing.
const APART_NS: u64 = 1_000_000;

/// Is it open, and for writing?
pub fn check_writable(fd: i32) -> Result<(), Errno> {
    // SAFETY: takes numbers.
    let flags = check(i64::from(unsafe { libc::fcntl(fd, libc::F_GETFL) }))? as i32;
    if flags & libc::O_ACCMODE == libc::O_RDONLY { Err(Errno(libc::EBADF)) } else { Ok(()) }
}

/// Writes all of the bytes. ETIMEDOUT when nothing was taken for so long, ECANCELED when `may_go_on` says no meanwhile;
/// a pipe without a reader gives EPIPE, a file that may not be longer EFBIG, and nothing else: no signal.
pub fn write_all(fd: i32, mut bytes: &[u8], patience_ns: u64, may_go_on: &dyn Fn() -> bool) -> Result<(), Errno> {
    let mut end = Ticks::now().plus(patience_ns);
    while !bytes.is_empty() {
        let mut place = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one live place.
        let ready = check(i64::from(unsafe { libc::poll(&mut place, 1, GLANCE_MS) }));
        match ready {
            Err(Errno(libc::EINTR)) => {}
            Err(error) => return Err(error),
            Ok(0) => {}
            Ok(_) => match write_some(fd, bytes.get(..AT_ONCE).unwrap_or(bytes)) {
                Ok(count) if count > 0 => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    end = Ticks::now().plus(patience_ns);
                    continue;
                }
                Ok(_) | Err(Errno(libc::EAGAIN)) => thread::sleep(APART_NS),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(error),
            },
        }
        if !may_go_on() {
            return Err(Errno(libc::ECANCELED));
        }
        if Ticks::now() >= end {
            return Err(Errno(libc::ETIMEDOUT));
        }
    }
    Ok(())
}

/// One write, of which nothing but its result comes.
fn write_some(fd: i32, bytes: &[u8]) -> Result<usize, Errno> {
    let (pipe, file) = (Shield::from(libc::SIGPIPE), Shield::from(libc::SIGXFSZ));
    // SAFETY: pointer and length are those of one slice.
    let result = check(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) } as i64);
    file.end(result == Err(Errno(libc::EFBIG)));
    pipe.end(result == Err(Errno(libc::EPIPE)));
    result.map(|count| usize::try_from(count).unwrap_or(0).min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    const PATIENCE_NS: u64 = 60_000_000_000;

    #[test]
    fn a_pipe_that_is_read_slowly_takes_everything() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let sent: Vec<u8> = (0..1_000_000u32).map(|number| number as u8).collect();
        // SAFETY: takes numbers.
        unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        let got = std::thread::scope(|scope| {
            let read = scope.spawn(move || {
                let (mut got, mut buffer) = (vec![], [0; 777]);
                while let Ok(count @ 1..) = reader.read(&mut buffer) {
                    got.extend_from_slice(&buffer[..count]);
                }
                got
            });
            assert_eq!(write_all(writer.as_raw_fd(), &sent, PATIENCE_NS, &|| true), Ok(()));
            drop(writer);
            read.join().unwrap()
        });
        assert!(got == sent);
    }

    #[test]
    fn a_pipe_that_nobody_reads_ends_the_writing() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let much = vec![0; 1 << 20];
        let fd = writer.as_raw_fd();
        assert_eq!(write_all(fd, &much, 1_000_000, &|| true), Err(Errno(libc::ETIMEDOUT)));
        assert_eq!(write_all(fd, &much, PATIENCE_NS, &|| false), Err(Errno(libc::ECANCELED)));
    }

    /// The test runner ignores SIGPIPE, which a blocked signal is not.
    #[test]
    fn a_closed_pipe_leaves_no_signal_behind() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(write_all(writer.as_raw_fd(), b"lost", PATIENCE_NS, &|| true), Err(Errno(libc::EPIPE)));
        let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: a live place.
        let is_pending = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            libc::sigismember(pending.as_ptr(), libc::SIGPIPE)
        };
        assert_eq!(is_pending, 0);
    }

    #[test]
    fn what_cannot_be_written_to_is_refused() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(check_writable(null.as_raw_fd()), Err(Errno(libc::EBADF)));
        assert_eq!(check_writable(1 << 20), Err(Errno(libc::EBADF)));
        let (_reader, writer) = std::io::pipe().unwrap();
        assert_eq!(check_writable(writer.as_raw_fd()), Ok(()));
    }
}
