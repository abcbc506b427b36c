//! Taking one sample of a late thread: its state, and its stack, by a signal only if it runs.

use super::activity::{self, Activity};
use super::answer::Answer;
use super::doing::Doing;
use super::evidence::Sample;
use super::modules::Modules;
use super::named::Named;
use super::namer;
use super::request::{Ask, Requests, Silence, Way};
use super::stack::StackMemory;
use crate::abi::bc_sample_method;
use crate::sys::clock::{self, Ticks};
use crate::sys::counters::{SAMPLES_LOST, SAMPLES_TAKEN, SAMPLES_UNANSWERED, SIGNALS_SENT};
use crate::sys::lock::Lock;
use crate::sys::memory::OwnMemory;
use crate::sys::procfs::{KernelState, ProcFile, Waiting, blocked_signals, pending_signals};
use crate::unwind::arch;
use crate::unwind::cache::{Blocks, Cached};
use crate::unwind::elf::Span;
use crate::unwind::memory::Memory;
use crate::unwind::modules::ModuleTable;
use crate::unwind::registers::Registers;
use crate::unwind::rules::Rules;
use crate::unwind::walk::{MOST_SIGNALS, Stack, Walker};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// How long a thread may take to answer. One that runs answers in microseconds; one that other threads keep from running
/// gets its turn within a few times the scheduler's slice.
pub const PATIENCE_NS: u64 = 20_000_000;

/// A thread that has run for so long without a wait counts as one that goes on so.
const STEADY_NS: u64 = 50_000_000;

/// How often a waiting thread is tried that moves each time.
const ATTEMPTS: u32 = 4;

/// Somebody else's handler stands where ours was.
pub static SIGNAL_TAKEN_OVER: AtomicBool = AtomicBool::new(false);
/// Waiting threads can be sampled without a signal.
pub static SIGNAL_FREE_AVAILABLE: AtomicBool = AtomicBool::new(false);
/// There is a signal to sample with.
pub static SIGNAL_AVAILABLE: AtomicBool = AtomicBool::new(false);

/// The thread that is sampled.
pub struct Subject<'a> {
    /// Its id.
    pub tid: i32,
    /// Its `thread::handle`, 0 where that is not known.
    pub handle: usize,
    /// Where they can be had. They stay those of the thread that they were opened for, whoever gets its id next.
    pub files: Option<&'a SubjectFiles>,
    /// What its state letter was when its CPU clock stood so, where somebody has just looked.
    pub state: Option<(u64, u8)>,
    /// The word that names its loop's stretch, and the name of the one that is to be sampled.
    pub stretch_word: &'static AtomicUsize,
    /// See `stretch_word`.
    pub stretch: usize,
    /// Its stack; empty where not known.
    pub stack: Span,
    /// How long it has been running without a wait.
    pub runs: &'a mut Runs,
    /// It is a loop's: others' waits are left alone, whatever the method.
    pub is_watched: bool,
    /// How long it is looked at, and how long it may take to answer.
    pub patience_ns: u64,
    /// It is one of many that run: it is caught if it does so at this very moment, and not waited for. So it gets no signal
    /// from a timer, which takes as long as a tick.
    pub in_passing: bool,
}

/// Files of a thread that stay open while it is watched.
pub struct SubjectFiles {
    /// `stat`.
    pub stat: ProcFile,
    /// `status`.
    pub status: ProcFile,
    /// `syscall`, which not every process may read of itself.
    pub system_call: Option<ProcFile>,
    /// `schedstat`, where the kernel has it.
    pub schedule: Option<ProcFile>,
}

/// Since when a thread has not given up its processor of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    switches: u64,
    since: Ticks,
}

impl Runs {
    /// Nothing known.
    pub const UNKNOWN: Runs = Runs { switches: 0, since: Ticks(0) };

    /// It has been seen running, and had given up its processor so often.
    pub fn note(&mut self, switches: u64) {
        self.way(switches, Ticks::now());
    }

