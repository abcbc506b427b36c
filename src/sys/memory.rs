//! Reading the process's own memory without faulting.
#![allow(unsafe_code)]

use super::errno::Errno;
use core::ffi::CStr;

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
            Err(_) if Errno::last() == Errno(libc::ENOSYS) => from_file(there.iov_base.addr(), out),
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

/// The slower way, where the kernel (or what stands for it) lacks the call.
fn from_file(address: usize, out: &mut [u8]) -> usize {
    // SAFETY: a path that ends in a NUL; `out` is as long as is said; the descriptor is closed once.
    unsafe {
        let open = |path: &CStr| libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        // Of this thread, for the same reason as above; kernels before 3.17 only have the process's.
        let mut fd = open(c"/proc/thread-self/mem");
        if fd < 0 {
            fd = open(c"/proc/self/mem");
        }
        if fd < 0 {
            return 0;
        }
        let read = libc::pread64(fd, out.as_mut_ptr().cast(), out.len(), address as i64);
        libc::close(fd);
        usize::try_from(read).unwrap_or(0)
    }
}
