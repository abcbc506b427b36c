//! The monitor: looks at the marks, judges, and sees to it that late stretches are sampled and become blocks.

use super::bell;
use super::gate::GATE;
use super::handover::Handover;
use super::judge::interval_ns;
use super::looks::Looks;
use super::orders::Orders;
use crate::sys::clock::Ticks;
use crate::sys::counters::MONITOR_LATE;
use crate::sys::log;
use crate::sys::thread;

/// Time without a mark after which the monitor parks.
const IDLE_NS: u64 = 1_000_000_000;
/// Between the two steps of parking: far longer than a store takes to leave its processor.
const PARKING_NS: u64 = 10_000_000;
/// Longest sleep while marks come.
const NAP_NS: u64 = 20_000_000;
/// Shortest sleep, so that a deadline just passed cannot keep the monitor busy.
const SHORTEST_NS: u64 = 200_000;

/// What a look at all loops has found.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// The next moment at which something is due for an open stretch.
    pub next: Option<Ticks>,
    /// A mark has come since the last look, or a stretch is open.
    pub is_active: bool,
    /// The shortest sample interval of all loops, ns.
    pub interval_ns: u64,
}

/// The thread's state.
pub struct Monitor {
    looks: Looks,
    orders: &'static Orders,
    handover: &'static Handover,
    /// Signal that was asked for, 0 for any.
    signal: i32,
    /// Ends watching when its time is over.
    end: fn(),
    is_running: bool,
    /// Watching is off, and the signal is taken for a call that wants the stacks of all threads.
    has_borrowed: bool,
    last_activity: Ticks,
    is_parking: bool,
}

impl Monitor {
    /// Not yet running.
    pub fn new(looks: Looks, orders: &'static Orders, handover: &'static Handover, signal: i32, end: fn()) -> Monitor {
        Monitor {
            looks,
            orders,
            handover,
            signal,
            end,
            is_running: false,
            has_borrowed: false,
            last_activity: Ticks(0),
            is_parking: false,
        }
    }

    /// Looks until it is told to quit.
    pub fn run(&mut self) {
        thread::sleep_precisely();
        // It has little to do, but at the moment that it is due, above all on a machine with too much to do.
        thread::go_first();
        log::defer(true);
        self.looks.probe();
        self.looks.ledger.open();
        loop {
            let heard = bell::MONITOR.heard();
            if self.orders.is_over(Ticks::now()) {
                (self.end)();
            }
            let orders = self.orders.read();
            self.start_or_stop(orders.is_running);
            let outlook = self.looks.look();
            if orders.quit {
                self.start_or_stop(false);
                // Watching may have been off, and the last of a dump been answered just now.
                self.give_back_borrowed();
                self.looks.end_surveys();
                self.close();
                self.orders.done(&orders);
                log::defer(false);
                return;
            }
            self.orders.done(&orders);
            if log::has_deferred() {
                self.looks.writer.ring();
            }
            if self.survey() {
                // The loops are looked at in between.
                continue;
            }
            self.sleep(heard, &outlook, orders.until);
        }
    }

    /// Goes on with taking the stacks of all threads. `true`: there is more to do.
    fn survey(&mut self) -> bool {
        let for_blocks = self.looks.survey_for_blocks();
        let Some(survey) = self.handover.take_order() else {
            self.give_back_borrowed();
            return for_blocks;
        };
        if !self.is_running && !core::mem::replace(&mut self.has_borrowed, true) {
            self.looks.sampler.start(self.signal, survey.avoid);
        }
        self.looks.survey_for_call(survey);
        self.handover.put_back(survey);
        true
    }

    fn give_back_borrowed(&mut self) {
        if core::mem::take(&mut self.has_borrowed) {
            self.looks.sampler.stop();
        }
    }

    /// Sleeps until there is something to do. Longer sleeps are short ones in a row while marks come, because a stop could
    /// have begun at any moment of the one that it ends.
    fn sleep(&mut self, heard: u32, outlook: &Outlook, until: Option<Ticks>) {
        self.looks.ledger.turn_over();
        let begin = Ticks::now();
        let wake = self.wake_time(outlook, begin);
        let limit = wake.into_iter().chain(until).min();
        let mut now = begin;
        loop {
            let asked_ns = limit.map(|limit| limit.since(now));
            let nap_ns = if wake.is_some() { asked_ns.map(|asked| asked.min(NAP_NS)) } else { asked_ns };
            bell::MONITOR.sleep(heard, nap_ns);
            let slept = core::mem::replace(&mut now, Ticks::now());
            let slept_ns = now.since(slept);
            // Who sleeps for good is woken by the first mark since.
            let meant_ns = match wake {
                Some(_) => nap_ns,
                None => self.looks.first_mark_after(slept).map(|mark| mark.since(slept)),
            };
            let meant_ns = meant_ns.map_or(slept_ns, |meant| meant.min(slept_ns));
            let was_stopped = self.looks.ledger.slept(meant_ns);
            if !was_stopped && slept_ns - meant_ns > outlook.interval_ns {
                MONITOR_LATE.add_one();
            }
            if bell::MONITOR.heard() != heard || limit.is_none_or(|limit| now >= limit) {
                break;
            }
        }
    }

    /// Closes its files.
    pub fn close(&mut self) {
        self.looks.close_files();
    }

    /// The signal is taken when watching begins and given back when it ends.
    fn start_or_stop(&mut self, is_running: bool) {
        if is_running == self.is_running {
            return;
        }
        self.is_running = is_running;
        self.give_back_borrowed();
        if is_running {
            self.last_activity = Ticks::now();
            self.looks.sampler.start(self.signal, self.orders.signals_to_avoid());
        } else {
            // What the stop has closed is closed before anything else.
            self.looks.look();
            self.looks.sampler.stop();
        }
    }

    /// When to look again; `None`: when the bell rings.
    fn wake_time(&mut self, outlook: &Outlook, now: Ticks) -> Option<Ticks> {
        if !GATE.is_open() {
            bell::unpark();
            self.is_parking = false;
            return None;
        }
        if outlook.is_active {
            self.last_activity = now;
        }
        if now.since(self.last_activity) <= IDLE_NS {
            if core::mem::take(&mut self.is_parking) {
                bell::unpark();
            }
            let regular = now.plus(outlook.interval_ns);
            let next = outlook.next.map_or(regular, |next| next.min(regular));
            return Some(next.max(now.plus(SHORTEST_NS)));
        }
        if self.is_parking && bell::is_parked() {
            // The second look has found nothing either.
            return None;
        }
        self.is_parking = true;
        bell::park();
        Some(now.plus(PARKING_NS))
    }
}

impl Outlook {
    /// Nothing yet, for loops whose interval is configured so.
    pub fn new(configured_interval_ns: u64, limit_ns: u64) -> Outlook {
        Outlook { next: None, is_active: false, interval_ns: interval_ns(configured_interval_ns, limit_ns) }
    }

    /// Something is due at this moment.
    pub fn due(&mut self, at: Ticks) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}
