//! What the kernel tells in `/proc`: parsers of its text, and files that stay open.
#![allow(unsafe_code)]

use super::errno::Errno;
use super::fd::Fd;
use arrayvec::ArrayString;
use core::ffi::CStr;
use core::fmt::Write;

/// A file of `/proc` that is kept open and read from its begin again and again.
pub struct ProcFile(Fd);

impl ProcFile {
    /// Opens it; the descriptor does not reach a program that is exec'd.
    pub fn open(path: &CStr) -> Result<ProcFile, Errno> {
        // SAFETY: a path that ends in a NUL.
        let opened = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        Fd::opened(opened).map(ProcFile)
    }

    /// What it says now, as far as it fits.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        // SAFETY: the buffer is as long as we say.
        let length = unsafe { libc::pread(self.0.number(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let length = usize::try_from(length).map_err(|_| Errno::last())?;
        Ok(buffer.get(..length).unwrap_or(&[]))
    }
}

/// Opens a file of a thread of this process.
pub fn open_of_thread(
    tid: i32,
    name: &str,
    open: impl Fn(&CStr) -> Result<ProcFile, Errno>,
) -> Result<ProcFile, Errno> {
    let mut path = ArrayString::<64>::new();
    let path = write!(path, "/proc/self/task/{tid}/{name}\0").ok().map(|()| path);
    let path = path.as_ref().and_then(|path| CStr::from_bytes_with_nul(path.as_bytes()).ok());
    path.map_or(Err(Errno(libc::ENAMETOOLONG)), open)
}

/// A thread's name.
pub fn thread_name(tid: i32, buffer: &mut [u8]) -> Option<&[u8]> {
    Some(open_of_thread(tid, "comm", ProcFile::open).ok()?.read(buffer).ok()?.trim_ascii_end())
}

/// What `/proc/PID/task/TID/stat` says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStat {
    /// R running, S sleeping, D waiting for a device, and so on.
    pub state: u8,
    /// Page faults that needed no reading from storage.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// When it was started, in clock ticks since boot: tells two threads apart that had the same id.
    pub start_time: u64,
}

impl ThreadStat {
    /// Parses it. The name may hold anything, brackets and newlines too, so the fields count from the last `)`.
    pub fn parse(text: &[u8]) -> Option<ThreadStat> {
        let end_of_name = text.iter().rposition(|b| *b == b')')?;
        let mut fields =
            text.get(end_of_name.checked_add(1)?..)?.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
        let state = *fields.next()?.first()?;
        // The state is field 3, the faults are fields 10 and 12, the start time is field 22.
        let minor_faults = number(fields.nth(6)?)?;
        let major_faults = number(fields.nth(1)?)?;
        let start_time = number(fields.nth(9)?)?;
        Some(ThreadStat { state, minor_faults, major_faults, start_time })
    }
}

/// What `/proc/PID/task/TID/schedstat` says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedStat {
    /// Time on a processor, ns.
    pub run_ns: u64,
    /// Time ready to run and without one, ns; brought up to date only when the thread gets one.
    pub wait_ns: u64,
    /// Times that it got one.
    pub slices: u64,
}

impl SchedStat {
    /// Parses it. A kernel that does not keep these figures says zeros, which is `None`.
    pub fn parse(text: &[u8]) -> Option<SchedStat> {
        let mut fields = text.trim_ascii().split(u8::is_ascii_whitespace).map(number);
        let stat = SchedStat { run_ns: fields.next()??, wait_ns: fields.next()??, slices: fields.next()?? };
        // The time on a processor is 0 until a tick or a switch has counted it.
        (stat.slices > 0).then_some(stat)
    }
}

/// Time of the whole machine, from the first line of `/proc/stat`. Clock ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineTime {
    /// All of it.
    pub total: u64,
    /// Doing nothing.
    pub idle: u64,
    /// In programs.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
    /// Doing nothing while a device is awaited.
    pub io_wait: u64,
}

impl MachineTime {
    /// Parses the line `cpu  user nice system idle iowait irq softirq …`.
    pub fn parse(text: &[u8]) -> Option<MachineTime> {
        let line = text.split(|b| *b == b'\n').next()?;
        let mut fields = line.strip_prefix(b"cpu ")?.split(|b| *b == b' ').filter(|f| !f.is_empty());
        let mut next = || fields.next().map(number);
        let user = next()??;
        let nice = next()??;
        let system = next()??;
        let idle = next()??;
        let io_wait = next()??;
        let mut total = user.checked_add(nice)?.checked_add(system)?.checked_add(idle)?.checked_add(io_wait)?;
        for _ in 0..2 {
            total = total.checked_add(next()??)?;
        }
        Some(MachineTime { total, idle, user, system, io_wait })
    }
}

