//! The program's listeners: one that is set, and some that are added beside it.

use crate::abi::bc_block_listener;
use crate::sys::callback::Callback;
use crate::sys::lock::Lock;
use core::ffi::c_void;

/// Listeners that can be added beside the one that is set.
pub const ADDED: usize = 8;

/// The one that `set` replaces; it is the first to be told.
static SET: Callback<bc_block_listener> = Callback::new();
/// Places of added ones, in no order.
static PLACES: [Callback<bc_block_listener>; ADDED] = [const { Callback::new() }; ADDED];
/// Who is where. Held only while it is read or changed, never while a listener runs or is waited for.
static BOOK: Lock<Book> = Lock::new(Book { set: None, entries: [None; ADDED], last: 0 });

/// The function and its user data, as numbers: they are only compared.
type Name = (usize, usize);

struct Book {
    /// Who is in `SET`.
    set: Option<Name>,
    /// One for each place.
    entries: [Option<Entry>; ADDED],
    /// The number that was given last.
    last: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Numbers in the order of adding.
    number: u64,
    name: Name,
}

/// Why one could not be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

fn name(listener: bc_block_listener, user_data: *mut c_void) -> Name {
    (listener.map_or(0, |listener| listener as usize), user_data.addr())
}

/// Sets the one, in the place of the one before, which is waited for. The added ones stay.
pub fn set(listener: bc_block_listener, user_data: *mut c_void) {
    let generation = {
        let mut book = BOOK.lock();
        book.set = listener.map(|_| name(listener, user_data));
        SET.put(listener, user_data)
    };
    SET.wait_until(generation);
}

/// Adds one, if it is not there already.
pub fn add(listener: bc_block_listener, user_data: *mut c_void) -> Result<(), Full> {
    let name = name(listener, user_data);
    let mut book = BOOK.lock();
    if book.entries.iter().flatten().any(|entry| entry.name == name) {
        return Ok(());
    }
    let number = book.last + 1;
    let free = book.entries.iter_mut().zip(&PLACES).find(|(entry, _)| entry.is_none());
    let Some((entry, place)) = free else { return Err(Full) };
    *entry = Some(Entry { number, name });
    book.last = number;
    // Who has left this place just now may still run and be waited for, which has nothing to do with the new one.
    place.put(listener, user_data);
    Ok(())
}

/// Removes one, whether it was added or set, and waits until it runs on no other thread. `false`: it was not there.
pub fn remove(listener: bc_block_listener, user_data: *mut c_void) -> bool {
    let name = name(listener, user_data);
    let nobody = |place: &Callback<bc_block_listener>| place.put(None, core::ptr::null_mut());
    let (was_set, was_added) = {
        let mut book = BOOK.lock();
        let was_set = book.set.take_if(|set| *set == name).map(|_| nobody(&SET));
        let mut places = book.entries.iter_mut().zip(&PLACES);
        let found = places.find(|(entry, _)| entry.is_some_and(|entry| entry.name == name));
        let was_added = found.map(|(entry, place)| {
            *entry = None;
            (place, nobody(place))
        });
        (was_set, was_added)
    };
    if let Some(generation) = was_set {
        SET.wait_until(generation);
    }
    if let Some((place, generation)) = was_added {
        place.wait_until(generation);
    }
    was_set.is_some() || was_added.is_some()
}

/// Removes all and waits for them.
pub fn clear() {
    *BOOK.lock() = Book { set: None, entries: [None; ADDED], last: 0 };
    for place in all() {
        place.replace(None, core::ptr::null_mut());
    }
}

/// Tells all that are there by now, in order, one at a time.
pub fn each(mut tell: impl FnMut(bc_block_listener, *mut c_void)) {
    let last = BOOK.lock().last;
    SET.run(&mut tell);
    let mut told = 0;
    loop {
        // Looked up anew each time: the one before may have changed who is next.
        let next = {
            let book = BOOK.lock();
            let numbered =
                book.entries.iter().zip(&PLACES).filter_map(|(entry, place)| Some((entry.as_ref()?.number, place)));
            numbered.filter(|(number, _)| *number > told && *number <= last).min_by_key(|(number, _)| *number)
        };
        let Some((number, place)) = next else { return };
        told = number;
        place.run(&mut tell);
    }
}

/// Is the calling thread inside one?
pub fn is_inside() -> bool {
    all().any(Callback::is_inside)
}

/// Is any thread inside one?
pub fn is_running() -> bool {
    all().any(Callback::is_running)
}

/// In a child of fork: the threads that were inside are gone.
pub fn forget_runners() {
    BOOK.free_after_fork();
    all().for_each(Callback::forget_runners);
}

fn all() -> impl Iterator<Item = &'static Callback<bc_block_listener>> {
    core::iter::once(&SET).chain(&PLACES)
}
