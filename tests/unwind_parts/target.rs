//! A thread in the chain, and samples of it taken by signal.
#![allow(dead_code)] // Each test program uses a part.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blockcanary::unwind::elf::Span;
use blockcanary::unwind::memory::Memory;
use blockcanary::unwind::registers::Registers;

use crate::chain::{Chain, Kind};
use crate::own::OwnMemory;

const COPIED: usize = 16_384;
const PATIENCE: Duration = Duration::from_secs(20);

/// Registers and the lowest piece of a stack.
pub struct Sample {
    pub registers: Registers,
    pub bounds: Span,
    copy: Vec<u8>,
}

impl Sample {
    /// The stack from the stack pointer on.
    pub fn stack(&self) -> &[u8] {
        &self.copy
    }
}

/// What the C program is told.
#[repr(C)]
struct Job {
    kind: i32,
    fd: i32,
    stop: *const AtomicI32,
    mutex: *mut libc::pthread_mutex_t,
    cond: *mut libc::pthread_cond_t,
}

// SAFETY: what it points to outlives the thread: the target keeps the one and leaks the other.
unsafe impl Send for Job {}

/// A thread that runs the chain.
pub struct Target {
    tid: i32,
    /// The function it began with.
    pub outermost: u64,
    pub bounds: Span,
    stop: Arc<AtomicI32>,
    write: OwnedFd,
    _read: OwnedFd,
    mutex: *mut libc::pthread_mutex_t,
    cond: *mut libc::pthread_cond_t,
    kind: Kind,
    thread: JoinHandle<i32>,
    /// Signals have one place to put what they copy, and one test at a time has a target.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Target {
    /// Starts it and waits until it runs.
    pub fn start(chain: &Chain, kind: Kind) -> Target {
        Target::start_at(chain, c"chain_10", kind)
    }

    /// The same, with another outermost function.
    pub fn start_at(chain: &Chain, outermost: &CStr, kind: Kind) -> Target {
        let alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        static INSTALLED: Once = Once::new();
        // SAFETY: zeroes are a valid action, and the handler has the type that SA_SIGINFO asks for.
        INSTALLED.call_once(|| unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGRTMAX() - 3, &action, std::ptr::null_mut()), 0);
        });
        let mut pipe = [0; 2];
        let mutex = Box::leak(Box::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let cond: *mut _ = Box::leak(Box::new(libc::PTHREAD_COND_INITIALIZER));
        // SAFETY: the descriptors are new and nobody else's; the mutex is initialized and lives for ever.
        let (read, write) = unsafe {
            assert_eq!(libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC), 0);
            if kind == Kind::Mutex {
                assert_eq!(libc::pthread_mutex_lock(mutex), 0);
            }
            (OwnedFd::from_raw_fd(pipe[0]), OwnedFd::from_raw_fd(pipe[1]))
        };
        let stop = Arc::new(AtomicI32::new(0));
        let job = Job { kind: kind as i32, fd: read.as_raw_fd(), stop: Arc::as_ptr(&stop), mutex, cond };
        let run = chain.address(outermost);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let job = job;
            // SAFETY: gettid takes nothing.
            tell.send((unsafe { libc::gettid() }, own_stack())).unwrap();
            // SAFETY: this is the C program's type of the function of this name.
            let run: extern "C" fn(*const Job) -> i32 = unsafe { std::mem::transmute(run as usize) };
            run(&job)
        });
        let (tid, bounds) = told.recv().unwrap();
        Target { tid, outermost: run, bounds, stop, write, _read: read, mutex, cond, kind, thread, _alone: alone }
    }

    /// Number of the system call it waits in, stack pointer and pc.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    fn waits(&self) -> Option<(libc::c_long, u64, u64)> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{}/syscall", self.tid)).unwrap();
        let fields: Vec<&str> = text.split_whitespace().collect();
        let hex = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).unwrap();
        (fields.len() == 9).then(|| (fields[0].parse().unwrap(), hex(fields[7]), hex(fields[8])))
    }

    /// Waits until it waits in one of this kind's system calls.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    pub fn wait_until_blocked(&self, kind: Kind) {
        let begin = Instant::now();
        while !self.waits().is_some_and(|(call, ..)| kind.calls().contains(&call)) {
            assert!(begin.elapsed() < PATIENCE, "it never waits in {kind:?}");
            std::thread::yield_now();
        }
    }

    /// pc and stack pointer of the waiting thread, without a signal.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    pub fn where_it_waits(&self) -> (u64, u64) {
        let (_, sp, pc) = self.waits().expect("it waits");
        (pc, sp)
    }

    /// An emulator tells the registers of the machine it runs on: only that the thread sleeps can be seen, and that it
    /// was in one of the C library's functions when it was looked at.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    pub fn wait_until_blocked(&self, _: Kind) {
        let begin = Instant::now();
        let mut asleep = 0;
        while asleep < 20 {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", self.tid)).unwrap();
            asleep = if stat.rsplit(") ").next().unwrap().starts_with('S') { asleep + 1 } else { 0 };
            assert!(begin.elapsed() < PATIENCE, "it never waits");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// pc and stack pointer of the waiting thread, as a signal finds them.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    pub fn where_it_waits(&self) -> (u64, u64) {
        let registers = self.sample().registers;
        self.wait_until_blocked(Kind::Spin);
        (registers.pc, registers.sp)
    }

    /// Signals the thread and waits until its handler has answered; `false` where it has ended instead. Never a second
    /// signal before the answer: they would queue up.
    fn interrupt(&self) -> bool {
        ANSWER.length.store(0, Ordering::SeqCst);
        // SAFETY: a signal with a handler.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.tid, libc::SIGRTMAX() - 3) };
        let begin = Instant::now();
        while ANSWER.length.load(Ordering::SeqCst) == 0 {
            assert!(begin.elapsed() < PATIENCE, "no answer");
            if self.thread.is_finished() {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Registers and stack, taken by signal.
    pub fn sample(&self) -> Sample {
        assert!(self.interrupt(), "it has ended");
        // SAFETY: the handler has answered, and only this thread asks.
        let (registers, copy) = unsafe { ((*ANSWER.registers.get()).assume_init(), &*ANSWER.copy.get()) };
        let length = ANSWER.length.load(Ordering::SeqCst) as usize;
        Sample { registers, bounds: self.bounds, copy: copy[..length].to_vec() }
    }

    /// Lets the chain return, and checks that all ten functions did.
    pub fn finish(self) {
        self.stop.store(1, Ordering::SeqCst);
        // SAFETY: mutex and condition live for ever, and this thread locked the contended one; the byte is readable.
        unsafe {
            match self.kind {
                Kind::Mutex => assert_eq!(libc::pthread_mutex_unlock(self.mutex), 0),
                Kind::Condition => {
                    // Holding the mutex: it is either waiting already or will see that it is to stop.
                    libc::pthread_mutex_lock(self.mutex);
                    libc::pthread_cond_signal(self.cond);
                    libc::pthread_mutex_unlock(self.mutex);
                }
                _ => {}
            }
            assert_eq!(libc::write(self.write.as_raw_fd(), b"x".as_ptr().cast(), 1), 1);
        }
        // Ends a sleep.
        while !self.thread.is_finished() {
            self.interrupt();
        }
        assert!(self.thread.join().unwrap() >= 10);
    }
}

fn own_stack() -> Span {
    // SAFETY: the attributes are written before they are read, and given back once.
    unsafe {
        let mut attributes = MaybeUninit::uninit();
        assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()), 0);
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        assert_eq!(libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size), 0);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        Span { start: start as u64, end: start as u64 + size as u64 }
    }
}