/// What `/proc/PID/task/TID/syscall` says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelState {
    /// It runs, or is ready to.
    Running,
    /// It waits in the kernel.
    Waiting(Waiting),
}

/// Number and arguments of a system call.
pub type SystemCall = (u32, [u64; 6]);

/// A thread that waits in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The system call and its arguments; `None` where it was not one that led it there, but a page fault, say.
    pub call: Option<SystemCall>,
    /// Its stack pointer in the program.
    pub sp: u64,
    /// Its instruction in the program.
    pub pc: u64,
}

impl KernelState {
    /// Parses it: `running`, or `NUMBER 0xARGUMENT… 0xSP 0xPC`, or `-1 0xSP 0xPC`.
    pub fn parse(text: &[u8]) -> Option<KernelState> {
        let text = text.trim_ascii();
        if text == b"running" {
            return Some(KernelState::Running);
        }
        let mut fields = text.split(|b| *b == b' ');
        let call_number = fields.next()?;
        let mut hexadecimal = || hex(fields.next()?.strip_prefix(b"0x")?);
        let call = match call_number {
            b"-1" => None,
            digits => {
                let call_number = u32::try_from(number(digits)?).ok()?;
                let mut arguments = [0; 6];
                for argument in &mut arguments {
                    *argument = hexadecimal()?;
                }
                Some((call_number, arguments))
            }
        };
        let (sp, pc) = (hexadecimal()?, hexadecimal()?);
        fields.next().is_none().then_some(KernelState::Waiting(Waiting { call, sp, pc }))
    }
}

/// The signals that are pending for a thread alone, from `/proc/PID/task/TID/status`: bit 0 is signal 1.
pub fn pending_signals(status: &[u8]) -> Option<u64> {
    hex(status_value(status, b"SigPnd:")?)
}

/// The signals that a thread blocks, from the same file.
pub fn blocked_signals(status: &[u8]) -> Option<u64> {
    hex(status_value(status, b"SigBlk:")?)
}

/// The debugger that has attached to a thread, from the same file; 0 for none.
pub fn tracer(status: &[u8]) -> Option<u64> {
    number(status_value(status, b"TracerPid:")?)
}

fn status_value<'a>(status: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    Some(status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(key))?.trim_ascii())
}

fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| Some(sum << 4 | u64::from((*digit as char).to_digit(16)?)))
}

/// How often a thread has given up its processor of itself, from the same file.
pub fn voluntary_switches(status: &[u8]) -> Option<u64> {
    number(status_value(status, b"voluntary_ctxt_switches:")?)
}

/// How often it has lost its processor to another one, from the same file.
pub fn involuntary_switches(status: &[u8]) -> Option<u64> {
    number(status_value(status, b"nonvoluntary_ctxt_switches:")?)
}

/// A value in kB of `/proc/meminfo`.
pub fn memory_kb(meminfo: &[u8], key: &[u8]) -> Option<u64> {
    let rest = meminfo.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(key)?.strip_prefix(b":"))?;
    number(rest.trim_ascii().strip_suffix(b"kB")?.trim_ascii())
}

