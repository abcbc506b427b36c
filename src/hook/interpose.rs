//! Which modules are to be interposed, and which are.
//!
//! A name stays wanted until it is given back, so that a module is found again when it is loaded later, or again. All
//! writing is done while going through the modules (`sys/loader.rs`), on the thread of a call of the program's or on the
//! keeper's (`hook/keeper.rs`). The loader's lock is taken first, the table's inside of it and for one module at a time:
//! who holds the table never waits. A module that is just being loaded is left alone until the linker has done its work.

use super::alooper;
use super::place::{self, Place, Refusal};
use super::stand_ins::{self, SETS};
use crate::report::sink::Lossy;
use crate::sys::loader::{self, Loaded, Staying};
use crate::sys::lock::Lock;
use crate::sys::memory::OwnMemory;
use crate::unwind::cache::{Blocks, Cached};
use crate::unwind::elf::Image;
use crate::{log_info, log_warn};
use arrayvec::ArrayVec;

/// Names at a time.
pub const NAMES: usize = 8;
/// Longest name.
pub const LONGEST: usize = 255;
/// So often a look goes through the modules until none is being loaded.
const TRIES: usize = 16;

type Name = ArrayVec<u8, LONGEST>;

/// What has become of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has looked.
    New,
    /// No module has it.
    NotLoaded,
    /// The module is being loaded.
    Loading,
    /// It cannot be interposed.
    Refused(Refusal),
    /// So many words lead to us.
    InPlace(usize),
    /// And a call has come through.
    Fired(usize),
}

struct Wanted {
    name: Name,
    /// As of the last whole look.
    state: State,
    told: State,
    /// What somebody going through the modules has found out about one of this name, and in which round.
    found: (u64, State),
    /// A module that was refused for what it is is not looked through again.
    barren: Option<(u64, Refusal)>,
}

struct Table {
    wanted: ArrayVec<Wanted, NAMES>,
    places: [Option<Held>; SETS],
    /// Counts the times that somebody went through the modules.
    rounds: u64,
    /// What is read of a module.
    blocks: Blocks,
}

/// A module in its place.
struct Held {
    place: Place,
    name: Name,
    /// The last time that it was there.
    round: u64,
}

static TABLE: Lock<Table> = Lock::new(Table {
    wanted: ArrayVec::new_const(),
    places: [const { None }; SETS],
    rounds: 0,
    blocks: Blocks::new(),
});

/// After fork: what another thread was in the middle of is forgotten. Its words lead to us and stay.
pub fn forget_lock() {
    if TABLE.free_after_fork() {
        let mut table = TABLE.lock();
        table.wanted.clear();
        table.places = [const { None }; SETS];
    }
}

/// A name is wanted from now on; `false`: there is no room for it.
pub fn want(name: &[u8]) -> bool {
    let mut table = TABLE.lock();
    if table.wanted.iter().any(|wanted| wanted.name.as_slice() == name) {
        return true;
    }
    let Ok(name) = Name::try_from(name) else { return false };
    let wanted = Wanted { name, state: State::New, told: State::New, found: (0, State::NotLoaded), barren: None };
    table.wanted.try_push(wanted).is_ok()
}

/// It is not any more. `false`: it was not.
pub fn give_up(name: &[u8]) -> bool {
    let mut table = TABLE.lock();
    let count = table.wanted.len();
    table.wanted.retain(|wanted| wanted.name.as_slice() != name);
    table.wanted.len() < count
}

/// No name is.
pub fn give_up_all() {
    TABLE.lock().wanted.clear();
}

/// Is any?
pub fn is_any_wanted() -> bool {
    !TABLE.lock().wanted.is_empty()
}

/// What has become of it.
pub fn state(name: &[u8]) -> Option<State> {
    TABLE.lock().wanted.iter().find(|wanted| wanted.name.as_slice() == name).map(|wanted| wanted.state)
}

/// Interposes what is wanted and loaded, and looks after what is interposed.
pub fn look() {
    let mut settled = ArrayVec::<u64, SETS>::new();
    let mut counts = None;
    let mut may_look_again = true;
    for _ in 0..TRIES {
        let pass = go_through(&settled, counts, !may_look_again);
        if pass.lacks_looper && may_look_again {
            alooper::look_again();
            may_look_again = false;
        } else if pass.loading.is_empty() {
            break;
        }
        pass.loading.iter().for_each(|base| loader::wait_for_loading(*base));
        (settled, counts) = (pass.loading, pass.counts);
    }
    tell();
}

