//! What a system call waits for, by its number.
//!
//! Calls that wait in no way worth telling are not listed; a thread that waits in one of those waits for storage if its
//! state letter says so.

/// What the call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Memory that another thread changes; the address is argument 0.
    Futex,
    /// A lock on a file; the descriptor is argument 0.
    FileLock,
    /// The same if argument 1 says so, else nothing.
    FileControl,
    /// Time alone.
    Sleep,
    /// What the descriptor leads to, which is argument 0.
    Descriptor,
    /// The same of a socket, where the call's own arguments lie at the address in argument 1.
    SocketCall,
    /// Descriptors, as many as argument 1 says; time alone if that is none.
    Poll,
    /// Descriptors, as many as argument 0 says.
    Select,
    /// A set of descriptors, or another process or thread.
    Ipc,
    /// Files by their names, or storage as a whole.
    Io,
}

/// A system call that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// As the manual calls it.
    pub name: &'static str,
    /// What it waits for.
    pub kind: Kind,
    /// Where it says how long it waits at most.
    pub limit: Limit,
}

/// How a call is told how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It is not, or in a way that is not read.
    None,
    /// Milliseconds in this argument.
    Ms(usize),
    /// A `timespec` of two words at the address in this argument.
    Spec(usize),
    /// The same of two 64-bit words.
    Spec64(usize),
    /// A `timeval` of two words at the address in this argument.
    Val(usize),
}

/// Finds a call.
pub fn find(number: u32) -> Option<Call> {
    let everywhere = TABLE.iter().chain(OLDER).chain(OF_WIDTH);
    everywhere.into_iter().find(|(known, ..)| u32::try_from(*known) == Ok(number)).map(|(_, name, kind, limit)| Call {
        name,
        kind: *kind,
        limit: *limit,
    })
}

type Row = (libc::c_long, &'static str, Kind, Limit);

macro_rules! rows {
    ($($call:ident $name:literal $kind:ident $limit:expr;)*) => {
        &[$((libc::$call, $name, Kind::$kind, $limit)),*]
    };
}

use Limit::{Ms, None as Never, Spec, Spec64};

/// On every processor.
#[rustfmt::skip]
static TABLE: &[Row] = rows! {
    SYS_futex "futex" Futex Never;
    SYS_flock "flock" FileLock Never;
    SYS_nanosleep "nanosleep" Sleep Spec(0);
    SYS_clock_nanosleep "clock_nanosleep" Sleep Spec(2);
    SYS_read "read" Descriptor Never;
    SYS_readv "readv" Descriptor Never;
    SYS_pread64 "pread64" Descriptor Never;
    SYS_preadv "preadv" Descriptor Never;
    SYS_write "write" Descriptor Never;
    SYS_writev "writev" Descriptor Never;
    SYS_pwrite64 "pwrite64" Descriptor Never;
    SYS_pwritev "pwritev" Descriptor Never;
    SYS_ioctl "ioctl" Descriptor Never;
    SYS_splice "splice" Descriptor Never;
    SYS_tee "tee" Descriptor Never;
    SYS_vmsplice "vmsplice" Descriptor Never;
    SYS_close "close" Descriptor Never;
    SYS_getdents64 "getdents64" Descriptor Never;
    SYS_fsync "fsync" Descriptor Never;
    SYS_fdatasync "fdatasync" Descriptor Never;
    SYS_syncfs "syncfs" Descriptor Never;
    SYS_fallocate "fallocate" Descriptor Never;
    SYS_readahead "readahead" Descriptor Never;
    SYS_recvfrom "recvfrom" Descriptor Never;
    SYS_recvmsg "recvmsg" Descriptor Never;
    SYS_recvmmsg "recvmmsg" Descriptor Never;
    SYS_sendto "sendto" Descriptor Never;
    SYS_sendmsg "sendmsg" Descriptor Never;
    SYS_sendmmsg "sendmmsg" Descriptor Never;
    SYS_accept4 "accept4" Descriptor Never;
    SYS_connect "connect" Descriptor Never;
    SYS_ppoll "ppoll" Poll Spec(2);
    SYS_pselect6 "pselect6" Select Spec(4);
    SYS_epoll_pwait "epoll_pwait" Ipc Ms(3);
    SYS_wait4 "wait4" Ipc Never;
    SYS_waitid "waitid" Ipc Never;
    SYS_rt_sigtimedwait "rt_sigtimedwait" Ipc Never;
    SYS_rt_sigsuspend "rt_sigsuspend" Ipc Never;
    SYS_mq_timedreceive "mq_timedreceive" Ipc Never;
    SYS_mq_timedsend "mq_timedsend" Ipc Never;
    SYS_io_getevents "io_getevents" Io Never;
    SYS_openat "openat" Io Never;
    SYS_faccessat "faccessat" Io Never;
    SYS_unlinkat "unlinkat" Io Never;
    SYS_mkdirat "mkdirat" Io Never;
    SYS_linkat "linkat" Io Never;
    SYS_symlinkat "symlinkat" Io Never;
    SYS_readlinkat "readlinkat" Io Never;
    SYS_execve "execve" Io Never;
    SYS_mount "mount" Io Never;
    SYS_sync "sync" Io Never;
    SYS_msync "msync" Io Never;
};

/// Those above 400 have one number on every processor, and are younger than the oldest headers.
#[rustfmt::skip]
#[cfg(target_pointer_width = "64")]
static OF_WIDTH: &[Row] = &[
    (441, "epoll_pwait2", Kind::Ipc, Spec64(3)),
    (437, "openat2", Kind::Io, Never),
    (426, "io_uring_enter", Kind::Io, Never),
    (439, "faccessat2", Kind::Io, Never),
    (449, "futex_waitv", Kind::Ipc, Never),
    (455, "futex_wait", Kind::Futex, Never),
    #[cfg(not(target_arch = "riscv64"))]
    (libc::SYS_fcntl, "fcntl", Kind::FileControl, Never),
    (libc::SYS_accept, "accept", Kind::Descriptor, Never),
    (libc::SYS_msgrcv, "msgrcv", Kind::Ipc, Never),
    (libc::SYS_msgsnd, "msgsnd", Kind::Ipc, Never),
    (libc::SYS_semtimedop, "semtimedop", Kind::Ipc, Never),
    (libc::SYS_statx, "statx", Kind::Io, Never),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_newfstatat, "newfstatat", Kind::Io, Never),
    (libc::SYS_renameat2, "renameat2", Kind::Io, Never),
    (libc::SYS_copy_file_range, "copy_file_range", Kind::Descriptor, Never),
    (libc::SYS_preadv2, "preadv2", Kind::Descriptor, Never),
    (libc::SYS_pwritev2, "pwritev2", Kind::Descriptor, Never),
];

