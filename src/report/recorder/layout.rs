//! How a recorder lies in its file: a page that says whose it is, then places of a fixed size, one for each block that may
//! be open at once. `docs/recorder.md` tells all of it.
//!
//! A place has two halves, which are written in turn: a process that is killed in the middle of a write leaves the other
//! half whole. The newest half that is whole says what the place holds. Only a front alone, that says that a place is free
//! or its block was told of, goes over that half itself.

/// First bytes of the file. Not text, so that no file is taken for one by mistake.
pub const MAGIC: [u8; 8] = *b"\x89BCREC\r\n";
/// Version of the file and of what its places hold.
pub const VERSION: u32 = 1;
/// Bytes before the first place.
pub const HEAD: usize = 4096;
/// Bytes of a half.
pub const HALF: usize = 64 * 1024;
/// Most that a half holds of a block.
pub const ROOM: usize = HALF - TOP;
/// Places of the largest file: a block of each loop there may be.
pub const MOST_PLACES: u32 = 256;
/// Bytes in front of what a half holds.
pub const TOP: usize = 40;
/// What a write to the other half adds to a place's sequence, whose lowest bit says which half it is.
pub const OTHER_HALF: u64 = 1;
/// What a write to the same half adds.
pub const SAME_HALF: u64 = 2;
/// Bytes of the head that mean something.
pub const HEAD_USED: usize = 40;

/// Which process a file belongs to: ids are given again, together with its begin they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its id.
    pub pid: i32,
    /// When it began, in clock ticks since the machine did.
    pub started: u64,
}

/// The first page, as far as it means something.
pub fn head(owner: Owner, places: u32) -> [u8; HEAD_USED] {
    let mut head = [0; HEAD_USED];
    let mut at = 0;
    put(&mut head, &mut at, &MAGIC);
    put(&mut head, &mut at, &VERSION.to_le_bytes());
    put(&mut head, &mut at, &places.to_le_bytes());
    put(&mut head, &mut at, &owner.pid.to_le_bytes());
    put(&mut head, &mut at, &[0; 4]);
    put(&mut head, &mut at, &owner.started.to_le_bytes());
    let sum = sum(&[head.get(..at).unwrap_or_default()]);
    put(&mut head, &mut at, &sum.to_le_bytes());
    head
}

/// What the first page of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// It is a recorder of this process.
    Of(Owner),
    /// It is a recorder of a version that is not known here.
    OtherVersion(u32),
    /// It is none, or damaged.
    Unreadable,
}

/// Reads the first page.
pub fn read_head(page: &[u8]) -> Head {
    let mut read = Reader(page);
    let fields = (|| {
        let magic = read.array::<8>()? == MAGIC;
        let version = u32::from_le_bytes(read.array()?);
        let _places = u32::from_le_bytes(read.array()?);
        let pid = i32::from_le_bytes(read.array()?);
        let _ = read.array::<4>()?;
        let started = u64::from_le_bytes(read.array()?);
        let is_whole = u64::from_le_bytes(read.array()?) == sum(&[page.get(..HEAD_USED - 8)?]);
        Some((magic, version, Owner { pid, started }, is_whole))
    })();
    match fields {
        Some((true, VERSION, owner, true)) => Head::Of(owner),
        // Damage makes no version: all of them have the sum where it is.
        Some((true, version, _, true)) if version != VERSION => Head::OtherVersion(version),
        _ => Head::Unreadable,
    }
}

/// Where a half begins.
pub fn half_at(place: u32, half: u8) -> u64 {
    HEAD as u64 + (u64::from(place) * 2 + u64::from(half & 1)) * HALF as u64
}

/// Bytes of a file with so many places.
pub fn file_size(places: u32) -> u64 {
    half_at(places, 0)
}

/// Places in a file of this size; what is cut off at its end counts as far as it is there.
pub fn places_in(bytes: u64) -> u32 {
    let places = bytes.saturating_sub(HEAD as u64).div_ceil(2 * HALF as u64);
    u32::try_from(places).unwrap_or(MOST_PLACES).min(MOST_PLACES)
}

