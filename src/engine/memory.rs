//! The one mapping of an installation: what lies in it, planned first and then carved.

use super::settings::Settings;
use crate::abi::{bc_frame, bc_sample};
use crate::report::delivery::PARCELS;
use crate::report::dump;
use crate::report::parcel::Parcel;
use crate::report::recorder::space as recorder;
use crate::report::resolve::{COPIES, Copy};
use crate::report::store::Space;
use crate::sample::answer::Answer;
use crate::sample::case::Case;
use crate::sample::census::{self, Clock};
use crate::sample::chain;
use crate::sample::cpu::CpuTick;
use crate::sample::evidence::{OTHERS, OtherThread, Sample};
use crate::sample::named::{PLACES, Place, WAYS};
use crate::sample::sampler::Tools;
use crate::sample::strings::At;
use crate::sample::survey::{self, Listed, Member, ROUND, Survey};
use crate::sys::errno::Errno;
use crate::sys::mapping::{Mapping, Plan};
use crate::unwind::cache::Blocks;
use crate::unwind::modules::{Module, ModuleTable};
use crate::unwind::rules::Rules;
use crate::watch::token::SLOTS;
use crate::watch::track::Track;

/// Modules of the table. A large app maps some 400 libraries.
const MODULES: usize = 768;
/// Bytes for their paths and build ids.
const MODULE_TEXT: usize = 160 * MODULES;
/// Bytes for the names of frames.
const NAMES: usize = 256 * 1024;
/// A place of the index of these names for so many of their bytes.
const NAME_BYTES: usize = 64;
/// Bytes for the strings of one block.
const BLOCK_TEXT: usize = 64 * 1024;
/// Threads whose stacks a block has, when all are wanted. Two blocks have room at a time.
const ALL_THREADS: usize = 256;
/// By how much there is more room for names then.
const MORE_NAMES: usize = 4;
/// Bytes for the strings of one thread of a dump.
const PAGE_TEXT: usize = 32 * 1024;
/// Copies of names for that.
const PAGE_COPIES: usize = 256;
/// Frames that a delivered block has room for, on the average of all samples that there may be.
const USUAL_DEPTH: usize = 64;
/// Room for the installation's own structures: threads' states, cases' heads and the like.
const REST: usize = 64 * 1024;

/// The parts.
pub struct Parts {
    /// The whole, with room left for the installation's own structures.
    pub mapping: Mapping,
    /// Cases.
    pub cases: &'static mut [Case],
    /// Samples.
    pub samples: &'static mut [Sample],
    /// Their frames.
    pub pcs: &'static mut [u64],
    /// Frames of the sample that is being taken.
    pub frames: &'static mut [u64],
    /// What unwinding them needs.
    pub tools: &'static mut Tools,
    /// Where a thread answers.
    pub answer: &'static mut Answer,
    /// The monitor's tracks of the loops.
    pub tracks: &'static mut [Track; SLOTS],
    /// The monitor's tables of threads.
    pub clocks: &'static mut [Clock],
    /// The monitor's modules.
    pub monitor_modules: ModuleTable<'static>,
    /// What threads wait for their turn in when a program wants a dump.
    pub dump: &'static mut Survey,
    /// The same for blocks, when all threads are wanted with them.
    pub rounds: Option<&'static mut Survey>,
    /// What a dump is written with: frames, text, copies of names, and a buffer.
    pub page: (&'static mut [bc_frame], &'static mut [u8], &'static mut [Copy], &'static mut [u8]),
    /// Samples that are for other threads than the loops' own.
    pub others: usize,
    /// Frames that have a name.
    pub places: &'static mut [Place],
    /// What these have had to make room for.
    pub evicted: &'static mut [u32],
    /// Their names, and the index of those.
    pub names: (&'static mut [u8], &'static mut [At]),
    /// The writer's copies of names.
    pub copies: &'static mut [Copy],
    /// Parcels.
    pub parcels: [Option<&'static mut Parcel>; PARCELS],
    /// What a store needs.
    pub store: &'static mut Space,
    /// What a flight recorder needs, and the reading of others.
    pub recorder: (&'static mut recorder::Space, &'static mut recorder::Buffer),
    /// Copies of the configuration's strings.
    pub words: &'static mut [u8],
}

struct Sizes {
    cases: usize,
    samples: usize,
    /// Of these for other threads.
    others: usize,
    /// Other threads of one block.
    block_others: usize,
    all_threads: bool,
    depth: usize,
    parcel_frames: usize,
    /// How many times the usual room for names.
    names: usize,
    words: usize,
}

impl Sizes {
    fn of(settings: &Settings) -> Option<Sizes> {
        let lists = [settings.concern_modules, settings.ignore_modules];
        let words = settings.words.iter().chain(&lists).flatten().map(|word| word.count_bytes() + 1);
        let threads = if settings.all_threads { ALL_THREADS } else { 0 };
        let others = OTHERS.checked_add(2 * threads)?;
        let block_others = chain::MOST.checked_add(threads)?;
        Some(Sizes {
            // One open case a loop, and as many again that wait for the writer.
            cases: settings.max_loops.checked_mul(2)?.checked_add(8)?,
            samples: settings.samples.checked_add(others)?,
            others,
            block_others,
            all_threads: settings.all_threads,
            names: if settings.all_threads { MORE_NAMES } else { 1 },
            depth: settings.depth,
            parcel_frames: settings
                .samples
                .checked_add(block_others)?
                .checked_mul(settings.depth.min(USUAL_DEPTH))?
                .max(settings.depth),
            words: words.sum(),
        })
    }

