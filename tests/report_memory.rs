//! Rendering and storing take no memory from the C library: every call of its allocator is counted, whoever makes it.

mod report_common;

use blockcanary::report::names::{Format, Name};
use blockcanary::report::store::{Space, Store};
use blockcanary::report::{json, shelf, text};
use report_common::*;
use std::cell::Cell;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(memory: *mut c_void, size: usize) -> *mut c_void;
}

fn count() {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: these take the place of the C library's own names, for its own calls too, and lead on to it.
#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    count();
    // SAFETY: as the caller asks.
    unsafe { __libc_malloc(size) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn calloc(n: usize, size: usize) -> *mut c_void {
    count();
    // SAFETY: as the caller asks.
    unsafe { __libc_calloc(n, size) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    count();
    // SAFETY: as the caller asks.
    unsafe { __libc_realloc(memory, size) }
}

#[test]
fn nothing_is_allocated() {
    let temp = TempDir::new("memory");
    let path = temp.path().join("a/b");
    let c_path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let mut evidence = Evidence::default();
    for n in 0..200 {
        let module: Option<&[u8]> = Some(b"/data/app/lib/libengine.so");
        evidence.add(START_NS + n, &[(module, n * 16, Some(b"name\xff\n\"\\"), 0), (module, 5, None, 0)]);
    }
    let block = block(&evidence);
    let context = context();
    let mut space = Box::new(Space::new());

    let before = CALLS.get();
    drop(std::hint::black_box(vec![0u8; 100]));
    drop(std::fs::read_dir(temp.path()).unwrap());
    assert!(CALLS.get() >= before + 2, "calls from Rust and from the C library are counted");

    let before = CALLS.get();
    let mut store = Store::open(&c_path, &mut space).unwrap();
    for id in 0..300 {
        assert!(store.make_room(3, &|id| id == 299).unwrap());
        let name = Name::new(START_UNIX_MS + id, 3600, std::process::id() as i32, id as u64);
        store.write(&name, Format::Json, &|_| false, &mut |sink| json::write(sink, &block, &context)).unwrap();
        store.write(&name, Format::Text, &|_| false, &mut |sink| text::write(sink, &block, &context)).unwrap();
    }
    let mut files = 0;
    shelf::each(store.shelf().path(), &mut |_, _, _| {
        files += 1;
        true
    })
    .unwrap();
    drop(store);
    assert_eq!(CALLS.get() - before, 0);
    assert_eq!(files, 6);
}