#[inline(never)]
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let value = digit.checked_sub(b'0').filter(|value| *value < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        for name in ["plain", "a b", "x) R 1 2", "line\nbreak", ") (", ""] {
            let text = format!("77 ({name}) {rest}\n");
            let stat = ThreadStat::parse(text.as_bytes());
            let expected = ThreadStat { state: b'S', minor_faults: 7, major_faults: 9, start_time: 4711 };
            assert_eq!(stat, Some(expected), "{name:?}");
        }
        assert_eq!(ThreadStat::parse(b"77 (cut) S 1 2 3"), None);
        assert_eq!(ThreadStat::parse(b""), None);
    }

    #[test]
    fn the_kernels_own_text_parses() {
        let stat = std::fs::read("/proc/thread-self/stat").unwrap();
        assert_eq!(ThreadStat::parse(&stat).unwrap().state, b'R');
        let machine = MachineTime::parse(&std::fs::read("/proc/stat").unwrap()).unwrap();
        assert!(machine.total > machine.idle && machine.idle > 0);
        let status = std::fs::read("/proc/thread-self/status").unwrap();
        assert_eq!((pending_signals(&status), blocked_signals(&status), tracer(&status)), (Some(0), Some(0), Some(0)));
        std::thread::sleep(std::time::Duration::from_millis(1));
        let later = std::fs::read("/proc/thread-self/status").unwrap();
        assert!(voluntary_switches(&later).unwrap() > voluntary_switches(&status).unwrap());
        assert!(
            involuntary_switches(&later) >= involuntary_switches(&status) && involuntary_switches(&status).is_some()
        );
        let schedule = SchedStat::parse(&std::fs::read("/proc/thread-self/schedstat").unwrap()).unwrap();
        assert!(schedule.run_ns > 10_000 && schedule.slices > 0, "{schedule:?}");
        let memory = std::fs::read("/proc/meminfo").unwrap();
        assert!(memory_kb(&memory, b"MemTotal").unwrap() > memory_kb(&memory, b"MemFree").unwrap());
    }

    #[test]
    fn a_waiting_thread_tells_where() {
        let read = KernelState::parse(b"0 0x5 0x7ffd 0x8 0x0 0x0 0x0 0x7ffe10 0x7f3a0\n");
        let waiting = Waiting { call: Some((0, [5, 0x7ffd, 8, 0, 0, 0])), sp: 0x7ffe10, pc: 0x7f3a0 };
        assert_eq!(read, Some(KernelState::Waiting(waiting)));
        let fault = KernelState::parse(b"-1 0x7ffe10 0x7f3a0\n");
        assert_eq!(fault, Some(KernelState::Waiting(Waiting { call: None, ..waiting })));
        assert_eq!(KernelState::parse(b"running\n"), Some(KernelState::Running));
        for damaged in ["", "run", "0 0x5", "-1 0x1", "-1 0x1 0x2 0x3", "-2 0x1 0x2", "7 5 6 7", "-1 0x 0x1"] {
            assert_eq!(KernelState::parse(damaged.as_bytes()), None, "{damaged}");
        }
    }

    #[test]
    fn schedstat_is_three_numbers_and_not_all_zero() {
        let stat = |text: &str| SchedStat::parse(text.as_bytes()).map(|s| (s.run_ns, s.wait_ns, s.slices));
        assert_eq!(stat("993672 1488733 2\n"), Some((993_672, 1_488_733, 2)));
        assert_eq!(stat("1 0 1"), Some((1, 0, 1)));
        for damaged in ["", "0 0 0\n", "1 2", "1 2 x", "-1 2 3", "1  2 3", "99999999999999999999 1 1"] {
            assert_eq!(stat(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn damaged_text_is_refused() {
        assert_eq!(MachineTime::parse(b"cpu  1 2 3"), None);
        assert_eq!(MachineTime::parse(b"cpu0 1 2 3 4 5 6 7"), None);
        assert_eq!(MachineTime::parse(b"cpu  1 2 3 4 5 6 99999999999999999999"), None);
        assert_eq!(pending_signals(b"SigPnd:\tzz\n"), None);
        assert_eq!(memory_kb(b"MemTotal: x kB\n", b"MemTotal"), None);
    }

    /// Whatever bytes come, nothing panics; and what is printed comes back.
    #[test]
    fn random_text_is_parsed_or_refused() {
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        let mut next = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 33) as usize % below
        };
        let kernels: [&[u8]; 5] = [
            b"77 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n",
            b"993672 1488733 2\n",
            b"0 0x5 0x7ffd 0x8 0x0 0x0 0x0 0x7ffe10 0x7f3a0\n",
            b"voluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t5\nSigPnd:\t0f\nTracerPid:\t0\n",
            b"cpu  1 2 3 4 5 6 7\n",
        ];
        for _ in 0..200_000 {
            let mut text = kernels[next(kernels.len())].to_vec();
            for _ in 0..next(4) {
                let place = next(text.len());
                match next(3) {
                    0 => text[place] = next(256) as u8,
                    1 => text.truncate(place.max(1)),
                    _ => text.insert(place, b"0 x-9)\n:"[next(8)]),
                }
            }
            let _ = (ThreadStat::parse(&text), MachineTime::parse(&text), SchedStat::parse(&text));
            let _ = (voluntary_switches(&text), involuntary_switches(&text), pending_signals(&text), tracer(&text));
            if let Some(KernelState::Waiting(waiting)) = KernelState::parse(&text) {
                let call = waiting.call.map_or("-1".into(), |(number, arguments)| {
                    let arguments: Vec<_> = arguments.iter().map(|argument| format!("0x{argument:x}")).collect();
                    format!("{number} {}", arguments.join(" "))
                });
                let printed = format!("{call} 0x{:x} 0x{:x}", waiting.sp, waiting.pc);
                assert_eq!(KernelState::parse(printed.as_bytes()), Some(KernelState::Waiting(waiting)));
            }
        }
    }
}
