//! What a report says of a process that is gone.

use crate::report::block::Context;
use crate::report::recorder::decode::Surroundings;
use crate::report::text_space::{TextSpace, bytes_of};
use core::ffi::c_char;
use core::ptr;

/// See above. Its strings lie in the text of the parcel that it belongs to.
pub(super) struct Past {
    words: [*const c_char; 5],
    process_name: *const c_char,
    model: *const c_char,
    api_level: *const c_char,
    pid: i32,
    cores: u32,
    free_memory_kb: u64,
    total_memory_kb: u64,
    utc_offset_s: i32,
}

impl Past {
    /// Copies all of it.
    pub fn new(past: &Surroundings, text: &mut TextSpace) -> Past {
        Past {
            words: past.words.map(|word| word.map_or(ptr::null(), |word| text.put(word))),
            process_name: text.put(past.process_name),
            model: text.put(past.model),
            api_level: text.put(past.api_level),
            pid: past.pid,
            cores: past.cores,
            free_memory_kb: past.free_memory_kb,
            total_memory_kb: past.total_memory_kb,
            utc_offset_s: past.utc_offset_s,
        }
    }

    /// In the place of what is so now.
    ///
    /// # Safety
    /// The text that the strings were copied to is as it was, for as long as the context lives.
    pub unsafe fn context<'a>(&'a self, now: Context<'a>) -> Context<'a> {
        // SAFETY: null, or a string in that text.
        let string = |string| unsafe { bytes_of(string) };
        let [qualifier, version_name, version_code, user_id, network_type] = self.words.map(string);
        Context {
            qualifier,
            version_name,
            version_code,
            user_id,
            network_type,
            process_name: string(self.process_name).unwrap_or_default(),
            pid: self.pid,
            model: string(self.model).unwrap_or_default(),
            api_level: string(self.api_level).unwrap_or_default(),
            cores: self.cores,
            free_memory_kb: self.free_memory_kb,
            total_memory_kb: self.total_memory_kb,
            utc_offset_s: self.utc_offset_s,
            ..now
        }
    }
}
