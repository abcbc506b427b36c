//! Nothing here waits for the loader's lock, which the thread that is looked at may hold.
//! An emulator of 32-bit ARM loses threads that load libraries while they are signalled.
#![cfg(not(target_arch = "arm"))]

#[path = "unwind_parts/chain.rs"]
mod chain;
#[path = "unwind_parts/names.rs"]
mod names;
#[path = "unwind_parts/own.rs"]
mod own;

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use blockcanary::sys::maps::OwnMaps;
use blockcanary::unwind::cache::Cached;
use blockcanary::unwind::elf::Span;
use blockcanary::unwind::registers::Registers;
use blockcanary::unwind::walk::{Stack, walk};

use names::Modules;
use own::OwnMemory;

const PATIENCE: Duration = Duration::from_secs(20);

/// One holds the lock at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

unsafe extern "C" fn nothing(_: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> libc::c_int {
    1
}

/// Runs something in a thread without any of Rust's: those ask for the lock themselves, for their thread-locals.
fn apart(run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void, argument: usize) {
    let mut thread = 0;
    // SAFETY: the thread takes a number for its argument.
    let made = unsafe { libc::pthread_create(&mut thread, std::ptr::null(), run, argument as *mut libc::c_void) };
    assert_eq!(made, 0);
}

/// How often somebody was given the lock.
static HAD: AtomicU32 = AtomicU32::new(0);

static ASKER: AtomicI32 = AtomicI32::new(0);

extern "C" fn ask(_: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: gettid takes nothing, nor does the callback; the name is a C string.
    unsafe {
        ASKER.store(libc::gettid(), Ordering::SeqCst);
        libc::dl_iterate_phdr(Some(nothing), std::ptr::null_mut());
        libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW);
    }
    HAD.fetch_add(1, Ordering::SeqCst);
    std::ptr::null_mut()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

static FOUND: Mutex<Vec<String>> = Mutex::new(Vec::new());
static DONE: AtomicBool = AtomicBool::new(false);

extern "C" fn look_at(_: *mut libc::c_void) -> *mut libc::c_void {
    let mut modules = Modules::new();
    let changed = modules.table.changed(OwnMaps::open().unwrap()).unwrap();
    modules.refresh();
    let names = if changed { vec![] } else { stack(&modules) };
    *FOUND.lock().unwrap() = names;
    DONE.store(true, Ordering::SeqCst);
    std::ptr::null_mut()
}

/// Everything that the monitor and the writer do, while the lock is held: in a thread that may hang instead.
fn look() -> Vec<String> {
    DONE.store(false, Ordering::SeqCst);
    apart(look_at, 0);
    until("it waits for the lock", || DONE.load(Ordering::SeqCst));
    std::mem::take(&mut *FOUND.lock().unwrap())
}

fn where_it_waits(tid: &AtomicI32) -> String {
    std::fs::read_to_string(format!("/proc/self/task/{}/syscall", tid.load(Ordering::SeqCst))).unwrap()
}

fn stack(modules: &Modules) -> Vec<String> {
    let text = where_it_waits(&TID);
    let fields: Vec<u64> = text
        .split_whitespace()
        .skip(7)
        .map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).unwrap())
        .collect();
    let [sp, pc] = fields[..] else { return vec![text] };
    let mut pcs = [0; 64];
    let mut stack = Stack::new(&mut pcs);
    walk(&Registers::new(pc, sp), &Cached::new(OwnMemory::new()), &modules.table, Span::default(), &mut stack);
    modules.names(stack.pcs())
}

fn waits_in(tid: &AtomicI32, calls: &[libc::c_long]) -> bool {
    let text = where_it_waits(tid);
    text.split(' ').next().and_then(|call| call.parse().ok()).is_some_and(|call| calls.contains(&call))
}

