//! When to ping a looper's thread: not while it waits in its poll, and not if it has not run since its last answer, so that
//! an idle thread is not woken. And when to ask a thread that is watched by its frames: when none has come for a while.

use super::gate::GATE;
use super::slot::Slot;
use super::track::Track;
use crate::sys::clock::{self, Ticks};
use crate::sys::event;
use crate::sys::procfs::KernelState;
use core::sync::atomic::Ordering::*;

/// What the monitor keeps of a heartbeat from look to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulse {
    next: Ticks,
    /// Answers, or the last stretch of a loop of frames.
    answers: u64,
    /// The thread's CPU clock when it was last known to have nothing to do.
    rest_cpu_ns: u64,
    /// The descriptor that it waits for in its poll, once that was seen.
    poll_fd: Option<u64>,
}

impl Pulse {
    /// Nothing known.
    pub const NEW: Pulse = Pulse { next: Ticks(0), answers: 0, rest_cpu_ns: 0, poll_fd: None };
}

/// Sends a ping if it is time for one; answers when to ask again.
pub fn ping_if_due(slot: &Slot, track: &mut Track, now: Ticks, interval_ns: u64) -> Option<Ticks> {
    if slot.frames.is_used() {
        return ask_if_due(slot, track, now, interval_ns);
    }
    if !GATE.is_open() || slot.probe.is_out() {
        return None;
    }
    if now < track.pulse.next {
        return Some(track.pulse.next);
    }
    track.pulse.next = now.plus(interval_ns);
    if slot.tid.load(Acquire) == 0 || has_work(slot, track) {
        slot.probe.pings(now);
        event::ring(slot.probe.fd());
    }
    Some(track.pulse.next)
}

/// Asks a loop of frames to go on if it rests, and to show that it is alive if no frame has come for a while: a display that
/// is off is nobody's fault. Well before the limit, and not as soon as a frame is a little late.
fn ask_if_due(slot: &Slot, track: &mut Track, now: Ticks, interval_ns: u64) -> Option<Ticks> {
    if !GATE.is_open() {
        return None;
    }
    if now < track.pulse.next {
        return Some(track.pulse.next);
    }
    let patience_ns = slot.frames.period_ns().saturating_mul(2).min(slot.limit_ns.load(Relaxed) / 2);
    track.pulse.next = now.plus(interval_ns.max(patience_ns));
    let stretch = slot.probe.stretch().load(Acquire) as u64;
    let is_same = core::mem::replace(&mut track.pulse.answers, stretch) == stretch;
    if is_same || !slot.frames.is_asked() {
        event::ring(slot.probe.fd());
    }
    Some(track.pulse.next)
}

fn has_work(slot: &Slot, track: &mut Track) -> bool {
    let cpu_ns = clock::thread_cpu(slot.tid.load(Relaxed)).unwrap_or(0);
    let waits_for = waits_for(track);
    let pulse = &mut track.pulse;
    let answers = slot.probe.answers();
    if core::mem::replace(&mut pulse.answers, answers) != answers {
        // It has just answered: where it waits now is its poll.
        pulse.poll_fd = waits_for.or(pulse.poll_fd);
        pulse.rest_cpu_ns = cpu_ns;
        return waits_for.is_none();
    }
    if cpu_ns == pulse.rest_cpu_ns {
        return false;
    }
    if waits_for.is_some() && waits_for == pulse.poll_fd {
        pulse.rest_cpu_ns = cpu_ns;
        return false;
    }
    true
}

/// The descriptor of an epoll that the thread waits in.
fn waits_for(track: &Track) -> Option<u64> {
    let mut text = [0; 512];
    match KernelState::parse(track.system_call()?.read(&mut text).ok()?)? {
        KernelState::Waiting(waiting) => {
            let (number, [fd, ..]) = waiting.call?;
            event::is_epoll_wait(number).then_some(fd)
        }
        KernelState::Running => None,
    }
}
