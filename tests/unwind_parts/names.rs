//! A table of this process's modules, and the names of frames by it.
#![allow(dead_code)] // Each test program uses a part.

use blockcanary::sys::maps::OwnMaps;
use blockcanary::unwind::cache::Cached;
use blockcanary::unwind::modules::{Module, ModuleTable};

use crate::own::OwnMemory;

pub struct Modules {
    pub table: ModuleTable<'static>,
}

impl Modules {
    pub fn new() -> Modules {
        let slots = vec![Module::default(); 256].leak();
        let mut modules = Modules { table: ModuleTable::new(slots, vec![0; 32_768].leak()) };
        modules.refresh();
        modules
    }

    pub fn refresh(&mut self) {
        self.table.refresh(OwnMaps::open().unwrap(), &Cached::new(OwnMemory::new())).unwrap();
        assert_eq!((self.table.missed(), self.table.unnamed()), (0, 0));
    }

    pub fn path_of(&self, pc: u64) -> Option<String> {
        let module = self.table.find(pc)?;
        Some(self.table.path(module).to_str().unwrap().to_owned())
    }

    /// The functions of a stack's frames, the innermost first; `?` where there is no name.
    pub fn names(&self, pcs: &[u64]) -> Vec<String> {
        let memory = OwnMemory::new();
        let name = |(index, pc): (usize, &u64)| {
            let address = if index == 0 { *pc } else { pc - 1 };
            let mut name = [0; 128];
            let found = self.table.find(address)?.function(&memory, address, &mut name)?;
            Some(String::from_utf8_lossy(&name[..found.name_length]).into_owned())
        };
        pcs.iter().enumerate().map(|frame| name(frame).unwrap_or("?".to_owned())).collect()
    }
}

/// `chain_1` to `chain_10`.
pub fn chain_names() -> Vec<String> {
    (1..=10).map(|number| format!("chain_{number}")).collect()
}
