//! What the linker puts in the place of a program's looper calls, compiled for an ABI by a clang that knows it. Nothing of
//! a C library is needed for that.

use crate::abis::Abi;
use crate::run::{Outcome, command, root, run};
use std::path::Path;

/// Compiles `c/interpose/looper.c`; gives an archive with it, made below `folder`.
pub fn build(abi: &Abi, folder: &Path) -> Outcome<Vec<u8>> {
    let folder = folder.join("hooks").join(abi.name);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (object, archive) = (folder.join("looper.o"), folder.join("libblockcanary_interpose.a"));
    let mut compile = compiler(abi);
    compile.args(["-O2", "-Wall", "-Wextra", "-Werror", "-DBLOCKCANARY_ENABLED=1", "-c"]);
    run(compile.arg(root().join("c/interpose/looper.c")).arg("-o").arg(&object))?;
    let _ = std::fs::remove_file(&archive);
    run(command("llvm-ar").arg("rcsD").arg(&archive).arg(&object))?;
    std::fs::read(&archive).map_err(|error| format!("{}: {error}", archive.display()))
}

/// Clang for an ABI, without a C library.
pub fn compiler(abi: &Abi) -> std::process::Command {
    let mut clang = command("clang");
    clang.arg(abi.target()).args(["-ffreestanding", "-nostdlibinc", "-fPIC", "-I"]).arg(root().join("include"));
    clang
}
