//! A timer on a thread's CPU clock, which signals that thread when it runs.
//!
//! It cannot go off while the thread waits, because its clock stands still then; and the kernel looks at it in the timer
//! interrupt of the very processor that the thread runs on, on its way back to the program. So nothing lies between the
//! decision to signal and the handler, in which the thread could begin a wait for the signal to cut short: a signal that
//! another thread sends is on its way for some microseconds. It takes until the next tick of the scheduler.
#![allow(unsafe_code)]

use super::clock::{self, KernelTime};
use super::errno::{Errno, check};
use core::mem::MaybeUninit;

/// What the signal of such a timer carries.
pub const MARK: usize = 0xb10c_cada;

/// One timer, deleted when it goes.
pub struct CpuTimer(libc::c_int);

impl CpuTimer {
    /// Sends `signal` to a thread of this process as soon as it has run a little from now on.
    pub fn start(tid: i32, signal: i32) -> Result<CpuTimer, Errno> {
        // SAFETY: plain numbers.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = tid;
        event.sigev_value.sival_ptr = core::ptr::without_provenance_mut(MARK);
        let mut id: libc::c_int = 0;
        let clock = libc::c_long::from(clock::of_thread(tid));
        // The kernel's own calls: the C library's keep records of their own.
        // SAFETY: the kernel reads the event and writes the id.
        check(unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut id) } as i64)?;
        let timer = CpuTimer(id);
        // Its interval and its first time.
        let setting = [KernelTime::of(0), KernelTime::of(1)];
        // SAFETY: the kernel reads the setting.
        let set = unsafe {
            let none = core::ptr::null_mut::<[KernelTime; 2]>();
            libc::syscall(libc::SYS_timer_settime, libc::c_long::from(id), 0 as libc::c_long, &raw const setting, none)
        };
        check(set as i64)?;
        Ok(timer)
    }
}

impl Drop for CpuTimer {
    fn drop(&mut self) {
        // SAFETY: the id is ours and is not used after this.
        unsafe { libc::syscall(libc::SYS_timer_delete, libc::c_long::from(self.0)) };
    }
}
