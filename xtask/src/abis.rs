//! What Android calls the processors that a library may be built for.

use crate::run::{Outcome, root};
use std::path::{Path, PathBuf};

/// One of them.
pub struct Abi {
    /// Its name.
    pub name: &'static str,
    /// What clang calls it.
    pub clang: &'static str,
    /// The first system that has it, of those that the library runs on.
    pub api: u32,
    /// How its archive is made.
    pub made: Made,
}

/// What others than clang call the processor.
pub struct Made {
    /// Rust.
    pub triple: &'static str,
    /// The linker.
    pub emulation: &'static str,
    /// Android's C library.
    pub processor: &'static str,
}

/// All of them.
pub const ABIS: [Abi; 5] = [
    Abi {
        name: "arm64-v8a",
        clang: "aarch64-linux-android",
        api: 21,
        made: Made { triple: "aarch64-linux-android", emulation: "aarch64linux", processor: "arm64" },
    },
    Abi {
        name: "armeabi-v7a",
        clang: "armv7a-linux-androideabi",
        api: 21,
        made: Made { triple: "armv7-linux-androideabi", emulation: "armelf_linux_eabi", processor: "arm" },
    },
    Abi {
        name: "x86_64",
        clang: "x86_64-linux-android",
        api: 21,
        made: Made { triple: "x86_64-linux-android", emulation: "elf_x86_64", processor: "x86_64" },
    },
    Abi {
        name: "x86",
        clang: "i686-linux-android",
        api: 21,
        made: Made { triple: "i686-linux-android", emulation: "elf_i386", processor: "x86" },
    },
    Abi {
        name: "riscv64",
        clang: "riscv64-linux-android",
        api: 35,
        made: Made { triple: "riscv64-linux-android", emulation: "elf64lriscv", processor: "riscv64" },
    },
];

impl Abi {
    /// The compiler's name of it, with the system's age.
    pub fn target(&self) -> String {
        format!("--target={}{}", self.clang, self.api)
    }

    /// Where its localised archive is.
    pub fn archive(&self) -> PathBuf {
        self.archive_in(&folder())
    }

    /// And where it is below another folder.
    pub fn archive_in(&self, folder: &Path) -> PathBuf {
        folder.join(self.name).join("libblockcanary.a")
    }
}

/// Below which they are.
pub fn folder() -> PathBuf {
    root().join("target/android")
}

/// The localised archives that there are below a folder; an error says which are missing.
pub fn archives_in(folder: &Path) -> Outcome<Vec<(&'static Abi, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for abi in &ABIS {
        match std::fs::read(abi.archive_in(folder)) {
            Ok(bytes) => found.push((abi, bytes)),
            Err(_) => missing.push(abi.name),
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let names = missing.join(", ");
    Err(format!("no archive for {names}: `cargo xtask android` makes it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_archives_are_named() {
        let folder = std::env::temp_dir().join(format!("blockcanary-abis-{}", std::process::id()));
        let put = |name: &str| {
            std::fs::create_dir_all(folder.join(name)).unwrap();
            std::fs::write(folder.join(name).join("libblockcanary.a"), name).unwrap();
        };
        put("arm64-v8a");
        put("x86");
        let message = archives_in(&folder).err().unwrap();
        assert!(message.starts_with("no archive for armeabi-v7a, x86_64, riscv64: `cargo xtask android`"), "{message}");
        put("armeabi-v7a");
        put("x86_64");
        put("riscv64");
        let found = archives_in(&folder).unwrap();
        assert!(found.len() == 5 && found.iter().all(|(abi, bytes)| abi.name.as_bytes() == bytes));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
