//! Taking the stacks of all threads, for `bc_threads_dump` and for blocks, a few milliseconds at a time.
//!
//! A thread that waits is read at the first look. Those that run are gone round by their CPU clocks, because one that is
//! caught running has a processor and answers at once, while one that has none would keep all others waiting.

use super::gate::GATE;
use super::looks::Looks;
use super::slot::{self, WATCHED};
use super::track;
use crate::sample::activity;
use crate::sample::case::Case;
use crate::sample::census;
use crate::sample::chain;
use crate::sample::doing::Doing;
use crate::sample::evidence::{INTERNAL, OtherThread, Sample};
use crate::sample::sampler::{PATIENCE_NS, Sampler, Subject};
use crate::sample::survey::{Listed, Member, Survey};
use crate::sys::clock::{Ticks, thread_cpu};
use crate::sys::counters::SAMPLES_UNANSWERED;
use crate::sys::thread;
use crate::unwind::elf::Span;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// After so long the monitor looks at its loops again.
const SLICE_NS: u64 = 5_000_000;
/// Between two looks at the clocks of threads that run.
const APART_NS: u64 = 200_000;
/// Between the two looks that tell who has a processor right now.
const GLANCE_NS: u64 = 20_000;
/// So many threads that run are waited for one by one, as long as each may take; more are not.
const FEW: usize = 4;
/// How long one of many may take that has just been seen running.
const QUICK_NS: u64 = 3_000_000;
/// How long a call that has asked for a survey has until it waits itself.
const CALLER_NS: u64 = 1_000_000_000;
/// How long the state of a block that goes on waits for the stacks of all threads.
const HELD_NS: u64 = 60_000_000;
/// The same for the end of a block, which there is no later state for.
const HELD_AT_END_NS: u64 = 420_000_000;

/// No thread has a stretch for these samples, so none ends meanwhile.
static NO_STRETCH: AtomicUsize = AtomicUsize::new(0);

/// What a survey for blocks is about.
pub struct Rounds {
    survey: &'static mut Survey,
    /// The case, by number and block.
    case: Option<(usize, u64)>,
}

impl Rounds {
    /// Nothing yet.
    pub fn new(survey: &'static mut Survey) -> Rounds {
        Rounds { survey, case: None }
    }
}

/// What came of a look at a thread.
enum Caught {
    /// All that can be had.
    Sample(Sample),
    /// It runs, or never stood still.
    Runs(Sample),
    /// The thread is gone.
    Gone,
}

impl Looks {
    /// A block is told for the first time, or as a hang: the stacks of all threads are wanted for it.
    pub(super) fn want_threads(&self, case: &mut Case) {
        if self.rounds.is_some() {
            case.wants_threads = true;
            case.held = Some(Ticks::now().plus(HELD_NS));
        }
    }

    /// A block has ended. `is_first`: nothing was told of it so far.
    pub(super) fn want_threads_at_end(&self, number: usize, case: &mut Case, is_first: bool) {
        let Some(rounds) = &self.rounds else { return };
        case.wants_threads |= is_first;
        let is_under_way = rounds.case == Some((number, case.id));
        // Who stops watching may wait for the report, and be about to end the process.
        let held_ns = if GATE.is_open() { HELD_AT_END_NS } else { HELD_NS };
        case.held = (case.wants_threads || is_under_way).then(|| Ticks::now().plus(held_ns));
    }

    /// Goes on with the blocks' surveys. `true`: there is more to do.
    pub(super) fn survey_for_blocks(&mut self) -> bool {
        let Some(mut rounds) = self.rounds.take() else { return false };
        if rounds.case.is_none() {
            self.begin_next(&mut rounds);
        }
        if let Some((number, id)) = rounds.case {
            let goes_on =
                self.is_case(number, id) && (!self.advance(rounds.survey) || self.put_in(number, id, rounds.survey));
            rounds.case = rounds.case.filter(|_| goes_on);
        }
        let goes_on = rounds.case.is_some() || self.evidence.lock().cases().iter().any(|case| case.wants_threads);
        self.rounds = Some(rounds);
        self.let_go(false);
        goes_on
    }

    /// No survey goes on: the monitor ends.
    pub(super) fn end_surveys(&mut self) {
        self.rounds = None;
        self.let_go(true);
    }

    fn is_case(&self, number: usize, id: u64) -> bool {
        self.evidence.lock().case(number).is_some_and(|case| case.id == id)
    }

