use super::*;
use crate::unwind::symbols;
use std::{vec, vec::Vec};

/// Bytes at an address, and nothing around them.
struct Fake {
    base: u64,
    bytes: Vec<u8>,
}

impl Memory for Fake {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let piece = address.checked_sub(self.base).and_then(|start| {
            let start = usize::try_from(start).ok()?;
            self.bytes.get(start..start.checked_add(out.len())?)
        });
        piece.map(|piece| out.copy_from_slice(piece)).is_some()
    }
}

impl Fake {
    fn put(&mut self, at: usize, value: u64, size: usize) {
        self.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }

    fn segment(&mut self, index: usize, kind: u32, offset: u64, address: u64, size: u64) {
        let at = 64 + index * 56;
        self.put(at, kind.into(), 4);
        self.put(at + 8, offset, 8);
        self.put(at + 16, address, 8);
        self.put(at + 40, size, 8);
    }

    fn symbol(&mut self, index: usize, name: u64, value: u64, size: u64) {
        let at = 0x400 + index * 24;
        self.put(at, name, 4);
        self.put(at + 4, 0x12, 1);
        self.put(at + 6, 1, 2);
        self.put(at + 8, value, 8);
        self.put(at + 16, size, 8);
    }
}

/// A library linked at `linked` and mapped at `base`, with notes, symbols and a hash table.
fn library(base: u64, linked: u64, kind: u64) -> Fake {
    let mut fake = Fake { base, bytes: vec![0; 0x1000] };
    fake.bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    for (at, value, size) in [(16, kind, 2), (32, 64, 8), (54, 56, 2), (56, 5, 2)] {
        fake.put(at, value, size);
    }
    fake.segment(0, LOAD, 0, linked, 0x800);
    fake.segment(1, LOAD, 0x800, linked + 0x2800, 0x1000);
    fake.segment(2, NOTE, 0x200, linked + 0x200, 0x40);
    fake.segment(3, DYNAMIC, 0x300, linked + 0x300, 0x70);
    fake.segment(4, EH_FRAME, 0x700, linked + 0x700, 0x20);
    // Some other note, then the build id.
    for (at, value) in [(0x200, 4), (0x204, 3), (0x208, 1), (0x20c, 0x554e47), (0x210, 0x00c0_ffee)] {
        fake.put(at, value, 4);
    }
    for (at, value) in [(0x214, 4), (0x218, 6), (0x21c, 3), (0x220, 0x554e47), (0x224, 0x0403_0201), (0x228, 0x0605)] {
        fake.put(at, value, 4);
    }
    let dynamic = [(6, linked + 0x400), (5, linked + 0x600), (10, 0x60), (4, linked + 0x680), (14, 1), (0, 0)];
    for (index, (tag, value)) in dynamic.into_iter().enumerate() {
        fake.put(0x300 + index * 16, tag, 8);
        fake.put(0x308 + index * 16, value, 8);
    }
    let strings = b"\0libfake.so\0__alpha\0alpha\0_alpha\0unsized\0beta\0";
    fake.bytes[0x600..0x600 + strings.len()].copy_from_slice(strings);
    fake.put(0x684, 7, 4);
    for (index, (name, value, size)) in
        [(12, 0x100, 0x40), (20, 0x100, 0x40), (26, 0x100, 0x40), (33, 0x180, 0), (41, 0x200, 0x10)]
            .into_iter()
            .enumerate()
    {
        fake.symbol(index + 1, name, linked + value, size);
    }
    fake
}

#[test]
fn reads_a_relocatable_file_and_one_that_is_not() {
    for (base, linked, kind) in [(0x7f00_0000_0000, 0, 3), (0x40_0000, 0x40_0000, 2), (0x7f00_0000_0000, 0x1000, 3)] {
        let fake = library(base, linked, kind);
        let image = Image::read(&fake, base).unwrap();
        assert_eq!(image.bias, base - linked);
        assert_eq!(image.span, Span { start: base, end: base + 0x3800 });
        assert_eq!(image.eh_frame_hdr, Span { start: base + 0x700, end: base + 0x720 });
        let (id, length) = image.build_id(&fake).unwrap();
        assert_eq!(id[..length], [1, 2, 3, 4, 5, 6]);
    }
}

