//! Strings in a ring of fixed size, equal ones stored once. The oldest are overwritten; whoever asks for one of those is
//! told that it is gone.

/// Where a string is: how many bytes had been written before it, which no two have in common. 0 is none.
pub type At = u64;

const LENGTH: usize = size_of::<u16>();
/// Places of the index that a string may be found by.
const WAYS: usize = 4;

/// See above.
pub struct Strings {
    memory: &'static mut [u8],
    /// Where strings are that were stored, by a sum over them.
    index: &'static mut [At],
    written: u64,
}

impl Strings {
    /// Empty. `index`, all 0, should have a place for each 64 bytes of `memory` or so.
    pub fn new(memory: &'static mut [u8], index: &'static mut [At]) -> Strings {
        Strings { memory, index, written: 1 }
    }

    /// The string, unless it has been overwritten.
    pub fn get(&self, at: At) -> Option<&[u8]> {
        if at == 0 || at >= self.written || self.age(at) > self.memory.len() as u64 {
            return None;
        }
        let rest = self.memory.get(self.offset(at)?..)?;
        let (length, rest) = rest.split_first_chunk::<LENGTH>()?;
        rest.get(..usize::from(u16::from_ne_bytes(*length)))
    }

    /// Stores a string, unless it is there; 0 for an empty one and one that is too long.
    pub fn put(&mut self, text: &[u8]) -> At {
        let found = self.ways(text).iter().copied().find(|at| self.get(*at) == Some(text));
        match found.filter(|at| !self.is_old(*at)) {
            Some(at) => at,
            None => self.append(text),
        }
    }

    /// The same string at a place that will not be overwritten soon; `None` where it was already.
    pub fn keep(&mut self, at: At) -> Option<At> {
        if at == 0 {
            return Some(0);
        }
        let length = self.get(at)?.len();
        if !self.is_old(at) {
            return Some(at);
        }
        // It may have been stored anew for somebody else.
        let text = self.get(at)?;
        let newest = self.ways(text).iter().copied().filter(|other| self.get(*other) == Some(text)).max();
        if let Some(newest) = newest.filter(|newest| !self.is_old(*newest)) {
            return Some(newest);
        }
        let from = self.offset(at)?.checked_add(LENGTH)?;
        let new = self.reserve(length)?;
        let to = self.offset(new)?.checked_add(LENGTH)?;
        if from.checked_add(length)? > self.memory.len() || to.checked_add(length)? > self.memory.len() {
            return None;
        }
        // Before the length is written, which may lie where the string was.
        self.memory.copy_within(from..from + length, to);
        self.write_length(new, length);
        self.enter(new);
        Some(new)
    }

    fn append(&mut self, text: &[u8]) -> At {
        if text.is_empty() {
            return 0;
        }
        let Some(at) = self.reserve(text.len()) else { return 0 };
        self.write_length(at, text.len());
        let start = self.offset(at).unwrap_or(0).saturating_add(LENGTH);
        if let Some(place) = self.memory.get_mut(start..).and_then(|rest| rest.get_mut(..text.len())) {
            place.copy_from_slice(text);
        }
        self.enter(at);
        at
    }

    /// Room for a string and its length in one piece, which is a quarter of the ring at most.
    fn reserve(&mut self, length: usize) -> Option<At> {
        let needed = length.checked_add(LENGTH)?;
        if needed > self.memory.len() / 4 || length > usize::from(u16::MAX) {
            return None;
        }
        let offset = self.offset(self.written)?;
        let left = self.memory.len().saturating_sub(offset);
        if left < needed {
            self.written += left as u64;
        }
        let at = self.written;
        self.written += needed as u64;
        Some(at)
    }

    fn write_length(&mut self, at: At, length: usize) {
        let offset = self.offset(at);
        let place = offset.and_then(|offset| self.memory.get_mut(offset..)?.first_chunk_mut::<LENGTH>());
        if let (Some(place), Ok(length)) = (place, u16::try_from(length)) {
            *place = length.to_ne_bytes();
        }
    }

