//! What the monitor and the signal handler tell each other.
//!
//! All of it in one line of the cache: the monitor writes it before each request, so that the handler finds it on another
//! processor, and each line more would be another tenth of a microsecond that the sampled thread is away.

use super::answer::Answer;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

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

/// `request` says whether an answer is wanted. Encoding: the low two bits are the state, the rest is a ticket that grows
/// with each request.
///
/// * IDLE → ARMED by the monitor (release), after it has written who is asked and before it sends the signal;
/// * ARMED → WRITING by the handler, if it runs on the thread that is asked (acquire);
/// * WRITING → DONE by the handler, after it has filled the answer (release), which the monitor then reads (acquire);
/// * ARMED → IDLE by the monitor when the answer has not come in time, DONE → IDLE when it has read it.
///
/// Only the exchanges from ARMED are contended, so a late signal finds either nothing wanted, or a request to its own
/// thread, which it may answer: what it copies is the present. The answer names the stretch it was taken in.
#[repr(C, align(64))]
pub struct Desk {
    /// See above.
    pub request: AtomicU32,
    /// Signals sent by us, not by timers of ours, that no handler has taken up yet: tells a late one of ours from one that
    /// somebody else sent.
    pub outstanding: AtomicU32,
    /// Handlers that are running. Our memory may go when it is 0 and `request` is IDLE.
    pub inside: AtomicU32,
    /// This process, as the signals that it sends itself name it.
    pub process: AtomicI32,
    /// Who is asked, as the next four: written while IDLE and read while WRITING.
    pub tid: AtomicI32,
    /// The thread's `thread::handle`, 0 where that is not known.
    pub handle: AtomicUsize,
    /// The word that names its loop's stretch, which is static.
    pub stretch: AtomicPtr<AtomicUsize>,
    /// The thread's stack, as far as it is known to be mapped.
    pub stack_low: AtomicU64,
    /// Its end; 0 where the stack is not known.
    pub stack_high: AtomicU64,
    /// Where the answer goes; lies in the installation's memory, valid while `request` is not IDLE.
    pub answer: AtomicPtr<Answer>,
}

/// See above.
pub static DESK: Desk = Desk {
    request: AtomicU32::new(IDLE),
    outstanding: AtomicU32::new(0),
    inside: AtomicU32::new(0),
    process: AtomicI32::new(0),
    tid: AtomicI32::new(0),
    handle: AtomicUsize::new(0),
    stretch: AtomicPtr::new(ptr::null_mut()),
    stack_low: AtomicU64::new(0),
    stack_high: AtomicU64::new(0),
    answer: AtomicPtr::new(ptr::null_mut()),
};

const _: () = assert!(size_of::<Desk>() == 64);

/// What handled the signal before us: address and form, 0 for nothing.
pub static PREVIOUS: Previous = Previous { place: AtomicUsize::new(0), long_form: AtomicBool::new(false) };

/// See `PREVIOUS`.
pub struct Previous {
    /// The function's address.
    pub place: AtomicUsize,
    /// It takes three arguments.
    pub long_form: AtomicBool,
}