#[rustfmt::skip]
#[cfg(target_pointer_width = "32")]
static OF_WIDTH: &[Row] = &[
    (407, "clock_nanosleep", Kind::Sleep, Spec64(2)),
    (413, "pselect6", Kind::Select, Spec64(4)),
    (414, "ppoll", Kind::Poll, Spec64(2)),
    (416, "io_pgetevents", Kind::Io, Never),
    (417, "recvmmsg", Kind::Descriptor, Never),
    (418, "mq_timedsend", Kind::Ipc, Never),
    (419, "mq_timedreceive", Kind::Ipc, Never),
    (420, "semtimedop", Kind::Ipc, Never),
    (421, "rt_sigtimedwait", Kind::Ipc, Never),
    (422, "futex", Kind::Futex, Never),
    (441, "epoll_pwait2", Kind::Ipc, Spec64(3)),
    (437, "openat2", Kind::Io, Never),
    (426, "io_uring_enter", Kind::Io, Never),
    (439, "faccessat2", Kind::Io, Never),
    (449, "futex_waitv", Kind::Ipc, Never),
    (455, "futex_wait", Kind::Futex, Never),
    (libc::SYS_fcntl, "fcntl", Kind::FileControl, Never),
    (libc::SYS_fcntl64, "fcntl64", Kind::FileControl, Never),
    (libc::SYS_fstatat64, "fstatat64", Kind::Io, Never),
    (libc::SYS_stat64, "stat64", Kind::Io, Never),
    (libc::SYS_fstat64, "fstat64", Kind::Descriptor, Never),
    (142, "select", Kind::Select, Limit::Val(4)),
    (libc::SYS_lstat64, "lstat64", Kind::Io, Never),
    (libc::SYS_truncate64, "truncate64", Kind::Io, Never),
    (libc::SYS_ftruncate64, "ftruncate64", Kind::Descriptor, Never),
    (libc::SYS_statfs64, "statfs64", Kind::Io, Never),
    (libc::SYS_fstatfs64, "fstatfs64", Kind::Io, Never),
    // Where sockets and what System V left have one call each,
    #[cfg(target_arch = "x86")]
    (102, "socketcall", Kind::SocketCall, Never),
    #[cfg(target_arch = "x86")]
    (117, "ipc", Kind::Ipc, Never),
    #[cfg(target_arch = "x86")]
    (7, "waitpid", Kind::Ipc, Never),
    // and where they have their own.
    #[cfg(target_arch = "arm")]
    (285, "accept", Kind::Descriptor, Never),
    #[cfg(target_arch = "arm")]
    (289, "send", Kind::Descriptor, Never),
    #[cfg(target_arch = "arm")]
    (291, "recv", Kind::Descriptor, Never),
    #[cfg(target_arch = "arm")]
    (301, "msgsnd", Kind::Ipc, Never),
    #[cfg(target_arch = "arm")]
    (302, "msgrcv", Kind::Ipc, Never),
    #[cfg(target_arch = "arm")]
    (298, "semop", Kind::Ipc, Never),
    #[cfg(target_arch = "arm")]
    (312, "semtimedop", Kind::Ipc, Never),
];

