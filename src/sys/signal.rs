//! The signal that stacks are taken with: chosen, taken, checked, sent and given back.
#![allow(unsafe_code)]

use super::cpu_timer::MARK;
use super::errno::Errno;
use super::mask::{self, Mask};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

/// A handler as the kernel calls it.
pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// A signal that has been taken, and what it did before.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Its number.
    pub number: i32,
    handler: Handler,
    previous: libc::sigaction,
}

/// Takes `wanted`, or for 0 the first free one from SIGRTMAX down: the C library, ART and the runtimes of other
/// languages take theirs from below. `None` when there is none.
///
/// `avoid` are signals that somebody may be waiting for without a handler: see `waited_for`.
pub fn take(wanted: i32, avoid: u64, handler: Handler) -> Option<Taken> {
    if wanted != 0 {
        return install(wanted, handler);
    }
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find_map(|number| {
        if !is_default(&current(number)?) || Mask(avoid).has(number) {
            return None;
        }
        let taken = install(number, handler)?;
        if is_default(&taken.previous) {
            return Some(taken);
        }
        // Somebody took it between the look and the hand.
        taken.put(&taken.previous);
        None
    })
}

/// Real-time signals that the calling thread blocks, or that are pending: bit 0 is signal 1. Who takes signals by `sigwait` blocks them first,
/// in all threads as a rule. A thread that blocks all there are wants to be left alone, which tells of none.
pub fn waited_for() -> u64 {
    let all = Mask::real_time().0;
    let blocked = mask::blocked().0 & all;
    if blocked == all { mask::pending().0 & all } else { blocked | mask::pending().0 & all }
}

/// The calling thread takes the signals that faults of its own raise, as a Java VM wants it of a thread that runs Java.
#[cfg(feature = "jni")]
pub fn unblock_faults() {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: a live place for the set, filled before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for number in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
            libc::sigaddset(set.as_mut_ptr(), number);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
}

/// Is a number one that may be asked for?
pub fn is_real_time(number: i32) -> bool {
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&number)
}

fn install(number: i32, handler: Handler) -> Option<Taken> {
    let mut action = zeroed();
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    let mut previous = zeroed();
    // SAFETY: both are live; the mask is empty, since it is zeroed.
    let result = unsafe { libc::sigaction(number, &action, &mut previous) };
    (result == 0).then_some(Taken { number, handler, previous })
}

fn current(number: i32) -> Option<libc::sigaction> {
    let mut action = zeroed();
    // SAFETY: asks only.
    let result = unsafe { libc::sigaction(number, ptr::null(), &mut action) };
    (result == 0).then_some(action)
}

fn is_default(action: &libc::sigaction) -> bool {
    action.sa_sigaction == libc::SIG_DFL
}

fn zeroed() -> libc::sigaction {
    // SAFETY: plain numbers and a nullable function pointer.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

impl Taken {
    /// Is our handler still the one?
    pub fn is_ours(&self) -> bool {
        current(self.number).is_some_and(|action| action.sa_sigaction == self.handler as *const () as usize)
    }

    /// Sends it to a thread of this process.
    pub fn send(&self, tid: i32) -> Result<(), Errno> {
        // SAFETY: takes numbers.
        let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, self.number) };
        if result == 0 { Ok(()) } else { Err(Errno::last()) }
    }

    /// Gives it back, unless it is not ours any more. Ignoring it first makes the kernel discard what is pending for any
    /// thread: with the default action put back, a thread that unmasks one later would end the process.
    pub fn give_back(&self) {
        if !self.is_ours() {
            return;
        }
        let mut ignore = zeroed();
        ignore.sa_sigaction = libc::SIG_IGN;
        self.put(&ignore);
        if current(self.number).is_some_and(|action| action.sa_sigaction == libc::SIG_IGN) {
            self.put(&self.previous);
        }
    }

    /// The function that handled it before, if one did, and whether it takes the long form.
    pub fn previous_handler(&self) -> Option<(usize, bool)> {
        let place = self.previous.sa_sigaction;
        let is_function = place != libc::SIG_DFL && place != libc::SIG_IGN;
        is_function.then_some((place, self.previous.sa_flags & libc::SA_SIGINFO != 0))
    }

    fn put(&self, action: &libc::sigaction) {
        // SAFETY: a live action, of our making or the kernel's.
        unsafe { libc::sigaction(self.number, action, ptr::null_mut()) };
    }
}

/// Calls what handled a signal before us.
///
/// # Safety
/// `place` is that handler's address and `long_form` its form, the rest is as the kernel gave it.
pub unsafe fn call(place: usize, long_form: bool, number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if long_form {
        // SAFETY: the caller vouches for it.
        let handler: Handler = unsafe { core::mem::transmute(place) };
        handler(number, info, context);
    } else {
        // SAFETY: the caller vouches for it.
        let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(place) };
        handler(number);
    }
}

/// Does it come from one of our timers?
///
/// # Safety
/// `info` is what the kernel gave to the handler.
pub unsafe fn is_from_timer(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the caller vouches for it; a timer's signal carries a value.
    unsafe { (*info).si_code == libc::SI_TIMER && (*info).si_value().sival_ptr.addr() == MARK }
}

/// Did a thread of this process, whose id is `process`, send it to one thread?
///
/// # Safety
/// `info` is what the kernel gave to the handler.
pub unsafe fn is_from_own_thread(info: *const libc::siginfo_t, process: i32) -> bool {
    // SAFETY: the caller vouches for it.
    unsafe { (*info).si_code == libc::SI_TKILL && (*info).si_pid() == process }
}
