//! What a waiting thread waits for.

use super::calls::{self, Call, Kind, Limit};
use super::doing::Doing;
use super::short::Short;
use super::target::Target;
use crate::abi::bc_cause::{self, *};
use crate::sys::links;
use crate::sys::procfs::SystemCall;
use crate::unwind::memory::Memory;

/// What one look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// In a word.
    pub cause: bc_cause,
    /// The system call, where it is in one.
    pub call: Option<SystemCall>,
    /// What its descriptor leads to, if it waits for one.
    pub target: Option<Target>,
    /// The end of the path of that.
    pub path: Short<96>,
    /// How long it waits at most, ns, where that could be read.
    pub limit_ns: Option<u64>,
}

/// What is behind a descriptor: found out by `behind`, or made up in tests.
pub type Behind = (Target, Short<96>);

/// Asks the kernel, never a file system.
pub fn behind(fd: i32) -> Behind {
    let mut link = [0; 1024];
    let link = links::of_descriptor(fd, &mut link).unwrap_or(&[]);
    let path = if link.starts_with(b"/") { Short::end_of(link) } else { Short::EMPTY };
    (Target::of(link, links::is_pipe(fd)), path)
}

impl Wait {
    fn simple(cause: bc_cause) -> Wait {
        Wait { cause, call: None, target: None, path: Short::EMPTY, limit_ns: None }
    }

    /// Of a thread that does this, with this state letter; `None` if it does not wait.
    pub fn of(doing: Doing, state: u8, memory: &impl Memory, behind: impl Fn(i32) -> Behind) -> Option<Wait> {
        // Stopped or traced, whatever it was about.
        if state == b'T' || state == b't' {
            return Some(Wait::simple(BC_CAUSE_SUSPENDED));
        }
        match doing {
            Doing::Running => None,
            Doing::Unknown | Doing::WaitsUnseen => match state {
                b'D' => Some(Wait::simple(BC_CAUSE_IO)),
                b'S' => Some(Wait::simple(BC_CAUSE_UNKNOWN)),
                _ => (doing == Doing::WaitsUnseen).then_some(Wait::simple(BC_CAUSE_UNKNOWN)),
            },
            Doing::WaitsForPage => Some(Wait::simple(BC_CAUSE_IO)),
            Doing::Waits(call) => Some(Wait { call: Some(call), ..Wait::in_call(&call, state, memory, behind) }),
        }
    }

    fn in_call(call: &SystemCall, state: u8, memory: &impl Memory, behind: impl Fn(i32) -> Behind) -> Wait {
        let arguments = &call.1;
        let unlisted = Wait::simple(if state == b'D' { BC_CAUSE_IO } else { BC_CAUSE_UNKNOWN });
        let Some(known) = calls::find(call.0) else { return unlisted };
        let leads_to = |fd: u64, cause: Option<bc_cause>| {
            // The register may hold anything above an int.
            let (target, path) = behind(fd as i32);
            Wait { target: Some(target), path, ..Wait::simple(cause.unwrap_or(target.cause())) }
        };
        let with_descriptor = |cause: Option<bc_cause>| leads_to(arguments[0], cause);
        let polls = |count: u64| Wait {
            limit_ns: limit(&known, arguments, memory),
            ..Wait::simple(if count == 0 { BC_CAUSE_SLEEP } else { BC_CAUSE_IPC })
        };
        match known.kind {
            Kind::Futex => Wait::simple(BC_CAUSE_LOCK),
            Kind::FileLock => with_descriptor(Some(BC_CAUSE_LOCK)),
            Kind::FileControl if is_lock(arguments[1]) => with_descriptor(Some(BC_CAUSE_LOCK)),
            Kind::FileControl => unlisted,
            Kind::Sleep if is_absolute(&known, arguments) => Wait::simple(BC_CAUSE_SLEEP),
            Kind::Sleep => polls(0),
            Kind::Descriptor => with_descriptor(None),
            Kind::SocketCall => match memory.word(arguments[1]) {
                Some(fd) => leads_to(fd, None),
                None => Wait::simple(BC_CAUSE_IPC),
            },
            Kind::Poll => polls(arguments[1]),
            Kind::Select => polls(arguments[0]),
            Kind::Ipc => Wait::simple(BC_CAUSE_IPC),
            Kind::Io => Wait::simple(BC_CAUSE_IO),
        }
    }

