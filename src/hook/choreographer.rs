//! The system's AChoreographer functions, found at run time. Of the three by which frame callbacks are asked for, each
//! came with a later system and tells more; the best one that is there is used.
#![allow(unsafe_code)]

use super::alooper::find;
use crate::sys::fork;
use core::ffi::{c_long, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

/// A thread's choreographer, which only that thread uses.
pub enum AChoreographer {}

/// What a callback of Android 13 is given.
pub enum AChoreographerFrameCallbackData {}

/// A place for a function of the system's.
struct Function(AtomicPtr<c_void>);

impl Function {
    const fn new() -> Function {
        Function(AtomicPtr::new(ptr::null_mut()))
    }

    fn get(&self) -> Option<*mut c_void> {
        Some(self.0.load(Acquire)).filter(|found| !found.is_null())
    }
}

/// Android 7 (API level 24).
static GET_INSTANCE: Function = Function::new();
static POST: Function = Function::new();
/// Android 10 (29), whose time is whole on 32-bit machines, too.
static POST_64: Function = Function::new();
/// Android 11 (30): tells the display's period, and when it changes.
static REGISTER_RATE: Function = Function::new();
static UNREGISTER_RATE: Function = Function::new();
/// Android 13 (33): tells when the next frames will be.
static POST_VSYNC: Function = Function::new();
static FRAME_TIME: Function = Function::new();
static TIMELINES: Function = Function::new();
static PRESENTATION_TIME: Function = Function::new();

static LOOKED_UP: AtomicBool = AtomicBool::new(false);

/// Is there one at all? Looks for the functions, once; takes the loader's lock.
pub fn is_there() -> bool {
    if !LOOKED_UP.load(Acquire) && !fork::is_child() {
        for (place, name) in [
            (&GET_INSTANCE, c"AChoreographer_getInstance"),
            (&POST, c"AChoreographer_postFrameCallback"),
            (&POST_64, c"AChoreographer_postFrameCallback64"),
            (&REGISTER_RATE, c"AChoreographer_registerRefreshRateCallback"),
            (&UNREGISTER_RATE, c"AChoreographer_unregisterRefreshRateCallback"),
            (&POST_VSYNC, c"AChoreographer_postVsyncCallback"),
            (&FRAME_TIME, c"AChoreographerFrameCallbackData_getFrameTimeNanos"),
            (&TIMELINES, c"AChoreographerFrameCallbackData_getFrameTimelinesLength"),
            (&PRESENTATION_TIME, c"AChoreographerFrameCallbackData_getFrameTimelineExpectedPresentationTimeNanos"),
        ] {
            place.0.store(find(name), Release);
        }
        LOOKED_UP.store(true, Release);
    }
    GET_INSTANCE.get().is_some() && way().is_some()
}

/// How frame callbacks are asked for.
#[derive(Clone, Copy)]
enum Way {
    Vsync(*mut c_void),
    Whole(*mut c_void),
    Long(*mut c_void),
}

fn way() -> Option<Way> {
    let tells = FRAME_TIME.get().and(TIMELINES.get()).and(PRESENTATION_TIME.get());
    let vsync = POST_VSYNC.get().filter(|_| tells.is_some()).map(Way::Vsync);
    vsync.or_else(|| POST_64.get().map(Way::Whole)).or_else(|| POST.get().map(Way::Long))
}

/// The callbacks that a frame may come by, according to the system's age.
pub struct Callbacks {
    /// Of Android 13.
    pub vsync: unsafe extern "C" fn(*const AChoreographerFrameCallbackData, *mut c_void),
    /// Of Android 10: the display's time.
    pub whole: unsafe extern "C" fn(i64, *mut c_void),
    /// Of Android 7: the same, as much as a `long` holds.
    pub long: unsafe extern "C" fn(c_long, *mut c_void),
}

/// The calling thread's choreographer; null where it has no looper.
pub fn of_this_thread() -> *mut AChoreographer {
    let Some(function) = GET_INSTANCE.get() else { return ptr::null_mut() };
    // SAFETY: the NDK's function of this name has this type.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> *mut AChoreographer>(function)() }
}

/// Asks for one frame callback. It will come, for all that can be done.
///
/// # Safety
/// The choreographer is the calling thread's; the callbacks can be called until the one that was asked for has come.
pub unsafe fn post(choreographer: *mut AChoreographer, callbacks: &Callbacks, data: *mut c_void) {
    type Post<F> = unsafe extern "C" fn(*mut AChoreographer, F, *mut c_void);
    type Vsync = unsafe extern "C" fn(*const AChoreographerFrameCallbackData, *mut c_void);
    type Whole = unsafe extern "C" fn(i64, *mut c_void);
    type Long = unsafe extern "C" fn(c_long, *mut c_void);
    // SAFETY: the NDK's functions of these names have these types; the caller vouches for the rest.
    unsafe {
        match way() {
            Some(Way::Vsync(post)) => {
                transmute::<*mut c_void, Post<Vsync>>(post)(choreographer, callbacks.vsync, data);
            }
            Some(Way::Whole(post)) => {
                transmute::<*mut c_void, Post<Whole>>(post)(choreographer, callbacks.whole, data);
            }
            Some(Way::Long(post)) => {
                transmute::<*mut c_void, Post<Long>>(post)(choreographer, callbacks.long, data);
            }
            None => {}
        }
    }
}

/// A function that is told the display's period in ns, at first and when it changes.
pub type OnRate = unsafe extern "C" fn(i64, *mut c_void);
type Rate = unsafe extern "C" fn(*mut AChoreographer, OnRate, *mut c_void);

/// Wants to be told the display's period, where frame callbacks do not tell and the system can.
///
/// # Safety
/// The choreographer is the calling thread's; `callback` can be called until `untell_rate`.
pub unsafe fn tell_rate(choreographer: *mut AChoreographer, callback: OnRate, data: *mut c_void) {
    if matches!(way(), Some(Way::Vsync(_))) || UNREGISTER_RATE.get().is_none() {
        return;
    }
    if let Some(register) = REGISTER_RATE.get() {
        // SAFETY: the NDK's function of this name has this type; the caller vouches for the rest.
        unsafe { transmute::<*mut c_void, Rate>(register)(choreographer, callback, data) };
    }
}

/// Does not want to be told any more.
///
/// # Safety
/// The choreographer is the calling thread's.
pub unsafe fn untell_rate(choreographer: *mut AChoreographer, callback: OnRate, data: *mut c_void) {
    if matches!(way(), Some(Way::Vsync(_))) || REGISTER_RATE.get().is_none() {
        return;
    }
    if let Some(unregister) = UNREGISTER_RATE.get() {
        // SAFETY: the NDK's function of this name has this type; the caller vouches for the rest.
        unsafe { transmute::<*mut c_void, Rate>(unregister)(choreographer, callback, data) };
    }
}

/// The display's time of the frame, and its period where that is to be had, ns.
///
/// # Safety
/// `frame` is what a callback of Android 13 was given, which has not returned.
pub unsafe fn read(frame: *const AChoreographerFrameCallbackData) -> (u64, Option<u64>) {
    type Time = unsafe extern "C" fn(*const AChoreographerFrameCallbackData) -> i64;
    type Length = unsafe extern "C" fn(*const AChoreographerFrameCallbackData) -> usize;
    type TimeOf = unsafe extern "C" fn(*const AChoreographerFrameCallbackData, usize) -> i64;
    let (Some(time), Some(length), Some(presentation)) = (FRAME_TIME.get(), TIMELINES.get(), PRESENTATION_TIME.get())
    else {
        return (0, None);
    };
    // SAFETY: the NDK's functions of these names have these types; the caller vouches for the frame. Frames at which this
    // one can be shown are a period apart, and only those that are there are asked for.
    unsafe {
        let (presentation, length) =
            (transmute::<*mut c_void, TimeOf>(presentation), transmute::<*mut c_void, Length>(length));
        let period = (length(frame) >= 2).then(|| presentation(frame, 1).saturating_sub(presentation(frame, 0)));
        let time = transmute::<*mut c_void, Time>(time)(frame);
        (u64::try_from(time).unwrap_or(0), period.and_then(|period| u64::try_from(period).ok()))
    }
}
