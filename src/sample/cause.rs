//! Why a thread was blocked: a function of a few numbers, apart from all machinery.
//!
//! Time on a processor and time in the run queue are counted by the kernel and believed. What is left is waiting, which
//! the samples split by what the thread waited for each time it was looked at.

use crate::abi::bc_cause::{self, *};

/// Causes there are.
pub const CAUSES: usize = 8;

/// By their numbers.
pub const ALL: [bc_cause; CAUSES] = [
    BC_CAUSE_UNKNOWN,
    BC_CAUSE_RUNNING,
    BC_CAUSE_STARVED,
    BC_CAUSE_LOCK,
    BC_CAUSE_IO,
    BC_CAUSE_IPC,
    BC_CAUSE_SLEEP,
    BC_CAUSE_SUSPENDED,
];

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Its duration, ns.
    pub wall_ns: u64,
    /// CPU time in it, ns.
    pub cpu_ns: u64,
    /// Time in the run queue as the kernel counts it, ns, where it does.
    pub queue_wait_ns: Option<u64>,
    /// Time without CPU time between looks that found it ready to run and not waiting in between, ns.
    pub ready_ns: u64,
    /// Looks that found it ready to run.
    pub ready_looks: u32,
    /// Time that samples stand for which found it waiting, ns, by cause.
    pub waited_ns: [u64; CAUSES],
    /// Page faults that had to wait for storage.
    pub major_faults: u64,
    /// It was stopped, frozen or suspended inside, and that time is taken off.
    pub was_suspended: bool,
}

/// What has come of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The cause with the largest share.
    pub kind: bc_cause,
    /// Shares by cause, thousandths: 1000 together, unless the block has no duration.
    pub shares: [u16; CAUSES],
    /// Time in the run queue, ns, where known.
    pub queue_wait_ns: Option<u64>,
}

impl Cause {
    /// Not known.
    pub const UNKNOWN: Cause = Cause { kind: BC_CAUSE_UNKNOWN, shares: [0; CAUSES], queue_wait_ns: None };
}

/// Judges a block.
pub fn judge(facts: &Facts) -> Cause {
    let mut parts = [0u64; CAUSES];
    let running = facts.cpu_ns.min(facts.wall_ns);
    let off = facts.wall_ns - running;
    let starved = facts.queue_wait_ns.unwrap_or(0).max(facts.ready_ns).min(off);
    let rest = off - starved;
    put(&mut parts, BC_CAUSE_RUNNING, running);
    put(&mut parts, BC_CAUSE_STARVED, starved);
    // So large that their sum is no number they never are.
    let waited_ns = facts.waited_ns.map(|part| part.min(u64::MAX / CAUSES as u64));
    let waited = waited_ns.iter().sum();
    if waited > 0 {
        for (part, waited_here) in parts.iter_mut().zip(waited_ns) {
            *part = part.saturating_add(proportion(rest, waited_here, waited));
        }
    } else if facts.major_faults > 0 {
        // Waits too short to be met by a look.
        put(&mut parts, BC_CAUSE_IO, rest);
    } else {
        // The kernel counts time in the run queue when it is over.
        put(&mut parts, if facts.ready_looks > 0 { BC_CAUSE_STARVED } else { BC_CAUSE_UNKNOWN }, rest);
    }
    let largest = |parts: &[u64; CAUSES]| {
        // What is known goes before what is not where both are as large.
        let known = ALL.iter().copied().zip(parts.iter().copied()).rev();
        known.fold((BC_CAUSE_UNKNOWN, 0), |best, part| if part.1 > best.1 { part } else { best }).0
    };
    let kind = if facts.was_suspended { BC_CAUSE_SUSPENDED } else { largest(&parts) };
    Cause { kind, shares: shares(&parts, facts.wall_ns, largest(&parts)), queue_wait_ns: facts.queue_wait_ns }
}

fn put(parts: &mut [u64; CAUSES], cause: bc_cause, part: u64) {
    if let Some(place) = parts.get_mut(cause as usize) {
        *place = place.saturating_add(part);
    }
}

fn proportion(whole: u64, part: u64, of: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(of.max(1))) as u64
}

