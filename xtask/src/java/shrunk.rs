//! Apps are shrunk: R8 leaves out and renames what it sees no use of. With the rules that the library brings along, what is
//! left of its classes still works; without them it does not, which is looked at, too.

use super::{Built, PACKAGE, Work, files};
use crate::run::{Outcome, root, run_quietly};
use std::path::{Path, PathBuf};

/// Cases that go through all of the Java face.
const CASES: [&str; 2] = ["marked", "faced"];
/// Of the tests nothing goes, nor do the file and lines that are looked for in stacks: they are not what is looked at.
const TESTS: &str = "\
-keep class dev.blockcanary.test.** { *; }
-keep class dalvik.** { *; }
-keepattributes SourceFile,LineNumberTable
-renamesourcefileattribute Messages.java
-dontoptimize
-dontwarn **
";

/// Runs the cases with shrunk classes.
pub fn check(built: &Built) -> Outcome {
    let without = shrink(&built.work, None)?;
    let rules = root().join("java/proguard.txt");
    let with = shrink(&built.work, Some(&rules))?;
    for case in CASES {
        let with_classes = |jar: &Path| {
            let mut test = built.case(case);
            test.env("TEST_CLASS_PATH", format!("{}:{}", jar.display(), built.android.display()));
            test
        };
        run_quietly(&mut with_classes(&with))
            .map_err(|error| format!("{case}, shrunk by R8 with java/proguard.txt: {error}"))?;
        // What it says then is of no interest.
        let output = with_classes(&without).output().map_err(|error| format!("{case}: {error}"))?;
        if output.status.success() {
            return Err(format!("{case} passes without java/proguard.txt: it shows nothing of the rules"));
        }
        println!("   {case}, shrunk");
    }
    Ok(())
}

/// The classes of library and tests, shrunk by these rules.
fn shrink(work: &Work, rules: Option<&Path>) -> Outcome<PathBuf> {
    let name = if rules.is_some() { "kept" } else { "lost" };
    let folder = work.folder.join("shrunk");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (tests, jar) = (folder.join("tests.txt"), folder.join(format!("{name}.jar")));
    std::fs::write(&tests, TESTS).map_err(|error| format!("{}: {error}", tests.display()))?;
    let mut r8 = work.r8("R8")?;
    r8.args(["--release", "--classfile", "--lib"]).arg(work.android()?).arg("--output").arg(&jar);
    for rules in [Some(tests.as_path()), rules].into_iter().flatten() {
        r8.arg("--pg-conf").arg(rules);
    }
    let classes = work.folder.join("classes");
    for folder in [PACKAGE, "dalvik"] {
        r8.args(files(&classes.join(folder), "class")?);
    }
    run_quietly(&mut r8)?;
    Ok(jar)
}
