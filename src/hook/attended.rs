//! The life cycle, for whoever looks after interposed modules (`hook/keeper.rs`), if anybody does: a program that never
//! interposes one refers to none of that, and the linker leaves it out.

use crate::engine::life::{self, Refusal};
use core::hint::black_box;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};

/// What is told to it.
pub struct Attendant {
    /// An installation is about to be made, perhaps in a child of fork.
    pub adopt: fn(),
    /// Watching has begun.
    pub start: fn(),
    /// Watching has ended.
    pub stop: fn(),
    /// Everything is to be put back; `false`: that takes too long.
    pub end: fn() -> bool,
    /// The installation is gone.
    pub forget: fn(),
}

static ATTENDANT: AtomicPtr<Attendant> = AtomicPtr::new(ptr::null_mut());

/// From the first interposed module on.
pub fn attend(attendant: &'static Attendant) {
    // Hidden from the compiler: who sees that there is but one makes every use a direct one, and nothing can be left out.
    ATTENDANT.store(black_box(ptr::from_ref(attendant).cast_mut()), Release);
}

#[allow(unsafe_code)]
fn attendant() -> Option<&'static Attendant> {
    // SAFETY: null, or the static one that `attend` was given.
    unsafe { ATTENDANT.load(Acquire).as_ref() }
}

/// To be called before anything else of an install.
pub fn adopt() {
    life::adopt();
    if let Some(attendant) = attendant() {
        (attendant.adopt)();
    }
}

/// Watching begins, and modules are interposed.
pub fn start() -> Result<(), Refusal> {
    life::start()?;
    if let Some(attendant) = attendant() {
        (attendant.start)();
    }
    Ok(())
}

/// Watching ends, and modules are as they were.
pub fn stop() -> Result<(), Refusal> {
    life::stop()?;
    if let Some(attendant) = attendant() {
        (attendant.stop)();
    }
    Ok(())
}

/// Ends everything.
pub fn uninstall() -> Result<(), Refusal> {
    let Some(attendant) = attendant() else { return life::uninstall() };
    if life::is_in_callback() {
        return Err(Refusal::Thread);
    }
    life::check_installed()?;
    if !(attendant.end)() {
        life::stop()?;
        return Err(Refusal::Timeout);
    }
    life::uninstall()?;
    (attendant.forget)();
    Ok(())
}
