//! The flight recorder: what is known of the blocks that go on, in a file that outlives the process.
//!
//! The writer keeps it current by `pwrite`: a mapping would die of a full disk, and what the kernel has taken it keeps
//! through any kind of kill. A block comes in when it is known to be wanted, with each sample after that, and goes when its
//! report is stored; what is still there when the process dies was killed in it. The next process that uses the directory
//! finds it (`recover.rs`). One invariant: a block is told as killed only if its place was not freed, and it is freed
//! before the end of the block is told.

pub mod decode;
pub mod encode;
pub mod layout;
pub mod name;
pub mod recover;
pub mod space;

use super::block::{Block, Context};
use crate::log_warn;
use crate::sys::errno::Errno;
use crate::sys::fd::Fd;
use crate::sys::files;
use layout::{MOST_PLACES, OTHER_HALF, Owner, SAME_HALF, TOP};
use name::Name;
use space::Space;

/// An installation's own. Used by one thread at a time.
pub struct Recorder<'m> {
    name: Name,
    owner: Owner,
    places: u32,
    file: Option<Fd>,
    space: &'m mut Space,
    /// It has been said that something is wrong with it.
    has_warned: bool,
}

impl<'m> Recorder<'m> {
    /// Not in any directory yet. `number` tells it from others of the process; room for so many blocks at once.
    pub fn new(owner: Owner, number: u64, places: u32, space: &'m mut Space) -> Recorder<'m> {
        let name = Name { pid: owner.pid, number };
        Recorder { name, owner, places: places.min(MOST_PLACES), file: None, space, has_warned: false }
    }

    /// Keeps what is known of a block now.
    pub fn keep(&mut self, directory: &Fd, block: &Block, context: &Context) {
        if let Err(error) = self.try_to_keep(directory, block, context) {
            self.warn(error);
        }
    }

    fn try_to_keep(&mut self, directory: &Fd, block: &Block, context: &Context) -> Result<(), Errno> {
        let places = self.space.places.get(..self.places as usize).unwrap_or_default();
        let place = places.iter().position(|place| place.id == block.id);
        let place = place.or_else(|| places.iter().position(|place| place.id == 0)).ok_or(Errno(libc::ENOSPC))?;
        self.open(directory)?;
        // Not before: what a file that has gone elsewhere holds is taken out of it with the same memory.
        let room = self.space.held.as_mut_slice();
        let length = encode::encode(block, context, &mut self.space.known, room);
        let written = length.ok_or(Errno(libc::ENOSPC)).and_then(|length| self.write(place, OTHER_HALF, length));
        if let Some(place) = self.space.places.get_mut(place).filter(|_| written.is_ok()) {
            place.id = block.id;
        }
        // One that nothing can be written to is of no use.
        self.remove_if_empty(Some(directory));
        written
    }

    /// A block has ended, and its report is stored. With the last one the file goes.
    pub fn free(&mut self, directory: Option<&Fd>, id: u64) {
        let Some(place) = self.space.places.iter().position(|place| place.id == id && id != 0) else { return };
        match self.write(place, SAME_HALF, 0) {
            Ok(()) => {
                if let Some((file, state)) = self.file.as_ref().zip(self.space.places.get_mut(place)) {
                    empty_other(file, place as u32, state.sequence, self.owner);
                    state.id = 0;
                }
            }
            // The block must not be told again: the file goes. Blocks that go on come in again with their next sample.
            Err(error) => {
                self.warn(error);
                self.forget_all();
            }
        }
        self.remove_if_empty(directory);
    }

    fn forget_all(&mut self) {
        self.space.places.iter_mut().for_each(|place| place.id = 0);
    }

    fn remove_if_empty(&mut self, directory: Option<&Fd>) {
        let is_empty = self.space.places.iter().all(|place| place.id == 0);
        if is_empty
            && self.file.take().is_some()
            && let Some(directory) = directory
        {
            let _ = files::remove(directory, self.name.file().as_c_str());
        }
    }

    /// Writes the other half of a place than the last time, or the same. To the same one only a front that says that the
    /// place is free: what it is written over is there, so the disk need not have room, and it is written whole or not at
    /// all, because it lies within one page.
    fn write(&mut self, place: usize, step: u64, length: usize) -> Result<(), Errno> {
        let Some(file) = &self.file else { return Ok(()) };
        if !file.is_intact() {
            return Err(Errno(libc::EBADF));
        }
        let state = self.space.places.get_mut(place).ok_or(Errno(libc::EINVAL))?;
        let sequence = state.sequence + step;
        let held = self.space.held.get(..length).unwrap_or_default();
        self.space.top = layout::top(sequence, self.owner, 0, held);
        let at = layout::half_at(place as u32, (sequence & 1) as u8);
        // What it holds first: without a front that fits it counts for nothing.
        files::write_at(file, at + TOP as u64, held)?;
        files::write_at(file, at, &self.space.top)?;
        state.sequence = sequence;
        Ok(())
    }

    /// Makes the file, if it is not there or somebody has removed it.
    fn open(&mut self, directory: &Fd) -> Result<(), Errno> {
        let name = self.name.file();
        let name = name.as_c_str();
        if self.file.as_ref().is_some_and(|file| files::is_at(file, directory, name)) {
            return Ok(());
        }
        let unfinished = self.name.unfinished();
        let file = files::replace(directory, unfinished.as_c_str())?;
        // Where locks cannot be had, the process's id and begin tell whose it is.
        let _ = files::lock(&file);
        // Where it may not be so long, the first places may still do.
        let _ = files::set_size(&file, layout::file_size(self.places));
        let made = files::write_at(&file, 0, &layout::head(self.owner, self.places))
            .and_then(|()| files::rename(directory, unfinished.as_c_str(), name));
        if made.is_err() {
            let _ = files::remove(directory, unfinished.as_c_str());
        }
        made?;
        // The other file may be found where its directory is now: nothing in it is told as killed that will be told as
        // ended. Blocks that go on come in again with their next sample.
        for number in 0..self.space.places.len() {
            if self.space.places.get(number).is_some_and(|place| place.id != 0) {
                let _ = self.write(number, SAME_HALF, 0);
            }
        }
        self.forget_all();
        self.file = Some(file);
        Ok(())
    }

    fn warn(&mut self, error: Errno) {
        if !core::mem::replace(&mut self.has_warned, true) {
            log_warn!("the flight recorder cannot be written: {error}; blocks that end in a kill may be lost");
        }
    }
}

/// A front alone has been written to a place, with this sequence. What the other half holds, if anything, would count again
/// should that front be damaged: it becomes empty, too. Where nothing was ever written, nothing is, which would take room.
fn empty_other(file: &Fd, place: u32, sequence: u64, owner: Owner) {
    let at = layout::half_at(place, (!sequence & 1) as u8);
    let mut front = [0; TOP];
    let is_used = files::read_at(file, at, &mut front) > 0 && front != [0; TOP];
    if is_used {
        let _ = files::write_at(file, at, &layout::top(sequence.saturating_sub(1), owner, 0, &[]));
    }
}
