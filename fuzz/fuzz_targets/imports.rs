//! Looks for imports in a module that is the input: tables of relocations that are cut off, overlap, or lie.
#![no_main]

mod piece;

use blockcanary::hook::imports;
use blockcanary::unwind::elf::Image;
use libfuzzer_sys::fuzz_target;
use piece::Pieces;

const BASE: u64 = 0x10000;
const WORD: u64 = size_of::<usize>() as u64;

fuzz_target!(|data: &[u8]| {
    let memory = [(BASE, data)];
    let memory = Pieces(&memory);
    let Some(image) = Image::read(&memory, BASE) else { return };
    let names = [b"ALooper_addFd".as_slice(), b"ALooper_pollOnce"];
    let _ = imports::each(&image, &memory, &names, &mut |import| {
        assert!(import.name < names.len() && import.at.is_multiple_of(WORD));
        assert!(image.span.start <= import.at && import.at + WORD <= image.span.end);
    });
});
