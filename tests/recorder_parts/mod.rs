//! Recorders in directories, and what a later process finds in them.

use super::report_common::*;
use blockcanary::abi::{bc_sample, bc_sample_method};
use blockcanary::report::block::{Block, Context, CpuTick};
use blockcanary::report::parcel::Parcel;
use blockcanary::report::recorder::Recorder;
use blockcanary::report::recorder::decode::Surroundings;
use blockcanary::report::recorder::layout::Owner;
use blockcanary::report::recorder::recover::Recovery;
use blockcanary::report::recorder::space::Buffer;
use blockcanary::report::resolve::unknown;
use blockcanary::sys::fd::Fd;
use blockcanary::sys::{files, process};
use serde_json::Value;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// No process has this id.
pub const DEAD: Owner = Owner { pid: i32::MAX, started: 77 };
pub const ENGINE: Option<&[u8]> = Some(b"/data/app/lib/libengine.so");
pub const NAMES: usize = 16 * 1024;

pub fn zeroed<T>() -> &'static mut T {
    // SAFETY: only called for what all zeros are a value of, which is large and hence not made on the stack.
    unsafe { &mut *std::alloc::alloc_zeroed(std::alloc::Layout::new::<T>()).cast::<T>() }
}

pub fn leaked<T: Copy>(value: T, count: usize) -> &'static mut [T] {
    vec![value; count].leak()
}

pub fn empty_parcel() -> &'static mut Parcel {
    let sample = bc_sample {
        time_ns: 0,
        method: bc_sample_method::BC_SAMPLE_NO_STACK,
        frames_cut: 0,
        frame_count: 0,
        frames: std::ptr::null(),
        thread_state: 0,
        truncated: false,
        approximate: false,
    };
    let ticks = leaked(CpuTick::default(), 4096);
    Box::leak(Box::new(Parcel::new(
        leaked(sample, 4096),
        leaked(None, 8),
        leaked(unknown(0), 65536),
        ticks,
        leaked(0, 1 << 16),
    )))
}

pub fn open(path: &Path) -> Fd {
    files::open_directory(&CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap()
}

pub fn surrounded<'a>(past: &Surroundings<'a>) -> Context<'a> {
    let [qualifier, version_name, version_code, user_id, network_type] = past.words;
    Context {
        qualifier,
        version_name,
        version_code,
        user_id,
        network_type,
        process_name: past.process_name,
        pid: past.pid,
        model: past.model,
        api_level: past.api_level,
        cores: past.cores,
        free_memory_kb: past.free_memory_kb,
        total_memory_kb: past.total_memory_kb,
        utc_offset_s: past.utc_offset_s,
        sample_interval_ns: past.sample_interval_ns,
        ..context()
    }
}

pub fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

/// What a process that comes later finds in the directory, as reports.
pub fn recovered(directory: &Fd, parcel: &mut Parcel) -> Vec<Value> {
    let owner = Owner { pid: process::id(), started: process::started(process::id()).unwrap() };
    let buffer = zeroed::<Buffer>();
    let place: *mut Buffer = buffer;
    let mut recovery = Recovery::new(owner, 1_000_000, None, buffer);
    let mut names = [0; NAMES];
    let mut found = Vec::new();
    while recovery.find(directory, &mut names) {
        let record = recovery.record().unwrap();
        parcel.restore(&record);
        found.push(parsed(&json(&parcel.block(), &surrounded(&record.surroundings))));
        recovery.free();
    }
    drop(recovery);
    // SAFETY: made by `zeroed`, and nobody has it any more.
    drop(unsafe { Box::from_raw(place) });
    found
}

/// The only recorder in the directory.
pub fn recorder_in(path: &Path) -> PathBuf {
    let all = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut all = all.filter(|path| path.extension().is_some_and(|end| end == "bcr"));
    let only = all.next().expect("a recorder");
    assert_eq!(all.next(), None);
    only
}

pub fn stack(evidence: &mut Evidence, time_ns: u64, functions: &[&str]) {
    let frames: Vec<_> =
        functions.iter().enumerate().map(|(i, name)| (ENGINE, i as u64 * 16, Some(name.as_bytes()), 3)).collect();
    evidence.add(time_ns, &frames);
}

pub fn keep(recorder: &mut Recorder, directory: &Fd, id: u64, wall_ms: u64, evidence: &Evidence) {
    let block = Block { id, wall_ns: wall_ms * MS, ..block(evidence) };
    recorder.keep(directory, &block, &context());
}
