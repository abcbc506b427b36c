//! Callbacks that are registered with a looper through us: which function and data a call of ours stands for.
//!
//! Static, because a looper may call at any time, also after uninstall. A record is named by number and generation, and
//! that name is the data which the looper hands back. A looper calls once more for a descriptor that was signalled before it
//! was removed: a free record says what it stood for until it is taken again, which those are last that were freed last. By
//! then its name stands for nothing, and the call does nothing.

use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*, fence};

/// Callbacks at a time.
pub const RECORDS: usize = 1024;

const FREE: usize = 0;
const BUSY: usize = 1;
const LIVE: usize = 2;
const PENDING: usize = 3;
/// The low two bits of `state` are one of these, the rest is the generation.
const STATE: usize = 3;
/// Records that are taken in turn, before any other is.
const ROUND: usize = 128;

struct Record {
    /// FREE → BUSY of the next generation by whoever takes it, BUSY → PENDING when the words are written (release), PENDING
    /// → LIVE when the looper has it, and from both to FREE when the callback goes. A looper may call while PENDING, but
    /// who removes the descriptor meanwhile does not mean this registration. The words are only written while BUSY, so
    /// one who finds the same life before and after reading them has read them whole.
    state: AtomicUsize,
    looper: AtomicUsize,
    fd: AtomicI32,
    callback: AtomicUsize,
    data: AtomicUsize,
}

static TABLE: [Record; RECORDS] = [const {
    Record {
        state: AtomicUsize::new(FREE),
        looper: AtomicUsize::new(0),
        fd: AtomicI32::new(0),
        callback: AtomicUsize::new(0),
        data: AtomicUsize::new(0),
    }
}; RECORDS];

/// One more than the highest record that was ever taken.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Where the search for a free one begins.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Generations, after which they begin again: as many as there is room for in a name.
const GENERATIONS: usize = usize::MAX / RECORDS + 1;

/// The name of a record's life: its number in the low ten bits, the generation above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordName(pub usize);

/// What a record holds; addresses as numbers, because they are only handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The looper.
    pub looper: usize,
    /// The descriptor.
    pub fd: i32,
    /// The program's function.
    pub callback: usize,
    /// The program's data.
    pub data: usize,
}

impl RecordName {
    fn new(number: usize, state: usize) -> RecordName {
        RecordName((state >> 2) * RECORDS + number)
    }

    fn record(self) -> Option<&'static Record> {
        TABLE.get(self.0 % RECORDS)
    }

    fn state(self, state: usize) -> usize {
        (self.0 / RECORDS) << 2 | state
    }

    /// Does a record in this state hold what the name stands for, be it free or not?
    fn is_told_in(self, state: usize) -> bool {
        [LIVE, PENDING, FREE].into_iter().any(|told| state == self.state(told))
    }
}

/// Takes a record; `None` when all are taken.
pub fn take(registration: &Registration) -> Option<RecordName> {
    let first = NEXT.fetch_add(1, Relaxed) % ROUND;
    let mut order = (first..ROUND).chain(0..first).chain(ROUND..RECORDS);
    let (number, record, state) = order.find_map(|number| {
        let record = TABLE.get(number)?;
        let state = record.state.load(Relaxed);
        let next = (((state >> 2) + 1) % GENERATIONS) << 2;
        let is_mine =
            state & STATE == FREE && record.state.compare_exchange(state, next | BUSY, Acquire, Relaxed).is_ok();
        is_mine.then_some((number, record, next))
    })?;
    // Readers that find the words changing must find the state changed first.
    fence(Release);
    record.looper.store(registration.looper, Relaxed);
    record.fd.store(registration.fd, Relaxed);
    record.callback.store(registration.callback, Relaxed);
    record.data.store(registration.data, Relaxed);
    USED.fetch_max(number + 1, AcqRel);
    record.state.store(state | PENDING, Release);
    Some(RecordName::new(number, state))
}

/// The looper has the registration.
pub fn confirm(name: RecordName) {
    if let Some(record) = name.record() {
        let _ = record.state.compare_exchange(name.state(PENDING), name.state(LIVE), AcqRel, Relaxed);
    }
}

