//! What a descriptor leads to, from its name in `/proc`.

use crate::abi::bc_cause;

/// See above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file, a directory or a device.
    File,
    /// A pipe, with a name or without.
    Pipe,
    /// A socket.
    Socket,
    /// Android's binder, or the kernel's end of a file system in user space.
    Binder,
    /// A timer.
    Timer,
    /// An eventfd, an epoll set and the like.
    Event,
}

impl Target {
    /// From the name that the descriptor's link has, and whether the kernel says that it is a pipe.
    pub fn of(link: &[u8], is_pipe: bool) -> Target {
        if is_pipe || link.starts_with(b"pipe:") {
            Target::Pipe
        } else if link.starts_with(b"socket:") {
            Target::Socket
        } else if link.starts_with(b"anon_inode:[timerfd]") {
            Target::Timer
        } else if link.starts_with(b"anon_inode:") || link.starts_with(b"pidfd:") {
            Target::Event
        } else if is_binder(link) {
            Target::Binder
        } else {
            Target::File
        }
    }

    /// The cause of a wait for it.
    pub fn cause(self) -> bc_cause {
        match self {
            Target::File => bc_cause::BC_CAUSE_IO,
            Target::Timer => bc_cause::BC_CAUSE_SLEEP,
            Target::Pipe | Target::Socket | Target::Binder | Target::Event => bc_cause::BC_CAUSE_IPC,
        }
    }

    /// In a word; `None` for a file, which its path tells.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Target::File => None,
            Target::Pipe => Some("pipe"),
            Target::Socket => Some("socket"),
            Target::Binder => Some("binder"),
            Target::Timer => Some("timerfd"),
            Target::Event => Some("event"),
        }
    }
}

fn is_binder(link: &[u8]) -> bool {
    let names: [&[u8]; 4] = [b"/dev/binder", b"/dev/hwbinder", b"/dev/vndbinder", b"/dev/fuse"];
    names.contains(&link) || link.starts_with(b"/dev/binderfs/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_cause::*;

    #[test]
    fn names() {
        let table: [(&[u8], bool, Target, bc_cause); 9] = [
            (b"/data/level.bin", false, Target::File, BC_CAUSE_IO),
            (b"/tmp/named pipe", true, Target::Pipe, BC_CAUSE_IPC),
            (b"pipe:[12]", false, Target::Pipe, BC_CAUSE_IPC),
            (b"socket:[13]", false, Target::Socket, BC_CAUSE_IPC),
            (b"anon_inode:[eventfd]", false, Target::Event, BC_CAUSE_IPC),
            (b"anon_inode:[timerfd]", false, Target::Timer, BC_CAUSE_SLEEP),
            (b"/dev/binderfs/binder", false, Target::Binder, BC_CAUSE_IPC),
            (b"/dev/kgsl-3d0", false, Target::File, BC_CAUSE_IO),
            (b"", false, Target::File, BC_CAUSE_IO),
        ];
        for (link, is_pipe, target, cause) in table {
            assert_eq!((Target::of(link, is_pipe), target.cause()), (target, cause), "{}", link.escape_ascii());
        }
    }
}
