//! The queue of parcels from the writer to the reporter.
//!
//! Each parcel is in one place at a time: free, with the writer, queued, or with the reporter. One always stays free or
//! with the writer, so that reports are written however long a listener takes.

use super::parcel::Parcel;
use crate::sys::bell::Bell;
use crate::sys::counters::LISTENER_OVERRUNS;
use crate::sys::lock::Lock;
use core::sync::atomic::AtomicBool;

/// Parcels of an installation.
pub const PARCELS: usize = 8;

/// See above.
pub struct Delivery {
    inner: Lock<Inner>,
    /// Wakes the reporter.
    pub reporter: Bell,
    /// Rung whenever something has been written or delivered: who waits for that sleeps here.
    pub progress: Bell,
    /// The writer has put something off that belongs to a block which it has dealt with.
    pub owes: AtomicBool,
    /// Recorders of dead processes are to be looked for, or there may be more in them.
    pub recovers: AtomicBool,
    /// The writer may be about to take a block out of one. Set before `recovers` is read, both in one order for all: who
    /// has cleared that and then finds this cleared knows that nothing more is posted.
    pub is_recovering: AtomicBool,
    /// Ended blocks wait for the listeners in the evidence, because the queue was full: the writer is to be woken when there
    /// is room. Set before the look for room, which takes the lock, and read after the lock that makes room: one of the two
    /// sees the other.
    pub waits: AtomicBool,
}

struct Inner {
    free: [Option<&'static mut Parcel>; PARCELS],
    queue: [Option<&'static mut Parcel>; PARCELS],
    /// Order of the block that is with the reporter. One of an earlier process has none, and comes before all: 0.
    delivering: Option<u64>,
}

impl Delivery {
    /// All parcels are free.
    pub fn new(free: [Option<&'static mut Parcel>; PARCELS]) -> Delivery {
        let inner = Inner { free, queue: [const { None }; PARCELS], delivering: None };
        Delivery {
            inner: Lock::new(inner),
            reporter: Bell::new(),
            progress: Bell::new(),
            owes: AtomicBool::new(false),
            recovers: AtomicBool::new(false),
            is_recovering: AtomicBool::new(false),
            waits: AtomicBool::new(false),
        }
    }

    /// A parcel for the writer.
    pub fn empty(&self) -> Option<&'static mut Parcel> {
        self.inner.lock().free.iter_mut().find_map(Option::take)
    }

    /// Puts a parcel back that is not to be delivered.
    pub fn give_back(&self, parcel: &'static mut Parcel) {
        put(&mut self.inner.lock().free, parcel);
    }

    /// Queues a parcel. When the queue is full, states of blocks that go on give way first. `false`: it is an end that there
    /// is no room for.
    pub fn post(&self, parcel: &'static mut Parcel) -> bool {
        let mut inner = self.inner.lock();
        let is_end = parcel.is_last();
        if inner.free.iter().all(Option::is_none) {
            LISTENER_OVERRUNS.add_one();
            let gives_way =
                |parcel: &Option<&'static mut Parcel>| parcel.as_ref().is_some_and(|parcel| !parcel.is_last());
            let weaker = inner.queue.iter().position(gives_way).filter(|_| is_end);
            match weaker.and_then(|place| remove(&mut inner.queue, place)) {
                Some(weaker) => put(&mut inner.free, weaker),
                None => {
                    put(&mut inner.free, parcel);
                    return !is_end;
                }
            }
        }
        put(&mut inner.queue, parcel);
        drop(inner);
        self.reporter.ring();
        true
    }

    /// Would an end find room?
    pub fn has_room(&self) -> bool {
        self.inner.lock().free.iter().flatten().count() > 1
    }

    /// The oldest parcel, for the reporter, which gives it back by `delivered`.
    pub fn next(&self) -> Option<&'static mut Parcel> {
        let mut inner = self.inner.lock();
        let parcel = remove(&mut inner.queue, 0)?;
        inner.delivering = Some(parcel.case.order);
        Some(parcel)
    }

    /// The reporter is done with a parcel.
    pub fn delivered(&self, parcel: &'static mut Parcel) {
        let mut inner = self.inner.lock();
        inner.delivering = None;
        put(&mut inner.free, parcel);
        drop(inner);
        self.progress.ring();
    }

    /// Is any block up to this order queued or with the reporter?
    pub fn holds_up_to(&self, order: u64) -> bool {
        let inner = self.inner.lock();
        let queued = inner.queue.iter().flatten().any(|parcel| parcel.case.order <= order);
        queued || inner.delivering.is_some_and(|delivering| delivering <= order)
    }
}

fn put(places: &mut [Option<&'static mut Parcel>], parcel: &'static mut Parcel) {
    // There are as many places as parcels.
    if let Some(place) = places.iter_mut().find(|place| place.is_none()) {
        *place = Some(parcel);
    }
}

/// Takes one out and closes the gap.
fn remove(places: &mut [Option<&'static mut Parcel>], number: usize) -> Option<&'static mut Parcel> {
    let removed = places.get_mut(number)?.take();
    places.get_mut(number..)?.rotate_left(1);
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::bc_block_state::{self, BC_BLOCK_ENDED, BC_BLOCK_ONGOING};

    fn delivery() -> Delivery {
        Delivery::new(core::array::from_fn(|_| {
            Some(Box::leak(Box::new(Parcel::new(&mut [], &mut [], &mut [], &mut [], &mut []))))
        }))
    }

    fn post(delivery: &Delivery, order: u64, state: bc_block_state) -> bool {
        let parcel = delivery.empty().expect("the writer always has one");
        (parcel.case.order, parcel.state) = (order, state);
        delivery.post(parcel)
    }

    #[test]
    fn the_end_of_a_block_pushes_out_what_goes_on() {
        let delivery = delivery();
        assert!(post(&delivery, 1, BC_BLOCK_ENDED) && post(&delivery, 2, BC_BLOCK_ONGOING));
        (3..9).for_each(|order| assert!(post(&delivery, order, BC_BLOCK_ENDED)));
        (9..100).for_each(|order| assert!(!post(&delivery, order, BC_BLOCK_ENDED) && !delivery.has_room()));
        let orders: Vec<u64> = core::iter::from_fn(|| {
            let parcel = delivery.next()?;
            let order = parcel.case.order;
            assert!(delivery.holds_up_to(order) && !delivery.holds_up_to(order - 1));
            delivery.delivered(parcel);
            Some(order)
        })
        .collect();
        assert_eq!(orders, [1, 3, 4, 5, 6, 7, 8]);
        assert!(!delivery.holds_up_to(u64::MAX));
    }

    #[test]
    fn what_goes_on_never_pushes_anything_out() {
        let delivery = delivery();
        (1..100).for_each(|order| assert!(post(&delivery, order, BC_BLOCK_ONGOING)));
        let first = delivery.next().unwrap();
        assert_eq!(first.case.order, 1);
    }
}
