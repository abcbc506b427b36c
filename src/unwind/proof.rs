//! Is a module still the one that was found, or does another one lie in its place? A look at a few bytes tells, where
//! reading the maps again costs a hundred times as much.

use super::elf::{BUILD_ID, BuildId, Image};
use super::heads::Seen;
use super::memory::Memory;
use arrayvec::ArrayVec;

/// Bytes of a library's begin that are compared where it has no build id: the header, which tells where in the file its
/// sections are, and the sizes of its segments.
const HEAD: usize = 512;
/// Proofs that are looked at by one read.
const AT_ONCE: usize = 8;
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
        let mut bytes = [0; LONGEST];
        let bytes = bytes.get_mut(..length).and_then(|bytes| memory.read(at, bytes).then_some(&*bytes));
        bytes.map_or(Proof::default(), |bytes| Proof { at, length, sum: sum(bytes) })
    }

    /// They are still there, all of them. Where there was nothing to compare, they are.
    pub fn hold<'p>(proofs: impl Iterator<Item = &'p Proof>, memory: &impl Memory) -> bool {
        let mut bytes = [0; AT_ONCE * LONGEST];
        let mut proofs = proofs.filter(|proof| proof.length > 0);
        loop {
            let some: ArrayVec<&Proof, AT_ONCE> = proofs.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return true;
            }
            let pieces: ArrayVec<(u64, usize), AT_ONCE> = some.iter().map(|proof| (proof.at, proof.length)).collect();
            let length = pieces.iter().map(|piece| piece.1).sum();
            let Some(bytes) = bytes.get_mut(..length) else { return false };
            if !memory.read_pieces(&pieces, bytes) {
                return false;
            }
            let mut rest = &*bytes;
            for proof in some {
                let Some((piece, behind)) = rest.split_at_checked(proof.length) else { return false };
                if sum(piece) != proof.sum {
                    return false;
                }
                rest = behind;
            }
        }
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let mut seen = Seen::new();
    seen.add(bytes);
    seen.0
}
