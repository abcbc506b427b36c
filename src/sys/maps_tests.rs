use super::*;
use std::{string::String, vec, vec::Vec};

#[test]
fn parses_what_the_kernel_writes() {
    let line = b"7f12a0000000-7f12a0021000 r-xp 00001000 fd:02 131842                     /usr/lib/a b.so (deleted)";
    let mapping = Mapping::parse(line).unwrap();
    assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f12a0000000, 0x7f12a0021000, 0x1000));
    assert_eq!((mapping.file, mapping.readable, mapping.executable), ((0xfd << 32 | 2, 131842), true, true));
    assert_eq!((mapping.path, mapping.deleted), (b"/usr/lib/a b.so".as_slice(), true));
    let anonymous = Mapping::parse(b"7ffd0000-7ffe0000 ---p 00000000 00:00 0 ").unwrap();
    assert_eq!((anonymous.path, anonymous.file, anonymous.readable), (b"".as_slice(), (0, 0), false));
    let high = Mapping::parse(b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0      [vsyscall]").unwrap();
    assert_eq!((high.start, high.executable, high.path), (0xffffffffff600000, true, b"[vsyscall]".as_slice()));
}

#[test]
fn refuses_what_is_no_line() {
    let wrong: [&[u8]; 8] = [
        b"",
        b"-",
        b"1000",
        b"1000-2000",
        b"1000-2000 r-x",
        b"2000-1000 r-xp 0 0:0 0",
        b"1ffffffffffffffff-2 r-xp 0 0:0 0",
        b"1000-2000 r-xp 0 0:0 ",
    ];
    for line in wrong {
        assert_eq!(Mapping::parse(line), None, "{}", String::from_utf8_lossy(line));
    }
}

fn lines(text: &[u8], buffer: usize) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; buffer];
    let mut lines = Lines::new(text, &mut buffer);
    let mut all = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        all.push(line.to_vec());
    }
    all
}

#[test]
fn lines_are_cut_to_the_buffer_and_none_is_lost() {
    for size in 4..20 {
        let found = lines(b"one\nlonger\nx\nthe last", size);
        let expected = [b"one".as_slice(), b"longer", b"x", b"the last"].map(|line| &line[..line.len().min(size)]);
        assert_eq!(found, expected, "buffer of {size}");
    }
    assert_eq!(lines(b"", 8), Vec::<Vec<u8>>::new());
    assert_eq!(lines(b"abc", 0), Vec::<Vec<u8>>::new());
    assert_eq!(lines(b"12345678\n90", 8), [b"12345678".to_vec(), b"90".to_vec()]);
}

#[test]
fn random_text_is_harmless() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let alphabet = b"0123456789abcdef- :rwxp/[]\n";
    let mut parsed = 0;
    for case in 0..100_000_u32 {
        let mut text = [0_u8; 98];
        let model =
            b"7f12a0000000-7f12a0021000 r-xp 00001000 fd:02 131842    /usr/lib/a b.so (deleted)\n1-2 r--p 0 0:0 0";
        text[..model.len()].copy_from_slice(model);
        for _ in 0..case % 16 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let byte = if seed & 1 == 0 { alphabet[(seed >> 8) as usize % alphabet.len()] } else { (seed >> 16) as u8 };
            text[(seed >> 32) as usize % 98] = byte;
        }
        let mut buffer = [0; 64];
        let mut lines = Lines::new(text.as_slice(), &mut buffer[..1 + case as usize % 64]);
        while let Some(line) = lines.next_line().unwrap() {
            parsed += Mapping::parse(line).is_some_and(|mapping| mapping.start < mapping.end) as u32;
        }
    }
    assert!(parsed > 1000, "most cases must reach the parser's end, {parsed} did");
}

#[test]
fn the_own_maps_hold_this_function_and_can_be_read_again() {
    let here = the_own_maps_hold_this_function_and_can_be_read_again as *const () as u64;
    let mut maps = OwnMaps::open().unwrap();
    for _ in 0..2 {
        let mut buffer = [0; 512];
        let mut lines = Lines::new(&mut maps, &mut buffer);
        let mut found = false;
        while let Some(line) = lines.next_line().unwrap() {
            let mapping = Mapping::parse(line).unwrap();
            found |= mapping.executable && (mapping.start..mapping.end).contains(&here);
        }
        assert!(found);
        maps.rewind().unwrap();
    }
}
