//! Running other programs: what they print is seen, and a failure names the command.

use std::ffi::OsStr;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a command of xtask gives: nothing, or one line that says what went wrong.
pub type Outcome<T = ()> = Result<T, String>;

/// The repository's root, whatever directory xtask was called from.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// A command in the repository's root.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs xtask.
pub fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs it to its end, its output where ours goes.
pub fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("{}: {error}", line(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", line(command))) }
}

/// Runs it silently; its output is shown only when it fails.
pub fn run_quietly(command: &mut Command) -> Outcome {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{}: {error}", line(command)))?;
    if output.status.success() {
        return Ok(());
    }
    eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{}: {}", line(command), output.status))
}

/// Runs it and takes what it prints to standard output.
pub fn output_of(command: &mut Command) -> Outcome<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("{}: {error}", line(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{}: {}", line(command), output.status))
    }
}

/// What `work` makes of each item, in their order; as many at a time as there are processors. The first error by that order
/// is given when all have ended.
pub fn at_once<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> Outcome<T> + Sync) -> Outcome<Vec<T>> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut made: Vec<(usize, Outcome<T>)> = std::thread::scope(|scope| {
        let one = || {
            let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|place| *place < items.len());
            std::iter::from_fn(take).map(|place| (place, work(&items[place]))).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(one)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_done_at_once_comes_back_in_order() {
        let items: Vec<u32> = (0..50).collect();
        assert_eq!(
            at_once(&items, |item| Ok(item * 2)).unwrap(),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        let wrong = |item: &u32| if item % 20 == 19 { Err(format!("{item} is wrong")) } else { Ok(()) };
        assert_eq!(at_once(&items, wrong).unwrap_err(), "19 is wrong");
        assert!(at_once(&[], wrong).unwrap().is_empty());
    }
}
