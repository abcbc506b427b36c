//! What one sample of a waiting thread costs beside one read of the file that tells where it waits. Of a thread that still
//! waits as it did at the last sample, and of one whose wait is new: that is walked, its modules are proved and its frames
//! named; its state letter is known from the look's counters, as it is for the monitor. Rounds in turn, so that what the
//! machine does meanwhile meets all alike.
#![allow(unsafe_code)]

use blockcanary::abi::bc_sample_method;
use blockcanary::sample::answer::Answer;
use blockcanary::sample::modules::refresh;
use blockcanary::sample::named::{Named, PLACES, Place, WAYS};
use blockcanary::sample::sampler::{Method, PATIENCE_NS, Runs, Sampler, Subject, SubjectFiles, Taken, Tools};
use blockcanary::sample::scheduling::Scheduling;
use blockcanary::sample::strings::Strings;
use blockcanary::sys::clock;
use blockcanary::sys::lock::Lock;
use blockcanary::sys::memory::OwnMemory;
use blockcanary::sys::procfs::{KernelState, ProcFile, Waiting};
use blockcanary::unwind::cache::{Blocks, Cached};
use blockcanary::unwind::elf::Span;
use blockcanary::unwind::memory::Copied;
use blockcanary::unwind::modules::{Module, ModuleTable};
use blockcanary::unwind::registers::Registers;
use blockcanary::unwind::rules::Rules;
use blockcanary::unwind::walk::{Stack, Walker, walk};
use std::cell::RefCell;
use std::ffi::CString;
use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::time::Instant;

/// Functions around the wait.
const DEPTH: u32 = 12;
const ROUNDS: usize = 15;
const TIMES: u32 = 2000;
/// A sample may cost so many reads.
const BAR: f64 = 3.5;

#[inline(never)]
fn wait_below(depth: u32, reader: &mut PipeReader) -> u32 {
    if depth == 0 {
        // Ends when the writer is dropped.
        let mut byte = [0];
        return reader.read(&mut byte).map_or(1, |_| 0);
    }
    black_box(wait_below(depth - 1, reader)) + 1
}

struct Waiter {
    tid: i32,
    stack: Span,
    _writer: PipeWriter,
}

/// A thread that waits until the end.
fn waiter() -> Waiter {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let here = 0u8;
        // SAFETY: takes nothing.
        let tid = unsafe { libc::gettid() };
        tell.send((tid, (&raw const here).addr() as u64)).expect("told");
        wait_below(DEPTH, &mut reader)
    });
    let (tid, near) = told.recv().expect("tid");
    let stack = Span { start: near - (1 << 16), end: near + 2048 };
    Waiter { tid, stack, _writer: writer }
}

fn file(tid: i32, name: &str) -> ProcFile {
    let path = CString::new(format!("/proc/self/task/{tid}/{name}")).expect("a path");
    ProcFile::open(&path).expect(name)
}

/// Where a thread waits, as soon as it does.
fn wait_of(system_call: &ProcFile) -> Waiting {
    let mut text = [0; 512];
    loop {
        if let Some(KernelState::Waiting(at)) = KernelState::parse(system_call.read(&mut text).expect("syscall")) {
            return at;
        }
        std::thread::yield_now();
    }
}

fn leak<T: Clone>(value: T, count: usize) -> &'static mut [T] {
    vec![value; count].leak()
}

fn modules() -> ModuleTable<'static> {
    let mut table = ModuleTable::new(leak(Module::default(), 512), leak(0, 1 << 16));
    refresh(&mut table, &OwnMemory::new());
    table
}

fn named() -> &'static Lock<Named> {
    Box::leak(Box::new(Lock::new(Named::new(
        leak(Place::EMPTY, PLACES),
        leak(0, PLACES / WAYS),
        Strings::new(leak(0, 1 << 18), leak(0, 4096)),
    ))))
}

/// A name and what is measured.
type Candidate<'a> = (&'a str, Box<dyn FnMut() + 'a>);

fn keep<T>(value: T) {
    let _ = black_box(value);
}

