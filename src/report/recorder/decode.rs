//! What `encode` has written, read back. Nothing in it is believed: a recorder is a file, and its sum only tells damage.

use super::encode::{EARLIER_STRING, END, JAVA, NEW_STACK, NO_STRING, OTHER, OWN, UNKNOWN};
use super::layout::Reader;
use crate::abi::{bc_cause, bc_sample_method};
use crate::report::block::{CAUSES, CpuTick, JavaStack, Scheduling, SystemLoad};
use crate::report::view::Frame;
use crate::sample::cause;

/// A block as it was when the recorder was written last, but for its samples.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    held: &'a [u8],
    /// Where the busiest threads begin.
    top: usize,
    /// Where the looks at the CPU load begin.
    ticks: usize,
    /// Where the samples begin.
    items: usize,
    /// See `Block`.
    pub id: u64,
    /// See `Block`.
    pub cause: bc_cause,
    /// See `Block`.
    pub tid: i32,
    /// See `Block`.
    pub tag: u64,
    /// See `Block`.
    pub start_unix_ms: i64,
    /// See `Block`.
    pub start_ns: u64,
    /// See `Block`; a lower bound.
    pub wall_ns: u64,
    /// See `Block`.
    pub cpu_ns: u64,
    /// See `Block`.
    pub cpu_uncertainty_ns: u64,
    /// See `Block`.
    pub threshold_ns: u64,
    /// See `Block`.
    pub run_queue_wait_ns: Option<u64>,
    /// See `Block`.
    pub loop_name: &'a [u8],
    /// See `Block`.
    pub what: Option<&'a [u8]>,
    /// See `Block`.
    pub cause_detail: Option<&'a [u8]>,
    /// See `Reasons`.
    pub shares: [u16; CAUSES],
    /// See `Reasons`.
    pub scheduling: Scheduling,
    /// How many other threads it had to tell, if all were asked for.
    pub threads: Option<u64>,
    /// The process that it was in.
    pub surroundings: Surroundings<'a>,
}

/// What a report says of the process, as it was.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// See `Context`, as all of this.
    pub sample_interval_ns: u64,
    /// See above.
    pub utc_offset_s: i32,
    /// See above.
    pub pid: i32,
    /// See above.
    pub cores: u32,
    /// See above.
    pub free_memory_kb: u64,
    /// See above.
    pub total_memory_kb: u64,
    /// Qualifier, version name, version code, user id, network type.
    pub words: [Option<&'a [u8]>; 5],
    /// See above.
    pub process_name: &'a [u8],
    /// See above.
    pub model: &'a [u8],
    /// See above.
    pub api_level: &'a [u8],
}

/// One of the busiest threads.
pub struct Top<'a> {
    /// Its id.
    pub tid: i32,
    /// See `TopThread`.
    pub load: u32,
    /// Its name.
    pub name: &'a [u8],
}

/// Another thread than the loop's.
pub struct Other<'a> {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub name: &'a [u8],
    /// See `OtherThread`.
    pub role: Option<&'a [u8]>,
    /// See `OtherThread`.
    pub is_watched: bool,
}

/// One sample.
pub struct Item<'a> {
    /// The thread, if it is not the loop's own.
    pub other: Option<Other<'a>>,
    /// See `bc_sample`, as the rest.
    pub time_ns: u64,
    /// See above.
    pub method: bc_sample_method,
    /// See above.
    pub thread_state: u8,
    /// See above.
    pub truncated: bool,
    /// See above.
    pub approximate: bool,
    /// See above.
    pub frames_cut: u32,
    /// Where its stack stands: the same for equal ones.
    pub stack: u32,
}

/// What may be left out of a record.
enum Entry<'a> {
    Sample(Item<'a>),
    Java(JavaStack<'a>),
}

/// A place in the record.
struct Cursor<'a> {
    held: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = Reader(self.held.get(self.at..)?).take(count)?;
        self.at += count;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn id(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    fn known(&mut self) -> Option<Option<u64>> {
        self.u64().map(|value| (value != UNKNOWN).then_some(value))
    }

    fn string(&mut self) -> Option<Option<&'a [u8]>> {
        match self.u16()? {
            NO_STRING => Some(None),
            EARLIER_STRING => {
                let at = self.u32()? as usize;
                let mut earlier = Cursor { held: self.held.get(..self.at)?, at };
                match earlier.u16()? {
                    NO_STRING | EARLIER_STRING => None,
                    length => earlier.take(usize::from(length)).map(Some),
                }
            }
            length => self.take(usize::from(length)).map(Some),
        }
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        self.string().map(Option::unwrap_or_default)
    }

    fn top(&mut self) -> Option<Top<'a>> {
        Some(Top { tid: self.id()?, load: self.u32()?, name: self.text()? })
    }

    fn tick(&mut self) -> Option<CpuTick> {
        let (time_ns, process, is_known) = (self.u64()?, self.u32()?, self.u8()? != 0);
        let system = SystemLoad { busy: self.u16()?, user: self.u16()?, system: self.u16()?, io_wait: self.u16()? };
        Some(CpuTick { time_ns, process, system: is_known.then_some(system) })
    }

    fn frame(&mut self) -> Option<Frame<'a>> {
        Some(Frame {
            pc: self.u64()?,
            module_offset: self.u64()?,
            symbol_offset: self.u64()?,
            module: self.string()?,
            build_id: self.string()?,
            symbol: self.string()?,
        })
    }

    /// `None` at the end, and for what is none.
    fn entry(&mut self) -> Option<Entry<'a>> {
        let other = match self.u8()? {
            JAVA => {
                let (time_ns, frames_cut, text) = (self.u64()?, self.u32()?, self.text()?);
                return Some(Entry::Java(JavaStack { time_ns, text, frames_cut }));
            }
            OTHER => {
                let (tid, name, role, is_watched) = (self.id()?, self.text()?, self.string()?, self.u8()? != 0);
                Some(Other { tid, name, role, is_watched })
            }
            OWN => None,
            END | 4.. => return None,
        };
        let (time_ns, method, thread_state, flags) = (self.u64()?, self.u8()?, self.u8()?, self.u8()?);
        let frames_cut = self.u32()?;
        let stack = match self.u32()? {
            NEW_STACK => {
                let at = self.at;
                for _ in 0..self.u16()? {
                    self.frame()?;
                }
                at as u32
            }
            earlier => earlier,
        };
        let method = [bc_sample_method::BC_SAMPLE_KERNEL_STATE, bc_sample_method::BC_SAMPLE_SIGNAL]
            .into_iter()
            .find(|known| *known as u8 == method)
            .unwrap_or(bc_sample_method::BC_SAMPLE_NO_STACK);
        let (truncated, approximate) = (flags & 1 != 0, flags & 2 != 0);
        Some(Entry::Sample(Item { other, time_ns, method, thread_state, truncated, approximate, frames_cut, stack }))
    }
}

