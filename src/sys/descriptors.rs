//! The descriptors that the library has open, so that a child of fork which installs for itself can close what it has
//! inherited of them, and nothing is done to a file of the program's that has got the number of one: some programs close
//! whatever is open.
#![allow(unsafe_code)]

use super::lock::Lock;
use core::mem::MaybeUninit;

/// Four files for each of 256 loops, and some.
const MOST: usize = 1100;

/// A descriptor and what it was opened for: its number alone may by then be that of a file of the child's.
#[derive(Clone, Copy)]
struct Open {
    fd: i32,
    identity: (u64, u64),
}

static TABLE: Lock<[Option<Open>; MOST]> = Lock::new([None; MOST]);

fn identity(fd: i32) -> Option<(u64, u64)> {
    let mut status = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: a live place; a stale descriptor gives an error.
    let is_open = unsafe { libc::fstat64(fd, status.as_mut_ptr()) } == 0;
    // SAFETY: numbers, zeroed at least.
    let status = unsafe { status.assume_init() };
    #[allow(clippy::unnecessary_cast)] // Narrower on some targets.
    is_open.then_some((status.st_dev as u64, status.st_ino as u64))
}

/// It is open.
pub fn opened(fd: i32) {
    let Some(identity) = identity(fd) else { return };
    if let Some(place) = TABLE.lock().iter_mut().find(|place| place.is_none()) {
        *place = Some(Open { fd, identity });
    }
}

/// It is about to be closed. `false`: somebody else has done so, and the number may be another file's by now.
#[must_use]
pub fn closes(fd: i32) -> bool {
    let known = TABLE.lock().iter_mut().find(|place| place.is_some_and(|open| open.fd == fd)).and_then(Option::take);
    known.is_none_or(|open| identity(fd) == Some(open.identity))
}

/// Is it still what was opened?
pub fn is_intact(fd: i32) -> bool {
    let known = TABLE.lock().iter().flatten().find(|open| open.fd == fd).copied();
    known.is_none_or(|open| identity(fd) == Some(open.identity))
}

/// In a child of fork: closes what the parent had open, unless the number is another file's now.
pub fn close_inherited() {
    TABLE.free_after_fork();
    for place in TABLE.lock().iter_mut() {
        if let Some(open) = place.take().filter(|open| identity(open.fd) == Some(open.identity)) {
            // SAFETY: it is ours, as its identity says, and nobody in this process uses it.
            unsafe { libc::close(open.fd) };
        }
    }
}
