//! `cargo xtask java`: the main Looper of a Java app, on a real VM and with Android's own Looper, Handler and MessageQueue.
//!
//! The classes are those of Robolectric's `android-all`, which Maven fetches; what they call natively, `android::Looper`
//! above all, is Debian's. The VM checks each call of JNI's.

mod dex;
mod shrunk;

use crate::run::{Outcome, at_once, cargo, command, output_of, root, run, run_quietly};
use crate::zipped::{self, Files};
use crate::{cmake, tools};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The package of the Java face.
const PACKAGE: &str = "dev/blockcanary";
/// Android 14.
const ANDROID: &str = "org.robolectric:android-all:14-robolectric-10818077";
/// What Android's build tools take.
const JAVA_VERSION: &str = "8";
/// No case takes longer, not even on a busy machine.
const PATIENCE_S: &str = "180";
/// What the VM says of a call that it should not have got.
const COMPLAINTS: [&str; 3] = ["WARNING in native method", "FATAL ERROR in native method", "WARNING: JNI local refs"];
/// No test: what messages cost, for `cargo xtask bench`.
const COSTS: &str = "costs";
/// Of each block in these the Java stack must be there, which takes a processor in time: nothing runs beside them.
const COUNTED: [&str; 2] = ["probed", "marked"];
/// Makes such a call, so that a complaint is known to be seen.
const PLANTED: &str = "planted";

/// The command.
pub fn main(mut args: pico_args::Arguments) -> Outcome {
    let writes_dex = args.contains("--dex");
    crate::nothing_left(args)?;
    if writes_dex { dex::write() } else { check() }
}

/// Builds and runs all of it.
pub fn check() -> Outcome {
    let feature = ["--quiet", "--package", "blockcanary", "--features", "jni"];
    run(cargo().arg("clippy").args(feature).args(["--all-targets", "--", "--deny", "warnings"]))?;
    run(cargo().arg("test").args(feature).args(["--lib", "java"]))?;
    let built = Built::new()?;
    built.work.compare_archives()?;
    dex::check(&built.work)?;
    built.run_tests()?;
    shrunk::check(&built)
}

/// The classes of the Java face, compiled.
pub fn classes() -> Outcome<Files> {
    let work = Work::new()?;
    work.compile_java(&work.android()?)?;
    work.own_classes()
}

/// Compiles the activity that shows how an app uses them, with nothing of ours but these classes.
pub fn compile_sample(classes: &Path, out: &Path) -> Outcome {
    let work = Work::new()?;
    let class_path = format!("{}:{}", classes.display(), work.android()?.display());
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    run_quietly(work.javac().args(["-classpath", &class_path]).arg("-d").arg(out).args(files(&sample(), "java")?))
}

/// Measures what messages cost.
pub fn bench() -> Outcome {
    let built = Built::new()?;
    run(&mut built.case(COSTS))
}

/// The test program, and what its cases take.
struct Built {
    work: Work,
    program: PathBuf,
    android: PathBuf,
    face: PathBuf,
}

impl Built {
    fn new() -> Outcome<Built> {
        tools::ensure_packages(&[tools::PACKAGES])?;
        let work = Work::new()?;
        let android = work.android()?;
        work.build_archive()?;
        work.compile_java(&android)?;
        let jar = work.folder.join("classes.jar");
        std::fs::write(&jar, zipped::pack(&work.own_classes()?)?).map_err(|e| format!("{}: {e}", jar.display()))?;
        let (program, face) = (work.compile_tests()?, work.compile_face()?);
        Ok(Built { work, program, android, face })
    }

    fn case(&self, case: &str) -> Command {
        let class_path = format!("{}:{}", self.work.folder.join("classes").display(), self.android.display());
        let mut test = command("timeout");
        test.arg(PATIENCE_S).arg(&self.program).arg(case).env("TEST_CLASS_PATH", class_path);
        test.env("TEST_JNI", &self.face).env("TEST_DEX", dex::file()).stdin(Stdio::null());
        test
    }

