//! The signal handler: copies and leaves.
//!
//! It saves `errno` first and restores it last, takes no lock, allocates nothing, touches no thread-local variable but
//! `errno`, calls nothing of the loader, and has no panic in reach. On the stack it uses a few hundred bytes.
//!
//! `REQUEST` says whether an answer is wanted. Encoding: the low two bits are the state, the rest is a ticket that
//! grows with each request.
//!
//! * IDLE → ARMED by the monitor (release), after it has written `TARGET` and before it sends the signal;
//! * ARMED → WRITING by the handler, if it runs on the thread that is asked (acquire);
//! * WRITING → DONE by the handler, after it has filled the answer (release), which the monitor then reads (acquire);
//! * ARMED → IDLE by the monitor when the answer has not come in time, DONE → IDLE when it has read it.
//!
//! Only the exchanges from ARMED are contended, so a late signal finds either nothing wanted, or a request to its own
//! thread, which it may answer: what it copies is the present. The answer names the stretch it was taken in.
#![allow(unsafe_code)]

use super::answer::{Answer, COPY, RECORDS, Record};
use crate::sys::clock::Ticks;
use crate::sys::context;
use crate::sys::copy;
use crate::sys::counters::WAITS_CUT;
use crate::sys::errno::Errno;
use crate::sys::memory::OwnMemory;
use crate::sys::{futex, signal, thread};
use crate::unwind::arch;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Nothing is wanted.
pub const IDLE: u32 = 0;
/// An answer is wanted.
pub const ARMED: u32 = 1;
/// A handler is filling the answer.
pub const WRITING: u32 = 2;
/// It is filled.
pub const DONE: u32 = 3;
/// The bits of the state.
pub const STATE: u32 = 3;

/// See above.
pub static REQUEST: AtomicU32 = AtomicU32::new(IDLE);

/// Who is asked, written while IDLE and read while WRITING.
pub static TARGET: Target = Target {
    tid: AtomicI32::new(0),
    stretch: AtomicPtr::new(ptr::null_mut()),
    stack_low: AtomicU64::new(0),
    stack_high: AtomicU64::new(0),
};

/// Where the answer goes; lies in the installation's memory, valid while REQUEST is not IDLE.
pub static ANSWER: AtomicPtr<Answer> = AtomicPtr::new(ptr::null_mut());

/// Handlers that are running. Our memory may go when it is 0 and REQUEST is IDLE.
pub static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Signals sent by us, not by timers of ours, that no handler has taken up yet: tells a late one of ours from one that somebody else sent.
pub static OUTSTANDING: AtomicU32 = AtomicU32::new(0);

/// What handled the signal before us: address and form, 0 for nothing.
pub static PREVIOUS: Previous = Previous { place: AtomicUsize::new(0), long_form: AtomicBool::new(false) };

/// See `TARGET`.
pub struct Target {
    /// The thread.
    pub tid: AtomicI32,
    /// The word that names its loop's stretch, which is static.
    pub stretch: AtomicPtr<AtomicUsize>,
    /// The thread's stack, as far as it is known to be mapped.
    pub stack_low: AtomicU64,
    /// Its end; 0 where the stack is not known.
    pub stack_high: AtomicU64,
}

/// See `PREVIOUS`.
pub struct Previous {
    /// The function's address.
    pub place: AtomicUsize,
    /// It takes three arguments.
    pub long_form: AtomicBool,
}

/// Runs on the thread that is asked.
pub(super) extern "C" fn on_signal(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = Errno::last();
    INSIDE.fetch_add(1, SeqCst);
    let is_ours = is_ours(info);
    if is_ours && REQUEST.load(SeqCst) & STATE == ARMED && TARGET.tid.load(Relaxed) == thread::tid() {
        answer(context);
    }
    let place = PREVIOUS.place.load(Acquire);
    if !is_ours && place != 0 {
        // SAFETY: the kernel said so when our handler took its place.
        unsafe { signal::call(place, PREVIOUS.long_form.load(Relaxed), number, info, context) };
    }
    INSIDE.fetch_sub(1, SeqCst);
    errno.restore();
}