/// Going through the modules once.
#[derive(Default)]
struct Pass {
    /// Given to it inside of the loader's lock: who comes later has a higher one.
    round: u64,
    loading: ArrayVec<u64, SETS>,
    counts: Option<(u64, u64)>,
    lacks_looper: bool,
    /// It has been looked for again.
    may_lack_looper: bool,
}

/// `settled` are modules that nobody was loading any more at a moment since the loader had these counts.
fn go_through(settled: &[u64], counts: Option<(u64, u64)>, may_lack_looper: bool) -> Pass {
    let mut pass = Pass { may_lack_looper, ..Pass::default() };
    loader::each(&mut |module| {
        pass.counts = module.counts;
        let is_settled = || settled.contains(&module.base) && (module.counts.is_none() || module.counts == counts);
        let mut table = TABLE.lock();
        table.begin(&mut pass.round);
        table.see(module, &mut pass, &is_settled);
    });
    TABLE.lock().sum_up(pass.round);
    pass
}

impl Table {
    fn begin(&mut self, round: &mut u64) {
        if *round == 0 {
            self.rounds += 1;
            *round = self.rounds;
        }
    }

    fn see(&mut self, module: &Staying, pass: &mut Pass, is_settled: &dyn Fn() -> bool) {
        self.judge(module, pass, is_settled);
        // It may be wanted by its path as well as by its file's name.
        let mut wanted = self.wanted.iter_mut().filter(|wanted| is_called(module, &wanted.name));
        if let Some(first) = wanted.next() {
            wanted.for_each(|wanted| wanted.found = first.found);
        }
    }

    fn judge(&mut self, module: &Staying, pass: &mut Pass, is_settled: &dyn Fn() -> bool) {
        let wanted = self.wanted.iter_mut().find(|wanted| is_called(module, &wanted.name));
        let held = self.places.iter_mut().flatten().find(|held| held.place.base == module.base);
        if wanted.is_none() && held.is_none() {
            return;
        }
        let mut tables = Cached::within(OwnMemory::new(), &mut self.blocks);
        tables.forget();
        let image = Image::read(&tables, module.base);
        let identity = image.map_or(0, |image| place::identity(&image, &tables));
        if let Some(held) = held.filter(|held| held.place.identity == identity) {
            held.round = held.round.max(pass.round);
            // Nobody wants one that is about to be restored, or cannot be.
            if let Some(wanted) = wanted {
                wanted.found = (pass.round, State::InPlace(held.place.words()));
                held.name = wanted.name.clone();
                // It may have been loaded anew, and not be protected yet.
                if module.protected_at == 0 || is_done(module) {
                    held.place.renew(module, &OwnMemory::new());
                }
            }
            return;
        }
        let Some(wanted) = wanted else { return };
        let barren = wanted.barren.filter(|(barren, _)| *barren == identity);
        let result = match (image, barren, self.places.iter().position(Option::is_none)) {
            (None, ..) => Err(Refusal::Unreadable),
            (_, Some((_, refusal)), _) => Err(refusal),
            _ if !is_done(module) && !is_settled() => {
                wanted.found = (pass.round, State::Loading);
                let _ = pass.loading.try_push(module.base);
                return;
            }
            (_, None, None) => Err(Refusal::Room),
            (Some(image), None, Some(set)) => {
                stand_ins::set(set).forget();
                Place::make(set, module, &image, &tables, &OwnMemory::new(), pass.may_lack_looper)
            }
        };
        match result {
            Ok(place) => {
                wanted.found = (pass.round, State::InPlace(place.words()));
                if let Some(free) = self.places.get_mut(place.set()) {
                    *free = Some(Held { place, name: wanted.name.clone(), round: pass.round });
                }
            }
            Err(refusal) => {
                wanted.found = (pass.round, State::Refused(refusal));
                pass.lacks_looper |= refusal == Refusal::NoLooper;
                if matches!(refusal, Refusal::NoImports | Refusal::Unreadable) {
                    wanted.barren = Some((identity, refusal));
                }
            }
        }
    }