    /// Each case in a process of its own; they wait for most of their time.
    fn run_tests(&self) -> Outcome {
        let listed = command(&self.program).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        let listed = String::from_utf8_lossy(&listed.stderr).into_owned();
        let cases: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        if let Some(missing) = COUNTED.iter().chain([&PLANTED]).find(|case| !cases.contains(case)) {
            return Err(format!("{} does not list {missing}: {listed}", self.program.display()));
        }
        COUNTED.iter().try_for_each(|case| self.run_case(case))?;
        let others: Vec<&str> = cases.into_iter().filter(|case| *case != COSTS && !COUNTED.contains(case)).collect();
        at_once(&others, |case| self.run_case(case)).map(drop)
    }

    fn run_case(&self, case: &str) -> Outcome {
        let began = Instant::now();
        let output = self.case(case).output().map_err(|error| format!("{case}: {error}"))?;
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        let complains = text.lines().any(|line| COMPLAINTS.iter().any(|complaint| line.contains(complaint)));
        if !output.status.success() || complains != (case == PLANTED) {
            eprint!("{text}");
            return Err(match complains {
                true => format!("{case}: the VM complains of a call ({})", output.status),
                false => format!("{case}: {}", output.status),
            });
        }
        println!("   {case} ({} s)", began.elapsed().as_secs());
        Ok(())
    }
}

fn sample() -> PathBuf {
    root().join("java/sample")
}

fn jdk() -> Outcome<PathBuf> {
    let folder = Path::new(tools::JDK);
    let there = folder.join("lib/server/libjvm.so").exists();
    there.then(|| folder.to_path_buf()).ok_or(format!("no JDK in {}", folder.display()))
}

struct Work {
    folder: PathBuf,
    jdk: PathBuf,
}

impl Work {
    fn new() -> Outcome<Work> {
        tools::ensure_packages(&[tools::JAVA])?;
        let work = Work { folder: root().join("target/java"), jdk: jdk()? };
        std::fs::create_dir_all(work.folder.join("objects")).map_err(|error| error.to_string())?;
        Ok(work)
    }

    fn android(&self) -> Outcome<PathBuf> {
        self.fetched(ANDROID)
    }

    /// The file of an artifact, `group:name:version`.
    fn fetched(&self, artifact: &str) -> Outcome<PathBuf> {
        let words: Vec<&str> = artifact.split(':').skip(1).collect();
        let jar = self.folder.join(format!("{}.jar", words.join("-")));
        if !jar.exists() {
            println!("fetching {artifact}");
            let mut maven = command("mvn");
            maven.args(["--quiet", "--batch-mode", "dependency:copy"]).arg(format!("-Dartifact={artifact}"));
            run_quietly(maven.arg(format!("-DoutputDirectory={}", self.folder.display())))
                .map_err(|error| format!("Maven does not give {artifact}: {error}"))?;
        }
        Ok(jar)
    }

    fn archive(&self) -> PathBuf {
        self.folder.join("release/libblockcanary.a")
    }

    fn build_archive(&self) -> Outcome {
        let mut build = cargo();
        build.args(["rustc", "--quiet", "--release", "--lib", "--crate-type", "staticlib", "--package", "blockcanary"]);
        run(build.args(["--features", "jni"]).env("CARGO_TARGET_DIR", &self.folder))
    }

    /// Nothing of JNI is in the archive without the feature.
    fn compare_archives(&self) -> Outcome {
        let build = cmake::build(&["blockcanary_archive"])?;
        let triple = output_of(command("rustc").args(["--version", "--verbose"]))?;
        let triple = triple.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        let without = symbols_of_java(&build.join("cargo").join(triple).join("release/libblockcanary.a"))?;
        let with = symbols_of_java(&self.archive())?;
        match (with.is_empty(), without.first()) {
            (false, None) => Ok(()),
            (true, _) => Err("no symbol of the feature jni is found where it is on".to_string()),
            (_, Some(symbol)) => Err(format!("{symbol} is in the archive without the feature jni")),
        }
    }

