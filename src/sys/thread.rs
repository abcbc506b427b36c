//! Threads: the calling one, and the library's own.
#![allow(unsafe_code)]

use super::clock::{KernelTime, Ticks};
use super::errno::Errno;
use super::mask::{self, Mask};
use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Names a thread while it lives: its thread pointer, which lies in the memory that the C library keeps for it behind its
/// stack. A register read, where `pthread_self` is a call that each mark would have to pay for.
#[inline(always)]
pub fn handle() -> usize {
    let pointer: usize;
    // SAFETY: on x86 the thread pointer's first word holds its own address, by the ABI of thread-local storage.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "x86")]
    unsafe {
        core::arch::asm!("mov {}, gs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
    }
    // SAFETY: reads a register that programs may read.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem, pure));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "arm")]
    unsafe {
        core::arch::asm!("mrc p15, 0, {}, c13, c0, 3", out(reg) pointer, options(nostack, preserves_flags, nomem, pure));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!("mv {}, tp", out(reg) pointer, options(nostack, preserves_flags, nomem, pure));
    }
    pointer
}

/// The kernel's id of the calling thread. A system call.
pub fn tid() -> i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// The process id. A system call.
pub fn pid() -> i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::getpid() }
}

/// Is there a thread of this process with this id?
pub fn exists(tid: i32) -> bool {
    // SAFETY: signal 0 is not sent, only judged.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) };
    result == 0 || Errno::last().0 != libc::ESRCH
}

/// The calling thread's name, without its NUL.
pub fn name(buffer: &mut [u8; 16]) -> &[u8] {
    // SAFETY: PR_GET_NAME writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, buffer.as_mut_ptr()) };
    let length = buffer.iter().position(|b| *b == 0).unwrap_or(buffer.len());
    buffer.get(..length).unwrap_or(&[])
}

/// Sleeps of the calling thread end when they should: the kernel lets others be late by 50 us to save wake-ups.
pub fn sleep_precisely() {
    // SAFETY: takes numbers, and changes the calling thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// The calling thread goes before others that want the processor, where it may: programs on Android may say so of their
/// threads, elsewhere that takes a privilege. Eight steps is what Android gives to what draws, and less than to sound.
pub fn go_first() {
    // SAFETY: takes numbers; 0 is the calling thread alone, as Linux has it.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -8) };
}

/// See `slept_ns`.
static SLEPT_NS: AtomicU64 = AtomicU64::new(0);
/// Whose time it is, by its handle; 0: nobody's.
static EXPLAINING: AtomicUsize = AtomicUsize::new(0);

/// The calling thread's sleeps and its waits for others of ours are counted from now on: it has to explain its time.
pub fn explain_time() {
    EXPLAINING.store(handle(), Relaxed);
}

/// The calling thread has waited for another one of ours, which may itself have had no processor.
pub fn has_waited(nanoseconds: u64) {
    if EXPLAINING.load(Relaxed) == handle() {
        SLEPT_NS.fetch_add(nanoseconds, Relaxed);
    }
}

/// How long `nap` was called for so far, and waited for others, ns.
pub fn slept_ns() -> u64 {
    SLEPT_NS.load(Relaxed)
}

/// Sleeps this long. By the thread that explains its time alone.
pub fn nap(nanoseconds: u64) {
    SLEPT_NS.fetch_add(nanoseconds, Relaxed);
    sleep(nanoseconds);
}

/// Sleeps this long.
pub fn sleep(nanoseconds: u64) {
    let time = KernelTime::of(nanoseconds);
    // SAFETY: a live time.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, ptr::null_mut::<KernelTime>()) };
}

/// Stays on the processor for so long, without doing anything.
pub fn spin(nanoseconds: u64) {
    let end = Ticks::now().plus(nanoseconds);
    while Ticks::now() < end {
        core::hint::spin_loop();
    }
}

/// Gives way to other threads.
pub fn yield_now() {
    // SAFETY: takes nothing.
    unsafe { libc::sched_yield() };
}

/// Processors that are online.
pub fn cores() -> u32 {
    // SAFETY: sysconf takes a number.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(cores).unwrap_or(1).max(1)
}

/// A thread of the library's own.
pub struct Thread(libc::pthread_t);

/// Starts a thread under a name of at most 15 bytes, with all signals blocked, so that none of the program's handlers
/// ever runs on it. Allocates. `body` gets the value for as long as the thread runs.
pub fn spawn<T: Send>(
    name: &'static CStr,
    stack_bytes: usize,
    value: &'static mut T,
    body: extern "C" fn(*mut c_void) -> *mut c_void,
) -> Result<Thread, Errno> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::zeroed();
    let mut thread = MaybeUninit::<libc::pthread_t>::zeroed();
    // The new thread has its maker's mask.
    let before = mask::block(Mask::everything());
    // SAFETY: each call gets places of its own type.
    unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes.saturating_add(thread_locals()));
        let result =
            libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), start(body), ptr::from_mut(value).cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        mask::put_back(before);
        if result != 0 {
            return Err(Errno(result));
        }
        let thread = thread.assume_init();
        libc::pthread_setname_np(thread, name.as_ptr());
        Ok(Thread(thread))
    }
}