struct Answer {
    registers: UnsafeCell<MaybeUninit<Registers>>,
    copy: UnsafeCell<[u8; COPIED]>,
    length: AtomicU32,
}

// SAFETY: the handler writes the cells before it stores `length`, the asking thread reads them after it saw that.
unsafe impl Sync for Answer {}

static ANSWER: Answer = Answer {
    registers: UnsafeCell::new(MaybeUninit::uninit()),
    copy: UnsafeCell::new([0; COPIED]),
    length: AtomicU32::new(0),
};

extern "C" fn on_signal(_: i32, _: *const libc::siginfo_t, context: *const libc::ucontext_t) {
    // SAFETY: the kernel passes a valid context; the cells are this handler's until it stores `length`.
    unsafe {
        let errno = *libc::__errno_location();
        let registers = registers_of(&*context);
        let memory = OwnMemory::new();
        let copy = &mut *ANSWER.copy.get();
        let pieces = copy.chunks_mut(512).zip((registers.sp..).step_by(512));
        let length = pieces.map_while(|(piece, at)| memory.read(at, piece).then_some(piece.len())).sum::<usize>();
        *ANSWER.registers.get() = MaybeUninit::new(registers);
        ANSWER.length.store(length as u32, Ordering::SeqCst);
        *libc::__errno_location() = errno;
    }
}

#[cfg(target_arch = "x86_64")]
fn registers_of(context: &libc::ucontext_t) -> Registers {
    use libc::*;
    let values = &context.uc_mcontext.gregs;
    let value = |place: i32| values[place as usize] as u64;
    let mut registers = Registers::new(value(REG_RIP), value(REG_RSP));
    let order = [
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11,
        REG_R12, REG_R13, REG_R14, REG_R15,
    ];
    order.into_iter().zip(0..).for_each(|(place, number)| registers.set(number, value(place)));
    registers
}

#[cfg(target_arch = "aarch64")]
fn registers_of(context: &libc::ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    let mut registers = Registers::new(machine.pc, machine.sp);
    machine.regs.iter().zip(0..).for_each(|(value, number)| registers.set(number, *value));
    registers
}

#[cfg(target_arch = "riscv64")]
fn registers_of(context: &libc::ucontext_t) -> Registers {
    let [pc, general @ ..] = &context.uc_mcontext.__gregs;
    let mut registers = Registers::new(*pc, general[1]);
    general.iter().zip(1..).for_each(|(value, number)| registers.set(number, *value));
    registers
}

#[cfg(target_arch = "x86")]
fn registers_of(context: &libc::ucontext_t) -> Registers {
    use libc::*;
    let values = &context.uc_mcontext.gregs;
    let value = |place: i32| u64::from(values[place as usize] as u32);
    let mut registers = Registers::new(value(REG_EIP), value(REG_ESP));
    let order = [REG_EAX, REG_ECX, REG_EDX, REG_EBX, REG_ESP, REG_EBP, REG_ESI, REG_EDI];
    order.into_iter().zip(0..).for_each(|(place, number)| registers.set(number, value(place)));
    registers
}

#[cfg(target_arch = "arm")]
fn registers_of(context: &libc::ucontext_t) -> Registers {
    let m = &context.uc_mcontext;
    let mut registers = Registers::new(u64::from(m.arm_pc), u64::from(m.arm_sp));
    let order = [
        m.arm_r0, m.arm_r1, m.arm_r2, m.arm_r3, m.arm_r4, m.arm_r5, m.arm_r6, m.arm_r7, m.arm_r8, m.arm_r9, m.arm_r10,
        m.arm_fp, m.arm_ip, m.arm_sp, m.arm_lr,
    ];
    order.into_iter().zip(0..).for_each(|(value, number)| registers.set(number, u64::from(value)));
    registers
}
