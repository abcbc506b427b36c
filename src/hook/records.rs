//! Callbacks that are registered with a looper through us: which function and data a call of ours stands for.
//!
//! Static, because a looper may call at any time, also after uninstall. A record is named by number and generation, and
//! that name is the data which the looper hands back: a last call for a descriptor that was removed meanwhile finds
//! another generation and does nothing, however the record is used by then.

use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*, fence};

/// Callbacks at a time.
pub const RECORDS: usize = 1024;

const FREE: usize = 0;
const BUSY: usize = 1;
const LIVE: usize = 2;
/// The low two bits of `state` are one of these, the rest is the generation.
const STATE: usize = 3;

struct Record {
    /// FREE → BUSY by whoever takes it, BUSY → LIVE when the words are written (release), LIVE → FREE of the next
    /// generation when the callback goes. The words are only written while BUSY, so one who finds the same LIVE state
    /// before and after reading them has read them whole.
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
        fd: AtomicI32::new(-1),
        callback: AtomicUsize::new(0),
        data: AtomicUsize::new(0),
    }
}; RECORDS];

/// One more than the highest record that was ever taken.
static USED: AtomicUsize = AtomicUsize::new(0);

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

    fn live_state(self) -> usize {
        (self.0 / RECORDS) << 2 | LIVE
    }
}

/// Takes a record; `None` when all are taken.
pub fn take(registration: &Registration) -> Option<RecordName> {
    let (number, record, state) = TABLE.iter().enumerate().find_map(|(number, record)| {
        let state = record.state.load(Relaxed);
        let is_mine =
            state & STATE == FREE && record.state.compare_exchange(state, state | BUSY, Acquire, Relaxed).is_ok();
        is_mine.then_some((number, record, state))
    })?;
    // Readers that find the words changing must find the state changed first.
    fence(Release);
    record.looper.store(registration.looper, Relaxed);
    record.fd.store(registration.fd, Relaxed);
    record.callback.store(registration.callback, Relaxed);
    record.data.store(registration.data, Relaxed);
    USED.fetch_max(number + 1, AcqRel);
    record.state.store(state | LIVE, Release);
    Some(RecordName::new(number, state))
}

/// What a name stands for, if it still does.
pub fn get(name: RecordName) -> Option<Registration> {
    let record = name.record()?;
    if record.state.load(Acquire) != name.live_state() {
        return None;
    }
    let registration = Registration {
        looper: record.looper.load(Relaxed),
        fd: record.fd.load(Relaxed),
        callback: record.callback.load(Relaxed),
        data: record.data.load(Relaxed),
    };
    fence(Acquire);
    (record.state.load(Relaxed) == name.live_state()).then_some(registration)
}

/// Frees a record, if the name still stands for it.
pub fn free(name: RecordName) {
    if let Some(record) = name.record() {
        let next = (name.0 / RECORDS).wrapping_add(1) << 2 | FREE;
        let _ = record.state.compare_exchange(name.live_state(), next, AcqRel, Relaxed);
    }
}

/// The live record of a looper's descriptor, other than `except`.
pub fn find(looper: usize, fd: i32, except: Option<RecordName>) -> Option<RecordName> {
    let used = TABLE.iter().take(USED.load(Acquire)).enumerate();
    used.filter(|(_, record)| record.fd.load(Relaxed) == fd).find_map(|(number, record)| {
        let state = record.state.load(Acquire);
        let name = RecordName::new(number, state);
        let is_it = state & STATE == LIVE && Some(name) != except;
        let found = get(name).filter(|found| is_it && found.looper == looper && found.fd == fd);
        found.map(|_| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lives_once() {
        let registration = Registration { looper: 0x10, fd: 7, callback: 0x20, data: 0x30 };
        let first = take(&registration).unwrap();
        assert_eq!(get(first), Some(registration));
        assert_eq!(find(0x10, 7, None), Some(first));
        assert_eq!(find(0x10, 7, Some(first)), None);
        assert_eq!(find(0x11, 7, None), None);
        let other = Registration { data: 0x31, ..registration };
        let second = take(&other).unwrap();
        free(first);
        free(first);
        assert_eq!((get(first), get(second)), (None, Some(other)));
        let third = take(&registration).unwrap();
        assert_ne!(first, third);
        assert_eq!((get(first), get(third)), (None, Some(registration)));
        let rest: Vec<RecordName> = core::iter::from_fn(|| take(&registration)).collect();
        assert_eq!(rest.len(), RECORDS - 2);
        rest.iter().chain(&[second, third]).for_each(|name| free(*name));
        assert_eq!(find(0x10, 7, None), None);
        assert!(take(&registration).is_some_and(|name| {
            free(name);
            true
        }));
    }
}