static TID: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn waits(_: *mut libc::dl_phdr_info, _: usize, fd: *mut libc::c_void) -> libc::c_int {
    let mut byte = 0_u8;
    // SAFETY: gettid takes nothing; the byte is writable.
    unsafe {
        TID.store(libc::gettid(), Ordering::SeqCst);
        while libc::read(fd as usize as i32, (&raw mut byte).cast(), 1) < 0 {}
    }
    1
}

extern "C" fn go_through(fd: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the callback gets what it expects.
    unsafe { libc::dl_iterate_phdr(Some(waits), fd) };
    std::ptr::null_mut()
}

#[test]
#[cfg_attr(any(target_arch = "aarch64", target_arch = "riscv64"), ignore = "an emulator tells where it waits itself")]
fn while_a_thread_goes_through_the_libraries() {
    let _alone = alone();
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    TID.store(0, Ordering::SeqCst);
    apart(go_through, pipe[0] as usize);
    until("it never waits", || TID.load(Ordering::SeqCst) != 0 && waits_in(&TID, &[libc::SYS_read]));
    let had = HAD.load(Ordering::SeqCst);
    ASKER.store(0, Ordering::SeqCst);
    apart(ask, 0);
    until("the lock was not held", || ASKER.load(Ordering::SeqCst) != 0 && waits_in(&ASKER, &[libc::SYS_futex]));
    let names = look();
    assert_eq!(HAD.load(Ordering::SeqCst), had, "the lock was not held");
    // SAFETY: the byte is readable.
    assert_eq!(unsafe { libc::write(pipe[1], b"x".as_ptr().cast(), 1) }, 1);
    until("the lock is free again", || HAD.load(Ordering::SeqCst) > had);
    assert!(names.iter().any(|name| name == "dl_iterate_phdr"), "{names:?}");
}

extern "C" fn load(library: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: gettid takes nothing; the argument is a C string; the library's constructor waits and does nothing.
    unsafe {
        TID.store(libc::gettid(), Ordering::SeqCst);
        libc::dlopen(library.cast(), libc::RTLD_NOW)
    }
}

fn library(fifo: &Path) -> PathBuf {
    let library = fifo.with_extension("so");
    let mut compiler = std::process::Command::new(std::env::var("CC").unwrap_or("cc".to_owned()));
    compiler.args(["-O2", "-shared", "-fPIC", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/unwind/constructor.c")]);
    compiler.arg(format!("-DFIFO=\"{}\"", fifo.to_str().unwrap())).arg("-o").arg(&library);
    assert!(compiler.status().expect("a C compiler named cc").success());
    library
}

#[test]
#[cfg_attr(any(target_arch = "aarch64", target_arch = "riscv64"), ignore = "an emulator tells where it waits itself")]
fn while_a_thread_loads_a_library() {
    let _alone = alone();
    let fifo = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("constructor-{}", std::process::id()));
    let name = CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: the path is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let library = CString::new(library(&fifo).to_str().unwrap()).unwrap();
    TID.store(0, Ordering::SeqCst);
    apart(load, library.as_ptr() as usize);
    until("it never begins", || TID.load(Ordering::SeqCst) != 0);
    until("it never waits for the writer", || {
        #[cfg(target_arch = "x86_64")]
        let calls = [libc::SYS_open, libc::SYS_openat];
        #[cfg(not(target_arch = "x86_64"))]
        let calls = [libc::SYS_openat];
        waits_in(&TID, &calls)
    });
    let had = HAD.load(Ordering::SeqCst);
    ASKER.store(0, Ordering::SeqCst);
    apart(ask, 0);
    until("the lock was not held", || ASKER.load(Ordering::SeqCst) != 0 && waits_in(&ASKER, &[libc::SYS_futex]));
    let names = look();
    assert_eq!(HAD.load(Ordering::SeqCst), had, "the lock was not held");
    std::fs::write(&fifo, b"x").unwrap();
    until("the lock is free again", || HAD.load(Ordering::SeqCst) > had);
    assert!(names.iter().any(|name| name == "constructor_waits"), "{names:?}");
    std::fs::remove_file(&fifo).unwrap();
}