/// Where the older calls still have numbers.
#[rustfmt::skip]
#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm"))]
static OLDER: &[Row] = rows! {
    SYS_poll "poll" Poll Ms(2);
    SYS_epoll_wait "epoll_wait" Ipc Ms(3);
    SYS_pause "pause" Ipc Never;
    SYS_vfork "vfork" Ipc Never;
    SYS_sendfile "sendfile" Descriptor Never;
    SYS_fstat "fstat" Descriptor Never;
    SYS_ftruncate "ftruncate" Descriptor Never;
    SYS_truncate "truncate" Io Never;
    SYS_statfs "statfs" Io Never;
    SYS_open "open" Io Never;
    SYS_stat "stat" Io Never;
    SYS_lstat "lstat" Io Never;
    SYS_access "access" Io Never;
    SYS_unlink "unlink" Io Never;
    SYS_rename "rename" Io Never;
    SYS_renameat "renameat" Io Never;
    SYS_mkdir "mkdir" Io Never;
    SYS_rmdir "rmdir" Io Never;
    SYS_readlink "readlink" Io Never;
    SYS_getdents "getdents" Descriptor Never;
};

/// The generic numbers, where the headers of the two C libraries name them differently.
#[rustfmt::skip]
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
static OLDER: &[Row] = &[
    #[cfg(target_arch = "riscv64")]
    (25, "fcntl", Kind::FileControl, Never),
    #[cfg(target_arch = "aarch64")]
    (38, "renameat", Kind::Io, Never),
    (43, "statfs", Kind::Io, Never),
    (45, "truncate", Kind::Io, Never),
    (46, "ftruncate", Kind::Descriptor, Never),
    (71, "sendfile", Kind::Descriptor, Never),
    (79, "newfstatat", Kind::Io, Never),
    (80, "fstat", Kind::Descriptor, Never),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_stands_twice() {
        let rows: Vec<&Row> = TABLE.iter().chain(OLDER).chain(OF_WIDTH).collect();
        for (place, row) in rows.iter().enumerate() {
            assert!(rows.iter().skip(place + 1).all(|other| other.0 != row.0), "{}", row.1);
        }
    }

    #[test]
    fn calls_are_found_by_number() {
        let kind = |number: libc::c_long| find(number as u32).map(|call| (call.name, call.kind));
        assert_eq!(kind(libc::SYS_futex), Some(("futex", Kind::Futex)));
        assert_eq!(kind(libc::SYS_read), Some(("read", Kind::Descriptor)));
        assert_eq!(kind(libc::SYS_ppoll), Some(("ppoll", Kind::Poll)));
        assert_eq!(kind(libc::SYS_gettid), None);
        assert_eq!(find(u32::MAX), None);
    }

    /// By the kernel's tables: `arch/arm/tools/syscall.tbl` and `arch/x86/entry/syscalls/syscall_32.tbl`.
    #[cfg(target_pointer_width = "32")]
    #[test]
    fn numbers_of_32_bits() {
        let both = [
            (3, "read"),
            (142, "select"),
            (162, "nanosleep"),
            (168, "poll"),
            (221, "fcntl64"),
            (407, "clock_nanosleep"),
        ];
        let own: [(u32, &str); 6] = if cfg!(target_arch = "arm") {
            [
                (240, "futex"),
                (252, "epoll_wait"),
                (265, "clock_nanosleep"),
                (285, "accept"),
                (291, "recv"),
                (336, "ppoll"),
            ]
        } else {
            [
                (240, "futex"),
                (256, "epoll_wait"),
                (267, "clock_nanosleep"),
                (102, "socketcall"),
                (371, "recvfrom"),
                (309, "ppoll"),
            ]
        };
        for (number, name) in both.into_iter().chain(own) {
            assert_eq!(find(number).map(|call| call.name), Some(name));
        }
        let limits = [162, 407, 414].map(|number| find(number).map(|call| call.limit));
        assert_eq!(limits, [Some(Spec(0)), Some(Spec64(2)), Some(Spec64(2))]);
    }
}