    fn plan(&self) -> Option<usize> {
        let mut plan = Plan::new();
        plan.add::<Case>(self.cases);
        plan.add::<Sample>(self.samples);
        plan.add::<u64>(self.samples.checked_mul(self.depth)?);
        plan.add::<u64>(self.depth);
        plan.add::<Answer>(1);
        plan.add::<Tools>(1);
        plan.add::<Rules>(1);
        plan.add::<Blocks>(1);
        plan.add::<Track>(SLOTS);
        plan.add::<Clock>(2 * census::MOST);
        plan.add::<Module>(MODULES);
        plan.add::<u8>(MODULE_TEXT);
        self.plan_survey(&mut plan, survey::MOST)?;
        if self.all_threads {
            self.plan_survey(&mut plan, ALL_THREADS)?;
        }
        plan.add::<bc_frame>(self.depth);
        plan.add::<u8>(PAGE_TEXT);
        plan.add::<Copy>(PAGE_COPIES);
        plan.add::<u8>(dump::BUFFER);
        plan.add::<Place>(PLACES * self.names);
        plan.add::<u32>(PLACES * self.names / WAYS);
        plan.add::<u8>(NAMES * self.names);
        plan.add::<At>(NAMES * self.names / NAME_BYTES);
        plan.add::<Copy>(COPIES * self.names);
        for _ in 0..PARCELS {
            plan.add::<bc_sample>(self.samples);
            plan.add::<Option<OtherThread>>(self.block_others);
            plan.add::<bc_frame>(self.parcel_frames);
            plan.add::<CpuTick>(self.samples);
            plan.add::<u8>(BLOCK_TEXT * self.names);
            plan.add::<Parcel>(1);
        }
        plan.add::<Space>(1);
        plan.add::<recorder::Space>(1);
        plan.add::<recorder::Buffer>(1);
        plan.add::<u8>(self.words);
        plan.add::<u8>(REST);
        plan.bytes()
    }

