use super::*;
use std::cell::Cell;

/// A file of bytes, which counts what is read of it.
struct Bytes {
    bytes: Vec<u8>,
    read: Cell<u64>,
}

impl Bytes {
    fn new(bytes: &[u8]) -> Bytes {
        Bytes { bytes: bytes.to_vec(), read: Cell::new(0) }
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }
}

impl Memory for Bytes {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.read.set(self.read.get() + out.len() as u64);
        let start = usize::try_from(address).ok();
        let piece = start.and_then(|start| self.bytes.get(start..start.checked_add(out.len())?));
        piece.map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

fn symbol(name: u32, kind: u8, section: u16, value: u64, size: u64) -> Vec<u8> {
    let mut bytes = name.to_ne_bytes().to_vec();
    bytes.extend([kind, 0]);
    bytes.extend(section.to_ne_bytes());
    bytes.extend(value.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes
}

const SECTIONS: usize = 1024;
const SYMBOLS_AT: usize = 2048;
const NAMES: &[u8] = b"\0main\0helper\0data\0";

/// A small file: a build id, three sections, and some symbols.
fn file() -> Bytes {
    let mut file = Bytes::new(&[0; 4096]);
    file.set(0, b"\x7fELF\x02\x01\x01");
    file.set(16, &2_u16.to_ne_bytes());
    file.set(32, &64_u64.to_ne_bytes());
    file.set(40, &(SECTIONS as u64).to_ne_bytes());
    file.set(54, &(PROGRAM_HEADER as u16).to_ne_bytes());
    file.set(56, &1_u16.to_ne_bytes());
    file.set(58, &(SECTION_HEADER as u16).to_ne_bytes());
    file.set(60, &3_u16.to_ne_bytes());
    // A segment of notes with a build id.
    file.set(64, &4_u32.to_ne_bytes());
    file.set(64 + 8, &512_u64.to_ne_bytes());
    file.set(64 + 32, &20_u64.to_ne_bytes());
    file.set(
        512,
        &[4_u32.to_ne_bytes(), 4_u32.to_ne_bytes(), 3_u32.to_ne_bytes(), *b"GNU\0", [1, 2, 0xab, 0xff]].concat(),
    );
    let symbols = [
        symbol(0, 0, 0, 0, 0),
        symbol(1, 2, 1, 0x1000, 0x40),
        symbol(6, 2, 1, 0x1040, 0x20),
        symbol(13, 1, 1, 0x1060, 0x20),
    ]
    .concat();
    section(&mut file, 1, 2, SYMBOLS_AT as u64, symbols.len() as u64, 2);
    section(&mut file, 2, 3, 3072, NAMES.len() as u64, 0);
    file.set(SYMBOLS_AT, &symbols);
    file.set(3072, NAMES);
    file
}

fn section(file: &mut Bytes, index: usize, kind: u32, offset: u64, size: u64, link: u32) {
    let at = SECTIONS + index * SECTION_HEADER;
    file.set(at + 4, &kind.to_ne_bytes());
    file.set(at + 24, &offset.to_ne_bytes());
    file.set(at + 32, &size.to_ne_bytes());
    file.set(at + 40, &link.to_ne_bytes());
}

fn name(bytes: &Bytes, address: u64) -> Option<(String, u64)> {
    let mut out = [0; 64];
    let found = File::read(bytes)?.function(bytes, address, &mut out)?;
    Some((String::from_utf8_lossy(&out[..found.name_length]).into_owned(), found.offset))
}

#[test]
fn functions_are_found_and_nothing_else() {
    let file = file();
    assert_eq!(name(&file, 0x1000), Some(("main".into(), 0)));
    assert_eq!(name(&file, 0x103f), Some(("main".into(), 0x3f)));
    assert_eq!(name(&file, 0x1045), Some(("helper".into(), 5)));
    assert_eq!((name(&file, 0xfff), name(&file, 0x1060), name(&file, u64::MAX)), (None, None, None));
    let mut id = [0; 64];
    let length = File::read(&file).unwrap().build_id(&mut id);
    assert_eq!(&id[..length], b"0102abff");
}

#[test]
fn the_loaders_symbols_serve_where_there_are_no_others() {
    let mut file = file();
    section(&mut file, 1, 11, SYMBOLS_AT as u64, 4 * SYMBOL as u64, 2);
    assert_eq!(name(&file, 0x1045), Some(("helper".into(), 5)));
    section(&mut file, 0, 2, 0, 0, 2);
    assert_eq!(name(&file, 0x1045), None, "the full table comes first");
}

#[test]
fn a_count_that_does_not_fit_the_header_is_read_from_the_first_section() {
    let mut file = file();
    file.set(60, &0_u16.to_ne_bytes());
    assert_eq!(name(&file, 0x1045), None);
    section(&mut file, 0, 0, 0, 3, 0);
    assert_eq!(name(&file, 0x1045), Some(("helper".into(), 5)));
}

#[test]
fn contradictions_give_no_name() {
    for (at, value) in [
        (0, b"\x7fELG".as_slice()),
        (4, &[1]),
        (40, &[0; 8]),
        (40, &[0xff; 8]),
        (58, &[0; 2]),
        // The link to the strings leads to no section, to itself, to another kind.
        (SECTIONS + SECTION_HEADER + 40, &[3, 0, 0, 0]),
        (SECTIONS + SECTION_HEADER + 40, &[0xff; 4]),
        (SECTIONS + SECTION_HEADER + 40, &[1, 0, 0, 0]),
        (SECTIONS + SECTION_HEADER + 24, &[0xff; 8]),
        (SECTIONS + SECTION_HEADER + 32, &[0xff; 8]),
        (SECTIONS + 2 * SECTION_HEADER + 24, &[0xff; 8]),
        (SECTIONS + 2 * SECTION_HEADER + 32, &[2, 0, 0, 0]),
        (SYMBOLS_AT + 2 * SYMBOL, &[0xff; 4]),
    ] {
        let mut file = file();
        file.set(at, value);
        assert_eq!(name(&file, 0x1045), None, "{value:?} at {at}");
    }
}

#[test]
fn no_file_has_more_read_of_it_than_the_limits_allow() {
    let mut file = file();
    // As many sections as can be said, of the largest size that can be said, all in a file that has every byte.
    struct Endless<'a>(&'a Bytes);
    impl Memory for Endless<'_> {
        fn read(&self, address: u64, out: &mut [u8]) -> bool {
            out.fill(0);
            let _ = address < self.0.bytes.len() as u64 && self.0.read(address, out);
            self.0.read.set(self.0.read.get() + out.len() as u64);
            true
        }
    }
    file.set(60, &0_u16.to_ne_bytes());
    section(&mut file, 0, 0, 0, u64::MAX, 0);
    section(&mut file, 1, 2, SYMBOLS_AT as u64, u64::MAX, 2);
    let endless = Endless(&file);
    let mut out = [0; 64];
    let _ = File::read(&endless).unwrap().function(&endless, 0x9000, &mut out);
    assert!(file.read.get() > MOST_BYTES / 2 && file.read.get() < 2 * MOST_BYTES, "{}", file.read.get());
}

