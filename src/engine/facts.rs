//! What reports say of process and device, found out at install.

use crate::sys::procfs::ProcFile;
use crate::sys::thread;
use arrayvec::ArrayVec;

/// A short string.
pub type Text = ArrayVec<u8, 128>;

/// The process's name: the base name of its first argument, which on Android is the package.
pub fn process_name() -> Text {
    let mut buffer = [0; 4096];
    let file = ProcFile::open(c"/proc/self/cmdline");
    let line = file.as_ref().ok().and_then(|file| file.read(&mut buffer).ok()).unwrap_or(&[]);
    let first = line.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let base = first.rsplit(|byte| *byte == b'/').next().unwrap_or(&[]);
    if !base.is_empty() {
        return text(base);
    }
    text(thread::name(&mut [0; 16]))
}

/// The machine: model and system.
pub fn device() -> (Text, Text) {
    let names = crate::sys::machine::names();
    let mut system = text(&names.system);
    let _ = system.try_extend_from_slice(b" ");
    system.extend(names.release.iter().copied().take(system.remaining_capacity()));
    (text(&names.machine), system)
}

fn text(bytes: &[u8]) -> Text {
    bytes.iter().copied().take(Text::new().remaining_capacity()).collect()
}
