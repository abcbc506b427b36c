//! While the maps go by: which mappings may hold the headers of the code that follows.

use crate::sys::maps::Mapping;

/// A sum over lines (FNV-1a).
pub(super) struct Seen(pub u64);

impl Seen {
    pub fn new() -> Seen {
        Seen(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        // A newline behind each line keeps "ab", "c" apart from "a", "bc".
        for byte in bytes.iter().chain(b"\n") {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// A mapping that may begin with an ELF header.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    pub start: u64,
    pub offset: u64,
    file: (u64, u64),
    path: u64,
}

/// The last readable mappings: the headers of a library come some mappings before its code.
#[derive(Default)]
pub(super) struct Heads {
    last: [Head; 8],
}

impl Heads {
    pub fn add(&mut self, mapping: &Mapping) {
        // Code is remembered though it can't be read, to be found by the code itself.
        if (mapping.readable || mapping.executable) && !mapping.path.is_empty() {
            self.last.rotate_right(1);
            let [first, ..] = &mut self.last;
            *first = Head { start: mapping.start, offset: mapping.offset, file: mapping.file, path: path(mapping) };
        }
    }

    /// Mappings of this one's file, the nearest first, beginning with itself.
    pub fn of(&self, mapping: &Mapping) -> impl Iterator<Item = Head> {
        let (file, path) = (mapping.file, path(mapping));
        let at_most = mapping.start;
        let path_is_empty = mapping.path.is_empty();
        self.last.into_iter().filter(move |head| {
            !path_is_empty && head.start <= at_most && head.start != 0 && head.file == file && head.path == path
        })
    }
}

fn path(mapping: &Mapping) -> u64 {
    let mut seen = Seen::new();
    seen.add(mapping.path);
    seen.0
}
