//! This process's memory, read softly.
#![allow(dead_code)] // Each test program uses a part.

#[cfg(target_arch = "x86_64")]
pub use blockcanary::sys::memory::OwnMemory;

/// By `/proc/self/mem`: an emulator of another processor has no `process_vm_readv`.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub struct OwnMemory(i32);

#[cfg(not(target_arch = "x86_64"))]
impl OwnMemory {
    /// Opens the file the first time.
    pub fn new() -> OwnMemory {
        use std::sync::atomic::{AtomicI32, Ordering};
        static FILE: AtomicI32 = AtomicI32::new(-1);
        if FILE.load(Ordering::SeqCst) < 0 {
            // SAFETY: the path is a C string.
            let file = unsafe { libc::open(c"/proc/self/mem".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
            assert!(file >= 0);
            FILE.store(file, Ordering::SeqCst);
        }
        OwnMemory(FILE.load(Ordering::SeqCst))
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl blockcanary::unwind::memory::Memory for OwnMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        // SAFETY: the kernel writes to `out` alone.
        let read = unsafe { libc::pread64(self.0, out.as_mut_ptr().cast(), out.len(), address as i64) };
        usize::try_from(read) == Ok(out.len())
    }
}