    /// Makes it known to the index, in the place of the oldest one.
    fn enter(&mut self, at: At) {
        let Some(set) = self.get(at).map(|text| self.set(text)) else { return };
        let ways = self.index.get_mut(set..).and_then(|rest| rest.get_mut(..WAYS)).unwrap_or_default();
        if let Some(oldest) = ways.iter_mut().min() {
            *oldest = at;
        }
    }

    fn ways(&self, text: &[u8]) -> &[At] {
        self.index.get(self.set(text)..).and_then(|rest| rest.get(..WAYS)).unwrap_or_default()
    }

    fn set(&self, text: &[u8]) -> usize {
        // FNV-1a.
        let sum = text
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let sets = (self.index.len() / WAYS).max(1) as u64;
        ((sum ^ sum >> 32) % sets) as usize * WAYS
    }

    fn offset(&self, at: At) -> Option<usize> {
        at.checked_rem(self.memory.len() as u64).map(|offset| offset as usize)
    }

    /// How many bytes have been written since.
    fn age(&self, at: At) -> u64 {
        self.written.saturating_sub(at)
    }

    /// It is in the half that is overwritten next.
    fn is_old(&self, at: At) -> bool {
        self.age(at) > self.memory.len() as u64 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(bytes: usize, index: usize) -> Strings {
        Strings::new(vec![0xff; bytes].leak(), vec![0; index].leak())
    }

    #[test]
    fn equal_strings_are_stored_once() {
        let mut strings = strings(4096, 64);
        let (one, two) = (strings.put(b"one"), strings.put(b"two"));
        assert!(one != 0 && two != 0 && one != two);
        assert_eq!((strings.put(b"one"), strings.put(b"two")), (one, two));
        assert_eq!((strings.get(one), strings.get(two)), (Some(b"one".as_slice()), Some(b"two".as_slice())));
        assert_eq!((strings.put(b""), strings.get(0), strings.get(u64::MAX)), (0, None, None));
    }

    #[test]
    fn what_is_overwritten_is_gone_and_what_is_kept_is_not() {
        let mut strings = strings(512, 64);
        let lost = strings.put(b"lost");
        let mut kept = strings.put(b"kept");
        // Ends beyond the ring's end in every way.
        for round in 0..5000_u32 {
            let text = format!("{:1$}", round, 3 + (round % 60) as usize);
            let at = strings.put(text.as_bytes());
            assert_eq!(strings.get(at), Some(text.as_bytes()));
            kept = strings.keep(kept).expect("asked for often enough");
            assert_eq!(strings.get(kept), Some(b"kept".as_slice()));
        }
        assert!(strings.get(lost).is_none() && strings.keep(lost).is_none());
    }

    #[test]
    fn each_string_reads_as_it_was_written_or_not_at_all() {
        let mut strings = strings(700, 16);
        let mut all: Vec<(At, Vec<u8>)> = Vec::new();
        for round in 0..2000_usize {
            let text = vec![(round % 251) as u8; 1 + round * 7 % 120];
            all.push((strings.put(&text), text));
            if round % 3 == 0 {
                let (at, text) = all[all.len().saturating_sub(5)].clone();
                if let Some(at) = strings.keep(at) {
                    all.push((at, text));
                }
            }
            let there = all.iter().filter(|(at, text)| match strings.get(*at) {
                Some(found) => {
                    assert_eq!(found, text);
                    true
                }
                None => false,
            });
            assert!(there.count() >= 1);
        }
    }

    #[test]
    fn no_size_of_memory_fails() {
        for (bytes, index) in [(0, 0), (1, 4), (3, 3), (8, 0), (16, 4)] {
            let mut strings = strings(bytes, index);
            for text in [b"".as_slice(), b"a", b"ab", b"abc", b"a long one that hardly fits"] {
                let at = strings.put(text);
                assert!(at == 0 || strings.get(at) == Some(text));
                let _ = strings.keep(at);
            }
            assert_eq!(strings.put(&[7; 70_000]), 0);
        }
    }
}
