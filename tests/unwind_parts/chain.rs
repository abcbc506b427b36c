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
        }
    }

    /// The system calls that it may wait in.
    pub fn calls(self) -> &'static [libc::c_long] {
        match self {
            Kind::Nanosleep => &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep],
            Kind::Read | Kind::Handler => &[libc::SYS_read],
            Kind::Mutex => &[libc::SYS_futex],
            #[cfg(target_arch = "x86_64")]
            Kind::Poll => &[libc::SYS_poll, libc::SYS_ppoll],
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Poll => &[libc::SYS_ppoll],
            Kind::Clock | Kind::Spin => &[],
        }
    }
}

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
}

/// The build id that every build is given.
pub const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";

impl Build {
    /// Compiles it, under a name of its own for each use.
    pub fn compile(self, name: &str) -> PathBuf {
        let flags: &[&str] = match self {
            Build::Tables => &["-fomit-frame-pointer"],
            Build::FramePointers => &["-fno-omit-frame-pointer"],
            Build::NoTables => &["-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
            Build::NoHeader => &["-fno-omit-frame-pointer", "-Wl,--no-eh-frame-hdr"],
        };
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
        let status = Command::new(std::env::var("CC").unwrap_or("cc".to_owned()))
            .args(["-O2", "-shared", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Wl,-soname,libchain.so"])
            .arg(format!("-Wl,--build-id=0x{BUILD_ID}"))
            .args(flags)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/unwind/chain.c"))
            .arg("-o")
            .arg(&library)
            .status()
            .expect("a C compiler named cc");
        assert!(status.success());
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