/// Bytes that the program's thread-local variables take. glibc takes them out of a thread's stack, whatever their size.
#[cfg(target_env = "gnu")]
fn thread_locals() -> usize {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, sum: *mut c_void) -> i32 {
        // SAFETY: the loader gives a module's headers and what it was given itself, the sum.
        unsafe {
            let headers = core::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
            let locals = headers.iter().filter(|header| header.p_type == libc::PT_TLS);
            let bytes: usize = locals.map(|header| (header.p_memsz + header.p_align) as usize).sum();
            *sum.cast::<usize>() += bytes;
        }
        0
    }
    // Once, so that a child of fork, in which the loader's lock may be held for ever, does without it.
    use core::sync::atomic::{AtomicUsize, Ordering};
    static KNOWN: AtomicUsize = AtomicUsize::new(usize::MAX);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != usize::MAX || super::fork::is_child() {
        return if known == usize::MAX { 0 } else { known };
    }
    let mut sum = 0usize;
    // SAFETY: the callback is called during this call, with our sum.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut sum).cast()) };
    let known = sum.next_multiple_of(1 << 16);
    KNOWN.store(known, Ordering::Relaxed);
    known
}

#[cfg(not(target_env = "gnu"))]
fn thread_locals() -> usize {
    0
}

// The same type under all targets' declarations of pthread_create.
fn start(body: extern "C" fn(*mut c_void) -> *mut c_void) -> extern "C" fn(*mut c_void) -> *mut c_void {
    body
}

impl Thread {
    /// Waits for the thread's end.
    pub fn join(self) {
        // SAFETY: it was made joinable and is joined once, since `self` is gone afterwards.
        unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
    }
}

/// A value a thread that tells when the thread ends.
pub struct ExitKey(libc::pthread_key_t);

impl ExitKey {
    /// `None` where the platform could only give one that allocates when it is first set: glibc keeps the first 32 in
    /// the thread itself and allocates for those above.
    pub fn new(on_exit: unsafe extern "C" fn(*mut c_void)) -> Option<ExitKey> {
        let mut key = 0;
        // SAFETY: a live place for the key.
        if unsafe { libc::pthread_key_create(&mut key, Some(on_exit)) } != 0 {
            return None;
        }
        let key = ExitKey(key);
        #[cfg(target_env = "gnu")]
        if key.0 >= 32 {
            key.delete();
            return None;
        }
        Some(key)
    }

    /// From its number.
    pub fn from_number(number: usize) -> ExitKey {
        ExitKey(number as libc::pthread_key_t)
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.0 as usize
    }

    /// The calling thread's value, 0 at first.
    #[inline]
    pub fn get(&self) -> usize {
        // SAFETY: a stale key gives null.
        unsafe { libc::pthread_getspecific(self.0) as usize }
    }

    /// Sets the calling thread's value; anything but 0 is handed to `on_exit` when it ends.
    pub fn set(&self, value: usize) {
        // SAFETY: a stale key gives an error and nothing else.
        unsafe { libc::pthread_setspecific(self.0, value as *const c_void) };
    }

    /// Gives the key back; `on_exit` is not called any more.
    pub fn delete(&self) {
        // SAFETY: a stale key gives an error and nothing else.
        unsafe { libc::pthread_key_delete(self.0) };
    }
}