    /// How to signal it. One that has not waited for long will hardly begin to in the microseconds that a signal is on its
    /// way; for one that waits every so often, these are too many.
    fn way(&mut self, switches: u64, now: Ticks) -> Way {
        if switches != self.switches || self.since == Ticks(0) {
            *self = Runs { switches, since: now };
        }
        if now.since(self.since) >= STEADY_NS { Way::Sent } else { Way::Timed }
    }
}

/// What came of it.
pub enum Taken {
    /// A sample, with as many frames as it says in `frames`.
    Sample(Sample),
    /// The stretch ended meanwhile.
    Over,
}

/// How stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A waiting thread without a signal, a running one by signal.
    Auto,
    /// Never a signal.
    NoSignal,
    /// Always a signal.
    Signal,
    /// Not at all.
    Off,
}

/// Takes samples, one at a time; the monitor's.
pub struct Sampler {
    requests: Requests,
    modules: Modules,
    named: &'static Lock<Named>,
    frames: &'static mut [u64],
    tools: &'static mut Tools,
    /// The last sample, if it was of a waiting thread: its frames still stand in `frames`.
    last_wait: Option<LastWait>,
    method: Method,
}

/// What unwinding needs and a stack is too small for.
pub struct Tools {
    walker: Walker<&'static mut Rules>,
    memory: Cached<OwnMemory, &'static mut Blocks>,
}

impl Tools {
    /// Of this process. What they remember lies in memory of the caller's.
    pub fn new(rules: &'static mut Rules, blocks: &'static mut Blocks) -> Tools {
        Tools { walker: Walker::within(rules), memory: Cached::within(OwnMemory::new(), blocks) }
    }
}

/// A waiting thread that was sampled. While its CPU clock stands it has not moved, and its stack is the same.
struct LastWait {
    tid: i32,
    cpu_ns: u64,
    at: Waiting,
    sample: Sample,
}

impl Sampler {
    /// `frames` has room for the deepest stack that is kept.
    pub fn new(
        answer: &'static mut Answer,
        modules: ModuleTable<'static>,
        named: &'static Lock<Named>,
        frames: &'static mut [u64],
        tools: &'static mut Tools,
        method: Method,
    ) -> Sampler {
        let (requests, modules) = (Requests::new(answer), Modules::new(modules));
        Sampler { requests, modules, named, frames, tools, last_wait: None, method }
    }

    /// Watching begins: takes a signal, if one will be sent.
    pub fn start(&mut self, wanted: i32, avoid: u64) {
        SIGNAL_TAKEN_OVER.store(false, Relaxed);
        let wants_signal = matches!(self.method, Method::Auto | Method::Signal);
        let available = wants_signal && self.requests.take_signal(wanted, avoid);
        SIGNAL_AVAILABLE.store(available, Relaxed);
        if wants_signal && !available {
            crate::log_warn!("no signal is free: running threads are reported without stacks");
        }
    }

    /// Watching ends: gives the signal back. `false`: a thread is still inside the handler.
    pub fn stop(&mut self) -> bool {
        SIGNAL_AVAILABLE.store(false, Relaxed);
        self.requests.give_back(PATIENCE_NS)
    }

    /// The frames of the last sample.
    pub fn frames(&self) -> &[u64] {
        self.frames
    }

    /// Takes one sample.
    pub fn sample(&mut self, subject: &mut Subject) -> Taken {
        let Some(mut sample) = self.attempt(subject) else { return Taken::Over };
        if subject.stretch_word.load(Acquire) != subject.stretch {
            SAMPLES_LOST.add_one();
            return Taken::Over;
        }
        self.finish(&mut sample);
        Taken::Sample(sample)
    }

