//! What reports say beside their block: what was fixed at install, and what is so when they are written.

use super::block::Context;
use super::module_list::ModuleList;
use super::names::{Format, Name};
use crate::abi::{BC_FORMAT_JSON, BC_FORMAT_TEXT, bc_health};
use crate::sys::clock;
use crate::sys::procfs::{ProcFile, memory_kb};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// See above.
pub struct Facts {
    /// The program's words: qualifier, version name, version code, user id, network type.
    pub words: [Option<&'static [u8]>; 5],
    /// Name of the process.
    pub process_name: &'static [u8],
    /// Its id.
    pub pid: i32,
    /// See `Context`.
    pub model: &'static [u8],
    /// See `Context`.
    pub api_level: &'static [u8],
    /// Processors.
    pub cores: u32,
    /// See `bc_config`.
    pub formats: u32,
    /// See `bc_config`.
    pub redact_paths: bool,
    /// See `bc_config`.
    pub concern: ModuleList<'static>,
    /// The library's account of itself.
    pub health: fn() -> bc_health,
    /// Local time is this many seconds ahead of UTC; set at install and start.
    pub utc_offset_s: &'static AtomicI32,
}

impl Facts {
    /// The name of the reports of a block that began then.
    pub fn name(&self, start_unix_ms: i64, id: u64) -> Name {
        Name::new(start_unix_ms, self.utc_offset_s.load(Relaxed), self.pid, id)
    }

    /// The formats that are wanted; the first one's path is the report's.
    pub fn formats(&self) -> impl Iterator<Item = Format> + use<> {
        let formats = self.formats;
        let all = [(BC_FORMAT_TEXT, Format::Text), (BC_FORMAT_JSON, Format::Json)];
        all.into_iter().filter(move |(bit, _)| formats & bit != 0).map(|(_, format)| format)
    }

    /// What changes: looked up once for each state of a block. `memory` is `/proc/meminfo`.
    pub fn look(&self, memory: Option<&ProcFile>) -> Now {
        let mut buffer = [0; 512];
        let memory = memory.and_then(|file| file.read(&mut buffer).ok()).unwrap_or(&[]);
        Now {
            health: (self.health)(),
            free_memory_kb: memory_kb(memory, b"MemAvailable").or_else(|| memory_kb(memory, b"MemFree")).unwrap_or(0),
            total_memory_kb: memory_kb(memory, b"MemTotal").unwrap_or(0),
            unix_ms: clock::unix_ms(),
        }
    }

    /// What a report says beside its block.
    pub fn context<'a>(&'a self, now: &'a Now, sample_interval_ns: u64) -> Context<'a> {
        let [qualifier, version_name, version_code, user_id, network_type] = self.words;
        Context {
            qualifier,
            version_name,
            version_code,
            user_id,
            network_type,
            process_name: self.process_name,
            pid: self.pid,
            model: self.model,
            api_level: self.api_level,
            cores: self.cores,
            free_memory_kb: now.free_memory_kb,
            total_memory_kb: now.total_memory_kb,
            now_unix_ms: now.unix_ms,
            utc_offset_s: self.utc_offset_s.load(Relaxed),
            sample_interval_ns,
            redact_paths: self.redact_paths,
            concern: self.concern,
            health: &now.health,
        }
    }
}

/// See `Context`.
pub struct Now {
    health: bc_health,
    free_memory_kb: u64,
    total_memory_kb: u64,
    unix_ms: i64,
}
