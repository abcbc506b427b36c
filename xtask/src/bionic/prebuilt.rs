//! Libraries whose `ALooper_*` imports are interposed, as Android's loader loads them: with each way in which linkers pack
//! their relocations. The looper is a stand-in, because Android's own wants a whole system around it.

use crate::elsewhere::{Program, World};
use crate::run::{Outcome, command, root, run_quietly};
use std::path::Path;

/// What the linker is told; words of calls through the linkage table are never packed.
const PACKINGS: [&[&str]; 2] = [&["-Wl,--pack-dyn-relocs=none"], &["-Wl,--pack-dyn-relocs=android", "-fno-plt"]];

/// Name, source below `tests/c`, and how it is compiled and linked.
const LIBRARIES: [(&str, &str, &[&str]); 4] = [
    ("polls", "prebuilt/polls.c", &["-Wl,-z,now,-z,relro"]),
    ("polls_writable", "prebuilt/polls.c", &["-Wl,-z,now,-z,norelro"]),
    ("polls_waiting", "prebuilt/polls.c", &["-Wl,-z,now,-z,relro", "-DFIFO=\"PREBUILT_FIFO\""]),
    ("still", "prebuilt/still.c", &[]),
];

const PROGRAM: Program = Program {
    source: "prebuilt/interposed",
    more: &["prebuilt/words"],
    cannot: &[("constructing", "this loader lets nobody look at what is loaded until constructors have run")],
};

/// Builds them beside the programs, and runs the program that loads and unloads them.
pub fn check(world: World) -> Outcome {
    let folder = world.folder().join("c");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let place = format!("-L{}", folder.display());
    library(&world, &folder, "android", "bionic/android.c", &["-Wl,-soname,libandroid.so"])?;
    let mut compiler = world.compiler.clone();
    compiler.push(format!("-DLIBRARIES=\"{}\"", folder.display()));
    let mut libraries = world.libraries.clone();
    // The loader finds it beside the program.
    libraries.extend([place.clone(), "-landroid".to_owned(), format!("-Wl,-rpath,{}", folder.display())]);
    let linked = World { compiler, libraries, ..world };
    for packing in PACKINGS {
        for (name, source, arguments) in LIBRARIES {
            let with_looper = [place.as_str(), "-landroid"];
            library(&linked, &folder, name, source, &[arguments, packing, &with_looper].concat())?;
        }
        println!("   {}", packing.join(" "));
        linked.test(&PROGRAM)?;
    }
    Ok(())
}

/// A shared library by the compiler of programs, without their start.
fn library(world: &World, folder: &Path, name: &str, source: &str, arguments: &[&str]) -> Outcome {
    let own = ["-fPIE", "-pie"];
    let words = world.compiler.iter().filter(|word| !own.contains(&word.as_str()) && !word.ends_with("start.c"));
    let words: Vec<&String> = words.collect();
    let (compiler, flags) = words.split_first().ok_or("no compiler")?;
    let mut compile = command(compiler);
    compile.args(flags).args(["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]);
    compile.arg(root().join("tests/c").join(source)).args(arguments).args(&world.libraries);
    run_quietly(compile.arg("-o").arg(folder.join(format!("lib{name}.so"))))
}