    /// The first half of a sample, which may be tried again if it brings no stack. `None`: the thread is gone.
    pub fn attempt(&mut self, subject: &mut Subject) -> Option<Sample> {
        let mut sample = Sample::EMPTY;
        sample.at = Ticks::now();
        sample.is_listed = self.method != Method::Off;
        match (self.method, subject.files) {
            (Method::Off, Some(files)) => (sample.doing, sample.thread_state) = activity::glimpse(files),
            (Method::Signal, _) | (Method::Auto, None) if subject.is_watched || subject.files.is_none() => {
                if let Some(files) = subject.files {
                    (sample.doing, sample.thread_state) = activity::glimpse(files);
                }
                if !has_ended(sample.thread_state) {
                    self.signal(subject, &mut sample, Way::Sent, || true);
                }
            }
            (_, None) => {}
            (_, Some(files)) => return self.leave_waits_alone(subject, files, sample),
        }
        Some(sample)
    }

    /// The second half: the sample counts, and its frames, which still are `frames`, get names.
    pub fn finish(&self, sample: &mut Sample) {
        SAMPLES_TAKEN.add_one();
        self.name_frames(sample);
    }

    /// Are stacks taken at all?
    pub fn takes_stacks(&self) -> bool {
        self.method != Method::Off
    }

    /// Can a thread be asked by signal if it runs? One that blocks the signal cannot.
    pub fn can_ask(&self, files: &SubjectFiles) -> bool {
        let mut text = [0; 2048];
        let blocked = files.status.read(&mut text).ok().and_then(blocked_signals).unwrap_or(0);
        let number = self.requests.signal().filter(|_| SIGNAL_AVAILABLE.load(Relaxed));
        number.is_some_and(|number| blocked >> (number - 1) & 1 == 0)
    }

    fn name_frames(&self, sample: &mut Sample) {
        let frames = self.frames.iter().copied().take(sample.frame_count as usize).enumerate();
        let frames = frames.map(|(number, pc)| (pc, sample.is_outer(number)));
        sample.table = namer::name(self.named, self.modules.table(), frames);
    }

    /// Names a function that nothing else names, and says by which table of modules.
    pub fn name_function(&mut self, address: u64) -> u32 {
        self.modules.new_stretch();
        namer::name(self.named, self.modules.table(), core::iter::once((address, false)))
    }

    /// A thread that waits is read from outside, one that runs is signalled, if signals may be sent.
    fn leave_waits_alone(&mut self, subject: &mut Subject, files: &SubjectFiles, mut sample: Sample) -> Option<Sample> {
        for _ in 0..ATTEMPTS {
            let activity = activity::observe(subject.tid, files, subject.patience_ns, subject.in_passing);
            sample.doing = Doing::Unknown;
            match activity {
                Activity::Waits { at, cpu_ns } => {
                    sample.doing = Doing::waits(&at);
                    if let Some(mut again) = self.same_wait(subject.tid, &at, cpu_ns) {
                        again.at = sample.at;
                        return Some(again);
                    }
                    if self.read_waiting(subject, files, &at, cpu_ns, &mut sample) {
                        return Some(sample);
                    }
                }
                Activity::Runs { switches } => {
                    (sample.doing, sample.thread_state) = (Doing::Running, b'R');
                    let still_runs = || activity::is_running(files);
                    let way = subject.runs.way(switches, Ticks::now());
                    let leaves_it = self.method == Method::NoSignal || (way == Way::Timed && subject.in_passing);
                    if leaves_it || self.signal(subject, &mut sample, way, still_runs) {
                        return Some(sample);
                    }
                }
                Activity::WaitsUnseen => {
                    sample.doing = Doing::WaitsUnseen;
                    break;
                }
                // It was ready to run all the time.
                Activity::Unsettled => {
                    sample.doing = Doing::Running;
                    break;
                }
                Activity::Gone => return None,
            }
        }
        sample.thread_state = activity::state(files)?;
        Some(sample)
    }

