//! A list of modules' base names, as the configuration gives it: separated by commas, blanks around them ignored.

use super::hot::HotStacks;
use super::view::{Frames, Samples};

/// See above.
#[derive(Clone, Copy, Default)]
pub struct ModuleList<'a>(&'a [u8]);

impl<'a> ModuleList<'a> {
    /// The list that such a text makes.
    pub const fn new(text: &'a [u8]) -> ModuleList<'a> {
        ModuleList(text)
    }

    fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty())
    }

    /// Does it name nothing?
    pub fn is_empty(&self) -> bool {
        self.names().next().is_none()
    }

    /// Does it name the module of this path?
    pub fn contains(&self, path: &[u8]) -> bool {
        let base = base_name(path);
        self.names().any(|name| name == base)
    }

    /// Has a stack a frame in one of the modules?
    pub fn is_touched_by(&self, frames: Frames) -> bool {
        frames.iter().any(|frame| frame.module.is_some_and(|module| self.contains(module)))
    }

    /// Do all samples lie in the modules? A sample lies where its innermost frame does, not counting the C and C++
    /// libraries: who waits in them or computes there does it for whoever has called. `false` without any stack.
    pub fn holds_all(&self, samples: Samples) -> bool {
        let mut stacks = samples.iter().map(|sample| sample.frames).filter(|frames| !frames.is_empty()).peekable();
        !self.is_empty() && stacks.peek().is_some() && stacks.all(|frames| self.holds(frames))
    }

    fn holds(&self, frames: Frames) -> bool {
        for frame in frames.iter() {
            let Some(module) = frame.module else { return false };
            if self.contains(module) {
                return true;
            }
            if !is_language_library(module) {
                return false;
            }
        }
        false
    }

    /// The sample that leads a report: of the most frequent stack that touches the modules, of the most frequent one if
    /// none does. `None` without any stack.
    pub fn leader(&self, samples: Samples, hot: &HotStacks) -> Option<usize> {
        let first = hot.iter().next()?.index;
        if self.is_empty() {
            return Some(first);
        }
        let touches = |index: usize| samples.get(index).is_some_and(|sample| self.is_touched_by(sample.frames));
        let frequent = hot.iter().map(|stack| stack.index).find(|index| touches(*index));
        Some(frequent.or_else(|| (0..samples.len()).find(|index| touches(*index))).unwrap_or(first))
    }
}

/// What stands behind the last slash; in an archive, behind its mark too (`base.apk!libgame.so`).
fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| matches!(byte, b'/' | b'!')).next().unwrap_or(path)
}

/// Is it a library that programs call for their own purposes: C, C++, threads, the loader, the kernel's own page?
pub(super) fn is_language_library(path: &[u8]) -> bool {
    let base = base_name(path);
    const STEMS: [&[u8]; 9] =
        [b"libc", b"libm", b"libdl", b"libpthread", b"librt", b"libstdc++", b"libc++", b"libc++_shared", b"libgcc_s"];
    let ends_stem = |rest: &[u8]| rest.starts_with(b".so") || rest.starts_with(b"-2.");
    let is_library = STEMS.iter().any(|stem| base.strip_prefix(*stem).is_some_and(ends_stem));
    is_library || base.starts_with(b"ld-") || base.starts_with(b"linker") || base.starts_with(b"[vdso]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{bc_frame, bc_sample, bc_sample_method};
    use core::ffi::CStr;
    use core::ptr::null;

    #[test]
    fn names_stand_between_commas() {
        let list = ModuleList::new(b" libgame.so,,\tlibads.so , ");
        assert!(list.contains(b"/data/app/libgame.so") && list.contains(b"libads.so"));
        assert!(list.contains(b"/data/app/base.apk!libads.so"));
        assert!(!list.contains(b"/data/libgame.so/libother.so") && !list.contains(b"libgame") && !list.contains(b""));
        assert!(ModuleList::new(b" , ,").is_empty() && ModuleList::default().is_empty());
    }

    fn frames(modules: &[Option<&'static CStr>]) -> Vec<bc_frame> {
        let frame = |module: &Option<&'static CStr>| bc_frame {
            pc: 1,
            module_offset: 1,
            symbol_offset: 0,
            module: module.map_or(null(), CStr::as_ptr),
            build_id: null(),
            symbol: null(),
        };
        modules.iter().map(frame).collect()
    }

    fn sample(frames: &[bc_frame]) -> bc_sample {
        bc_sample {
            time_ns: 0,
            method: bc_sample_method::BC_SAMPLE_SIGNAL,
            frames_cut: 0,
            frame_count: frames.len(),
            frames: frames.as_ptr(),
            thread_state: 0,
            truncated: false,
            approximate: false,
        }
    }

    #[test]
    fn a_sample_lies_where_the_innermost_frame_of_the_program_does() {
        let list = ModuleList::new(b"libads.so");
        let waits = frames(&[Some(c"/lib/libc.so.6"), Some(c"/x/libads.so"), Some(c"/x/libgame.so")]);
        let calls_back = frames(&[Some(c"/x/libgame.so"), Some(c"/x/libads.so")]);
        let unknown = frames(&[None, Some(c"/x/libads.so")]);
        let only_c = frames(&[Some(c"/lib/libc.so.6"), Some(c"/lib/ld-linux-x86-64.so.2")]);
        let nothing = frames(&[]);
        let holds = |list: ModuleList, stacks: &[&[bc_frame]]| {
            let samples: Vec<bc_sample> = stacks.iter().map(|frames| sample(frames)).collect();
            // SAFETY: frames and strings outlive the call.
            #[allow(unsafe_code)]
            list.holds_all(unsafe { Samples::new(&samples) })
        };
        assert!(holds(list, &[&waits, &nothing, &waits]));
        assert!(!holds(list, &[&waits, &calls_back]));
        assert!(
            !holds(list, &[&unknown]) && !holds(list, &[&only_c]) && !holds(list, &[&nothing]) && !holds(list, &[])
        );
        assert!(holds(ModuleList::new(b"libc.so.6"), &[&only_c, &waits]));
    }

    #[test]
    fn libraries_of_the_language() {
        for base in ["libc.so", "libc.so.6", "libc-2.31.so", "libstdc++.so.6", "libc++_shared.so", "linker64", "[vdso]"]
        {
            assert!(is_language_library(base.as_bytes()), "{base}");
        }
        for base in ["libcrypto.so", "libmath.so", "libads.so", "game", "libc++game.so"] {
            assert!(!is_language_library(base.as_bytes()), "{base}");
        }
    }
}