    fn compile_java(&self, android: &Path) -> Outcome {
        let classes = self.folder.join("classes");
        // Of an earlier state of the source.
        let _ = std::fs::remove_dir_all(&classes);
        std::fs::create_dir_all(&classes).map_err(|error| format!("{}: {error}", classes.display()))?;
        let mut javac = self.javac();
        javac.arg("-classpath").arg(android).arg("-d").arg(&classes);
        for folder in [root().join("java/src"), sample(), root().join("tests/java")] {
            javac.args(files(&folder, "java")?);
        }
        run_quietly(&mut javac)
    }

    fn javac(&self) -> Command {
        let mut javac = command(self.jdk.join("bin/javac"));
        javac.args(["-Xlint:all,-options,-classfile,-deprecation", "-Werror"]);
        javac.args(["-encoding", "UTF-8"]);
        javac.args(["-source", JAVA_VERSION, "-target", JAVA_VERSION]);
        javac
    }

    /// The library's own classes alone, without those of sample and tests below them.
    fn own_classes(&self) -> Outcome<Files> {
        let folder = self.folder.join("classes");
        let mut own = Files::new();
        for class in files(&folder.join(PACKAGE), "class")? {
            let path = class.strip_prefix(&folder).map_err(|error| error.to_string())?;
            if path.parent() == Some(Path::new(PACKAGE)) {
                let bytes = std::fs::read(&class).map_err(|error| format!("{}: {error}", class.display()))?;
                own.insert(path.display().to_string(), bytes);
            }
        }
        Ok(own)
    }

    fn compile_tests(&self) -> Outcome<PathBuf> {
        let tests = root().join("tests");
        let include = self.jdk.join("include");
        let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"];
        let mut objects = Vec::new();
        for name in ["check", "blocks", "procfs"] {
            let object = self.folder.join("objects").join(format!("{name}.o"));
            let source = tests.join("c/support").join(format!("{name}.c"));
            run_quietly(command("gcc").args(flags).arg("-Iinclude").arg("-c").arg(source).arg("-o").arg(&object))?;
            objects.push(object);
        }
        let libutils = Path::new(tools::ANDROID_LIBRARIES);
        let machine = self.jdk.join("lib/server");
        let program = self.folder.join("watch");
        let mut compile = command("g++");
        compile.args(flags).args(["-std=gnu++17", "-rdynamic", "-Iinclude", "-isystem", "/usr/include/android"]);
        compile.arg("-I").arg(&include).arg("-I").arg(include.join("linux"));
        compile.args(files(&tests.join("java"), "cpp")?).arg(tests.join("c/android/alooper.cpp"));
        compile.arg(root().join("benches/rounds.cpp")).args(objects);
        compile.arg(self.archive()).arg("-L").arg(libutils).arg("-lutils").arg("-L").arg(&machine).arg("-ljvm");
        compile.arg(format!("-Wl,--disable-new-dtags,-rpath,{}:{}", libutils.display(), machine.display()));
        run_quietly(compile.args(["-pthread", "-ldl", "-lm"]).arg("-o").arg(&program))?;
        Ok(program)
    }

    /// What an app has in its library for the Java face.
    fn compile_face(&self) -> Outcome<PathBuf> {
        let library = self.folder.join("libface.so");
        let include = self.jdk.join("include");
        let mut compile = command("gcc");
        compile.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-Iinclude"]);
        compile.arg("-I").arg(&include).arg("-I").arg(include.join("linux")).arg("java/jni/blockcanary_jni.c");
        run_quietly(compile.arg("-o").arg(&library))?;
        Ok(library)
    }
}

/// Symbols of an archive that JNI or Java has to do with.
fn symbols_of_java(archive: &Path) -> Outcome<Vec<String>> {
    let symbols = output_of(command("nm").arg("--quiet").arg(archive))?;
    let names = symbols.lines().filter_map(|line| line.rsplit(' ').next());
    // The call of the interface is there always.
    let is_javas = |name: &&str| name.to_lowercase().contains("jni") || name.contains("4java3");
    Ok(names.filter(is_javas).map(str::to_owned).collect())
}

/// Files below a folder that end so.
fn files(folder: &Path, extension: &str) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