    fn begin_next(&mut self, rounds: &mut Rounds) {
        let mut known = ArrayVec::<i32, { chain::MOST + 1 }>::new();
        let found = {
            let mut evidence = self.evidence.lock();
            let wanting = evidence.cases().iter().enumerate().filter(|(_, case)| case.wants_threads);
            let next = wanting.min_by_key(|(_, case)| case.order).map(|(number, _)| number);
            next.and_then(|number| {
                let case = evidence.case(number)?;
                // Those that it waits for have been looked at already.
                let others = evidence.others(case).filter_map(|(sample, _)| sample.other);
                let there = core::iter::once(case.tid).chain(others.map(|other| other.tid));
                known.extend(there.take(known.capacity()));
                let case = evidence.case_mut(number)?;
                case.wants_threads = false;
                Some((number, case.id))
            })
        };
        let Some((number, id)) = found else { return };
        self.sampler.new_stretch();
        rounds.survey.list(watched(), |tid| known.contains(&tid));
        let left = rounds.survey.listed().saturating_add(rounds.survey.beyond());
        if let Some(case) = self.evidence.lock().case_mut(number).filter(|case| case.id == id) {
            case.threads_left_out = Some(left as u32);
        }
        rounds.case = Some((number, id));
    }

    /// A round is whole: puts it in the case. `true`: there will be another.
    fn put_in(&mut self, number: usize, id: u64, survey: &mut Survey) -> bool {
        let is_over = survey.is_over();
        let mut evidence = self.evidence.lock();
        let mut put = 0;
        for (member, frames) in survey.members() {
            if evidence.case(number).is_none_or(|case| case.id != id) {
                return false;
            }
            let mut sample = member.sample;
            sample.other = Some(member.thread);
            put += u32::from(evidence.add_other(number, sample, frames));
        }
        let gone = survey.gone();
        if let Some(case) = evidence.case_mut(number).filter(|case| case.id == id) {
            let left = case.threads_left_out.unwrap_or(0).saturating_sub(put).saturating_sub(gone);
            case.threads_left_out = Some(left);
            // Told as a hang meanwhile, it waits for another survey.
            if is_over && !case.wants_threads {
                case.held = None;
            }
        }
        drop(evidence);
        if is_over {
            self.writer.ring();
        } else {
            survey.begin_round();
        }
        !is_over
    }

    /// Lets states be written whose time is over.
    fn let_go(&mut self, all: bool) {
        let now = Ticks::now();
        let mut evidence = self.evidence.lock();
        let mut any = false;
        for number in 0..evidence.cases().len() {
            let overdue = |case: &&mut Case| case.held.is_some_and(|until| all || until <= now);
            if let Some(case) = evidence.case_mut(number).filter(overdue) {
                case.held = None;
                any = true;
            }
        }
        drop(evidence);
        if any {
            self.writer.ring();
        }
    }

    /// Goes on with what a call has asked for.
    pub(super) fn survey_for_call(&mut self, survey: &mut Survey) {
        if survey.listed() == 0 {
            self.sampler.new_stretch();
            survey.list(watched(), |_| false);
        }
        self.advance(survey);
    }

    /// Goes on with a round for a short time. `true`: it is whole.
    fn advance(&mut self, survey: &mut Survey) -> bool {
        let end = Ticks::now().plus(SLICE_NS);
        while let Some(listed) = survey.take_next() {
            self.look_at_member(survey, listed);
            if Ticks::now() >= end {
                return false;
            }
        }
        let until = survey.running_until(Ticks::now());
        loop {
            let running = survey.running();
            // Who has asked is about to wait, and will as soon as it gets a processor.
            let end_of_all = if survey.awaits_caller() { until.plus(CALLER_NS) } else { until };
            if running == 0 || Ticks::now() >= end_of_all {
                SAMPLES_UNANSWERED.add(running as u64);
                survey.is_whole = true;
                return true;
            }
            self.go_round(survey, end_of_all, end);
            if Ticks::now() >= end {
                return false;
            }
            thread::nap(APART_NS);
        }
    }

    /// The first look at a thread of the list: short, whatever it does.
    fn look_at_member(&mut self, survey: &mut Survey, listed: Listed) {
        let is_monitor = listed.tid == thread::tid();
        let mut member = Member { listed, ..Member::NONE };
        member.thread = OtherThread {
            tid: listed.tid,
            name: census::name(listed.tid),
            role: listed.is_own.then_some(INTERNAL),
            is_watched: listed.slot.is_some(),
        };
        if let Some(number) = listed.slot {
            slot::slot(number).copy_name(&mut member.loop_name);
        }
        member.cpu_ns = thread_cpu(listed.tid).unwrap_or(0);
        let caught = if is_monitor { itself() } else { self.catch(&mut member, 0, true) };
        match caught {
            Caught::Sample(sample) => self.keep(survey, member, sample),
            Caught::Runs(sample) => {
                (member.sample, member.runs) = (sample, true);
                survey.add(member);
            }
            Caught::Gone => survey.lacks_one(),
        }
    }

