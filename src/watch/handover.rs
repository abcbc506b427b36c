//! Where a call that wants the stacks of all threads meets the monitor, who takes them.
//!
//! Invariant: the survey of a dump is in one place at a time: free, with the call that has it, ordered, with the monitor,
//! or done. The call that has it waits while it is ordered or with the monitor, and so its own stack is that of a thread
//! that waits. The monitor keeps it for a few milliseconds at a time and looks at its loops in between.

use super::bell;
use crate::sample::survey::Survey;
use crate::sys::bell::Bell;
use crate::sys::clock::Ticks;
use crate::sys::lock::Lock;

/// See above.
pub struct Handover {
    inner: Lock<Inner>,
    /// Rung whenever it becomes free or done.
    turned: Bell,
}

struct Inner {
    free: Option<&'static mut Survey>,
    ordered: Option<&'static mut Survey>,
    done: Option<&'static mut Survey>,
    /// The call has not waited until the monitor was ready: what that has is free when it comes back.
    is_given_up: bool,
}

impl Handover {
    /// With its survey free.
    pub fn new(survey: &'static mut Survey) -> Handover {
        let inner = Inner { free: Some(survey), ordered: None, done: None, is_given_up: false };
        Handover { inner: Lock::new(inner), turned: Bell::new() }
    }

    /// The survey for a call, which gives it back by `give_back`. `None`: another one has had it for all this time.
    pub fn take(&self, patience_ns: u64) -> Option<&'static mut Survey> {
        self.wait(patience_ns, |inner| inner.free.take())
    }

    /// The call needs it no more.
    pub fn give_back(&self, survey: &'static mut Survey) {
        self.inner.lock().free = Some(survey);
        self.turned.ring();
    }

    /// Has the monitor take another round. `None`: it has not, in all this time, and the survey is the call's no more.
    pub fn ask(&self, survey: &'static mut Survey, patience_ns: u64) -> Option<&'static mut Survey> {
        self.inner.lock().ordered = Some(survey);
        bell::MONITOR.ring();
        let done = self.wait(patience_ns, |inner| inner.done.take());
        if done.is_some() {
            return done;
        }
        let mut inner = self.inner.lock();
        if let Some(done) = inner.done.take() {
            return Some(done);
        }
        match inner.ordered.take() {
            Some(survey) => inner.free = Some(survey),
            None => inner.is_given_up = true,
        }
        None
    }

    fn wait<T>(&self, patience_ns: u64, mut take: impl FnMut(&mut Inner) -> Option<T>) -> Option<T> {
        let end = Ticks::now().plus(patience_ns);
        loop {
            let heard = self.turned.heard();
            if let Some(taken) = take(&mut self.inner.lock()) {
                return Some(taken);
            }
            let left = end.since(Ticks::now());
            if left == 0 {
                return None;
            }
            self.turned.sleep(heard, Some(left));
        }
    }

    /// The monitor takes what is ordered, for a short time.
    pub(super) fn take_order(&self) -> Option<&'static mut Survey> {
        self.inner.lock().ordered.take()
    }

    /// The monitor puts it back, its round whole or not; `false`: nobody wants it any more.
    pub(super) fn put_back(&self, survey: &'static mut Survey) -> bool {
        let mut inner = self.inner.lock();
        let is_wanted = !core::mem::take(&mut inner.is_given_up);
        let is_whole = survey.is_whole;
        match (is_wanted, is_whole) {
            (false, _) => inner.free = Some(survey),
            (true, true) => inner.done = Some(survey),
            (true, false) => inner.ordered = Some(survey),
        }
        drop(inner);
        if is_whole || !is_wanted {
            self.turned.ring();
        }
        is_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::survey::{Listed, Member};

    fn handover() -> Handover {
        let survey = Survey::new(vec![Listed::default(); 2].leak(), vec![Member::NONE; 2].leak(), &mut [], 0);
        Handover::new(Box::leak(Box::new(survey)))
    }

    #[test]
    fn one_call_at_a_time() {
        let handover = handover();
        let survey = handover.take(0).unwrap();
        assert!(handover.take(1_000_000).is_none());
        handover.give_back(survey);
        assert!(handover.take(0).is_some());
    }

    #[test]
    fn a_round_comes_back_whole() {
        let handover = handover();
        std::thread::scope(|scope| {
            let survey = handover.take(0).unwrap();
            let call = scope.spawn(|| handover.ask(survey, 60_000_000_000).map(|survey| survey.is_whole));
            let mut turns = 0;
            while turns < 3 {
                if let Some(survey) = handover.take_order() {
                    turns += 1;
                    survey.is_whole = turns == 3;
                    assert!(handover.put_back(survey));
                }
            }
            assert_eq!(call.join().unwrap(), Some(true));
        });
        assert!(handover.take_order().is_none());
    }

    #[test]
    fn a_call_that_waits_no_longer_loses_nothing() {
        let handover = handover();
        // Not yet begun.
        let survey = handover.take(0).unwrap();
        assert!(handover.ask(survey, 0).is_none() && handover.take_order().is_none());
        // With the monitor.
        std::thread::scope(|scope| {
            let survey = handover.take(0).unwrap();
            let call = scope.spawn(|| handover.ask(survey, 100_000_000).is_none());
            let survey = core::iter::repeat_with(|| handover.take_order()).find_map(|order| order).unwrap();
            assert!(call.join().unwrap());
            assert!(handover.take(0).is_none());
            survey.is_whole = true;
            assert!(!handover.put_back(survey));
        });
        let survey = handover.take(0).unwrap();
        assert!(handover.ask(survey, 0).is_none() && handover.take(0).is_some());
    }
}
