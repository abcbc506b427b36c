//! The words of imports, found in libraries that are linked in every way there is, and in broken ones.

#[path = "unwind_parts/lld.rs"]
mod lld;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use blockcanary::hook::imports::{self, Unreadable, Use};
use blockcanary::unwind::elf::Image;
use blockcanary::unwind::memory::Memory;

/// Some that are imported in all ways, some that are not to be found: another name, a longer one, the library's own.
const SOURCE: &str = r"
int ALooper_pollOnce(int, int *, int *, void **);
int ALooper_pollAll(int, int *, int *, void **);
int ALooper_pollOnceMore(void);
int ALooper_addFd(void *looper) { return looper != 0; }
int ALooper_wake(void);
typedef int (*function)(void);
function const relocated[] = {(function)ALooper_pollOnce, ALooper_wake, (function)ALooper_addFd, (function)ALooper_pollAll};
function changing[] = {ALooper_pollOnceMore, (function)ALooper_pollAll, ALooper_wake, (function)ALooper_pollOnce};
static int numbers[40];
#define FOUR(n) &numbers[n], &numbers[n + 1], &numbers[n + 2], &numbers[n + 3]
int *relative[] = {FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28), FOUR(32), FOUR(36)};
int *apart[] = {&numbers[3], 0, 0, &numbers[1], 0, &numbers[7], 0, 0, 0, &numbers[9]};
int poll(int once) {
  return (once ? ALooper_pollOnce(0, 0, 0, 0) : ALooper_pollAll(0, 0, 0, 0)) + ALooper_wake() + ALooper_pollOnceMore();
}
";
const NAMES: [&[u8]; 4] = [b"ALooper_addFd", b"ALooper_removeFd", b"ALooper_pollOnce", b"ALooper_pollAll"];
const BASE: u64 = 0x7100_0000_0000_u64 & (usize::MAX as u64 >> 1) & !0xfff;

/// A library as a loader maps it, but for what a loader writes.
#[derive(Clone)]
struct Mapped(Vec<u8>);

impl Memory for Mapped {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let piece = address.checked_sub(BASE).and_then(|start| {
            let start = usize::try_from(start).ok()?;
            self.0.get(start..start.checked_add(out.len())?)
        });
        piece.map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

impl Mapped {
    fn at(&self, offset: usize, size: usize) -> usize {
        let bytes = &self.0[offset..offset + size];
        bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
    }

    fn dynamic(&self) -> BTreeSet<usize> {
        let word = size_of::<usize>();
        let headers = if word == 8 { (32, 56, 56, 16) } else { (28, 44, 32, 8) };
        let (table, count) = (self.at(headers.0, word), self.at(headers.1, 2));
        let header = (0..count).map(|index| table + index * headers.2).find(|at| self.at(*at, 4) == 2).unwrap();
        let entries = (self.at(header + headers.3, word)..).step_by(2 * word).map(|at| self.at(at, word));
        entries.take_while(|tag| *tag != 0).collect()
    }