    /// The last sample once more, if the thread has not run since: it waited `at` when its CPU clock stood at `cpu_ns` or
    /// later.
    fn same_wait(&self, tid: i32, at: &Waiting, cpu_ns: u64) -> Option<Sample> {
        let last = self.last_wait.as_ref();
        let last = last.filter(|last| last.tid == tid && last.at == *at && last.cpu_ns == cpu_ns);
        last.filter(|_| clock::thread_cpu(tid) == Some(cpu_ns)).map(|last| last.sample)
    }

    /// Unwinds a waiting thread from its own memory. `false`: it has moved meanwhile, which its CPU clock tells; what was
    /// read may be of two moments then.
    fn read_waiting(
        &mut self,
        subject: &Subject,
        files: &SubjectFiles,
        at: &Waiting,
        cpu_ns: u64,
        sample: &mut Sample,
    ) -> bool {
        // It has waited like that since it was observed. Before, it may have done something else for a while.
        sample.at = Ticks::now();
        let registers = registers_of(at);
        // Its frames are overwritten now.
        self.last_wait = None;
        self.tools.memory.begin_stack(at.sp, subject.stack.end);
        let stack = unwind(self.tools, &mut self.modules, self.frames, &registers, None, subject.stack);
        // A thread that has not run waits as it did.
        let known = subject.state.filter(|(then_ns, _)| *then_ns == cpu_ns);
        let Some(state) = known.map(|(_, state)| state).or_else(|| activity::state(files)) else { return false };
        if clock::thread_cpu(subject.tid) != Some(cpu_ns) {
            return false;
        }
        sample.thread_state = state;
        if has_ended(state) {
            sample.doing = Doing::Unknown;
            return true;
        }
        keep(&stack, bc_sample_method::BC_SAMPLE_KERNEL_STATE, sample);
        // One that led into a module that is not known yet is walked again.
        let last = LastWait { tid: subject.tid, cpu_ns, at: *at, sample: *sample };
        self.last_wait = (!stack.strayed).then_some(last);
        true
    }

    /// Samples by signal. `false`: it was not sent, because the thread has begun to wait.
    fn signal(
        &mut self,
        subject: &mut Subject,
        sample: &mut Sample,
        way: Way,
        may_send: impl FnOnce() -> bool,
    ) -> bool {
        if !SIGNAL_AVAILABLE.load(Relaxed) {
            return true;
        }
        if self.would_not_answer(subject) {
            SAMPLES_UNANSWERED.add_one();
            return true;
        }
        self.take_stack(subject, sample, way, may_send)
    }

    /// A thread that blocks the signal, or has not taken up the last one, gets none: it would stay pending, and outlive
    /// even an exec, after which it kills.
    fn would_not_answer(&self, subject: &Subject) -> bool {
        let Some(number) = self.requests.signal() else { return true };
        let mut text = [0; 2048];
        let Some(status) = subject.files.and_then(|files| files.status.read(&mut text).ok()) else { return false };
        let signals = pending_signals(status).unwrap_or(0) | blocked_signals(status).unwrap_or(0);
        signals >> (number - 1) & 1 == 1
    }