/// Takes up one of the signals that we have sent.
fn is_ours(info: *const libc::siginfo_t) -> bool {
    if info.is_null() {
        return false;
    }
    // SAFETY: the kernel gave it.
    let (from_timer, from_own_thread) = unsafe { (signal::is_from_timer(info), signal::is_from_own_thread(info)) };
    from_timer || from_own_thread && OUTSTANDING.fetch_update(AcqRel, Relaxed, |count| count.checked_sub(1)).is_ok()
}

fn answer(context: *const c_void) {
    let request = REQUEST.load(Acquire);
    if request & STATE != ARMED {
        return;
    }
    if REQUEST.compare_exchange(request, request & !STATE | WRITING, AcqRel, Relaxed).is_err() {
        return;
    }
    let place = ANSWER.load(Acquire);
    if !place.is_null() && !context.is_null() {
        // SAFETY: WRITING makes the answer this handler's alone, and it is mapped while REQUEST is not IDLE.
        let answer = unsafe { &mut *place };
        // SAFETY: the kernel gave the context to this handler.
        unsafe { fill(answer, context) };
    }
    REQUEST.store(request & !STATE | DONE, Release);
    futex::wake_all(&REQUEST);
}

/// # Safety
/// `context` is the running handler's.
unsafe fn fill(answer: &mut Answer, context: *const c_void) {
    // SAFETY: null or a static.
    answer.stretch = unsafe { TARGET.stretch.load(Relaxed).as_ref() }.map_or(1, |stretch| stretch.load(Relaxed));
    answer.at = Ticks::now().0;
    answer.register_count = 0;
    let (registers, count) = (&mut answer.registers, &mut answer.register_count);
    // SAFETY: the caller vouches for the context.
    let (pc, sp) = unsafe {
        context::interrupted(context, |number, value| {
            if let Some(place) = registers.get_mut(usize::from(number)) {
                *place = value;
                *count = usize::from(number) + 1;
            }
        })
    };
    (answer.pc, answer.sp) = (pc, sp);
    (answer.copied, answer.record_count) = (0, 0);
    let code = |out: &mut [u8]| {
        let at = pc.wrapping_sub(out.len() as u64);
        OwnMemory::new().copy(at, out) == out.len()
    };
    if context::wait_was_cut(|number| answer.registers.get(usize::from(number)).copied().unwrap_or(0), code) {
        WAITS_CUT.add_one();
    }
    let (low, high) = (TARGET.stack_low.load(Relaxed), TARGET.stack_high.load(Relaxed));
    if (low..high).contains(&sp) {
        answer.copied = ((high - sp) as usize).min(COPY);
        // SAFETY: from the stack pointer up the thread's own stack is mapped, and `high` is within it.
        unsafe { copy::bytes(sp as usize as *const u8, answer.copy.as_mut_ptr(), answer.copied) };
        let frame_pointer = answer.registers.get(usize::from(arch::FP)).copied().unwrap_or(0);
        // SAFETY: as above.
        unsafe { follow_records(answer, frame_pointer, high) };
    } else {
        // A stack of the program's own making: how far it goes is not known, so the kernel is asked, which does not fault.
        answer.copied = OwnMemory::new().copy(sp, &mut answer.copy);
    }
}

/// Keeps the frame records that lie above the copy.
///
/// # Safety
/// From the answer's stack pointer to `high` all memory is mapped.
unsafe fn follow_records(answer: &mut Answer, frame_pointer: u64, high: u64) {
    const WORD: u64 = size_of::<usize>() as u64;
    let above = answer.sp.saturating_add(answer.copied as u64);
    let mut at = frame_pointer;
    let mut lowest = answer.sp;
    // Records rise, so this ends; the bound keeps a stack full of tiny frames from holding the thread up.
    for _ in 0..4 * RECORDS {
        if at < lowest || !at.is_multiple_of(WORD) || at.saturating_add(2 * WORD) > high {
            return;
        }
        // SAFETY: the two words lie between the stack pointer and `high`, aligned.
        let (next, return_address) = unsafe {
            let record = at as usize as *const usize;
            (record.read_volatile() as u64, record.add(1).read_volatile() as u64)
        };
        if at >= above {
            let Some(place) = answer.records.get_mut(answer.record_count) else { return };
            *place = Record { at, return_address };
            answer.record_count += 1;
        }
        lowest = at.saturating_add(2 * WORD);
        at = next;
    }
}