/// What a name stands for, or stood for last.
pub fn get(name: RecordName) -> Option<Registration> {
    let record = name.record()?;
    if !name.is_told_in(record.state.load(Acquire)) {
        return None;
    }
    let registration = Registration {
        looper: record.looper.load(Relaxed),
        fd: record.fd.load(Relaxed),
        callback: record.callback.load(Relaxed),
        data: record.data.load(Relaxed),
    };
    fence(Acquire);
    // One that was never taken holds nothing.
    (name.is_told_in(record.state.load(Relaxed)) && registration.callback != 0).then_some(registration)
}

/// Frees a record, if the name still stands for it.
pub fn free(name: RecordName) {
    if let Some(record) = name.record() {
        for state in [name.state(PENDING), name.state(LIVE)] {
            let _ = record.state.compare_exchange(state, name.state(FREE), AcqRel, Relaxed);
        }
    }
}

/// The live records of a looper's descriptor, other than `except`: one, or as many as threads register it at once.
pub fn find_all(looper: usize, fd: i32, except: Option<RecordName>) -> ArrayVec<RecordName, 8> {
    let used = TABLE.iter().take(USED.load(Acquire)).enumerate();
    let names = used.filter(|(_, record)| record.fd.load(Relaxed) == fd).filter_map(|(number, record)| {
        let state = record.state.load(Acquire);
        let name = RecordName::new(number, state);
        let is_it = state & STATE == LIVE && Some(name) != except;
        let found = get(name).filter(|found| is_it && found.looper == looper && found.fd == fd);
        found.map(|_| name)
    });
    names.take(8).collect()
}

/// The looper is gone, and with it all that was registered with it.
pub fn free_all_of(looper: usize) {
    for (number, record) in TABLE.iter().take(USED.load(Acquire)).enumerate() {
        let state = record.state.load(Acquire);
        if state & STATE == LIVE && record.looper.load(Relaxed) == looper {
            let name = RecordName::new(number, state);
            if get(name).is_some_and(|found| found.looper == looper) {
                free(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn a_record_lives_once() {
        let registration = Registration { looper: 0x10, fd: 7, callback: 0x20, data: 0x30 };
        let first = take(&registration).unwrap();
        assert!(get(first).is_some() && find_all(0x10, 7, None).is_empty());
        confirm(first);
        assert_eq!(get(first), Some(registration));
        assert_eq!(find_all(0x10, 7, None).as_slice(), [first]);
        assert!(find_all(0x10, 7, Some(first)).is_empty());
        assert!(find_all(0x11, 7, None).is_empty());
        let other = Registration { data: 0x31, ..registration };
        let second = take(&other).unwrap();
        free(first);
        free(first);
        // It is not there any more, and a call that is on its way finds what it is for.
        assert_eq!((find_all(0x10, 7, None).len(), get(first), get(second)), (0, Some(registration), Some(other)));
        // Until all others have been taken in turn.
        let third = (2..=ROUND).map(|_| (take(&registration).unwrap(), get(first))).collect::<Vec<_>>();
        let (third, told) = third.split_last().unwrap();
        assert!(told.iter().all(|(name, told)| *name != first && *told == Some(registration)));
        assert_eq!((third.0.record().map(ptr::from_ref), third.1), (first.record().map(ptr::from_ref), None));
        assert_eq!((get(first), get(third.0)), (None, Some(registration)));
        let rest: Vec<RecordName> = core::iter::from_fn(|| take(&registration)).collect();
        assert_eq!(rest.len(), RECORDS - ROUND);
        rest.iter().chain(told.iter().map(|(name, _)| name)).chain(&[second, third.0]).for_each(|name| confirm(*name));
        assert!(get(second).is_some());
        free_all_of(0x10);
        assert!(find_all(0x10, 7, None).is_empty());
        assert!(take(&registration).is_some_and(|name| {
            free(name);
            true
        }));
        // The first one's last life, and the one after it.
        let last = RecordName((GENERATIONS - 1) * RECORDS);
        TABLE.first().unwrap().state.store(RecordName(last.0 - RECORDS).state(FREE), Relaxed);
        for life in [last, RecordName(0)] {
            NEXT.store(0, Relaxed);
            assert_eq!((take(&registration), get(life)), (Some(life), Some(registration)));
            confirm(life);
            assert_eq!(find_all(0x10, 7, None).as_slice(), [life]);
            free(life);
            assert_eq!((find_all(0x10, 7, None).len(), get(RecordName(life.0.wrapping_sub(RECORDS)))), (0, None));
        }
    }
}
