//! Which threads of the process have used the processors: CPU clocks of all, then and now.
//!
//! Two tables are kept, so that a block that began while another one goes on does not take that one's begin away.

use super::account::{TOP, TopThread};
use super::short::Short;
use crate::sys::clock::{Ticks, thread_cpu};
use crate::sys::directory::Entries;
use crate::sys::files;
use crate::sys::procfs::thread_name;

/// Threads that are looked at; what a process has beyond is left out.
pub const MOST: usize = 512;
/// A table is not made anew more often than this, which bounds what it costs.
const APART_NS: u64 = 20_000_000;
/// A shorter time says nothing.
const SHORTEST_NS: u64 = 1_000_000;

/// The CPU clock of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    tid: i32,
    cpu_ns: u64,
}

struct Table {
    at: Ticks,
    used: usize,
    clocks: &'static mut [Clock],
}

/// See above.
pub struct Census([Table; 2]);

impl Census {
    /// With memory for twice `MOST` threads.
    pub fn new(clocks: &'static mut [Clock]) -> Census {
        let (one, two) = clocks.split_at_mut(clocks.len() / 2);
        Census([one, two].map(|clocks| Table { at: Ticks(0), used: 0, clocks }))
    }

    /// A stretch is late: a block that comes of it is compared with now.
    pub fn begin(&mut self, now: Ticks) {
        let [older, newer] = &mut self.0;
        if now.since(newer.at) < APART_NS {
            return;
        }
        core::mem::swap(older, newer);
        (newer.at, newer.used) = (now, 0);
        each_thread(&mut |tid, cpu_ns| {
            let Some(place) = newer.clocks.get_mut(newer.used) else { return false };
            *place = Clock { tid, cpu_ns };
            newer.used += 1;
            true
        });
    }

    /// The busiest threads since the begin of a block, as near as it is known.
    pub fn busiest(&self, from: Ticks, now: Ticks) -> [Option<TopThread>; TOP] {
        let mut top = [None; TOP];
        let known = self.0.iter().filter(|table| table.at != Ticks(0) && now.since(table.at) >= SHORTEST_NS);
        let Some(table) = known.min_by_key(|table| table.at.0.abs_diff(from.0)) else { return top };
        let clocks = table.clocks.get(..table.used).unwrap_or(&[]);
        let (mut next, mut seen) = (0, 0);
        each_thread(&mut |tid, cpu_ns| {
            // The kernel lists threads in the same order each time.
            let rest = clocks.get(next..).unwrap_or(&[]);
            let before = rest.iter().position(|clock| clock.tid == tid);
            next = before.map_or(next, |before| next + before + 1);
            // One that is new began at nothing.
            let before_ns = before.and_then(|before| rest.get(before)).map_or(0, |clock| clock.cpu_ns);
            let used_ns = cpu_ns.saturating_sub(before_ns).min(now.since(table.at));
            insert(&mut top, tid, load(used_ns, now.since(table.at)));
            seen += 1;
            seen < MOST
        });
        for thread in top.iter_mut().flatten() {
            thread.name = name(thread.tid);
        }
        top
    }
}

/// The name of a thread of this process.
pub fn name(tid: i32) -> Short<15> {
    let mut text = [0; 32];
    thread_name(tid, &mut text).map_or(Short::EMPTY, Short::end_of)
}

/// Hundredths of a percent of one processor.
fn load(used_ns: u64, wall_ns: u64) -> u32 {
    // In microseconds, so that the product does not overflow.
    ((used_ns / 1000).saturating_mul(10_000) / (wall_ns / 1000).max(1)).min(10_000) as u32
}

/// Keeps the list sorted, busiest first.
fn insert(top: &mut [Option<TopThread>; TOP], tid: i32, load: u32) {
    let mut moving = Some(TopThread { tid, name: Short::EMPTY, load }).filter(|thread| thread.load > 0);
    let mut is_in = false;
    for place in top {
        is_in |= moving.is_some_and(|moving| place.is_none_or(|there| moving.load > there.load));
        if is_in {
            // Whatever stood here moves on.
            core::mem::swap(place, &mut moving);
        }
    }
}

/// Calls `visit` with the CPU clock of each thread of the process until it says no.
fn each_thread(visit: &mut dyn FnMut(i32, u64) -> bool) {
    each_tid(&mut |tid| thread_cpu(tid).is_none_or(|cpu_ns| visit(tid, cpu_ns)));
}

/// Calls `visit` with each thread of the process until it says no.
pub fn each_tid(visit: &mut dyn FnMut(i32) -> bool) {
    let mut names = [0; 2048];
    let Ok(directory) = files::open_directory(c"/proc/self/task") else { return };
    while let Ok(filled @ 1..) = files::read_directory(&directory, &mut names) {
        for entry in Entries(names.get(..filled).unwrap_or(&[])) {
            let Some(tid) = entry.name.to_str().ok().and_then(|name| name.parse().ok()) else { continue };
            if !visit(tid) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread;

    #[test]
    fn the_busiest_come_first() {
        let mut top = [None; TOP];
        for (tid, load) in [(1, 5), (2, 0), (3, 9), (4, 7), (5, 7), (6, 1), (7, 8), (8, 2)] {
            insert(&mut top, tid, load);
        }
        let order: Vec<_> = top.iter().flatten().map(|thread| (thread.tid, thread.load)).collect();
        assert_eq!(order, [(3, 9), (7, 8), (4, 7), (5, 7), (1, 5)]);
    }

    #[test]
    fn a_thread_that_spins_is_seen() {
        let mut census = Census::new(vec![Clock::default(); 2 * MOST].leak());
        let from = Ticks::now();
        assert_eq!(census.busiest(from, from), [None; TOP]);
        census.begin(from);
        let tid = std::thread::Builder::new()
            .name("spinner".into())
            .spawn(move || {
                while Ticks::now().since(from) < 100_000_000 {}
                let tid = thread::tid();
                let top = census.busiest(from, Ticks::now());
                (tid, top)
            })
            .unwrap()
            .join()
            .unwrap();
        let (tid, top) = tid;
        let found = top.iter().flatten().find(|thread| thread.tid == tid).unwrap();
        assert_eq!(found.name.bytes(), b"spinner");
        assert!(found.load > 0 && found.load <= 10_000, "{found:?}");
    }
}
