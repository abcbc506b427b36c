//! A survey: a stack of each thread of the process, taken by the monitor in rounds of a few threads, in order.
//!
//! A round is whole before the next one begins, so that the watched threads come first although one that runs is waited
//! for and one that waits is not.

use super::case::NAME;
use super::census;
use super::evidence::{OtherThread, Sample};
use super::sampler::{PATIENCE_NS, Runs};
use super::short::Short;
use crate::sys::clock::Ticks;
use crate::sys::own_threads;
use arrayvec::ArrayVec;

/// Threads that are listed; what a process has beyond is counted.
pub const MOST: usize = 1024;
/// Threads of a round.
pub const ROUND: usize = 32;
/// What all threads that run may take together until they have answered.
const RUNNING_NS: u64 = 350_000_000;

/// A thread that is to be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub tid: i32,
    /// The slot of its loop, if it is watched.
    pub slot: Option<u8>,
    /// It is the library's own.
    pub is_own: bool,
}

/// A thread of a round.
#[derive(Clone, Copy)]
pub struct Member {
    /// Which one.
    pub listed: Listed,
    /// Whose stack it is.
    pub thread: OtherThread,
    /// Its loop's name, ending in a NUL; empty if it is not watched.
    pub loop_name: [u8; NAME + 1],
    /// Its sample.
    pub sample: Sample,
    /// It runs, and has not been caught yet.
    pub runs: bool,
    /// How long it does.
    pub since: Runs,
    /// Its CPU clock at the last look.
    pub cpu_ns: u64,
    /// It has run since it was last tried.
    pub has_moved: bool,
}

impl Member {
    /// Nobody.
    pub const NONE: Member = Member {
        listed: Listed { tid: 0, slot: None, is_own: false },
        thread: OtherThread { tid: 0, name: Short::EMPTY, role: None, is_watched: false },
        loop_name: [0; NAME + 1],
        sample: Sample::EMPTY,
        runs: false,
        since: Runs::UNKNOWN,
        cpu_ns: 0,
        has_moved: false,
    };
}

/// See above. With one party at a time: who has asked for it, or the monitor.
pub struct Survey {
    roll: &'static mut [Listed],
    listed: usize,
    next: usize,
    beyond: usize,
    gone: u32,
    members: &'static mut [Member],
    count: usize,
    pcs: &'static mut [u64],
    depth: usize,
    /// Until when threads of this round that run are waited for; `None` before the round has all its members.
    running_until: Option<Ticks>,
    /// The round is whole.
    pub is_whole: bool,
    /// Signals that are not to be taken for it.
    pub avoid: u64,
    /// The thread that has asked for it, 0 for none.
    caller: i32,
}

impl Survey {
    /// Of nothing. `pcs` has `depth` places for each of `members`.
    pub fn new(
        roll: &'static mut [Listed],
        members: &'static mut [Member],
        pcs: &'static mut [u64],
        depth: usize,
    ) -> Survey {
        Survey {
            roll,
            listed: 0,
            next: 0,
            beyond: 0,
            gone: 0,
            members,
            count: 0,
            pcs,
            depth,
            running_until: None,
            is_whole: false,
            avoid: 0,
            caller: 0,
        }
    }

    /// Begins anew for a call of this thread: nothing is listed.
    pub fn begin(&mut self, caller: i32, avoid: u64) {
        (self.listed, self.caller, self.avoid) = (0, caller, avoid);
        self.begin_round();
    }

