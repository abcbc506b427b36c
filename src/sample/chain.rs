//! Who waits for whom: from a blocked thread to the holder of its lock, to the holder of that one's, and so on.

use super::owner::Owner;

/// Holders that are followed.
pub const MOST: usize = 8;

/// See above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    tids: [i32; MOST],
    count: u8,
    /// The blocked thread waits for the first one's end, not for a lock of it.
    pub is_join: bool,
    /// The last one waits for one before it, or for the blocked thread: who that is.
    pub closes_at: Option<i32>,
}

impl Chain {
    /// No holder is known.
    pub const NONE: Chain = Chain { tids: [0; MOST], count: 0, is_join: false, closes_at: None };

    /// Follows from a thread as far as `owner_of` leads.
    pub fn follow(first: i32, mut owner_of: impl FnMut(i32) -> Option<Owner>) -> Chain {
        let mut chain = Chain::NONE;
        let mut at = first;
        while let Some(owner) = owner_of(at) {
            if owner.tid == first || chain.holders().contains(&owner.tid) {
                chain.closes_at = Some(owner.tid);
                break;
            }
            if chain.count == 0 {
                chain.is_join = owner.is_join;
            }
            let Some(place) = chain.tids.get_mut(usize::from(chain.count)) else { break };
            *place = owner.tid;
            chain.count += 1;
            at = owner.tid;
        }
        chain
    }

    /// The holders, the blocked thread's first.
    pub fn holders(&self) -> &[i32] {
        self.tids.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Those that wait for each other, from the one at which the chain closes; `blocked` is the blocked thread.
    pub fn cycle(&self, blocked: i32) -> impl Iterator<Item = i32> + '_ {
        let closes_at = self.closes_at;
        let all = core::iter::once(blocked).chain(self.holders().iter().copied());
        all.skip_while(move |tid| Some(*tid) != closes_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(pairs: &[(i32, i32)]) -> Chain {
        Chain::follow(1, |tid| {
            pairs.iter().find(|(waits, _)| *waits == tid).map(|(_, tid)| Owner { tid: *tid, is_join: false })
        })
    }

    #[test]
    fn chains() {
        assert_eq!(follow(&[]), Chain::NONE);
        let line = follow(&[(1, 2), (2, 3)]);
        assert_eq!((line.holders(), line.closes_at), (&[2, 3][..], None));
        let cycle = follow(&[(1, 2), (2, 1)]);
        assert_eq!((cycle.holders(), cycle.closes_at), (&[2][..], Some(1)));
        assert_eq!(cycle.cycle(1).collect::<Vec<_>>(), [1, 2]);
        let beside = follow(&[(1, 2), (2, 3), (3, 2)]);
        assert_eq!(beside.cycle(1).collect::<Vec<_>>(), [2, 3]);
        let own = follow(&[(1, 1)]);
        assert_eq!((own.holders(), own.cycle(1).collect::<Vec<_>>()), (&[][..], vec![1]));
        let long: Vec<_> = (1..20).map(|tid| (tid, tid + 1)).collect();
        assert_eq!(follow(&long).holders(), [2, 3, 4, 5, 6, 7, 8, 9]);
    }
}