    /// What names the lock that it waits for.
    pub fn lock(&self) -> Option<(u32, u64)> {
        self.call.map(|(number, [address, ..])| (number, address))
    }

    /// The call, where it is a known one.
    pub fn known_call(&self) -> Option<Call> {
        calls::find(self.call?.0)
    }
}

/// Does this command of fcntl wait for a lock?
fn is_lock(command: u64) -> bool {
    const F_SETLKW64: i32 = 14;
    const F_OFD_SETLKW: i32 = 38;
    [libc::F_SETLKW, F_SETLKW64, F_OFD_SETLKW].contains(&(command as i32))
}

/// A sleep until a moment, not for a time.
fn is_absolute(call: &Call, arguments: &[u64; 6]) -> bool {
    call.name == "clock_nanosleep" && arguments[1] as i32 & libc::TIMER_ABSTIME != 0
}

/// How long the call waits at most.
fn limit(call: &Call, arguments: &[u64; 6], memory: &impl Memory) -> Option<u64> {
    let argument = |number: usize| arguments.get(number).copied();
    let two = |number: usize| {
        let at = argument(number)?;
        Some((memory.word(at)?, memory.word(at.checked_add(size_of::<usize>() as u64)?)?))
    };
    let (seconds, ns) = match call.limit {
        Limit::None => return None,
        // Negative: for ever.
        Limit::Ms(number) => {
            return u64::try_from(argument(number)? as i32).ok().map(|ms| ms.saturating_mul(1_000_000));
        }
        Limit::Spec(number) => two(number)?,
        Limit::Val(number) => two(number).map(|(seconds, us)| (seconds, us.saturating_mul(1000)))?,
        Limit::Spec64(number) => {
            let at = argument(number)?;
            let word = |at: u64| memory.bytes(at).map(u64::from_ne_bytes);
            (word(at)?, word(at.checked_add(8)?)?)
        }
    };
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::OwnMemory;
    use crate::unwind::memory::Copied;

    struct Nothing;
    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    fn made_up(fd: i32) -> Behind {
        match fd {
            3 => (Target::File, Short::end_of(b"/data/level")),
            4 => (Target::Socket, Short::EMPTY),
            _ => (Target::Pipe, Short::EMPTY),
        }
    }

    fn wait(number: libc::c_long, arguments: [u64; 6], state: u8) -> Wait {
        let words = [1usize, 500, 4];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let memory = Copied { base: 0x1000, bytes: &bytes, rest: Nothing };
        Wait::of(Doing::Waits((number as u32, arguments)), state, &memory, made_up).unwrap()
    }

    #[test]
    fn system_calls() {
        let fcntl = if cfg!(target_pointer_width = "64") { libc::SYS_fcntl } else { 221 };
        let table = [
            (libc::SYS_futex, [0x1000, 128, 2, 0, 0, 0], b'S', BC_CAUSE_LOCK, None),
            (libc::SYS_flock, [3, 2, 0, 0, 0, 0], b'S', BC_CAUSE_LOCK, None),
            (fcntl, [3, 7, 0, 0, 0, 0], b'S', BC_CAUSE_LOCK, None),
            (fcntl, [3, 1, 0, 0, 0, 0], b'S', BC_CAUSE_UNKNOWN, None),
            (libc::SYS_nanosleep, [0x1000, 0, 0, 0, 0, 0], b'S', BC_CAUSE_SLEEP, Some(1_000_000_500)),
            (libc::SYS_nanosleep, [0x9000, 0, 0, 0, 0, 0], b'S', BC_CAUSE_SLEEP, None),
            (libc::SYS_clock_nanosleep, [1, 0, 0x1000, 0, 0, 0], b'S', BC_CAUSE_SLEEP, Some(1_000_000_500)),
            (libc::SYS_clock_nanosleep, [1, 1, 0x1000, 0, 0, 0], b'S', BC_CAUSE_SLEEP, None),
            (libc::SYS_read, [3, 0, 0, 0, 0, 0], b'D', BC_CAUSE_IO, None),
            (libc::SYS_read, [0xffff_ffff_0000_0004, 0, 0, 0, 0, 0], b'S', BC_CAUSE_IPC, None),
            (libc::SYS_read, [5, 0, 0, 0, 0, 0], b'S', BC_CAUSE_IPC, None),
            (libc::SYS_fsync, [3, 0, 0, 0, 0, 0], b'D', BC_CAUSE_IO, None),
            (libc::SYS_ppoll, [0, 0, 0x1000, 0, 0, 0], b'S', BC_CAUSE_SLEEP, Some(1_000_000_500)),
            (libc::SYS_ppoll, [0x1000, 3, 0, 0, 0, 0], b'S', BC_CAUSE_IPC, None),
            (libc::SYS_pselect6, [0, 0, 0, 0, 0x1000, 0], b'S', BC_CAUSE_SLEEP, Some(1_000_000_500)),
            (libc::SYS_epoll_pwait, [9, 0, 0, 7, 0, 0], b'S', BC_CAUSE_IPC, None),
            (libc::SYS_wait4, [0; 6], b'S', BC_CAUSE_IPC, None),
            (libc::SYS_openat, [0; 6], b'D', BC_CAUSE_IO, None),
            (libc::SYS_munmap, [0; 6], b'D', BC_CAUSE_IO, None),
            (libc::SYS_munmap, [0; 6], b'S', BC_CAUSE_UNKNOWN, None),
            (libc::SYS_futex, [0; 6], b'T', BC_CAUSE_SUSPENDED, None),
        ];
        for (row, (number, arguments, state, cause, limit_ns)) in table.into_iter().enumerate() {
            let wait = wait(number, arguments, state);
            assert_eq!((wait.cause, wait.limit_ns), (cause, limit_ns), "row {row}");
        }
        assert_eq!(wait(libc::SYS_read, [3, 0, 0, 0, 0, 0], b'D').path.bytes(), b"/data/level");
        // The call's own arguments begin with 4, a socket.
        #[cfg(target_arch = "x86")]
        assert_eq!(wait(102, [10, 0x1008, 0, 0, 0, 0], b'S').target, Some(Target::Socket));
    }

    #[test]
    fn outside_of_calls() {
        let of = |doing, state| Wait::of(doing, state, &Nothing, made_up).map(|wait| wait.cause);
        assert_eq!(of(Doing::Running, b'R'), None);
        assert_eq!(of(Doing::Unknown, b'R'), None);
        assert_eq!(of(Doing::Unknown, 0), None);
        assert_eq!(of(Doing::Unknown, b'D'), Some(BC_CAUSE_IO));
        assert_eq!(of(Doing::WaitsForPage, b'S'), Some(BC_CAUSE_IO));
        assert_eq!(of(Doing::WaitsUnseen, b'D'), Some(BC_CAUSE_IO));
        assert_eq!(of(Doing::WaitsUnseen, b'S'), Some(BC_CAUSE_UNKNOWN));
        assert_eq!(of(Doing::Running, b't'), Some(BC_CAUSE_SUSPENDED));
    }

    #[test]
    fn any_call_with_any_arguments_is_judged() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed >> (seed & 63)
        };
        let memory = OwnMemory::new();
        for round in 0..20_000u32 {
            let call = (round % 500, [next(), next(), next(), next(), next(), next()]);
            let wait = Wait::of(Doing::Waits(call), b"RSDTtZ"[next() as usize % 6], &memory, made_up).unwrap();
            let _ = (wait.known_call(), wait.lock(), crate::sample::owner::of(&call, &memory, |tid| tid > 0));
        }
    }
}