fn name_at(fake: &Fake, address: u64, room: usize) -> Option<(Vec<u8>, u64)> {
    let image = Image::read(fake, fake.base).unwrap();
    let mut name = vec![0xff; room];
    let found = symbols::function(&image, fake, address, &mut name)?;
    assert_eq!(name[found.name_length], 0);
    name.truncate(found.name_length);
    Some((name, found.offset))
}

#[test]
fn names_functions_the_same_way_each_time() {
    let base = 0x7f00_0000_0000;
    let fake = library(base, 0, 3);
    let named = |offset| name_at(&fake, base + offset, 64);
    assert_eq!(named(0xff), None);
    assert_eq!(named(0x100), Some((b"alpha".to_vec(), 0)));
    assert_eq!(named(0x13f), Some((b"alpha".to_vec(), 0x3f)));
    assert_eq!(named(0x140), None, "behind a function's end is nobody's");
    assert_eq!(named(0x190), Some((b"unsized".to_vec(), 0x10)));
    assert_eq!(named(0x20f), Some((b"beta".to_vec(), 0xf)));
    assert_eq!(named(0x210), None, "a function of a known size lies between");
    assert_eq!(name_at(&fake, base + 0x100, 4), Some((b"alp".to_vec(), 0)), "cut to the room there is");
    assert_eq!(name_at(&fake, base + 0x100, 1), Some((b"".to_vec(), 0)));
    let image = Image::read(&fake, base).unwrap();
    assert_eq!(symbols::function(&image, &fake, base + 0x100, &mut []), None);
}

#[test]
fn addresses_in_the_dynamic_section_may_be_relocated() {
    let (base, linked) = (0x7f00_0000_0000_u64, 0);
    let mut fake = library(base, linked, 3);
    for index in [0, 1, 3] {
        let at = 0x308 + index * 16;
        let value = u64::from_le_bytes(fake.bytes[at..at + 8].try_into().unwrap());
        fake.put(at, base + value, 8);
    }
    assert_eq!(name_at(&fake, base + 0x208, 64), Some((b"beta".to_vec(), 8)));
}

#[test]
fn absent_parts_are_absent() {
    let base = 0x7f00_0000_0000;
    let mut fake = library(base, 0, 3);
    fake.put(56, 1, 2);
    let image = Image::read(&fake, base).unwrap();
    assert!(image.eh_frame_hdr.is_empty() && image.dynamic.is_empty());
    assert_eq!(image.build_id(&fake), None);
    assert_eq!(name_at(&fake, base + 0x100, 64), None);
    fake.put(56, 0, 2);
    assert_eq!(Image::read(&fake, base), None, "nothing is loaded");
    fake.put(56, 0xffff, 2);
    assert_eq!(Image::read(&fake, base), None, "too many headers");
    assert_eq!(Image::read(&fake, base + 0x1000), None, "unreadable");
}

#[test]
fn random_headers_are_harmless() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let base = 0x7f00_0000_0000;
    let (mut read, mut named) = (0, 0);
    let mut fake = library(base, 0, 3);
    let model = fake.bytes.clone();
    for case in 0..100_000_u64 {
        fake.bytes.copy_from_slice(&model);
        for _ in 0..1 + case % 8 {
            let value = if random() % 2 == 0 { random() } else { u64::MAX - random() % 64 };
            let size = 1 << (random() % 4);
            let at = random() as usize % (0x720 - size);
            fake.put(at, value, size);
        }
        let Some(image) = Image::read(&fake, base) else { continue };
        read += 1;
        image.build_id(&fake);
        let mut name = [0; 16];
        named += symbols::function(&image, &fake, base + 0x200 + random() % 16, &mut name).is_some() as u32;
    }
    assert!(read > 10_000 && named > 10_000, "most cases must get far: {read} {named}");
}