impl<'a> Record<'a> {
    /// Reads what a half holds; `None` for what is no block.
    pub fn read(held: &'a [u8]) -> Option<Record<'a>> {
        let at = &mut Cursor { held, at: 0 };
        let (id, cause, tid, tag) = (at.u64()?, at.u8()?, at.id()?, at.u64()?);
        let cause = cause::ALL.into_iter().find(|known| *known as u8 == cause)?;
        let start_unix_ms = at.u64()?.cast_signed();
        let [start_ns, wall_ns, cpu_ns, cpu_uncertainty_ns, threshold_ns] =
            [at.u64()?, at.u64()?, at.u64()?, at.u64()?, at.u64()?];
        let run_queue_wait_ns = at.known()?;
        let (loop_name, what, cause_detail) = (at.text()?, at.string()?, at.string()?);
        let surroundings = Surroundings {
            sample_interval_ns: at.u64()?,
            utc_offset_s: at.id()?,
            pid: at.id()?,
            cores: at.u32()?,
            free_memory_kb: at.u64()?,
            total_memory_kb: at.u64()?,
            words: [at.string()?, at.string()?, at.string()?, at.string()?, at.string()?],
            process_name: at.text()?,
            model: at.text()?,
            api_level: at.text()?,
        };
        let mut shares = [0; CAUSES];
        for share in &mut shares {
            *share = at.u16()?;
        }
        let scheduling = Scheduling {
            cpu_ns: at.u64()?,
            slices: at.known()?,
            minor_faults: at.known()?,
            major_faults: at.known()?,
            voluntary_switches: at.known()?,
            involuntary_switches: at.known()?,
            ..Scheduling::NONE
        };
        let top = at.at;
        for _ in 0..at.u8()? {
            at.top()?;
        }
        let threads = at.known()?;
        let ticks = at.at;
        for _ in 0..at.u16()? {
            at.tick()?;
        }
        let items = at.at;
        Some(Record {
            held,
            top,
            ticks,
            items,
            id,
            cause,
            tid,
            tag,
            start_unix_ms,
            start_ns,
            wall_ns,
            cpu_ns,
            cpu_uncertainty_ns,
            threshold_ns,
            run_queue_wait_ns,
            loop_name,
            what,
            cause_detail,
            shares,
            scheduling,
            threads,
            surroundings,
        })
    }

    /// The busiest threads, busiest first.
    pub fn top(&self) -> impl Iterator<Item = Top<'a>> + use<'a> {
        let mut at = Cursor { held: self.held, at: self.top };
        let count = at.u8().unwrap_or(0);
        (0..count).map_while(move |_| at.top())
    }

    /// CPU load, oldest first.
    pub fn ticks(&self) -> impl Iterator<Item = CpuTick> + use<'a> {
        let mut at = Cursor { held: self.held, at: self.ticks };
        let count = at.u16().unwrap_or(0);
        (0..count).map_while(move |_| at.tick())
    }

    /// Samples, in no order.
    pub fn items(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        self.entries().filter_map(|entry| match entry {
            Entry::Sample(item) => Some(item),
            Entry::Java(_) => None,
        })
    }

    /// The loop's Java stack, where it had one.
    pub fn java(&self) -> Option<JavaStack<'a>> {
        self.entries().find_map(|entry| match entry {
            Entry::Java(stack) => Some(stack),
            Entry::Sample(_) => None,
        })
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut at = Cursor { held: self.held, at: self.items };
        core::iter::from_fn(move || at.entry())
    }

    /// The frames of a stack, innermost first. Strings are where they stand in the record, so that equal ones are known as
    /// such.
    pub fn frames(&self, stack: u32) -> impl Iterator<Item = Frame<'a>> + use<'a> {
        let mut at = Cursor { held: self.held, at: stack as usize };
        let count = at.u16().unwrap_or(0);
        (0..count).map_while(move |_| at.frame())
    }
}
