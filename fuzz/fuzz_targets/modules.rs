//! Makes a table of modules from the input: the text of the maps, a NUL, then what lies at the first library's place.
#![no_main]

mod piece;

use blockcanary::unwind::modules::{Module, ModuleTable};
use libfuzzer_sys::fuzz_target;
use piece::Pieces;

const BASE: u64 = 0x10000;

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (maps, memory) = data.split_at(at);
    let memory = [(BASE, memory.get(1..).unwrap_or_default())];
    let memory = Pieces(&memory);
    let (mut slots, mut text) = ([Module::default(); 8], [0; 512]);
    let mut table = ModuleTable::new(&mut slots, &mut text);
    for _ in 0..2 {
        table.refresh(maps, &memory).unwrap();
        assert!(!table.changed(maps).unwrap());
    }
    assert!(table.all().is_sorted_by_key(|module| module.code.start));
    for module in table.all() {
        let mut name = [0; 64];
        let pc = module.code.start;
        for address in [pc, module.code.end.wrapping_sub(1), BASE + 0x1010, module.image.bias] {
            if let Some(function) = module.function(&memory, address, &mut name) {
                assert!(function.name_length < name.len());
            }
        }
        let _ = (module.offset_of(pc), table.path(module), table.build_id(module));
        if module.code.start < module.code.end {
            assert!(table.find(pc).is_some());
        }
    }
});
