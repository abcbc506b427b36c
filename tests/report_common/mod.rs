//! Blocks to render, and a reader of BlockCanary's logs.
#![allow(dead_code)]

pub mod pair;
pub mod reader;

use blockcanary::abi::{bc_block_state, bc_cause, bc_frame, bc_health, bc_sample, bc_sample_method};
use blockcanary::report::block::{Block, Context, Reasons, Repeats};
use blockcanary::report::module_list::ModuleList;
use blockcanary::report::names::{Format, Name};
use blockcanary::report::sink::{Memory, Sink};
use blockcanary::report::store::{Space, Store};
use blockcanary::report::view::Samples;
use blockcanary::sys::errno::Errno;
use std::ffi::{CString, c_char};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Module, offset in it, symbol, offset from it.
pub type Spot<'a> = (Option<&'a [u8]>, u64, Option<&'a [u8]>, u64);

/// Owns what samples point to.
#[derive(Default)]
pub struct Evidence {
    samples: Vec<bc_sample>,
    frames: Vec<Vec<bc_frame>>,
    strings: Vec<CString>,
}

impl Evidence {
    pub fn add(&mut self, time_ns: u64, stack: &[Spot]) -> &mut bc_sample {
        let frames: Vec<bc_frame> = stack
            .iter()
            .map(|&(module, module_offset, symbol, symbol_offset)| bc_frame {
                pc: 0x7000_0000 + module_offset,
                module_offset,
                symbol_offset,
                module: self.string(module),
                build_id: self.string(module.map(|_| b"00ff12".as_slice())),
                symbol: self.string(symbol),
            })
            .collect();
        self.samples.push(bc_sample {
            time_ns,
            method: if frames.is_empty() {
                bc_sample_method::BC_SAMPLE_NO_STACK
            } else {
                bc_sample_method::BC_SAMPLE_SIGNAL
            },
            frames_cut: 0,
            frame_count: frames.len(),
            frames: frames.as_ptr(),
            thread_state: b'S' as c_char,
            truncated: false,
            approximate: false,
        });
        self.frames.push(frames);
        self.samples.last_mut().unwrap()
    }

    fn string(&mut self, text: Option<&[u8]>) -> *const c_char {
        text.map_or(std::ptr::null(), |text| {
            self.strings.push(CString::new(text).unwrap());
            self.strings.last().unwrap().as_ptr()
        })
    }

    pub fn view(&self) -> Samples<'_> {
        // SAFETY: frames and strings are on the heap, owned by `self` and left alone while it is borrowed.
        unsafe { Samples::new(&self.samples) }
    }

    pub fn raw(&self) -> &[bc_sample] {
        &self.samples
    }
}

/// Numbers below a bound (0 counts as 1), the same ones for the same seed.
pub fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    }
}

pub const MS: u64 = 1_000_000;
/// 2024-02-29 12:34:56.789 UTC.
pub const START_UNIX_MS: i64 = 1_709_210_096_789;
pub const START_NS: u64 = 5_000 * MS;

pub fn block<'a>(evidence: &'a Evidence) -> Block<'a> {
    Block {
        id: 9_007_199_254_740_991,
        state: bc_block_state::BC_BLOCK_ENDED,
        cause: bc_cause::BC_CAUSE_SLEEP,
        cause_detail: None,
        loop_name: b"engine",
        tid: 4243,
        what: Some(b"frame"),
        tag: 0xfeed,
        start_unix_ms: START_UNIX_MS,
        start_ns: START_NS,
        wall_ns: 2_000 * MS + 1_500,
        cpu_ns: 3 * MS + 250_000,
        cpu_uncertainty_ns: Some(1_000),
        threshold_ns: 1_000 * MS,
        run_queue_wait_ns: None,
        repeats: Repeats::default(),
        progress: None,
        samples: evidence.view(),
        cpu: &[],
        reasons: Reasons::default(),
    }
}

pub static HEALTH: bc_health = bc_health {
    struct_size: 777_777,
    loops_watched: 1,
    loops_refused: 2,
    calls_misused: 3,
    blocks_seen: 4,
    blocks_delivered: 5,
    blocks_dropped: 6,
    blocks_filtered: 7,
    samples_taken: 8,
    samples_lost: 9,
    samples_unanswered: 10,
    signals_sent: 11,
    waits_cut: 12,
    reports_written: 13,
    reports_failed: 14,
    reports_merged: 15,
    listener_overruns: 16,
    monitor_late: 17,
    dumpable_windows: 18,
    memory_bytes: u64::MAX,
    signal_free_available: true,
    signal_available: false,
    signal_taken_over: false,
    system_cpu_available: true,
};

pub fn context() -> Context<'static> {
    Context {
        qualifier: None,
        version_name: None,
        version_code: None,
        user_id: None,
        network_type: None,
        process_name: b"com.example.game",
        pid: 4242,
        model: b"",
        api_level: b"",
        cores: 0,
        free_memory_kb: 0,
        total_memory_kb: 0,
        now_unix_ms: START_UNIX_MS + 2_100,
        utc_offset_s: 3600,
        sample_interval_ns: 250 * MS,
        redact_paths: false,
        concern: ModuleList::default(),
        health: &HEALTH,
    }
}

pub fn rendered(write: impl FnOnce(&mut Sink)) -> Vec<u8> {
    let mut memory = vec![0; 8 << 20];
    let mut output = Memory::new(&mut memory);
    let mut buffer = [0; 97];
    let mut sink = Sink::new(&mut output, &mut buffer);
    write(&mut sink);
    sink.finish().unwrap();
    let needed = output.needed();
    assert!(needed > 0);
    memory.truncate(needed);
    memory
}

pub fn json(block: &Block, context: &Context) -> Vec<u8> {
    rendered(|sink| blockcanary::report::json::write(sink, block, context))
}

pub fn text(block: &Block, context: &Context) -> Vec<u8> {
    rendered(|sink| blockcanary::report::text::write(sink, block, context))
}

/// A directory of its own, gone at the end.
pub struct TempDir(pub PathBuf);

impl TempDir {
    pub fn new(name: &str) -> TempDir {
        TempDir::below(&std::env::temp_dir(), name)
    }

    /// In memory where there is a place for that: for very many files.
    pub fn fast(name: &str) -> TempDir {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { TempDir::below(memory, name) } else { TempDir::new(name) }
    }

    fn below(folder: &Path, name: &str) -> TempDir {
        let path = folder.join(format!("bc-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const TEXT: Format = Format::Text;
pub const JSON: Format = Format::Json;

pub fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

pub fn space() -> Box<Space> {
    Box::new(Space::new())
}

pub fn own_name(ms: i64, id: u64) -> Name {
    Name::new(ms, 0, std::process::id() as i32, id)
}

pub fn write(store: &mut Store, name: &Name, format: Format, text: &str) -> Result<(), Errno> {
    store.write(name, format, &|_| false, &mut |sink| sink.text(text))
}

pub fn file_name(name: &Name, format: Format) -> String {
    String::from_utf8(name.file(format).as_bytes().to_vec()).unwrap()
}

pub fn listed(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A pid of a process that is gone.
pub fn dead_pid() -> i32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id() as i32;
    child.wait().unwrap();
    pid
}