    fn imports(&self) -> Result<Vec<(usize, u64, Use)>, Unreadable> {
        let Some(image) = Image::read(self, BASE) else { return Err(Unreadable::Symbols) };
        let mut found = vec![];
        imports::each(&image, self, &NAMES, &mut |import| {
            assert!(import.at.is_multiple_of(size_of::<usize>() as u64));
            assert!(image.span.start <= import.at && import.at + size_of::<usize>() as u64 <= image.span.end);
            found.push((import.name, import.at - BASE, import.used_as));
        })?;
        found.sort_by_key(|(name, at, used_as)| (*name, *used_as == Use::Pointer, *at));
        Ok(found)
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("imports-{name}.so"))
}

fn library(name: &str, options: &[&str]) -> Mapped {
    let library = path(name);
    let source = library.with_extension("c");
    std::fs::write(&source, SOURCE).unwrap();
    let mut compiler = Command::new(std::env::var("CC").unwrap_or("cc".to_owned()));
    let options = options.iter().flat_map(|option| match *option {
        LLD => lld::options().to_vec(),
        option => vec![option.to_owned()],
    });
    compiler.args(["-O1", "-shared", "-fPIC"]).args(options).arg("-o").arg(&library).arg(&source);
    assert!(compiler.status().expect("a C compiler named cc").success());
    let file = Mapped(std::fs::read(library).unwrap());
    let word = size_of::<usize>();
    let (table, count) = if word == 8 { (32, 56) } else { (28, 44) };
    let (size, offset, address, length) = if word == 8 { (56, 8, 16, 32) } else { (32, 4, 8, 16) };
    let mut mapped = Mapped(vec![]);
    for index in 0..file.at(count, 2) {
        let header = file.at(table, word) + index * size;
        if file.at(header, 4) == 1 {
            let [offset, address, length] = [offset, address, length].map(|field| file.at(header + field, word));
            // What lies behind the file's part is zero: 40 numbers.
            mapped.0.resize(mapped.0.len().max(address + length + 4096), 0);
            mapped.0[address..address + length].copy_from_slice(&file.0[offset..offset + length]);
        }
    }
    mapped
}

/// Where a library's variable is.
fn place_of(variable: &str, library: &str) -> u64 {
    let listed = Command::new("nm").arg("-D").arg(path(library)).output().expect("nm");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = listed.lines().find(|line| line.ends_with(variable)).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

/// What is found in every one of them: a slot and two pointers of each of the two functions that are imported.
fn check(name: &str, options: &[&str], tags: &[usize]) {
    let library = library(name, options);
    let has = library.dynamic();
    assert!(tags.iter().all(|tag| has.contains(tag)), "{name} has only {has:x?}");
    let found = library.imports().unwrap();
    let word = size_of::<usize>() as u64;
    let [relocated, changing] = [" relocated", " changing"].map(|variable| place_of(variable, name));
    let pointers = [(2, relocated), (2, changing + 3 * word), (3, relocated + 3 * word), (3, changing + word)];
    let (slots, others): (Vec<_>, Vec<_>) = found.iter().partition(|(_, _, used_as)| *used_as == Use::Slot);
    let others: BTreeSet<_> = others.iter().map(|(name, at, _)| (*name, *at)).collect();
    let of_slots = slots.iter().map(|(name, _, _)| *name);
    // Nothing tells a word of the GOT from a pointer there; an address that code takes has one beside the slot.
    if cfg!(target_arch = "riscv64") {
        let words = others.difference(&BTreeSet::from(pointers)).map(|(name, _)| *name).collect::<BTreeSet<_>>();
        assert_eq!(of_slots.chain(words).collect::<BTreeSet<_>>(), BTreeSet::from([2, 3]), "{name}");
        assert!(others.is_superset(&BTreeSet::from(pointers)), "{name}");
    } else {
        assert_eq!(others, BTreeSet::from(pointers), "{name}");
        assert_eq!(of_slots.collect::<Vec<_>>(), [2, 3], "{name}");
    }
    assert!(slots.iter().all(|(_, slot, _)| pointers.iter().all(|(_, pointer)| slot != pointer)), "{name}");
}

/// Linked by lld.
const LLD: &str = "lld";
const RELA: usize = 7;
const REL: usize = 17;
const RELR: usize = 36;
const SLOTS: usize = 23;
const PACKED_REL: usize = 0x6000_000f;
const PACKED_RELA: usize = 0x6000_0011;

#[test]
fn lazy_slots_and_pointers() {
    check("lazy", &["-Wl,-z,lazy"], &[SLOTS]);
    check("now", &["-Wl,-z,now,-z,relro"], &[SLOTS]);
}

#[test]
fn calls_without_stubs() {
    check("no-plt", &["-fno-plt", "-Wl,-z,now"], &[]);
}

#[test]
fn by_the_linker_of_android() {
    check("lld", &[LLD, "-Wl,-z,now,-z,rela"], &[SLOTS, RELA]);
    check("lld-rel", &[LLD, "-Wl,-z,rel"], &[SLOTS, REL]);
    let packed = |name, options, tags: &[usize]| check(name, &[LLD, options], tags);
    packed("packed", "-Wl,--pack-dyn-relocs=android,-z,rela", &[SLOTS, PACKED_RELA]);
    packed("packed-rel", "-Wl,--pack-dyn-relocs=android,-z,rel", &[SLOTS, PACKED_REL]);
    packed("relr", "-Wl,--pack-dyn-relocs=relr,-z,rela", &[SLOTS, RELA, RELR]);
    packed("packed-relr", "-Wl,--pack-dyn-relocs=android+relr,-z,rela", &[SLOTS, PACKED_RELA]);
}

#[test]
fn a_library_without_such_imports_has_none() {
    let mut library = library("none", &[]);
    let names = library.0.windows(9).enumerate().filter(|(_, piece)| piece == b"ALooper_p").map(|(at, _)| at);
    for at in names.collect::<Vec<_>>() {
        library.0[at] = b'B';
    }
    assert_eq!(library.imports(), Ok(vec![]));
}

/// Cut off anywhere, or with any byte of its tables changed, nothing panics, nothing takes for ever, and every word that is
/// found is a word of the library's.
#[test]
fn broken_libraries_are_refused_or_read() {
    for (name, options) in [
        ("hostile", &["-Wl,-z,now"][..]),
        ("hostile-packed", &[LLD, "-Wl,--pack-dyn-relocs=android,-z,rela"]),
        ("hostile-rel", &[LLD, "-Wl,--pack-dyn-relocs=android,-z,rel"]),
    ] {
        let whole = library(name, options);
        // GNU's linker gives addresses that code takes words beside the slots there.
        let beside = if cfg!(target_arch = "riscv64") && !options.contains(&LLD) { 2 } else { 0 };
        assert_eq!(whole.imports().unwrap().len(), 6 + beside);
        let mut refused = 0;
        for length in (0..whole.0.len()).step_by(37) {
            refused += usize::from(Mapped(whole.0[..length].to_vec()).imports().is_err());
        }
        assert!(refused > 10, "{refused} of the cut ones");
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut broken = whole.clone();
        for _ in 0..5_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % whole.0.len();
            broken.0[at] = (state >> 40) as u8;
            refused += usize::from(broken.imports().is_err());
            broken.0[at] = whole.0[at];
        }
        assert!(refused > 100, "{refused}");
    }
}
