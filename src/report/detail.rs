//! The cause of a block in words: one line of at most some 250 bytes.

use super::sink::Sink;
use super::view::base_name;
use crate::abi::bc_cause::*;
use crate::sample::account::TopThread;
use crate::sample::case::Case;
use crate::sample::cause::Cause;
use crate::sample::wait::Wait;

/// What is told beside the case's own account.
pub struct Words<'a> {
    /// The verdict.
    pub cause: &'a Cause,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Only base names of paths are told.
    pub redact_paths: bool,
}

/// Room that a detail takes at most; what is longer is cut.
pub const DETAIL: usize = 320;

/// Writes nothing where nothing is known.
pub fn write(sink: &mut Sink, case: &Case, words: &Words) {
    match words.cause.kind {
        BC_CAUSE_RUNNING => running(sink, case, words.cpu_ns),
        BC_CAUSE_STARVED => starved(sink, case, words.cause),
        BC_CAUSE_SUSPENDED => sink.text("the process was stopped or suspended"),
        BC_CAUSE_UNKNOWN => {
            let call = case.account.wait(BC_CAUSE_UNKNOWN).and_then(|wait| wait.call);
            if let Some((number, _)) = call {
                sink.text("waits in system call ");
                sink.decimal(number.into());
            }
        }
        kind => match case.account.wait(kind) {
            Some(wait) => {
                waiting(sink, wait, words.redact_paths);
                if kind == BC_CAUSE_LOCK {
                    holders(sink, case);
                }
            }
            // No sample has met it, but storage was read.
            None => faults(sink, case),
        },
    }
}

fn running(sink: &mut Sink, case: &Case, cpu_ns: u64) {
    sink.text("running, ");
    percent(sink, cpu_ns, case.wall_ns);
    sink.text(" of one processor");
    let faults = case.account.scheduling();
    let (minor, major) = (faults.minor_faults.unwrap_or(0), faults.major_faults.unwrap_or(0));
    // More than one in 20 us: they take a good part of the time.
    if major > 0 || minor > case.wall_ns / 20_000 {
        sink.text("; ");
        sink.decimal(minor.saturating_add(major));
        sink.text(" page faults");
        if major > 0 {
            sink.text(", ");
            sink.decimal(major);
            sink.text(" of them from storage");
        }
    }
}

fn starved(sink: &mut Sink, case: &Case, cause: &Cause) {
    let share = u64::from(cause.shares.get(BC_CAUSE_STARVED as usize).copied().unwrap_or(0));
    sink.text("ready to run, ");
    sink.decimal((case.wall_ns / 1000).saturating_mul(share) / 1_000_000);
    sink.text(" ms without a processor");
    // The thread itself is not what keeps it from running.
    let others = case.account.top.iter().flatten().filter(|thread| thread.tid != case.tid);
    for (place, thread) in others.take(3).enumerate() {
        sink.text(if place == 0 { "; busiest: " } else { ", " });
        top(sink, thread);
    }
}

/// `123 'Loader' 87 %`.
pub(super) fn top(sink: &mut Sink, thread: &TopThread) {
    named(sink, thread.tid, thread.name.bytes());
    sink.text(" ");
    sink.decimal(u64::from(thread.load) / 100);
    sink.text(" %");
}

fn named(sink: &mut Sink, tid: i32, name: &[u8]) {
    sink.signed(tid.into());
    if !name.is_empty() {
        sink.text(" '");
        sink.plain(name);
        sink.text("'");
    }
}

fn percent(sink: &mut Sink, part: u64, whole: u64) {
    // In microseconds, so that the product does not overflow.
    sink.decimal((part / 1000).saturating_mul(100) / (whole / 1000).max(1));
    sink.text(" %");
}

fn waiting(sink: &mut Sink, wait: &Wait, redact_paths: bool) {
    let Some((number, arguments)) = wait.call else { return sink.text("page fault") };
    let Some(call) = wait.known_call() else {
        sink.text("waits in system call ");
        return sink.decimal(number.into());
    };
    sink.text(call.name);
    let path = if redact_paths { base_name(wait.path.bytes()) } else { wait.path.bytes() };
    let count = match call.kind {
        crate::sample::calls::Kind::Poll => Some(arguments[1]),
        crate::sample::calls::Kind::Select => Some(arguments[0]),
        _ => None,
    };
    if call.kind == crate::sample::calls::Kind::Futex {
        sink.text(" 0x");
        sink.hex(arguments[0], 1);
    } else if let Some(count) = count.filter(|count| *count > 0) {
        sink.text(" of ");
        sink.decimal(count & u64::from(u32::MAX));
        sink.text(if count == 1 { " descriptor" } else { " descriptors" });
    } else if let Some(target) = wait.target {
        sink.text("(");
        if let Some(word) = target.word() {
            sink.text(word);
            sink.text(", ");
        }
        sink.text("fd ");
        sink.signed((arguments[0] as i32).into());
        if !path.is_empty() {
            sink.text(if path.len() == wait.path.room() { " → …" } else { " → " });
            sink.plain(path);
        }
        sink.text(")");
    }
    if let Some(limit_ns) = wait.limit_ns {
        sink.text(if wait.cause == BC_CAUSE_SLEEP { " of " } else { " for at most " });
        sink.ms(limit_ns);
        sink.text(" ms");
    }
}

