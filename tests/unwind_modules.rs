//! The module table on real libraries: loaded, unloaded, deleted, inside an archive, without parts.

#[path = "unwind_parts/chain.rs"]
mod chain;
#[path = "unwind_parts/lld.rs"]
mod lld;
#[path = "unwind_parts/names.rs"]
mod names;
#[path = "unwind_parts/own.rs"]
mod own;

use std::fs;
#[cfg(target_pointer_width = "64")]
use std::os::fd::AsRawFd;
#[cfg(target_pointer_width = "64")]
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blockcanary::sys::maps::OwnMaps;
use blockcanary::unwind::cache::Cached;
use blockcanary::unwind::cfi::Stepper;
use blockcanary::unwind::elf::Image;
use blockcanary::unwind::memory::Memory;
use blockcanary::unwind::modules::{Module, ModuleTable};
use blockcanary::unwind::registers::Registers;
use blockcanary::unwind::symbols;

use chain::{BUILD_ID, Build, Chain};
use names::Modules;
use own::OwnMemory;

/// Tests that count on what is mapped must not load at the same time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn a_loaded_library_has_path_build_id_and_offsets() {
    let _alone = alone();
    let library = Build::Tables.compile("modules-loaded");
    let chain = Chain::open(&library);
    let modules = Modules::new();
    let pc = chain.address(c"chain_7");
    let module = modules.table.find(pc).expect("the library");
    assert_eq!(modules.table.path(module).to_str().unwrap(), library.to_str().unwrap());
    assert_eq!(modules.table.build_id(module).to_str().unwrap(), BUILD_ID);
    assert!(!module.deleted);
    let listed = std::process::Command::new("nm").arg("-D").arg(&library).output().expect("nm");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = listed.lines().find(|line| line.ends_with(" chain_7")).unwrap();
    assert_eq!(module.offset_of(pc), u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap());
    let own = a_loaded_library_has_path_build_id_and_offsets as *const () as u64;
    assert_eq!(modules.path_of(own).unwrap(), fs::read_link("/proc/self/exe").unwrap().to_str().unwrap());
    chain.close();
}

/// Linked by lld, code follows the headers in the same page of the file, which is then mapped twice.
#[test]
fn code_that_shares_a_page_with_the_headers_has_its_offsets() {
    let _alone = alone();
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("modules-shared-page.so");
    let source = library.with_extension("c");
    fs::write(&source, "int function_of_three(void) { return 3; }\n").unwrap();
    let mut compiler = std::process::Command::new(std::env::var("CC").unwrap_or("cc".to_owned()));
    compiler.args(lld::options()).args(["-O1", "-shared", "-fPIC", "-Wl,-z,max-page-size=4096", "-o"]);
    assert!(compiler.arg(&library).arg(&source).status().expect("a C compiler named cc, and lld").success());
    let chain = Chain::open(&library);
    let modules = Modules::new();
    let pc = chain.address(c"function_of_three");
    let module = modules.table.find(pc).expect("the library");
    let mut name = [0; 64];
    let function = module.function(&OwnMemory::new(), pc, &mut name).expect("its symbol");
    assert_eq!(&name[..function.name_length], b"function_of_three");
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps.lines().filter(|line| line.ends_with("modules-shared-page.so"));
    let begins = mapped.filter(|line| line.split(' ').nth(2) == Some("00000000")).count();
    assert!(begins > 1, "this linker does not share the page");
    chain.close();
}

#[test]
fn libraries_that_come_and_go_are_noticed_and_data_is_not() {
    let _alone = alone();
    let library = Build::Tables.compile("modules-come");
    let mut modules = Modules::new();
    let changed = |modules: &Modules| modules.table.changed(OwnMaps::open().unwrap()).unwrap();
    assert!(!changed(&modules));
    let data = vec![1_u8; 8 << 20];
    assert!(!changed(&modules), "{}", data.len());
    let chain = Chain::open(&library);
    let pc = chain.address(c"chain_1");
    assert!(changed(&modules) && modules.table.find(pc).is_none());
    modules.refresh();
    assert!(!changed(&modules) && modules.table.find(pc).is_some());
    chain.close();
    assert!(changed(&modules));
    modules.refresh();
    assert!(modules.table.find(pc).is_none());
}

