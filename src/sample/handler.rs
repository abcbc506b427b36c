//! The signal handler: copies and leaves.
//!
//! It saves `errno` first and restores it last, takes no lock, allocates nothing, touches no thread-local variable but
//! `errno`, calls nothing of the loader, and has no panic in reach. On the stack it uses a few hundred bytes.
#![allow(unsafe_code)]

use super::answer::{Answer, COPY, Head, RECORDS, Record};
use super::desk::{ARMED, DESK, DONE, PREVIOUS, STATE, WRITING};
use crate::sys::clock::Ticks;
use crate::sys::context;
use crate::sys::copy;
use crate::sys::counters::WAITS_CUT;
use crate::sys::errno::Errno;
use crate::sys::memory::OwnMemory;
use crate::sys::{signal, thread};
use crate::unwind::arch;
use crate::unwind::registers::COUNT;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::*;

/// Runs on the thread that is asked.
pub(super) extern "C" fn on_signal(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = Errno::last();
    DESK.inside.fetch_add(1, SeqCst);
    let is_ours = is_ours(info);
    let request = DESK.request.load(SeqCst);
    if is_ours && request & STATE == ARMED && is_target() {
        answer(request, context);
    }
    if !is_ours {
        pass_on(number, info, context);
    }
    DESK.inside.fetch_sub(1, SeqCst);
    errno.restore();
}

/// Lets the handler that stood here before see what is not for us.
fn pass_on(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let place = PREVIOUS.place.load(Acquire);
    if place != 0 {
        // SAFETY: the kernel said so when our handler took its place.
        unsafe { signal::call(place, PREVIOUS.long_form.load(Relaxed), number, info, context) };
    }
}

/// Is this the thread that is asked? Its handle tells without a system call, where it is known.
fn is_target() -> bool {
    match DESK.handle.load(Relaxed) {
        0 => DESK.tid.load(Relaxed) == thread::tid(),
        handle => handle == thread::handle(),
    }
}

/// Takes up one of the signals that we have sent.
fn is_ours(info: *const libc::siginfo_t) -> bool {
    if info.is_null() {
        return false;
    }
    // SAFETY: the kernel gave it.
    let (from_timer, from_own_thread) =
        unsafe { (signal::is_from_timer(info), signal::is_from_own_thread(info, DESK.process.load(Relaxed))) };
    from_timer
        || from_own_thread && DESK.outstanding.fetch_update(AcqRel, Relaxed, |count| count.checked_sub(1)).is_ok()
}

/// Answers this request and no other: who was found to be asked by it may since have been given up on, and somebody else be
/// asked.
fn answer(request: u32, context: *const c_void) {
    if DESK.request.compare_exchange(request, request & !STATE | WRITING, AcqRel, Relaxed).is_err() {
        return;
    }
    let place = DESK.answer.load(Acquire);
    if !place.is_null() && !context.is_null() {
        // SAFETY: WRITING makes the answer this handler's alone, and it is mapped while REQUEST is not IDLE.
        let answer = unsafe { &mut *place };
        // SAFETY: the kernel gave the context to this handler.
        unsafe { fill(answer, context) };
    }
    DESK.request.store(request & !STATE | DONE, Release);
}

/// # Safety
/// `context` is the running handler's.
unsafe fn fill(answer: &mut Answer, context: *const c_void) {
    let mut head = Head {
        // SAFETY: null or a static.
        stretch: unsafe { DESK.stretch.load(Relaxed).as_ref() }.map_or(1, |stretch| stretch.load(Relaxed)),
        at: Ticks::now_inlined().0,
        pc: 0,
        sp: 0,
        copied: 0,
        record_count: 0,
        register_count: 0,
        registers: [0; COUNT],
    };
    // SAFETY: the caller vouches for the context.
    (head.pc, head.sp) = unsafe {
        context::interrupted(context, |number, value| {
            if let Some(place) = head.registers.get_mut(usize::from(number)) {
                *place = value;
                head.register_count = usize::from(number) + 1;
            }
        })
    };
    let register = |number| head.registers.get(usize::from(number)).copied().unwrap_or(0);
    let code = |out: &mut [u8]| {
        let at = head.pc.wrapping_sub(out.len() as u64);
        OwnMemory::new().copy(at, out) == out.len()
    };
    if context::wait_was_cut(register, code) {
        WAITS_CUT.add_one();
    }
    let (low, high) = (DESK.stack_low.load(Relaxed), DESK.stack_high.load(Relaxed));
    if (low..high).contains(&head.sp) {
        head.copied = ((high - head.sp) as usize).min(COPY);
        // SAFETY: from the stack pointer up the thread's own stack is mapped, and `high` is within it.
        unsafe { copy::past_caches(head.sp as usize as *const u8, answer.copy.as_mut_ptr(), head.copied) };
        // SAFETY: as above; where the copy reaches the stack's end, there is nothing to follow.
        head.record_count = unsafe { follow_records(&head, register(arch::FP), high, &mut answer.records) };
    } else {
        // A stack of the program's own making: how far it goes is not known, so the kernel is asked, which does not fault.
        head.copied = OwnMemory::new().copy(head.sp, &mut answer.copy);
    }
    // SAFETY: two heads.
    unsafe { copy::past_caches((&raw const head).cast(), (&raw mut answer.head).cast(), size_of::<Head>()) };
    copy::arrive();
}

/// Keeps the frame records that do not lie within the copy; how many.
///
/// # Safety
/// From the head's stack pointer to `high` all memory is mapped.
unsafe fn follow_records(head: &Head, frame_pointer: u64, high: u64, records: &mut [Record; RECORDS]) -> usize {
    const WORD: u64 = size_of::<usize>() as u64;
    let above = head.sp.saturating_add(head.copied as u64);
    let mut count = 0;
    let mut at = frame_pointer.wrapping_sub(arch::RECORD);
    let mut lowest = head.sp;
    // Records rise, so this ends; the bound keeps a stack full of tiny frames from holding the thread up.
    for _ in 0..4 * RECORDS {
        if above >= high || at < lowest || !at.is_multiple_of(WORD) || at.saturating_add(2 * WORD) > high {
            break;
        }
        // SAFETY: the two words lie between the stack pointer and `high`, aligned.
        let (next, return_address) = unsafe {
            let record = at as usize as *const usize;
            (record.read_volatile() as u64, record.add(1).read_volatile() as u64)
        };
        lowest = at.saturating_add(2 * WORD);
        if lowest > above {
            let Some(place) = records.get_mut(count) else { break };
            let record = Record { at, return_address };
            // SAFETY: two records, which are two words each.
            unsafe { copy::pair_past_caches((&raw const record).cast(), (&raw mut *place).cast()) };
            count += 1;
        }
        at = next.wrapping_sub(arch::RECORD);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::desk::IDLE;

    /// No other test asks anybody.
    #[test]
    fn a_request_that_was_given_up_on_is_not_answered_in_the_place_of_the_next() {
        let (first, second) = (1 << 2 | ARMED, 2 << 2 | ARMED);
        DESK.request.store(second, SeqCst);
        answer(first, core::ptr::null());
        assert_eq!(DESK.request.load(SeqCst), second, "whoever was asked first has answered for another");
        answer(second, core::ptr::null());
        assert_eq!(DESK.request.load(SeqCst), second & !STATE | DONE);
        DESK.request.store(IDLE, SeqCst);
    }
}