/// Thousandths; what rounding leaves goes to the largest.
fn shares(parts: &[u64; CAUSES], wall_ns: u64, largest: bc_cause) -> [u16; CAUSES] {
    let mut shares = parts.map(|part| proportion(1000, part, wall_ns) as u16);
    let sum: u16 = shares.iter().sum();
    if let Some(place) = shares.get_mut(largest as usize).filter(|_| wall_ns > 0) {
        *place += 1000u16.saturating_sub(sum);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(parts: &[(bc_cause, u64)]) -> [u64; CAUSES] {
        let mut waited = [0; CAUSES];
        parts.iter().for_each(|(cause, part)| waited[*cause as usize] = *part);
        waited
    }

    #[test]
    fn causes() {
        let lock = waited(&[(BC_CAUSE_LOCK, 50)]);
        let mixed = waited(&[(BC_CAUSE_IO, 10), (BC_CAUSE_SLEEP, 30)]);
        #[rustfmt::skip]
        let table = [
            // wall, cpu, queue, ready, waited, faults -> kind, its share, another and its share
            (100, 98,  Some(1),  0,  waited(&[]), 0, BC_CAUSE_RUNNING, 980, BC_CAUSE_STARVED, 10),
            (100, 120, None,     0,  waited(&[]), 0, BC_CAUSE_RUNNING, 1000, BC_CAUSE_UNKNOWN, 0),
            (100, 10,  Some(85), 0,  waited(&[]), 0, BC_CAUSE_STARVED, 850, BC_CAUSE_UNKNOWN, 50),
            // Still in the queue: the kernel's count comes later.
            (100, 10,  Some(0),  90, waited(&[]), 0, BC_CAUSE_STARVED, 900, BC_CAUSE_RUNNING, 100),
            (100, 10,  None,     90, waited(&[]), 0, BC_CAUSE_STARVED, 900, BC_CAUSE_RUNNING, 100),
            (100, 1,   Some(1),  0,  lock,        0, BC_CAUSE_LOCK, 980, BC_CAUSE_RUNNING, 10),
            (100, 20,  Some(0),  0,  mixed,       0, BC_CAUSE_SLEEP, 600, BC_CAUSE_IO, 200),
            // A counter beyond what is possible.
            (100, 20,  Some(999), 0, mixed,       0, BC_CAUSE_STARVED, 800, BC_CAUSE_SLEEP, 0),
            (100, 20,  Some(0),  0,  waited(&[]), 9, BC_CAUSE_IO, 800, BC_CAUSE_RUNNING, 200),
            (100, 20,  Some(0),  0,  waited(&[]), 0, BC_CAUSE_UNKNOWN, 800, BC_CAUSE_RUNNING, 200),
            (100, 50,  Some(0),  0,  waited(&[]), 0, BC_CAUSE_RUNNING, 500, BC_CAUSE_UNKNOWN, 500),
            (0,   0,   None,     0,  waited(&[]), 0, BC_CAUSE_UNKNOWN, 0, BC_CAUSE_RUNNING, 0),
            (3,   1,   Some(1),  0,  waited(&[(BC_CAUSE_IPC, 1)]), 0, BC_CAUSE_IPC, 334, BC_CAUSE_RUNNING, 333),
        ];
        for (row, facts) in table.into_iter().enumerate() {
            let (wall_ns, cpu_ns, queue_wait_ns, ready_ns, waited_ns, major_faults, kind, share, other, others) = facts;
            let facts = Facts { wall_ns, cpu_ns, queue_wait_ns, ready_ns, waited_ns, major_faults, ..Facts::default() };
            let cause = judge(&facts);
            let found = (cause.kind, cause.shares[kind as usize], cause.shares[other as usize]);
            assert_eq!(found, (kind, share, others), "row {row}: {cause:?}");
            let ready = judge(&Facts { ready_looks: 1, ..facts });
            let unknown = cause.shares[BC_CAUSE_UNKNOWN as usize];
            assert_eq!(ready.shares[BC_CAUSE_STARVED as usize], unknown + cause.shares[BC_CAUSE_STARVED as usize]);
            let suspended = judge(&Facts { was_suspended: true, ..facts });
            assert_eq!((suspended.kind, suspended.shares), (BC_CAUSE_SUSPENDED, cause.shares), "row {row}");
        }
    }

    #[test]
    fn shares_always_sum_up() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |bits: u32| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed >> (64 - bits)
        };
        for _ in 0..100_000 {
            let bits = next(6).max(1) as u32;
            let facts = Facts {
                wall_ns: next(bits).max(1),
                cpu_ns: next(bits),
                queue_wait_ns: (next(1) == 1).then(|| next(bits)),
                ready_ns: next(bits),
                waited_ns: core::array::from_fn(|_| if next(1) == 1 { next(bits) } else { 0 }),
                major_faults: next(1),
                ready_looks: next(1) as u32,
                was_suspended: false,
            };
            let cause = judge(&facts);
            assert_eq!(cause.shares.iter().map(|share| u32::from(*share)).sum::<u32>(), 1000, "{facts:?}");
            let most = cause.shares.iter().max().unwrap();
            assert!(most - cause.shares[cause.kind as usize] <= 8, "{cause:?} of {facts:?}");
        }
    }
}
