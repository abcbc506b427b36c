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