    /// All modules were seen in this round.
    fn sum_up(&mut self, round: u64) {
        // What is gone has nothing to be restored.
        self.places.iter_mut().for_each(|held| drop(held.take_if(|held| held.round < round)));
        for wanted in &mut self.wanted {
            let held = || self.places.iter().flatten().filter(|held| held.name == wanted.name);
            let words = held().map(|held| held.place.words()).sum();
            let has_fired = held().any(|held| stand_ins::set(held.place.set()).has_fired());
            wanted.state = match wanted.found {
                _ if has_fired => State::Fired(words),
                _ if words > 0 => State::InPlace(words),
                (found_in, state) if found_in >= round => state,
                _ => State::NotLoaded,
            };
        }
    }
}

/// Is a module meant by a name: its whole path, or that path's last part?
fn is_called(module: &Loaded, name: &[u8]) -> bool {
    let path = module.name.to_bytes();
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    [path, last].contains(&name)
}

/// Has the linker done its work on it? It write-protects what it has written last.
fn is_done(module: &Loaded) -> bool {
    let access = place::accesses(&ArrayVec::from([module.protected_at]));
    access.first().is_some_and(|access| module.protected_at != 0 && access.read && !access.write)
}

/// Puts back what the words of these modules held: all, or those of one name but for what another name stands for, too.
pub fn restore(name: Option<&[u8]>) {
    let mut round = 0;
    let mut left = ArrayVec::<(Name, usize, bool), SETS>::new();
    loader::each(&mut |module| {
        let mut table = TABLE.lock();
        table.begin(&mut round);
        let Table { places, blocks, wanted, .. } = &mut *table;
        let is_there = |held: &&mut Option<Held>| held.as_ref().is_some_and(|held| held.place.base == module.base);
        let Some(place) = places.iter_mut().find(is_there) else { return };
        let is_wanted = || wanted.iter().any(|wanted| is_called(module, &wanted.name));
        if name.is_some_and(|name| !is_called(module, name) || is_wanted()) {
            place.iter_mut().for_each(|held| held.round = round);
            return;
        }
        let mut tables = Cached::within(OwnMemory::new(), blocks);
        tables.forget();
        let Some(image) = Image::read(&tables, module.base) else { return };
        let Some(held) = place.take_if(|held| held.place.identity == place::identity(&image, &tables)) else { return };
        let lost = held.place.restore(module, &OwnMemory::new());
        let _ = left.try_push((held.name.clone(), lost, stand_ins::set(held.place.set()).has_fired()));
        // Else they are free for another module.
        if lost > 0 {
            *place = Some(Held { round, ..held });
        }
    });
    let gone = |held: &mut Held| held.round < round && name.is_none_or(|name| held.name.as_slice() == name);
    TABLE.lock().places.iter_mut().for_each(|held| drop(held.take_if(gone)));
    for (name, lost, has_fired) in left {
        let name = Lossy(&name);
        if lost > 0 {
            log_warn!(
                "bc_module_interpose: {name}: {lost} of its words are somebody else's by now, and stay as they are"
            );
        }
        if !has_fired {
            log_warn!("bc_module_interpose: {name} was interposed and has not called a looper");
        }
    }
}

/// Says what has changed since it was said last.
fn tell() {
    while let Some((name, state)) = next_to_tell() {
        let name = Lossy(&name);
        match state {
            State::New => {}
            State::NotLoaded => {
                log_warn!("bc_module_interpose: {name} is not loaded; it is looked for while watching is on")
            }
            State::Loading => log_warn!("bc_module_interpose: {name} is still being loaded"),
            State::InPlace(words) => log_info!("bc_module_interpose: {name}: {words} words lead to the library now"),
            State::Fired(_) => log_info!("bc_module_interpose: {name}: its calls come through the library"),
            State::Refused(refusal) => log_warn!("bc_module_interpose: {name} {refusal}"),
        }
    }
}

fn next_to_tell() -> Option<(Name, State)> {
    let mut table = TABLE.lock();
    let wanted = table.wanted.iter_mut().find(|wanted| wanted.state != wanted.told)?;
    wanted.told = wanted.state;
    Some((wanted.name.clone(), wanted.state))
}