    fn plan_survey(&self, plan: &mut Plan, threads: usize) -> Option<()> {
        plan.add::<Listed>(threads);
        plan.add::<Member>(ROUND);
        plan.add::<u64>(ROUND.checked_mul(self.depth)?);
        plan.add::<Survey>(1);
        Some(())
    }
}

/// Takes the mapping and carves it.
pub fn reserve(settings: &Settings) -> Result<Parts, Errno> {
    let sizes = Sizes::of(settings);
    let bytes = sizes.as_ref().and_then(Sizes::plan);
    let (Some(sizes), Some(bytes)) = (sizes, bytes) else { return Err(Errno(libc::ENOMEM)) };
    let mut mapping = Mapping::new(bytes)?;
    match carve(&mut mapping, &sizes) {
        Some(parts) => Ok(parts(mapping)),
        None => {
            give_back(mapping);
            Err(Errno(libc::ENOMEM))
        }
    }
}

#[allow(unsafe_code)]
fn give_back(mapping: Mapping) {
    // SAFETY: nothing that was carved has left this file.
    unsafe { mapping.unmap() };
}

fn carve(mapping: &mut Mapping, sizes: &Sizes) -> Option<impl FnOnce(Mapping) -> Parts + use<>> {
    let modules = |mapping: &mut Mapping| {
        let slots = mapping.fill(MODULES, Module::default)?;
        Some(ModuleTable::new(slots, mapping.carve(MODULE_TEXT)?))
    };
    let survey = |mapping: &mut Mapping, threads: usize| {
        let roll = mapping.fill(threads, Listed::default)?;
        let members = mapping.fill(ROUND, || Member::NONE)?;
        let pcs = mapping.carve(ROUND.checked_mul(sizes.depth)?)?;
        mapping.place(Survey::new(roll, members, pcs, sizes.depth))
    };
    let parcel = |mapping: &mut Mapping| {
        let samples = mapping.carve(sizes.samples)?;
        let others = mapping.fill(sizes.block_others, || None)?;
        let frames = mapping.carve(sizes.parcel_frames)?;
        let ticks = mapping.fill(sizes.samples, CpuTick::default)?;
        let text = mapping.carve(BLOCK_TEXT * sizes.names)?;
        mapping.place(Parcel::new(samples, others, frames, ticks, text))
    };
    let cases = mapping.fill(sizes.cases, || Case::FREE)?;
    let samples = mapping.fill(sizes.samples, || Sample::EMPTY)?;
    let pcs = mapping.carve(sizes.samples.checked_mul(sizes.depth)?)?;
    let frames = mapping.carve(sizes.depth)?;
    let tools = Tools::new(mapping.carve(1)?.first_mut()?, mapping.carve(1)?.first_mut()?);
    let tools = mapping.place(tools)?;
    let answer = mapping.carve::<Answer>(1)?.first_mut()?;
    let tracks = mapping.fill(SLOTS, || Track::NONE)?.first_chunk_mut()?;
    let clocks = mapping.fill(2 * census::MOST, Clock::default)?;
    let monitor_modules = modules(mapping)?;
    let dump = survey(mapping, survey::MOST)?;
    let rounds = if sizes.all_threads { Some(survey(mapping, ALL_THREADS)?) } else { None };
    let page = (
        mapping.carve(sizes.depth)?,
        mapping.carve(PAGE_TEXT)?,
        mapping.fill(PAGE_COPIES, || Copy::NONE)?,
        mapping.carve(dump::BUFFER)?,
    );
    let others = sizes.others;
    let places = mapping.fill(PLACES * sizes.names, || Place::EMPTY)?;
    let evicted = mapping.carve(PLACES * sizes.names / WAYS)?;
    let names = (mapping.carve(NAMES * sizes.names)?, mapping.carve(NAMES * sizes.names / NAME_BYTES)?);
    let copies = mapping.fill(COPIES * sizes.names, || Copy::NONE)?;
    let mut parcels = [const { None }; PARCELS];
    for place in &mut parcels {
        *place = Some(parcel(mapping)?);
    }
    let store = mapping.carve(1)?.first_mut()?;
    let recorder = (mapping.carve(1)?.first_mut()?, mapping.carve(1)?.first_mut()?);
    let words = mapping.carve(sizes.words)?;
    Some(move |mapping| Parts {
        mapping,
        cases,
        samples,
        pcs,
        frames,
        tools,
        answer,
        tracks,
        clocks,
        monitor_modules,
        dump,
        rounds,
        page,
        others,
        places,
        evicted,
        names,
        copies,
        parcels,
        store,
        recorder,
        words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allowed_size_fits_its_plan() {
        let sizes = [(1, 8, 16, false), (16, 128, 256, true), (256, 1024, 4096, false), (256, 1024, 4096, true)];
        for (max_loops, depth, samples, all_threads) in sizes {
            let settings = Settings { max_loops, depth, samples, all_threads, ..Settings::default() };
            let mut parts = reserve(&settings).unwrap();
            assert!(parts.mapping.place([0u8; REST / 2]).is_some());
            give_back(parts.mapping);
        }
    }
}