#[cfg(target_pointer_width = "64")]
/// Maps the library's segments from the middle of a file, as a loader does with one inside an archive.
fn map_from_archive(archive: &Path, offset: usize) -> u64 {
    let bytes = fs::read(archive).unwrap();
    let file = fs::File::open(archive).unwrap();
    let header = &bytes[offset..];
    let word = |at: usize| usize::from_ne_bytes(header[at..at + 8].try_into().unwrap());
    let count = u16::from_ne_bytes(header[56..58].try_into().unwrap());
    let loads: Vec<usize> = (0..usize::from(count))
        .map(|index| word(32) + index * 56)
        .filter(|at| header[*at..*at + 4] == 1_u32.to_ne_bytes())
        .collect();
    let last = loads.last().unwrap();
    let size = word(last + 16) + word(last + 40);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, and mappings of a file inside it only.
    unsafe {
        let base = libc::mmap(std::ptr::null_mut(), size + 4096, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        for at in loads {
            let permissions = header[at + 4];
            let mut protection = libc::PROT_READ;
            if permissions & 1 != 0 {
                protection |= libc::PROT_EXEC;
            }
            let (from, to, size) = (word(at + 8) & !4095, word(at + 16) & !4095, word(at + 32) + word(at + 16) % 4096);
            let place = base.byte_add(to);
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
            let mapped = libc::mmap(place, size, protection, flags, file.as_raw_fd(), (offset + from) as libc::off_t);
            assert_eq!(mapped, place);
        }
        base as u64
    }
}

#[cfg(target_pointer_width = "64")]
#[test]
fn a_library_inside_an_archive_has_both_names() {
    let _alone = alone();
    let library = Build::Tables.compile("modules-archive");
    let chain = Chain::open(&library);
    let modules = Modules::new();
    let module = *modules.table.find(chain.address(c"chain_4")).unwrap();
    let offset = module.offset_of(chain.address(c"chain_4"));

    let archive = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("base.apk");
    let mut bytes = vec![b'P'; 0x3000];
    bytes.extend(fs::read(&library).unwrap());
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let second = bytes.len();
    bytes.extend(fs::read(&library).unwrap());
    fs::write(&archive, bytes).unwrap();
    // Two libraries of one file.
    for place in [0x3000, second] {
        let base = map_from_archive(&archive, place);
        let modules = Modules::new();
        let found = modules.table.find(base + offset).expect("the mapped library");
        let path = modules.table.path(found).to_str().unwrap();
        assert_eq!(path, format!("{}!libchain.so", archive.to_str().unwrap()));
        assert_eq!(modules.table.build_id(found).to_str().unwrap(), BUILD_ID);
        assert_eq!(found.offset_of(base + offset), offset);
        // Nobody has relocated its dynamic section.
        assert_eq!(modules.names(&[base + offset]), ["chain_4"]);
    }
    fs::remove_file(&archive).unwrap();
    let modules = Modules::new();
    let gone = modules.table.all().iter().filter(|module| module.deleted).collect::<Vec<_>>();
    assert_eq!(gone.len(), 2);
    let expected = format!("{}!libchain.so", archive.to_str().unwrap());
    assert!(gone.iter().all(|module| modules.table.path(module).to_str().unwrap() == expected));
    chain.close();
}

#[test]
fn a_full_table_counts_what_it_misses() {
    let _alone = alone();
    let whole = Modules::new();
    let modules = whole.table.all().len();
    let (mut slots, mut text) = ([Module::default(); 4], [0; 64]);
    let mut table = ModuleTable::new(&mut slots, &mut text);
    table.refresh(OwnMaps::open().unwrap(), &OwnMemory::new()).unwrap();
    assert_eq!(table.all().len() + table.missed(), modules);
    assert!(table.unnamed() > 0);
    let (first, same) = (&table.all()[0], &whole.table.all()[0]);
    assert_eq!((first.code, first.image), (same.code, same.image));
    assert!(table.find(first.code.start).is_some() && table.find(first.code.end).is_none_or(|m| m.code != first.code));
    for (slots, text) in [(0, 0), (4, 0), (0, 4), (1, 1)] {
        let (mut slots, mut text) = (vec![Module::default(); slots], vec![0; text]);
        let mut table = ModuleTable::new(&mut slots, &mut text);
        table.refresh(OwnMaps::open().unwrap(), &OwnMemory::new()).unwrap();
        assert!(table.all().iter().all(|module| table.path(module).is_empty()));
    }
}

#[test]
fn code_without_headers_is_still_a_module() {
    let _alone = alone();
    let maps = b"1000-2000 r-xp 00000000 00:00 0 \n\
        3000-4000 r-xp 00002000 08:01 77 /data/jit cache (deleted)\n\
        ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
    let (mut slots, mut text) = ([Module::default(); 8], [0; 256]);
    let mut table = ModuleTable::new(&mut slots, &mut text);
    table.refresh(maps.as_slice(), &OwnMemory::new()).unwrap();
    let found = |pc: u64| {
        table.find(pc).map(|module| (table.path(module).to_str().unwrap(), module.offset_of(pc), module.deleted))
    };
    assert_eq!(found(0x1800), Some(("", 0x800, false)));
    assert_eq!(found(0x3010), Some(("/data/jit cache", 0x2010, true)));
    assert_eq!(found(0xffffffffff600400), Some(("[vsyscall]", 0x400, false)));
    assert_eq!((found(0xfff), found(0x2000), found(0x4000), found(u64::MAX)), (None, None, None, None));
}

#[test]
fn a_library_may_vanish_while_it_is_read() {
    let _alone = alone();
    let library = Build::Tables.compile("modules-vanish");
    let chain = Chain::open(&library);
    let modules = Modules::new();
    let pc = chain.address(c"chain_9") + 1;
    let offset = modules.table.find(pc).unwrap().offset_of(pc);
    chain.close();
    let (open, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let (mut named, mut nameless, mut steps) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Ordering::SeqCst) {
                let chain = Chain::open(&library);
                open.store(chain.address(c"chain_9") + 1, Ordering::SeqCst);
                chain.close();
            }
        });
        let begin = Instant::now();
        let mut stepper = Stepper::new();
        while (named < 100 || nameless < 100 || steps < 100) && begin.elapsed() < Duration::from_secs(20) {
            let memory = Cached::new(OwnMemory::new());
            let pc = open.load(Ordering::SeqCst);
            let Some(image) = Image::read(&memory, pc.wrapping_sub(offset)) else {
                nameless += 1;
                continue;
            };
            let mut name = [0; 32];
            match symbols::function(&image, &memory, pc, &mut name) {
                Some(_) => named += 1,
                None => nameless += 1,
            }
            let stack = [1_u64; 32];
            let mut registers = Registers::new(pc, 0);
            (0..33).for_each(|number| registers.set(number, 1));
            (registers.pc, registers.sp) = (pc, stack.as_ptr() as u64);
            steps += stepper.step(&registers, &image, &memory, pc).is_ok() as u32;
        }
        enough.store(true, Ordering::SeqCst);
    });
    // 32-bit ARM has tables of another form.
    let stepped = steps >= 100 || cfg!(target_arch = "arm");
    assert!(named >= 100 && nameless >= 100 && stepped, "all must be met: {named} {nameless} {steps}");
}

#[test]
fn names_of_the_c_library_are_those_that_people_call() {
    let _alone = alone();
    let modules = Modules::new();
    for name in ["read", "poll", "nanosleep", "pthread_mutex_lock", "write"] {
        let wanted = std::ffi::CString::new(name).unwrap();
        // SAFETY: a C string.
        let target = unsafe { libc::dlsym(libc::RTLD_DEFAULT, wanted.as_ptr()) };
        assert!(!target.is_null(), "{name}");
        assert_eq!(modules.names(&[target as u64 + 1]), [name]);
        let module = modules.table.find(target as u64).unwrap();
        assert!(OwnMemory::new().word(module.image.span.start).is_some());
    }
}