    fn keep_at(&self, survey: &mut Survey, place: usize, mut sample: Sample) {
        self.sampler.finish(&mut sample);
        let frames = self.sampler.frames().get(..sample.frame_count as usize).unwrap_or(&[]);
        survey.keep(place, sample, frames);
    }

    fn keep(&self, survey: &mut Survey, member: Member, sample: Sample) {
        let place = survey.add(member);
        self.keep_at(survey, place, sample);
    }

    /// Looks at each thread of the round that runs and has a processor.
    fn go_round(&mut self, survey: &mut Survey, until: Ticks, end: Ticks) {
        let few = survey.running() <= FEW;
        read_clocks(survey);
        if !few {
            // Of those that have had one since the last time, most have lost it again, and some wait by now.
            thread::spin(GLANCE_NS);
        }
        for place in 0.. {
            let Some(mut member) = survey.member(place).map(|member| *member) else { return };
            if !member.runs {
                continue;
            }
            let Some(cpu_ns) = thread_cpu(member.listed.tid) else {
                survey.forget(place);
                continue;
            };
            if cpu_ns == member.cpu_ns && !member.has_moved {
                continue;
            }
            let patience_ns = match (few, cpu_ns == member.cpu_ns) {
                (true, _) => PATIENCE_NS,
                (false, false) => QUICK_NS,
                // It has no processor: it waits, or is left alone.
                (false, true) => 0,
            };
            let caught = self.catch(&mut member, patience_ns.min(until.since(Ticks::now())), !few);
            if let Some(there) = survey.member(place) {
                (there.cpu_ns, there.has_moved, there.since) = (cpu_ns, false, member.since);
            }
            match caught {
                Caught::Sample(sample) => self.keep_at(survey, place, sample),
                Caught::Runs(_) => {}
                Caught::Gone => survey.forget(place),
            }
            if Ticks::now() >= end {
                return;
            }
        }
    }

    /// Tries to get a thread's stack.
    fn catch(&mut self, member: &mut Member, patience_ns: u64, in_passing: bool) -> Caught {
        let Listed { tid, slot, .. } = member.listed;
        let track = slot.map(|number| &mut self.tracks[usize::from(number)]);
        if let (Some(track), Some(number)) = (track, slot)
            && slot::slot(number).tid.load(Relaxed) == tid
            && track.files().is_some()
        {
            let mut subject = track.subject(slot::slot(number), 0);
            (subject.stretch_word, subject.is_watched) = (&NO_STRETCH, false);
            (subject.patience_ns, subject.in_passing) = (patience_ns, in_passing);
            return attempt(&mut self.sampler, &mut subject);
        }
        let Some(files) = track::open(tid, self.terms.dumpable_window) else { return Caught::Gone };
        let mut subject = Subject {
            handle: 0,
            tid,
            files: Some(&files),
            state: None,
            stretch_word: &NO_STRETCH,
            stretch: 0,
            // Where it ends is known for loops only.
            stack: Span::default(),
            runs: &mut member.since,
            is_watched: false,
            patience_ns,
            in_passing,
        };
        attempt(&mut self.sampler, &mut subject)
    }
}

/// Reads the CPU clocks of those that run.
fn read_clocks(survey: &mut Survey) {
    for place in 0.. {
        let Some(member) = survey.member(place) else { return };
        if member.runs {
            let cpu_ns = thread_cpu(member.listed.tid).unwrap_or(member.cpu_ns);
            member.has_moved |= core::mem::replace(&mut member.cpu_ns, cpu_ns) != cpu_ns;
        }
    }
}

/// The threads of the watched loops, with their slots.
fn watched() -> impl Iterator<Item = (i32, u8)> {
    let watched = slot::used().filter(|(_, slot)| slot.phase() == WATCHED);
    watched.map(|(number, slot)| (slot.tid.load(Relaxed), number)).filter(|(tid, _)| *tid > 0)
}

fn attempt(sampler: &mut Sampler, subject: &mut Subject) -> Caught {
    let Some(sample) = sampler.attempt(subject) else { return Caught::Gone };
    let moves = sampler.takes_stacks() && sample.frame_count == 0;
    match (sample.doing, subject.files) {
        (Doing::Running, Some(files)) if moves && sampler.can_ask(files) => {
            subject.runs.note(activity::switches(files));
            Caught::Runs(sample)
        }
        (Doing::Waits(_) | Doing::WaitsForPage, _) if moves => Caught::Runs(sample),
        _ => Caught::Sample(sample),
    }
}

/// The monitor's own sample: it runs, or it would not be here.
fn itself() -> Caught {
    let mut sample = Sample::EMPTY;
    (sample.at, sample.thread_state, sample.doing) = (Ticks::now(), b'R', Doing::Running);
    Caught::Sample(sample)
}
