//! The class that the library has in itself for apps that have none of its classes, as Android takes it: what D8 makes of it
//! is a file in the source, which is held against the class.

use super::{PACKAGE, Work};
use crate::run::{Outcome, command, root, run_quietly};
use std::path::PathBuf;

/// D8 and R8, which make of classes what Android runs.
const R8: &str = "com.android.tools:r8:8.5.35";
/// The first system that defines a class from bytes.
const MIN_API: &str = "26";

/// Where it is.
pub fn file() -> PathBuf {
    root().join("src/hook/java/hook.dex")
}

/// Makes it anew.
pub fn write() -> Outcome {
    let work = Work::new()?;
    work.compile_java(&work.android()?)?;
    std::fs::write(file(), made(&work)?).map_err(|error| format!("{}: {error}", file().display()))
}

/// Fails unless it is that of the class now.
pub fn check(work: &Work) -> Outcome {
    compare(&std::fs::read(file()).unwrap_or_default(), &made(work)?)
}

fn compare(kept: &[u8], made: &[u8]) -> Outcome {
    if kept == made {
        return Ok(());
    }
    Err("src/hook/java/hook.dex is not that of java/src: run `cargo xtask java --dex`".to_string())
}

fn made(work: &Work) -> Outcome<Vec<u8>> {
    let folder = work.folder.join("dex");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut d8 = work.r8("D8")?;
    d8.args(["--release", "--min-api", MIN_API, "--lib"]).arg(work.android()?).arg("--output").arg(&folder);
    run_quietly(d8.arg(work.folder.join("classes").join(PACKAGE).join("Hook.class")))?;
    let path = folder.join("classes.dex");
    std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

impl Work {
    /// One of the programs in R8's package.
    pub(super) fn r8(&self, program: &str) -> Outcome<std::process::Command> {
        let mut java = command(self.jdk.join("bin/java"));
        java.arg("-classpath").arg(self.fetched(R8)?).arg(format!("com.android.tools.r8.{program}"));
        Ok(java)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_class_is_told() {
        let kept = std::fs::read(file()).unwrap();
        assert!(kept.starts_with(b"dex\n"), "no dex file");
        compare(&kept, &kept).unwrap();
        assert!(compare(&kept, &kept[1..]).unwrap_err().contains("--dex"));
        assert!(compare(&[], &kept).unwrap_err().contains("hook.dex"));
    }
}