/// The front of a half. An empty `held` says that the place is free; see `Half`.
pub fn top(sequence: u64, owner: Owner, tries: u32, held: &[u8]) -> [u8; TOP] {
    let mut top = [0; TOP];
    let mut at = 8;
    put(&mut top, &mut at, &sequence.to_le_bytes());
    put(&mut top, &mut at, &owner.started.to_le_bytes());
    put(&mut top, &mut at, &owner.pid.to_le_bytes());
    put(&mut top, &mut at, &VERSION.to_le_bytes());
    put(&mut top, &mut at, &(held.len() as u32).to_le_bytes());
    put(&mut top, &mut at, &tries.to_le_bytes());
    let sum = sum(&[top.get(8..).unwrap_or_default(), held]);
    put(&mut top, &mut 0, &sum.to_le_bytes());
    top
}

/// A half that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half<'a> {
    /// Grows with each write to the place.
    pub sequence: u64,
    /// Who wrote it.
    pub owner: Owner,
    /// How often the report of a block that was told of could not be stored; 0: it was not told of.
    pub tries: u32,
    /// What it holds; nothing for a free place.
    pub held: &'a [u8],
}

/// Reads a half; `None` where it is not whole, or of another version.
pub fn read_half(bytes: &[u8]) -> Option<Half<'_>> {
    let mut read = Reader(bytes);
    let written = u64::from_le_bytes(read.array()?);
    let sequence = u64::from_le_bytes(read.array()?);
    let started = u64::from_le_bytes(read.array()?);
    let pid = i32::from_le_bytes(read.array()?);
    let version = u32::from_le_bytes(read.array()?);
    let length = u32::from_le_bytes(read.array()?) as usize;
    let tries = u32::from_le_bytes(read.array()?);
    if version != VERSION || length > ROOM {
        return None;
    }
    let held = read.0.get(..length)?;
    let is_whole = sum(&[bytes.get(8..TOP)?, held]) == written;
    is_whole.then_some(Half { sequence, owner: Owner { pid, started }, tries, held })
}

/// Takes bytes off the front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// So many.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The same, as an array.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

fn put(to: &mut [u8], at: &mut usize, bytes: &[u8]) {
    let end = *at + bytes.len();
    if let Some(room) = to.get_mut(*at..end) {
        room.copy_from_slice(bytes);
    }
    *at = end;
}

/// FNV-1a with 64 bits over all parts.
fn sum(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { pid: 4711, started: 0x1234_5678_9abc };

    #[test]
    fn a_head_is_read_back_and_no_damage_is() {
        let head = head(OWNER, 16);
        assert_eq!(read_head(&head), Head::Of(OWNER));
        for at in 0..head.len() {
            for bit in 0..8 {
                let mut damaged = head;
                damaged[at] ^= 1 << bit;
                assert_ne!(read_head(&damaged), Head::Of(OWNER), "byte {at}, bit {bit}");
            }
            assert_eq!(read_head(&head[..at]), Head::Unreadable);
        }
        let mut newer = head;
        newer[8] = 2;
        assert_eq!(read_head(&newer), Head::Unreadable);
        let right = sum(&[&newer[..32]]).to_le_bytes();
        newer[32..].copy_from_slice(&right);
        assert_eq!(read_head(&newer), Head::OtherVersion(2));
        assert_eq!(read_head(&[0; HEAD]), Head::Unreadable);
    }

    #[test]
    fn a_half_is_read_back_and_no_damage_is() {
        let held = b"what it holds";
        let mut half = top(7, OWNER, 3, held).to_vec();
        half.extend_from_slice(held);
        half.extend_from_slice(b"an earlier, longer one");
        assert_eq!(read_half(&half), Some(Half { sequence: 7, owner: OWNER, tries: 3, held }));
        for at in 0..TOP + held.len() {
            for bit in 0..8 {
                let mut damaged = half.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(read_half(&damaged), None, "byte {at}, bit {bit}");
            }
            assert_eq!(read_half(&half[..at]), None);
        }
        assert_eq!(read_half(&top(1, OWNER, 0, b"")).map(|half| half.held.len()), Some(0));
        assert_eq!(read_half(&[0; HALF]), None);
    }

    #[test]
    fn a_file_has_the_places_that_its_size_says() {
        assert_eq!(file_size(1), 4096 + 2 * 65536);
        for places in [1, 2, 16, 256] {
            assert_eq!(places_in(file_size(places)), places);
            assert_eq!(places_in(file_size(places) - 1), places);
        }
        assert_eq!((places_in(0), places_in(4096), places_in(4097), places_in(u64::MAX)), (0, 0, 1, MOST_PLACES));
    }
}
