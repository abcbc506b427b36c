//! Asking a thread for its registers and stack, from the monitor.
#![allow(unsafe_code)]

use super::answer::Answer;
use super::desk::{ARMED, DESK, DONE, IDLE, PREVIOUS, STATE, WRITING};
use super::handler::on_signal;
use crate::sys::clock::Ticks;
use crate::sys::cpu_timer::CpuTimer;
use crate::sys::lock::Lock;
use crate::sys::signal::{self, Taken};
use crate::sys::thread;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// An answer to a signal that was sent comes within so long, as a rule, and is looked for so often meanwhile.
const QUICK_NS: u64 = 500_000;
const QUICK_LOOK_NS: u64 = 20_000;
/// How often it is looked for later.
const LOOK_NS: u64 = 200_000;

/// Who is asked.
#[derive(Clone, Copy)]
pub struct Ask {
    /// The thread.
    pub tid: i32,
    /// Its `thread::handle`, 0 where that is not known.
    pub handle: usize,
    /// The word that names its loop's stretch.
    pub stretch: &'static AtomicUsize,
    /// Its stack, `high` 0 where it is not known.
    pub stack_low: u64,
    /// See `stack_low`.
    pub stack_high: u64,
}

/// How the signal gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// At once.
    Sent,
    /// By a timer on the thread's CPU clock: never while it waits, and not before the next tick.
    Timed,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Somebody else's handler stands where ours was.
    TakenOver,
    /// It could not be sent: the thread is gone, or too many signals are pending.
    NotSent,
    /// It has begun to wait meanwhile: not sent.
    Moved,
    /// The thread has not answered in time.
    Unanswered,
    /// A thread is inside the handler and does not come out; nobody can be asked meanwhile.
    Busy,
}

/// The signal and the place for answers. One thread asks, one at a time.
pub struct Requests {
    taken: Option<Taken>,
    answer: &'static mut Answer,
    ticket: u32,
}

impl Requests {
    /// No signal yet.
    pub fn new(answer: &'static mut Answer) -> Requests {
        Requests { taken: None, answer, ticket: 0 }
    }

    /// Takes the signal; `false` if there is none to take.
    pub fn take_signal(&mut self, wanted: i32, avoid: u64) -> bool {
        DESK.process.store(thread::pid(), Relaxed);
        self.taken = signal::take(wanted, avoid, on_signal);
        *TAKEN.lock() = self.taken;
        if let Some(taken) = &self.taken {
            let (place, long_form) = taken.previous_handler().unwrap_or((0, false));
            PREVIOUS.long_form.store(long_form, Relaxed);
            PREVIOUS.place.store(place, Release);
            DESK.answer.store(self.answer, Release);
        }
        self.taken.is_some()
    }

    /// Its number.
    pub fn signal(&self) -> Option<i32> {
        self.taken.as_ref().map(|taken| taken.number)
    }

    /// Asks and waits for the answer, at most this long.
    ///
    /// `may_send` is asked last, when nothing but the sending is left to do: a thread that it finds running has as little
    /// time as can be to begin a wait, which the signal would cut short.
    pub fn ask(
        &mut self,
        ask: &Ask,
        way: Way,
        patience_ns: u64,
        may_send: impl FnOnce() -> bool,
    ) -> Result<&Answer, Silence> {
        let Some(taken) = &self.taken else { return Err(Silence::NotSent) };
        if !taken.is_ours() {
            return Err(Silence::TakenOver);
        }
        match DESK.request.load(Acquire) & STATE {
            IDLE => {}
            // The answer to a request that was given up on: nobody wants it any more.
            DONE => DESK.request.store(IDLE, Relaxed),
            _ => return Err(Silence::Busy),
        }
        DESK.tid.store(ask.tid, Relaxed);
        DESK.handle.store(ask.handle, Relaxed);
        DESK.stretch.store(core::ptr::from_ref(ask.stretch).cast_mut(), Relaxed);
        DESK.stack_low.store(ask.stack_low, Relaxed);
        DESK.stack_high.store(ask.stack_high, Relaxed);
        self.ticket = self.ticket.wrapping_add(1);
        let armed = self.ticket << 2 | ARMED;
        DESK.request.store(armed, SeqCst);
        // Deleted when this returns, whatever has come of it.
        let mut timer = None;
        let is_sent = match way {
            Way::Timed => {
                timer = CpuTimer::start(ask.tid, taken.number).ok();
                timer.is_some().then_some(()).ok_or(Silence::NotSent)
            }
            Way::Sent => send(taken, ask.tid, may_send),
        };
        if let Err(silence) = is_sent {
            DESK.request.store(IDLE, SeqCst);
            return Err(silence);
        }
        let begin = Ticks::now();
        loop {
            if DESK.request.load(Acquire) == armed & !STATE | DONE {
                DESK.request.store(IDLE, Relaxed);
                return Ok(self.answer);
            }
            let waited_ns = Ticks::now().since(begin);
            if waited_ns >= patience_ns {
                break;
            }
            // The handler wakes nobody: that would cost the thread that is sampled more than all the rest.
            thread::nap(if waited_ns < QUICK_NS { QUICK_LOOK_NS } else { LOOK_NS });
        }
        drop(timer);
        if DESK.request.compare_exchange(armed, IDLE, SeqCst, Relaxed).is_ok() {
            return Err(Silence::Unanswered);
        }
        // The handler runs already: it needs microseconds once it has a processor.
        if self.wait_until(10 * patience_ns, || DESK.request.load(Acquire) & STATE != WRITING) {
            DESK.request.store(IDLE, Relaxed);
            return Ok(self.answer);
        }
        Err(Silence::Unanswered)
    }

    /// Gives the signal back. `false`: a thread is still inside the handler, so the memory must stay; may be called again.
    pub fn give_back(&mut self, patience_ns: u64) -> bool {
        if let Some(taken) = self.taken.take() {
            taken.give_back();
            *TAKEN.lock() = None;
        }
        let quiet = self.wait_until(patience_ns, || {
            let state = DESK.request.load(SeqCst) & STATE;
            DESK.inside.load(SeqCst) == 0 && state != WRITING
        });
        if quiet {
            DESK.request.store(IDLE, SeqCst);
            DESK.outstanding.store(0, Release);
        }
        quiet
    }

    fn wait_until(&self, patience_ns: u64, mut is_so: impl FnMut() -> bool) -> bool {
        let end = Ticks::now().plus(patience_ns);
        while !is_so() {
            if Ticks::now() >= end {
                return false;
            }
            thread::yield_now();
        }
        true
    }
}

fn send(taken: &Taken, tid: i32, may_send: impl FnOnce() -> bool) -> Result<(), Silence> {
    DESK.outstanding.fetch_add(1, AcqRel);
    let sent = if may_send() { taken.send(tid).map_err(|_| Silence::NotSent) } else { Err(Silence::Moved) };
    if sent.is_err() {
        let _ = DESK.outstanding.fetch_update(AcqRel, Relaxed, |count| count.checked_sub(1));
    }
    sent
}

/// What `Requests` has taken: for a child of fork, which has no use for the rest.
static TAKEN: Lock<Option<Taken>> = Lock::new(None);

/// In a child of fork nobody is asked and nobody is inside; the signal that the parent had taken is given back.
pub fn reset_after_fork() {
    let is_torn = TAKEN.free_after_fork();
    let taken = TAKEN.lock().take();
    if let Some(taken) = taken.filter(|_| !is_torn) {
        taken.give_back();
    }
    DESK.request.store(IDLE, SeqCst);
    DESK.inside.store(0, SeqCst);
    DESK.outstanding.store(0, SeqCst);
}
