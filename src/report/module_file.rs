//! The file behind a module, opened for the symbols that are not in memory: static functions, and all of an executable
//! that does not export its own.

use crate::sample::named::Module;
use crate::sys::fd::Fd;
use crate::sys::files;
use crate::unwind::file::File;
use crate::unwind::memory::Memory;
use crate::unwind::symbols::Function;
use core::ffi::CStr;

/// Room for a path: the kernel's own limit.
const PATH: usize = 4096;
/// Room for a build id in digits.
const ID: usize = 64;

/// See above; closed when it goes.
pub struct ModuleFile {
    bytes: Bytes,
    file: File,
}

/// The ELF file, which may lie in an archive. Whoever cuts it short meanwhile makes a read fail, and nothing else.
struct Bytes {
    descriptor: Fd,
    offset: u64,
}

impl Memory for Bytes {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let at = self.offset.checked_add(address);
        at.is_some_and(|at| files::read_at(&self.descriptor, at, out) == out.len())
    }
}

impl ModuleFile {
    /// Opens it, if it is the one that was mapped: the same file, and not another one by its build id; or by its build id.
    pub fn open(module: &Module) -> Option<ModuleFile> {
        if !module.is_whole || !module.path.starts_with(b"/") {
            return None;
        }
        let path = match module.file_offset {
            0 => module.path,
            // Behind the archive's name stands the library's.
            _ => module.path.rsplitn(2, |byte| *byte == b'!').last()?,
        };
        let mut room = [0; PATH];
        room.get_mut(..path.len())?.copy_from_slice(path);
        let (descriptor, identity) = files::open_regular(CStr::from_bytes_until_nul(&room).ok()?).ok()?;
        let bytes = Bytes { descriptor, offset: module.file_offset };
        let file = File::read(&bytes)?;
        let mut id = [0; ID];
        let length = file.build_id(&mut id);
        let id = id.get(..length).unwrap_or_default();
        let is_it = match (module.build_id, id) {
            ([], []) => identity == module.file,
            (mapped, found) => mapped == found,
        };
        is_it.then_some(ModuleFile { bytes, file })
    }

    /// The function that an address lies in, which is relative to the module. Its name is written to `out`.
    pub fn function(&self, address: u64, out: &mut [u8]) -> Option<Function> {
        self.file.function(&self.bytes, address, out)
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    extern "C" fn nobody_exports_this() {}

    struct Own {
        path: String,
        build_id: Vec<u8>,
        file: (u64, u64),
        /// Where `nobody_exports_this` is, relative to the module.
        offset: u64,
    }

    fn own() -> Own {
        use crate::sys::maps::OwnMaps;
        use crate::sys::memory::OwnMemory;
        use crate::unwind::modules;
        let mut slots = vec![modules::Module::default(); 64];
        let mut text = vec![0; 1 << 14];
        let mut table = modules::ModuleTable::new(&mut slots, &mut text);
        table.refresh(OwnMaps::open().unwrap(), &OwnMemory::new()).unwrap();
        let pc = nobody_exports_this as *const () as u64;
        let module = table.find(pc).unwrap();
        Own {
            path: table.path(module).to_str().unwrap().to_owned(),
            build_id: table.build_id(module).to_bytes().to_vec(),
            file: module.file,
            offset: module.offset_of(pc),
        }
    }

    fn module(own: &Own) -> Module<'_> {
        Module { path: own.path.as_bytes(), build_id: &own.build_id, file: own.file, file_offset: 0, is_whole: true }
    }

    fn name(file: &ModuleFile, offset: u64) -> Option<String> {
        let mut out = [0; 256];
        let found = file.function(offset, &mut out)?;
        Some(String::from_utf8_lossy(&out[..found.name_length]).into_owned())
    }

    #[test]
    fn the_file_that_was_mapped_names_static_functions_and_no_other_is_taken() {
        let own = own();
        let file = ModuleFile::open(&module(&own)).expect("the own file");
        assert!(name(&file, own.offset).unwrap().contains("nobody_exports_this"));
        assert!(ModuleFile::open(&Module { build_id: b"0123", ..module(&own) }).is_none());
        assert!(ModuleFile::open(&Module { is_whole: false, ..module(&own) }).is_none());
        for path in [b"".as_slice(), b"relative", b"/nowhere/at all", b"/dev/zero", b"/", b"/a\0b", &[b'/'; 5000]] {
            assert!(ModuleFile::open(&Module { path, ..module(&own) }).is_none());
        }
    }

    #[test]
    fn an_elf_file_inside_an_archive_is_read_where_it_lies() {
        let own = own();
        let path = std::env::temp_dir().join(format!("archive!of {}.apk", std::process::id()));
        let mut bytes = vec![b'P'; 0x3000];
        bytes.extend(std::fs::read("/proc/self/exe").unwrap());
        std::fs::write(&path, bytes).unwrap();
        let inside = format!("{}!libown.so", path.to_str().unwrap());
        let there = Module { path: inside.as_bytes(), file_offset: 0x3000, file: (0, 0), ..module(&own) };
        let found = ModuleFile::open(&there).and_then(|file| name(&file, own.offset));
        let elsewhere = ModuleFile::open(&Module { file_offset: 0x2000, ..there }).is_some();
        std::fs::remove_file(&path).unwrap();
        assert!(own.build_id.is_empty() || found.unwrap().contains("nobody_exports_this"));
        assert!(!elsewhere);
    }

    #[test]
    fn without_a_build_id_the_inode_tells() {
        let path = std::env::temp_dir().join(format!("no-id-{}", std::process::id()));
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        // No program headers, so no notes.
        bytes[56..58].copy_from_slice(&[0, 0]);
        std::fs::write(&path, bytes).unwrap();
        let status = std::fs::metadata(&path).unwrap();
        let device = (u64::from(libc::major(status.dev())) << 32) | u64::from(libc::minor(status.dev()));
        let own = own();
        let text = path.to_str().unwrap().as_bytes();
        let it = Module { path: text, build_id: b"", file: (device, status.ino()), ..module(&own) };
        let is_it = ModuleFile::open(&it).is_some();
        let others = [(device, status.ino() + 1), (device + 1, status.ino())];
        let is_other = others.map(|file| ModuleFile::open(&Module { file, ..it }).is_some());
        std::fs::remove_file(&path).unwrap();
        assert_eq!((is_it, is_other), (true, [false, false]));
    }
}