    /// Lists the threads of the process: first `watched`, of each its thread and slot, then the calling one, last the
    /// library's own. Leaves out what `skip` says.
    pub fn list(&mut self, watched: impl Iterator<Item = (i32, u8)>, skip: impl Fn(i32) -> bool) {
        (self.listed, self.next, self.beyond) = (0, 0, 0);
        self.begin_round();
        for (tid, slot) in watched {
            self.put(Listed { tid, slot: Some(slot), is_own: false }, &skip);
        }
        // However many there are, there is room for it.
        if self.caller != 0 && !own_threads::is_own(self.caller) {
            self.put(Listed { tid: self.caller, slot: None, is_own: false }, &skip);
        }
        let mut own = ArrayVec::<i32, 8>::new();
        census::each_tid(&mut |tid| {
            let is_own = own_threads::is_own(tid) && own.try_push(tid).is_ok();
            if !is_own {
                self.put(Listed { tid, slot: None, is_own: false }, &skip);
            }
            true
        });
        for tid in own {
            self.put(Listed { tid, slot: None, is_own: true }, &skip);
        }
    }

    fn put(&mut self, listed: Listed, skip: impl Fn(i32) -> bool) {
        let is_there = |there: &Listed| there.tid == listed.tid;
        if skip(listed.tid) || self.roll.iter().take(self.listed).any(is_there) {
            return;
        }
        match self.roll.get_mut(self.listed) {
            Some(place) => {
                *place = listed;
                self.listed += 1;
            }
            None => self.beyond += 1,
        }
    }

    /// Threads that were listed.
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// Threads of the process for which there was no room on the list.
    pub fn beyond(&self) -> usize {
        self.beyond
    }

    /// All that were listed have been looked at.
    pub fn is_over(&self) -> bool {
        self.is_whole && self.next >= self.listed
    }

    /// Another round, whose members are the next ones of the list.
    pub fn begin_round(&mut self) {
        (self.count, self.gone, self.running_until, self.is_whole) = (0, 0, None, false);
    }

    /// The next thread of the list, while the round has room.
    pub fn take_next(&mut self) -> Option<Listed> {
        let next = self.roll.get(self.next).filter(|_| self.next < self.listed && self.count < self.members.len())?;
        self.next += 1;
        Some(*next)
    }

    /// Adds one to the round. Its frames are taken by `keep`.
    pub fn add(&mut self, member: Member) -> usize {
        let place = self.count;
        if let Some(to) = self.members.get_mut(place) {
            *to = member;
            self.count += 1;
        }
        place
    }

    /// The sample of a member, which is through with that.
    pub fn keep(&mut self, place: usize, mut sample: Sample, frames: &[u64]) {
        let Some(member) = self.members.get_mut(place) else { return };
        let room = self.pcs.get_mut(place.saturating_mul(self.depth)..).and_then(|rest| rest.get_mut(..self.depth));
        let kept = room.map_or(0, |room| room.iter_mut().zip(frames).map(|(to, from)| *to = *from).count());
        sample.frame_count = kept as u32;
        (member.sample, member.runs) = (sample, false);
    }

    /// A thread of the list was gone.
    pub fn lacks_one(&mut self) {
        self.gone += 1;
    }

    /// How many of the round were gone.
    pub fn gone(&self) -> u32 {
        self.gone
    }

    /// A member that has gone.
    pub fn forget(&mut self, place: usize) {
        self.gone += 1;
        self.members.iter_mut().skip(place).take(1).for_each(|member| *member = Member::NONE);
    }

    /// A member.
    pub fn member(&mut self, place: usize) -> Option<&mut Member> {
        self.members.get_mut(..self.count)?.get_mut(place)
    }

    /// How many of the round run and have not been caught.
    pub fn running(&self) -> usize {
        self.members.iter().take(self.count).filter(|member| member.runs).count()
    }

    /// The calling thread is one of them: it does not wait yet.
    pub fn awaits_caller(&self) -> bool {
        let mut running = self.members.iter().take(self.count).filter(|member| member.runs);
        self.caller != 0 && running.any(|member| member.listed.tid == self.caller)
    }

