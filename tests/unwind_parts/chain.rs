//! The chain of C functions, compiled in several ways and loaded.
#![allow(dead_code)] // Each test program uses a part.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::process::Command;

/// What the innermost function does; the values are the C program's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(i32)]
pub enum Kind {
    Nanosleep,
    Read,
    Mutex,
    Poll,
    Clock,
    Spin,
    Handler,
    Usleep,
    ClockNanosleep,
    Epoll,
    Select,
    Semaphore,
    Receive,
    Condition,
    Stub,
    /// A function that makes no frame and has no table.
    Leaf,
    /// The same, called again and again through the stub (PLT) that leads to it.
    Calls,
}

impl Kind {
    /// The C library's function that it calls.
    pub fn function(self) -> &'static str {
        match self {
            Kind::Nanosleep => "nanosleep",
            Kind::Read | Kind::Handler => "read",
            Kind::Mutex => "pthread_mutex_lock",
            Kind::Poll => "poll",
            Kind::Clock => "clock_gettime",
            Kind::Spin => "chain_1",
            Kind::Usleep => "usleep",
            Kind::ClockNanosleep => "clock_nanosleep",
            // Where the numbers are the generic ones, it jumps on.
            Kind::Epoll if !cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) => "epoll_wait",
            Kind::Epoll => "epoll_pwait",
            Kind::Stub => "chain_stub",
            Kind::Leaf | Kind::Calls => "chain_leaf",
            Kind::Select => "select",
            // It jumps on into a function without a name, and its own frame is gone.
            Kind::Semaphore if cfg!(target_arch = "x86") => "sem_timedwait",
            Kind::Semaphore => "?",
            Kind::Receive => "recv",
            Kind::Condition => "pthread_cond_timedwait",
        }
    }

    /// The system calls that it may wait in.
    pub fn calls(self) -> &'static [libc::c_long] {
        match self {
            // The second number is that of the call with longer times, on 32 bits.
            Kind::Nanosleep | Kind::Usleep | Kind::ClockNanosleep => {
                &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep, CLOCK_NANOSLEEP_TIME64]
            }
            Kind::Read | Kind::Handler | Kind::Stub => &[libc::SYS_read],
            Kind::Mutex | Kind::Semaphore | Kind::Condition => &[libc::SYS_futex, FUTEX_TIME64],
            #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
            Kind::Poll => &[libc::SYS_poll, libc::SYS_ppoll],
            #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
            Kind::Poll => &[libc::SYS_ppoll],
            #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
            Kind::Epoll => &[libc::SYS_epoll_wait, libc::SYS_epoll_pwait],
            #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
            Kind::Epoll => &[libc::SYS_epoll_pwait],
            #[cfg(target_arch = "x86_64")]
            Kind::Select => &[libc::SYS_select, libc::SYS_pselect6],
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Select => &[libc::SYS_pselect6, SELECT, PSELECT6_TIME64],
            Kind::Receive => &[libc::SYS_recvfrom, SOCKETCALL],
            Kind::Clock | Kind::Spin | Kind::Leaf | Kind::Calls => &[],
        }
    }
}

// On 32 bits; no call elsewhere.
const WIDE: bool = cfg!(target_pointer_width = "64");
const FUTEX_TIME64: libc::c_long = if WIDE { -1 } else { 422 };
const CLOCK_NANOSLEEP_TIME64: libc::c_long = if WIDE { -1 } else { 407 };
#[cfg(not(target_arch = "x86_64"))]
const PSELECT6_TIME64: libc::c_long = if WIDE { -1 } else { 413 };
#[cfg(not(target_arch = "x86_64"))]
const SELECT: libc::c_long = if WIDE { -1 } else { 142 };
const SOCKETCALL: libc::c_long = if cfg!(target_arch = "x86") { 102 } else { -1 };

