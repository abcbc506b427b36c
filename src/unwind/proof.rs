//! Is a module still the one that was found, or does another one lie in its place? A look at a few bytes tells, where
//! reading the maps again costs a hundred times as much.

use super::elf::{BUILD_ID, BuildId, Image};
use super::heads::Seen;
use super::memory::Memory;

/// Bytes of a library's begin that are compared where it has no build id: the header, which tells where in the file its
/// sections are, and the sizes of its segments.
const HEAD: usize = 512;
const LONGEST: usize = if HEAD > BUILD_ID { HEAD } else { BUILD_ID };

/// Bytes that no other module has in this place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Proof {
    at: u64,
    length: usize,
    sum: u64,
}

impl Proof {
    /// The build id, or what is at the image's begin.
    pub fn of(image: &Image, id: Option<&BuildId>, memory: &impl Memory) -> Proof {
        let (at, length) = match id {
            Some(id) => (id.at, id.length),
            None => (
                image.span.start,
                usize::try_from(image.span.end.saturating_sub(image.span.start)).unwrap_or(HEAD).min(HEAD),
            ),
        };
        sum(at, length, memory).map_or(Proof::default(), |sum| Proof { at, length, sum })
    }

    /// They are still there. Where there was nothing to compare, they are.
    pub fn holds(&self, memory: &impl Memory) -> bool {
        self.length == 0 || sum(self.at, self.length, memory) == Some(self.sum)
    }
}

fn sum(at: u64, length: usize, memory: &impl Memory) -> Option<u64> {
    let mut bytes = [0; LONGEST];
    let bytes = bytes.get_mut(..length)?;
    let mut seen = Seen::new();
    memory.read(at, bytes).then(|| {
        seen.add(bytes);
        seen.0
    })
}