    /// Until when these are waited for. Each has as long as any thread that is asked, and all together not too long.
    pub fn running_until(&mut self, now: Ticks) -> Ticks {
        let part = RUNNING_NS.saturating_mul(self.count as u64) / (self.listed as u64).max(1);
        let each = PATIENCE_NS.saturating_mul(self.running() as u64);
        *self.running_until.get_or_insert(now.plus(each.min(part.max(PATIENCE_NS))))
    }

    /// The round's threads with their frames, in order.
    pub fn members(&self) -> impl Iterator<Item = (&Member, &[u64])> {
        let numbered = self.members.iter().take(self.count).enumerate();
        numbered.filter(|(_, member)| member.listed.tid != 0).map(|(place, member)| {
            let frames = self.pcs.get(place.saturating_mul(self.depth)..).unwrap_or(&[]);
            (member, frames.get(..member.sample.frame_count as usize).unwrap_or(&[]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread;

    fn survey(listed: usize) -> Survey {
        let (roll, members) = (vec![Listed::default(); listed].leak(), vec![Member::NONE; 2].leak());
        Survey::new(roll, members, vec![0; 8].leak(), 4)
    }

    fn tids(survey: &mut Survey) -> Vec<i32> {
        let mut tids = vec![];
        while !survey.is_over() {
            survey.begin_round();
            while let Some(listed) = survey.take_next() {
                tids.push(listed.tid);
                survey.add(Member { listed, ..Member::NONE });
            }
            survey.is_whole = true;
        }
        tids
    }

    #[test]
    fn the_watched_come_first_and_nobody_twice() {
        let own = thread::tid();
        let mut survey = survey(MOST);
        survey.list([(own, 3), (own, 4)].into_iter(), |_| false);
        let (listed, beyond) = (survey.listed(), survey.beyond());
        let tids = tids(&mut survey);
        assert_eq!((tids[0], tids.len(), beyond), (own, listed, 0));
        let mut sorted = tids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), tids.len());
        // The test's main thread waits for this one.
        assert!(tids.contains(&thread::pid()) && tids.len() >= 2);
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut survey = survey(1);
        survey.list([(1, 3), (2, 4), (3, 5)].into_iter(), |tid| tid == 1 || tid > 3);
        assert_eq!((survey.listed(), survey.beyond()), (1, 1));
        assert_eq!(tids(&mut survey), [2]);
    }

    #[test]
    fn each_member_has_its_own_frames() {
        let mut survey = survey(3);
        survey.list([(1, 0), (2, 1), (3, 2)].into_iter(), |tid| tid > 3);
        survey.begin_round();
        while let Some(listed) = survey.take_next() {
            let place = survey.add(Member { listed, runs: true, ..Member::NONE });
            let frames = [listed.tid as u64; 6];
            survey.keep(place, Sample::EMPTY, &frames[..5 + place]);
        }
        let members: Vec<_> = survey.members().map(|(member, frames)| (member.listed.tid, frames.to_vec())).collect();
        assert_eq!(members, [(1, vec![1; 4]), (2, vec![2; 4])]);
        assert_eq!(survey.running(), 0);
        survey.forget(0);
        assert_eq!(survey.members().count(), 1);
    }

    #[test]
    fn threads_that_run_are_waited_for_by_their_number() {
        let mut survey = survey(3);
        survey.list([(1, 0), (2, 1), (3, 2)].into_iter(), |tid| tid > 3);
        survey.begin_round();
        let calling = Listed { tid: 1, ..Listed::default() };
        let place = survey.add(Member { listed: calling, runs: true, ..Member::NONE });
        survey.add(Member { runs: true, ..Member::NONE });
        assert!(!survey.awaits_caller());
        survey.caller = 1;
        assert!(survey.awaits_caller());
        assert_eq!(survey.running_until(Ticks(5)), Ticks(5 + 2 * PATIENCE_NS));
        assert_eq!(survey.running_until(Ticks(7)), Ticks(5 + 2 * PATIENCE_NS));
        survey.keep(place, Sample::EMPTY, &[]);
        assert!(!survey.awaits_caller());
    }
}