/// How the chain is compiled.
#[derive(Clone, Copy, Debug)]
pub enum Build {
    /// Unwind tables, no frame pointers.
    Tables,
    /// Unwind tables and frame pointers.
    FramePointers,
    /// Frame pointers, no tables.
    NoTables,
    /// Frame pointers and tables that nothing leads to.
    NoHeader,
    /// Unwind tables; every other function keeps a frame pointer, the innermost one does.
    MixedOdd,
    /// The same, but the innermost doesn't.
    MixedEven,
    /// From the innermost on, in turn: unwind tables, frame pointers, both.
    Holes,
    /// Frame pointers, calls through pointers.
    Pointers,
    /// Tables, no frame pointers but where arrays of variable length need them, which is everywhere.
    Variable,
    /// The same, with calls through pointers.
    VariablePointers,
}

fn compiler() -> Command {
    let mut compiler = Command::new(std::env::var("CC").unwrap_or("cc".to_owned()));
    compiler.args(["-O2", "-fPIC", "-pthread", "-Wall", "-Wextra"]);
    // Elsewhere they are the default.
    if cfg!(target_arch = "arm") {
        compiler.arg("-funwind-tables");
    } else if cfg!(target_arch = "riscv64") {
        compiler.arg("-fasynchronous-unwind-tables");
    }
    compiler
}

fn run(command: &mut Command) {
    assert!(command.status().expect("a C compiler named cc").success(), "{command:?}");
}

/// The build id that every build is given.
pub const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";

impl Build {
    /// Compiles it, under a name of its own for each use.
    pub fn compile(self, name: &str) -> PathBuf {
        let (with, without) = ("-fno-omit-frame-pointer", "-fomit-frame-pointer");
        let no_tables = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
        let flags: &[&str] = match self {
            Build::Tables | Build::MixedOdd | Build::MixedEven | Build::Holes => &[without],
            Build::FramePointers => &[with],
            Build::Pointers => &[with, "-DPOINTER"],
            Build::Variable => &[without, "-DVARIABLE"],
            Build::VariablePointers => &[without, "-DVARIABLE", "-DPOINTER"],
            Build::NoTables => &[with, no_tables[0], no_tables[1]],
            Build::NoHeader => &[with, "-Wl,--no-eh-frame-hdr"],
        };
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
        let source = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/unwind/chain.c"));
        let objects = match self {
            Build::MixedOdd | Build::MixedEven | Build::Holes => (1..=10)
                .map(|part| {
                    let object = library.with_extension(format!("{part}.o"));
                    let mut compiler = compiler();
                    match (self, part % 2, part % 3) {
                        (Build::Holes, _, 2) => compiler.arg(with).args(no_tables),
                        (Build::Holes, _, 0) | (Build::MixedOdd, 1, _) | (Build::MixedEven, 0, _) => compiler.arg(with),
                        _ => compiler.arg(without),
                    };
                    compiler.arg(format!("-DPART={part}")).arg("-c").arg(&source);
                    run(compiler.arg("-o").arg(&object));
                    object
                })
                .collect(),
            _ => vec![source],
        };
        let mut linker = compiler();
        linker.args(["-shared", "-Wl,-soname,libchain.so"]).arg(format!("-Wl,--build-id=0x{BUILD_ID}"));
        run(linker.args(flags).args(&objects).arg("-o").arg(&library));
        library
    }
}

/// A loaded chain. It stays loaded: threads may be in it.
#[derive(Clone, Copy)]
pub struct Chain {
    handle: *mut libc::c_void,
}

impl Chain {
    /// Compiles and loads it.
    pub fn load(build: Build) -> Chain {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Chain::open(&build.compile(&format!("chain-{}-{build:?}-{number}", std::process::id())))
    }

    /// Loads it from a file.
    pub fn open(library: &std::path::Path) -> Chain {
        let path = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: the path is a C string; the library has no constructors of its own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{library:?}");
        Chain { handle }
    }

    /// Where one of its functions is.
    pub fn address(&self, name: &CStr) -> u64 {
        // SAFETY: the handle is open, the name a C string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?}");
        address as u64
    }

    /// Unloads it.
    pub fn close(self) {
        // SAFETY: the handle is open, and whoever closes it has no thread in the library.
        let result = unsafe { libc::dlclose(self.handle) };
        assert_eq!(result, 0);
    }
}
