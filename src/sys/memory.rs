//! Reading the process's own memory without faulting.
#![allow(unsafe_code)]

use super::errno::Errno;

/// The process's own memory, read by the kernel: an address that isn't readable gives an error, not a signal, also when
/// another thread unmaps it in that instant.
#[derive(Clone, Copy, Debug)]
pub struct OwnMemory {
    /// A thread of ours, not the process: the first thread may have ended, and then its memory is not there any more.
    thread: i32,
}

impl OwnMemory {
    /// The memory of the calling process. A child made by `fork` needs its own.
    pub fn new() -> OwnMemory {
        OwnMemory { thread: super::thread::tid() }
    }
}

impl Default for OwnMemory {
    fn default() -> OwnMemory {
        OwnMemory::new()
    }
}

impl OwnMemory {
    /// Copies what can be read from `address` on, and says how much. Async-signal-safe.
    pub fn copy(&self, address: u64, out: &mut [u8]) -> usize {
        let Some(there) = place(address, out.len()) else { return 0 };
        match usize::try_from(self.read(out, &[there])) {
            Ok(length) => length,
            Err(_) if Errno::last() == Errno(libc::ENOSYS) => by_socket(there.iov_base.addr(), out),
            Err(_) => 0,
        }
    }

    /// Fills `out` with pieces, each an address and a length, by one call for several. `false`: not all could be read.
    pub fn copy_pieces(&self, pieces: &[(u64, usize)], out: &mut [u8]) -> bool {
        let mut rest = out;
        for pieces in pieces.chunks(PIECES) {
            let length = pieces.iter().fold(0_usize, |sum, piece| sum.saturating_add(piece.1));
            let Some((out, behind)) = core::mem::take(&mut rest).split_at_mut_checked(length) else { return false };
            rest = behind;
            let mut there = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }; PIECES];
            for (there, (address, length)) in there.iter_mut().zip(pieces) {
                let Some(place) = place(*address, *length) else { return false };
                *there = place;
            }
            let is_read = match usize::try_from(self.read(out, &there)) {
                Ok(count) => count == length,
                Err(_) => Errno::last() == Errno(libc::ENOSYS) && self.copy_each(pieces, out),
            };
            if !is_read {
                return false;
            }
        }
        true
    }

    fn copy_each(&self, pieces: &[(u64, usize)], mut out: &mut [u8]) -> bool {
        pieces.iter().all(|(address, length)| {
            let Some((piece, behind)) = core::mem::take(&mut out).split_at_mut_checked(*length) else { return false };
            out = behind;
            self.copy(*address, piece) == *length
        })
    }

    fn read(&self, out: &mut [u8], there: &[libc::iovec]) -> libc::c_long {
        let here = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
        // Through `syscall`, because the function of this name is younger than the oldest C library served. It is
        // variadic, so every argument has the width of a register.
        // SAFETY: the kernel writes to `out` alone, and checks the other addresses itself.
        unsafe {
            libc::syscall(
                libc::SYS_process_vm_readv,
                libc::c_long::from(self.thread),
                &raw const here,
                1 as libc::c_long,
                there.as_ptr(),
                there.len() as libc::c_long,
                0 as libc::c_long,
            )
        }
    }
}

/// Pieces that are read by one call.
const PIECES: usize = 8;

/// A piece of memory for the kernel.
fn place(address: u64, length: usize) -> Option<libc::iovec> {
    // The kernel takes no tagged address here, and code may keep a tag in the top byte.
    #[cfg(target_arch = "aarch64")]
    let address = address & (u64::MAX >> 8);
    let address = usize::try_from(address).ok()?;
    Some(libc::iovec { iov_base: core::ptr::without_provenance_mut(address), iov_len: length })
}

/// The slower way, where the kernel (or what stands for it) lacks the call: memory is sent to ourselves, and the kernel says
/// no to what cannot be read. `/proc/self/mem` would not do, because a process that is not dumpable may not open it.
fn by_socket(address: usize, out: &mut [u8]) -> usize {
    let mut ends = [-1; 2];
    // SAFETY: a live place for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) } != 0 {
        return 0;
    }
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let Some(at) = address.checked_add(done) else { break };
        // Within one page, which can be read as a whole or not at all.
        let length = rest.len().min(SMALLEST_PAGE - at % SMALLEST_PAGE);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the kernel reads from the one place, which it checks itself, and writes to the other, which is ours and as
        // long as is said.
        let read = unsafe {
            match libc::send(ends[0], core::ptr::without_provenance(at), length, flags) {
                sent @ 1.. => libc::recv(ends[1], rest.as_mut_ptr().cast(), (sent as usize).min(length), flags),
                _ => break,
            }
        };
        if read <= 0 {
            break;
        }
        done += read as usize;
    }
    for end in ends {
        // SAFETY: open since the call above, and used by nobody else.
        unsafe { libc::close(end) };
    }
    done.min(out.len())
}

/// Pages are never smaller.
const SMALLEST_PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_same_and_stop_where_nothing_is() {
        const PAGES: usize = 4 * (1 << 16);
        let none = core::ptr::null_mut();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a mapping of our own, whose end is made inaccessible.
        let base = unsafe {
            let base = libc::mmap(none, PAGES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0).cast::<u8>();
            assert_ne!(base.cast(), libc::MAP_FAILED);
            (0..PAGES).for_each(|at| base.add(at).write((at / 7) as u8));
            assert_eq!(libc::mprotect(base.add(PAGES / 2).cast(), PAGES / 2, libc::PROT_NONE), 0);
            base as usize
        };
        for (at, length, whole) in
            [(0, 100, true), (4090, 10_000, true), (PAGES / 2 - 5, 6, false), (PAGES / 2, 1, false)]
        {
            let (mut first, mut second) = (vec![0; length], vec![0; length]);
            let ways = [OwnMemory::new().copy((base + at) as u64, &mut first), by_socket(base + at, &mut second)];
            assert!(ways.iter().all(|read| (*read == length) == whole), "{at}: {ways:?}");
            let right = |bytes: &[u8]| bytes.iter().zip(at..).all(|(byte, at)| *byte == (at / 7) as u8);
            assert!(right(&first[..ways[0]]) && right(&second[..ways[1]]));
        }
        assert_eq!(by_socket(usize::MAX - 2, &mut [0; 8]), 0);
        // SAFETY: it is not used any more.
        unsafe { libc::munmap(core::ptr::without_provenance_mut(base), PAGES) };
    }
}
