//! Clocks. Durations come from CLOCK_MONOTONIC alone: it stops in suspend and nobody can set it.
#![allow(unsafe_code)]

use super::fork;
use super::vdso;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use libc::{clockid_t, timespec};

/// A moment, in nanoseconds of CLOCK_MONOTONIC. 0 is no moment.
///
/// The one type behind which the clock of the marks may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Now.
    #[inline(never)]
    pub fn now() -> Ticks {
        Ticks::now_inlined()
    }

    /// Now, for marks and the handler, to which a call more is a cost. Everywhere else it is only more code.
    #[inline(always)]
    pub fn now_inlined() -> Ticks {
        Ticks(nanoseconds(&vdso::monotonic()))
    }

    /// Nanoseconds from `earlier` to this moment; 0 where that is not earlier.
    #[inline]
    pub fn since(self, earlier: Ticks) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment and some nanoseconds.
    #[inline]
    pub fn plus(self, nanoseconds: u64) -> Ticks {
        Ticks(self.0.saturating_add(nanoseconds))
    }
}

/// A time as the kernel's older calls take it, whatever the C library's `timespec` has become.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelTime {
    seconds: libc::c_long,
    nanoseconds: libc::c_long,
}

impl KernelTime {
    /// So many nanoseconds; on 32 bits no more than 68 years.
    pub fn of(nanoseconds: u64) -> KernelTime {
        KernelTime {
            seconds: (nanoseconds / 1_000_000_000).try_into().unwrap_or(libc::c_long::MAX),
            nanoseconds: (nanoseconds % 1_000_000_000) as libc::c_long,
        }
    }
}

/// CPU time that the calling thread has used, ns. A system call.
pub fn own_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CPU time that the process has used, ns. A system call.
pub fn process_cpu() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// CPU time that a thread of this process has used, ns; `None` when it is gone. A system call.
///
/// The clock's number is made from the thread id as the kernel does (`MAKE_THREAD_CPUCLOCK`): `pthread_getcpuclockid`
/// would dereference the handle of a thread that may be gone.
pub fn thread_cpu(tid: i32) -> Option<u64> {
    read(of_thread(tid))
}

/// The number of a thread's CPU clock.
pub fn of_thread(tid: i32) -> clockid_t {
    const PER_THREAD_SCHED: i32 = 4 | 2;
    ((!tid) << 3) | PER_THREAD_SCHED
}

/// Milliseconds since 1970 on the wall clock, for names and humans only.
pub fn unix_ms() -> i64 {
    read(libc::CLOCK_REALTIME).map_or(0, |ns| (ns / 1_000_000) as i64)
}

/// Seconds by which local time is ahead of UTC now. Allocates on the first call of a process.
///
/// In a child of fork the C library's lock for it may be held for ever: what was known before is answered there.
pub fn utc_offset_s() -> i32 {
    static KNOWN: AtomicI32 = AtomicI32::new(0);
    if fork::is_child() {
        return KNOWN.load(Relaxed);
    }
    let seconds = (unix_ms() / 1000) as libc::time_t;
    // SAFETY: a tm is plain numbers and a pointer that may be null.
    let mut fields: libc::tm = unsafe { core::mem::zeroed() };
    // SAFETY: both point to live values.
    let result = unsafe { libc::localtime_r(&seconds, &mut fields) };
    let offset = if result.is_null() { 0 } else { fields.tm_gmtoff as i32 };
    KNOWN.store(offset, Relaxed);
    offset
}

#[inline(never)]
fn read(id: clockid_t) -> Option<u64> {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec.
    let result = unsafe { libc::clock_gettime(id, &mut time) };
    (result == 0).then(|| nanoseconds(&time))
}

#[inline]
fn nanoseconds(time: &timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_cpu_clock_reads_the_same_from_outside() {
        let tid = crate::sys::thread::tid();
        let before = own_cpu();
        let outside = thread_cpu(tid).unwrap();
        assert!(before <= outside && outside <= own_cpu());
    }

    #[test]
    fn the_longest_time_is_one_that_the_kernel_takes() {
        let (short, long) = (KernelTime::of(1_500_000_000), KernelTime::of(u64::MAX));
        assert_eq!((short.seconds, short.nanoseconds), (1, 500_000_000));
        assert_eq!(long.seconds, libc::c_long::try_from(18_446_744_073i64).unwrap_or(libc::c_long::MAX));
    }

    #[test]
    fn a_dead_thread_has_no_clock() {
        let tid = std::thread::spawn(crate::sys::thread::tid).join().unwrap();
        // The kernel may still be taking the thread down when join returns.
        let deadline = Ticks::now().plus(10_000_000_000);
        while thread_cpu(tid).is_some() && Ticks::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(thread_cpu(tid), None);
    }
}
