//! The one mapping of an installation: what lies in it, planned first and then carved.

use super::settings::Settings;
use crate::abi::{bc_frame, bc_sample};
use crate::report::delivery::PARCELS;
use crate::report::parcel::Parcel;
use crate::report::recorder::space as recorder;
use crate::report::resolve::{COPIES, Copy};
use crate::report::store::Space;
use crate::sample::answer::Answer;
use crate::sample::case::Case;
use crate::sample::census::{self, Clock};
use crate::sample::chain;
use crate::sample::cpu::CpuTick;
use crate::sample::evidence::{OTHERS, Sample};
use crate::sample::named::{PLACES, Place};
use crate::sample::sampler::Tools;
use crate::sample::strings::At;
use crate::sys::errno::Errno;
use crate::sys::mapping::{Mapping, Plan};
use crate::unwind::modules::{Module, ModuleTable};
use crate::watch::token::SLOTS;
use crate::watch::track::Track;

/// Modules of the table. A large app maps some 400 libraries.
const MODULES: usize = 768;
/// Bytes for their paths and build ids.
const MODULE_TEXT: usize = 160 * MODULES;
/// Bytes for the names of frames.
const NAMES: usize = 256 * 1024;
/// Places of the index of these names.
const NAMES_INDEX: usize = NAMES / 64;
/// Bytes for the strings of one block.
const BLOCK_TEXT: usize = 64 * 1024;
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
    /// Frames that have a name.
    pub places: &'static mut [Place],
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
    depth: usize,
    parcel_frames: usize,
    words: usize,
}

impl Sizes {
    fn of(settings: &Settings) -> Option<Sizes> {
        let lists = [settings.concern_modules, settings.ignore_modules];
        let words = settings.words.iter().chain(&lists).flatten().map(|word| word.count_bytes() + 1);
        Some(Sizes {
            // One open case a loop, and as many again that wait for the writer.
            cases: settings.max_loops.checked_mul(2)?.checked_add(8)?,
            samples: settings.samples.checked_add(OTHERS)?,
            depth: settings.depth,
            parcel_frames: settings
                .samples
                .checked_add(chain::MOST)?
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
        plan.add::<Track>(SLOTS);
        plan.add::<Clock>(2 * census::MOST);
        plan.add::<Module>(MODULES);
        plan.add::<u8>(MODULE_TEXT);
        plan.add::<Place>(PLACES);
        plan.add::<u8>(NAMES);
        plan.add::<At>(NAMES_INDEX);
        plan.add::<Copy>(COPIES);
        for _ in 0..PARCELS {
            plan.add::<bc_sample>(self.samples);
            plan.add::<bc_frame>(self.parcel_frames);
            plan.add::<CpuTick>(self.samples);
            plan.add::<u8>(BLOCK_TEXT);
            plan.add::<Parcel>(1);
        }
        plan.add::<Space>(1);
        plan.add::<recorder::Space>(1);
        plan.add::<recorder::Buffer>(1);
        plan.add::<u8>(self.words);
        plan.add::<u8>(REST);
        plan.bytes()
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
    let parcel = |mapping: &mut Mapping| {
        let samples = mapping.carve(sizes.samples)?;
        let frames = mapping.carve(sizes.parcel_frames)?;
        let ticks = mapping.fill(sizes.samples, CpuTick::default)?;
        let text = mapping.carve(BLOCK_TEXT)?;
        mapping.place(Parcel::new(samples, frames, ticks, text))
    };
    let cases = mapping.fill(sizes.cases, || Case::FREE)?;
    let samples = mapping.fill(sizes.samples, || Sample::EMPTY)?;
    let pcs = mapping.carve(sizes.samples.checked_mul(sizes.depth)?)?;
    let frames = mapping.carve(sizes.depth)?;
    let tools = mapping.place(Tools::new())?;
    let answer = mapping.carve::<Answer>(1)?.first_mut()?;
    let tracks = mapping.fill(SLOTS, || Track::NONE)?.first_chunk_mut()?;
    let clocks = mapping.fill(2 * census::MOST, Clock::default)?;
    let monitor_modules = modules(mapping)?;
    let places = mapping.fill(PLACES, || Place::EMPTY)?;
    let names = (mapping.carve(NAMES)?, mapping.carve(NAMES_INDEX)?);
    let copies = mapping.fill(COPIES, || Copy::NONE)?;
    let mut parcels = [const { None }; PARCELS];
    for place in &mut parcels {
        *place = Some(parcel(mapping)?);
    }
    let store = mapping.place(Space::new())?;
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
        places,
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
        for (max_loops, depth, samples) in [(1, 8, 16), (16, 128, 256), (256, 1024, 4096)] {
            let settings = Settings { max_loops, depth, samples, ..Settings::default() };
            let mut parts = reserve(&settings).unwrap();
            assert!(parts.mapping.place([0u8; REST / 2]).is_some());
            give_back(parts.mapping);
        }
    }
}