    fn take_stack(
        &mut self,
        subject: &mut Subject,
        sample: &mut Sample,
        way: Way,
        may_send: impl FnOnce() -> bool,
    ) -> bool {
        let ask = Ask {
            tid: subject.tid,
            handle: subject.handle,
            stretch: subject.stretch_word,
            stack_low: subject.stack.start,
            stack_high: subject.stack.end,
        };
        let answer = match self.requests.ask(&ask, way, subject.patience_ns, may_send) {
            Ok(answer) => answer,
            Err(Silence::TakenOver) => {
                SIGNAL_AVAILABLE.store(false, Relaxed);
                SIGNAL_TAKEN_OVER.store(true, Relaxed);
                crate::log_warn!("the sampling signal was taken over: no more stacks until the next start");
                return true;
            }
            Err(Silence::NotSent) => return true,
            Err(Silence::Moved) => return false,
            Err(Silence::Busy) => {
                SAMPLES_UNANSWERED.add_one();
                return true;
            }
            // A timer that has not gone off is gone without a trace.
            Err(Silence::Unanswered) if way == Way::Timed => {
                SAMPLES_UNANSWERED.add_one();
                return true;
            }
            Err(Silence::Unanswered) => {
                SIGNALS_SENT.add_one();
                SAMPLES_UNANSWERED.add_one();
                return true;
            }
        };
        SIGNALS_SENT.add_one();
        if answer.head.stretch != subject.stretch {
            return true;
        }
        sample.at = Ticks(answer.head.at);
        let registers = answer.registers();
        // Its frames are overwritten now.
        self.last_wait = None;
        self.tools.memory.forget();
        let stack = unwind(self.tools, &mut self.modules, self.frames, &registers, Some(answer), subject.stack);
        keep(&stack, bc_sample_method::BC_SAMPLE_SIGNAL, sample);
        true
    }

    /// A new late stretch: libraries that came or went since the last one are taken into account.
    pub fn new_stretch(&mut self) {
        if self.method != Method::Off {
            self.modules.new_stretch();
        }
    }
}

/// A stack; once more, where modules have come or gone below it.
fn unwind<'f>(
    tools: &mut Tools,
    modules: &mut Modules,
    frames: &'f mut [u64],
    registers: &Registers,
    answer: Option<&Answer>,
    bounds: Span,
) -> Stack<'f> {
    let Tools { walker, memory } = tools;
    let memory = StackMemory { answer, high: bounds.end, rest: memory };
    let mut stack = Stack::new(frames);
    walker.walk(registers, &memory, modules.table(), bounds, &mut stack);
    if modules.have_changed(&stack, memory.rest.behind()) {
        memory.rest.forget();
        walker.walk(registers, &memory, modules.table(), bounds, &mut stack);
    }
    stack
}

/// Does this state letter mean that the thread has ended? Something of the process's first one stays until all have.
fn has_ended(state: u8) -> bool {
    matches!(state, b'Z' | b'X' | b'x')
}

/// What the kernel tells of a waiting thread's registers: pc, sp, and those that hold the arguments of its system call,
/// in which a stub may keep its return address (`vfork`) or its caller's frame pointer.
fn registers_of(at: &Waiting) -> Registers {
    let mut registers = Registers::new(at.pc, at.sp);
    for (number, value) in at.call.iter().flat_map(|(_, arguments)| arch::ARGUMENTS.iter().zip(arguments)) {
        registers.set(*number, *value);
    }
    registers
}

fn keep(stack: &Stack, method: bc_sample_method, sample: &mut Sample) {
    sample.method = method;
    sample.truncated = stack.truncated;
    sample.approximate = stack.approximate;
    sample.frames_cut = stack.frames_cut;
    sample.frame_count = stack.pcs().len() as u32;
    // The first is the innermost frame, which goes without saying.
    let interrupted = stack.interrupted().iter().filter(|frame| **frame > 0);
    sample.interrupted = [0; MOST_SIGNALS];
    sample.interrupted.iter_mut().zip(interrupted).for_each(|(to, frame)| *to = u16::try_from(*frame).unwrap_or(0));
}

/// Can waiting threads be sampled without a signal? Tried on the calling thread.
pub fn probe_signal_free(files: Option<&SubjectFiles>) {
    let mut text = [0; 256];
    let file = files.and_then(|files| files.system_call.as_ref());
    let state = file.and_then(|file| KernelState::parse(file.read(&mut text).ok()?));
    let word = 0u64;
    let is_there = state.is_some() && OwnMemory::new().word((&raw const word).addr() as u64).is_some();
    SIGNAL_FREE_AVAILABLE.store(is_there, Relaxed);
    if !is_there {
        crate::log_warn!("waiting threads cannot be read from outside: they are reported without stacks");
    }
}