fn holders(sink: &mut Sink, case: &Case) {
    let chain = &case.account.chain;
    if let Some(first) = chain.holders().first() {
        sink.text(if chain.is_join { ", the end of tid " } else { " held by tid " });
        named(sink, *first, case.account.holder_name.bytes());
    }
    if let Some(closes_at) = chain.closes_at {
        sink.text("; deadlock: ");
        for tid in chain.cycle(case.tid) {
            sink.signed(tid.into());
            sink.text(" → ");
        }
        sink.signed(closes_at.into());
    }
}

fn faults(sink: &mut Sink, case: &Case) {
    if let Some(major) = case.account.scheduling().major_faults.filter(|major| *major > 0) {
        sink.decimal(major);
        sink.text(" page faults that waited for storage");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::bc_cause;
    use crate::report::sink::Memory;
    use crate::sample::cause::CAUSES;
    use crate::sample::chain::Chain;
    use crate::sample::doing::Doing;
    use crate::sample::owner::Owner;
    use crate::sample::scheduling::Scheduling;
    use crate::sample::short::Short;
    use crate::sample::target::Target;
    use crate::sys::clock::Ticks;
    use crate::sys::memory::OwnMemory;

    fn told(case: &Case, kind: bc_cause, redact_paths: bool) -> String {
        let mut bytes = [0; DETAIL];
        let mut memory = Memory::new(&mut bytes);
        let mut shares = [0; CAUSES];
        shares[kind as usize] = 900;
        let cause = Cause { kind, shares, queue_wait_ns: None };
        let mut sink = Sink::new(&mut memory, &mut []);
        write(&mut sink, case, &Words { cause: &cause, cpu_ns: 98_000_000, redact_paths });
        let length = memory.needed();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    fn case(doing: Option<(Doing, u8)>, scheduling: Scheduling) -> Case {
        let mut case = Case { wall_ns: 100_000_000, tid: 12, ..Case::FREE };
        case.account.begin(Ticks(0), Scheduling { minor_faults: Some(0), major_faults: Some(0), ..Scheduling::NONE });
        let behind = |fd| match fd {
            37 => (Target::File, Short::end_of(b"/data/level")),
            38 => (Target::Pipe, Short::end_of(b"/data/fifo")),
            _ => (Target::Socket, Short::EMPTY),
        };
        let wait = doing.and_then(|(doing, state)| Wait::of(doing, state, &OwnMemory::new(), behind));
        case.account.add(wait, false, Scheduling { at: Ticks(1), ..scheduling });
        case
    }

    fn waits(number: libc::c_long, arguments: [u64; 6]) -> Case {
        case(Some((Doing::Waits((number as u32, arguments)), b'S')), Scheduling::NONE)
    }

    #[test]
    fn waits_are_told_by_their_call() {
        let spec = libc::timespec { tv_sec: 0, tv_nsec: 300_000_000 };
        let spec = (&raw const spec).addr() as u64;
        let table = [
            (libc::SYS_read, [37, 0, 0, 0, 0, 0], BC_CAUSE_IO, "read(fd 37 → /data/level)"),
            (libc::SYS_read, [38, 0, 0, 0, 0, 0], BC_CAUSE_IPC, "read(pipe, fd 38 → /data/fifo)"),
            (libc::SYS_recvfrom, [5, 0, 0, 0, 0, 0], BC_CAUSE_IPC, "recvfrom(socket, fd 5)"),
            (libc::SYS_ppoll, [0x10, 3, 0, 0, 0, 0], BC_CAUSE_IPC, "ppoll of 3 descriptors"),
            (libc::SYS_ppoll, [0x10, 1, spec, 0, 0, 0], BC_CAUSE_IPC, "ppoll of 1 descriptor for at most 300 ms"),
            (libc::SYS_ppoll, [0, 0, spec, 0, 0, 0], BC_CAUSE_SLEEP, "ppoll of 300 ms"),
            (libc::SYS_nanosleep, [spec, 0, 0, 0, 0, 0], BC_CAUSE_SLEEP, "nanosleep of 300 ms"),
            (libc::SYS_clock_nanosleep, [1, 1, spec, 0, 0, 0], BC_CAUSE_SLEEP, "clock_nanosleep"),
            (libc::SYS_futex, [0x7f00, 0, 0, 0, 0, 0], BC_CAUSE_LOCK, "futex 0x7f00"),
            (libc::SYS_flock, [37, 0, 0, 0, 0, 0], BC_CAUSE_LOCK, "flock(fd 37 → /data/level)"),
            (libc::SYS_wait4, [0; 6], BC_CAUSE_IPC, "wait4"),
        ];
        for (number, arguments, cause, detail) in table {
            assert_eq!(told(&waits(number, arguments), cause, false), detail);
        }
        let unlisted = told(&waits(libc::SYS_munmap, [0; 6]), BC_CAUSE_UNKNOWN, false);
        assert_eq!(unlisted, format!("waits in system call {}", libc::SYS_munmap));
        assert_eq!(told(&waits(libc::SYS_read, [37, 0, 0, 0, 0, 0]), BC_CAUSE_IO, true), "read(fd 37 → level)");
    }

    #[test]
    fn holders_are_named() {
        let mut case = waits(libc::SYS_futex, [0x7f00, 0, 0, 0, 0, 0]);
        let follow = |pairs: &[(i32, i32)], is_join| {
            let next = |tid| pairs.iter().find(|(waits, _)| *waits == tid).map(|(_, tid)| Owner { tid: *tid, is_join });
            Chain::follow(12, next)
        };
        case.account.holder_name = Short::end_of(b"Loader");
        case.account.chain = follow(&[(12, 34)], false);
        assert_eq!(told(&case, BC_CAUSE_LOCK, false), "futex 0x7f00 held by tid 34 'Loader'");
        case.account.chain = follow(&[(12, 34)], true);
        assert_eq!(told(&case, BC_CAUSE_LOCK, false), "futex 0x7f00, the end of tid 34 'Loader'");
        case.account.chain = follow(&[(12, 34), (34, 12)], false);
        let deadlock = "futex 0x7f00 held by tid 34 'Loader'; deadlock: 12 → 34 → 12";
        assert_eq!(told(&case, BC_CAUSE_LOCK, false), deadlock);
        let long = (0..9).map(|n| if n == 0 { (12, i32::MAX - 1) } else { (i32::MAX - n, i32::MAX - n - 1) });
        case.account.chain = follow(&long.collect::<Vec<_>>(), false);
        case.account.chain.closes_at = Some(12);
        assert!(told(&case, BC_CAUSE_LOCK, false).ends_with(" → 12"));
    }

    #[test]
    fn the_rest() {
        let faults = |minor, major| {
            case(None, Scheduling { minor_faults: Some(minor), major_faults: Some(major), ..Scheduling::NONE })
        };
        assert_eq!(told(&faults(3, 0), BC_CAUSE_RUNNING, false), "running, 98 % of one processor");
        let storm = "running, 98 % of one processor; 9000 page faults";
        assert_eq!(told(&faults(9000, 0), BC_CAUSE_RUNNING, false), storm);
        assert_eq!(told(&faults(8995, 5), BC_CAUSE_RUNNING, false), format!("{storm}, 5 of them from storage"));
        assert_eq!(told(&faults(0, 5), BC_CAUSE_IO, false), "5 page faults that waited for storage");
        let page = case(Some((Doing::WaitsForPage, b'D')), Scheduling::NONE);
        assert_eq!(told(&page, BC_CAUSE_IO, false), "page fault");
        assert_eq!(told(&faults(0, 0), BC_CAUSE_UNKNOWN, false), "");
        let mut starved = faults(0, 0);
        assert_eq!(told(&starved, BC_CAUSE_STARVED, false), "ready to run, 90 ms without a processor");
        let thread = |tid, load| Some(TopThread { tid, name: Short::end_of(b"Loader"), load });
        starved.account.top = [thread(12, 9900), thread(123, 8_799), None, None, None];
        let busiest = "ready to run, 90 ms without a processor; busiest: 123 'Loader' 87 %";
        assert_eq!(told(&starved, BC_CAUSE_STARVED, false), busiest);
    }
}
