//! Reading the process's own memory without faulting.
#![allow(unsafe_code)]

use crate::unwind::memory::Memory;

/// The process's own memory, read by the kernel: an address that isn't readable gives an error, not a signal, also when
/// another thread unmaps it in that instant.
#[derive(Clone, Copy, Debug)]
pub struct OwnMemory {
    process: i32,
}

impl OwnMemory {
    /// The memory of the calling process. A child made by `fork` needs its own.
    pub fn new() -> OwnMemory {
        // SAFETY: getpid takes nothing and cannot fail.
        OwnMemory { process: unsafe { libc::getpid() } }
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
        // The kernel takes no tagged address here, and code may keep a tag in the top byte.
        #[cfg(target_arch = "aarch64")]
        let address = address & (u64::MAX >> 8);
        let Ok(address) = usize::try_from(address) else { return 0 };
        let here = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
        let there = libc::iovec { iov_base: core::ptr::without_provenance_mut(address), iov_len: out.len() };
        // Through `syscall`, because the function of this name is younger than the oldest C library served. It is
        // variadic, so every argument has the width of a register.
        // SAFETY: the kernel writes to `out` alone, and checks the other address itself.
        let read = unsafe {
            libc::syscall(
                libc::SYS_process_vm_readv,
                libc::c_long::from(self.process),
                &raw const here,
                1 as libc::c_long,
                &raw const there,
                1 as libc::c_long,
                0 as libc::c_long,
            )
        };
        usize::try_from(read).unwrap_or(0)
    }
}

impl Memory for OwnMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.copy(address, out) == out.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_itself_and_fails_softly() {
        let memory = OwnMemory::new();
        let value = 0x1234_5678_9abc_def0_u64;
        assert_eq!(memory.bytes(&raw const value as u64).map(u64::from_ne_bytes), Some(value));
        for wrong in [0, 1, 4095, 0x0000_8000_0000_0000, 0xffff_8000_0000_0000, u64::MAX - 7, u64::MAX] {
            assert_eq!(memory.bytes::<8>(wrong), None, "{wrong:#x}");
        }
    }

    #[test]
    fn a_piece_that_ends_in_nothing_is_not_read() {
        // SAFETY: a fresh mapping of two pages, whose second is given back at once.
        let page = unsafe {
            let page = libc::mmap(
                core::ptr::null_mut(),
                8192,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(page, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(page.byte_add(4096), 4096, libc::PROT_NONE), 0);
            page
        };
        let memory = OwnMemory::new();
        assert!(memory.bytes::<16>(page as u64 + 4080).is_some());
        assert!(memory.bytes::<16>(page as u64 + 4088).is_none());
        // SAFETY: the mapping made above, which nobody refers to any more.
        unsafe { libc::munmap(page, 8192) };
    }
}