fn nanoseconds(each: &mut dyn FnMut()) -> f64 {
    let begin = Instant::now();
    for _ in 0..TIMES {
        each();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(TIMES)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let (waiter, another) = (waiter(), waiter());
    let open = |waiter: &Waiter| SubjectFiles {
        stat: file(waiter.tid, "stat"),
        status: file(waiter.tid, "status"),
        system_call: Some(file(waiter.tid, "syscall")),
        schedule: Some(file(waiter.tid, "schedstat")),
    };
    let files = [open(&waiter), open(&another)];
    let system_call = file(waiter.tid, "syscall");
    let waiting = wait_of(&system_call);
    wait_of(&file(another.tid, "syscall"));
    let mut answer = Vec::<Answer>::with_capacity(1);
    // SAFETY: all zeros are a valid answer, and the room is there.
    let answer = unsafe {
        answer.as_mut_ptr().write_bytes(0, 1);
        answer.set_len(1);
        &mut answer.leak()[0]
    };
    let tools = Tools::new(Box::leak(Box::new(Rules::new())), Box::leak(Box::new(Blocks::new())));
    let tools = Box::leak(Box::new(tools));
    let mut sampler = Sampler::new(answer, modules(), named(), leak(0, 128), tools, Method::NoSignal);
    let (table, frames, more_frames) = (modules(), leak(0, 128), leak(0, 128));
    let mut walker = Walker::new();
    let mut copy = [0; 4096];
    let stretch: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
    let mut runs = [Runs::UNKNOWN; 2];
    let mut whole = 0;
    let [first_runs, second_runs] = &mut runs;
    let mut subjects =
        [(&waiter, &files[0], first_runs), (&another, &files[1], second_runs)].map(|(waiter, files, runs)| {
            let (counters, state) = Scheduling::read(waiter.tid, Some(files));
            Subject {
                handle: 0,
                tid: waiter.tid,
                files: Some(files),
                state: Some((counters.cpu_ns, state)),
                stretch_word: stretch,
                stretch: 0,
                stack: waiter.stack,
                runs,
                is_watched: true,
                patience_ns: PATIENCE_NS,
                in_passing: false,
            }
        });
    let mut turn = 0;
    let mut sample = |subject: &mut Subject| {
        let Taken::Sample(sample) = sampler.sample(subject) else { panic!("over") };
        assert_eq!(sample.method, bc_sample_method::BC_SAMPLE_KERNEL_STATE);
        assert!(sample.frame_count > DEPTH);
        whole += u32::from(!sample.truncated);
    };
    let samples = RefCell::new((&mut sample, &mut subjects));
    let mut buffer = [0; 2048];
    let mut candidates: Vec<Candidate> = vec![
        ("one read of the file", Box::new(|| keep(system_call.read(&mut buffer).map(<[u8]>::len)))),
        (
            "a sample of the same wait",
            Box::new(|| {
                let (sample, [subject, _]) = &mut *samples.borrow_mut();
                sample(subject);
            }),
        ),
        (
            "a sample of another wait",
            Box::new(|| {
                let (sample, subjects) = &mut *samples.borrow_mut();
                turn = 1 - turn;
                sample(&mut subjects[turn]);
            }),
        ),
        (
            "  of that: the walk",
            Box::new(|| {
                let mut stack = Stack::new(frames);
                let memory = Cached::new(OwnMemory::new());
                walk(&Registers::new(waiting.pc, waiting.sp), &memory, &table, waiter.stack, &mut stack);
                assert!(stack.pcs().len() > DEPTH as usize);
            }),
        ),
        (
            "  the walk by remembered rules, of a copy",
            Box::new(|| {
                let mut stack = Stack::new(more_frames);
                let length = OwnMemory::new().copy(waiting.sp, &mut copy);
                let memory = Copied { base: waiting.sp, bytes: &copy[..length], rest: OwnMemory::new() };
                walker.walk(&Registers::new(waiting.pc, waiting.sp), &memory, &table, waiter.stack, &mut stack);
                assert!(stack.pcs().len() > DEPTH as usize);
            }),
        ),
        ("  of that: a read of the CPU clock", Box::new(|| keep(clock::thread_cpu(waiter.tid)))),
        ("the counters of a look", Box::new(|| keep(Scheduling::read(waiter.tid, Some(&files[0]))))),
    ];
    let mut rounds = vec![Vec::new(); candidates.len()];
    for round in 0..=ROUNDS {
        for turn in 0..candidates.len() {
            let number = (turn + round) % candidates.len();
            let each = nanoseconds(&mut *candidates[number].1);
            // The first round warms.
            if round > 0 {
                rounds[number].push(each);
            }
        }
    }
    println!("{:40} {:>10} {:>7}", "", "median ns", "ratio");
    let mut kept = true;
    for (number, (name, _)) in candidates.iter().enumerate() {
        let ratio = median(rounds[number].iter().zip(&rounds[0]).map(|(each, base)| each / base).collect());
        let is_judged = number == 1;
        let bar = if is_judged { format!("  {BAR:.2}") } else { String::new() };
        let missed = is_judged && ratio > BAR;
        kept &= !missed;
        let verdict = if missed { "  MISSED" } else { "" };
        println!("{name:40} {:10.0} {ratio:7.2}{bar}{verdict}", median(rounds[number].clone()));
    }
    drop(candidates);
    println!("{whole} stacks whole");
    std::process::exit(i32::from(!kept));
}