/// Mutations of this very test program and of the small file: no panic, and names that are cut where they must.
#[test]
fn damaged_files_are_survived() {
    let own = std::fs::read("/proc/self/exe").unwrap();
    let mut bits = 0x1234_5678_9abc_def1_u64;
    let mut random = move || {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        bits
    };
    // Headers, and the symbols' first part, of a real file: the section headers are at its end.
    let table = usize::try_from(word(&own, 40).unwrap()).unwrap();
    let address = damaged_files_are_survived as *const () as u64;
    let mut named = 0;
    let mut whole = Bytes::new(&own);
    for round in 0..60 {
        let mut undo = Vec::new();
        for _ in 0..1 + round % 8 {
            let near = [0, table, table + 64 * (random() % 40) as usize][(random() % 3) as usize];
            let at = (near + (random() % 64) as usize).min(own.len() - 1);
            undo.push(at);
            whole.bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random() as u8][(random() % 6) as usize];
        }
        named += usize::from(name(&whole, random() % (1 << 22)).is_some() || name(&whole, address).is_some());
        undo.iter().for_each(|at| whole.bytes[*at] = own[*at]);
    }
    assert!(named > 0, "all damaged beyond use: nothing is shown");
    for _ in 0..20_000 {
        let mut small = file();
        for _ in 0..1 + random() % 6 {
            let at = (random() % small.bytes.len() as u64) as usize;
            // Mostly where something is.
            let at = if random() % 4 > 0 { [at % 128, SECTIONS + at % 192, SYMBOLS_AT + at % 96][at % 3] } else { at };
            small.bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random() as u8][(random() % 6) as usize];
        }
        let length = if random() % 4 == 0 { random() as usize % 4096 } else { 4096 };
        small.bytes.truncate(length);
        for address in [0x1000, 0x1045, random()] {
            if let Some((name, _)) = name(&small, address) {
                assert!(name.len() < 64);
            }
            let mut tiny = [0; 2];
            let _ = File::read(&small).and_then(|file| file.function(&small, address, &mut tiny));
            let _ = File::read(&small).and_then(|file| file.function(&small, address, &mut []));
        }
    }
}
