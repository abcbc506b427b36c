//! Files below a directory that is held open. Nothing here allocates and no link is followed on the last component.
#![allow(unsafe_code)]

use super::errno::{Errno, check};
use super::fd::Fd;
use core::ffi::CStr;
use core::mem::MaybeUninit;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: a link, a pipe, a socket.
    Other,
}

/// What the file system says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// What it is.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Last change of the content (of a directory: of its names), nanoseconds since 1970, saturating.
    pub modified_ns: i64,
    /// With `inode`: which file it is, whatever its name.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
}

/// Opens a directory; fails with ENOENT, with ENOTDIR or ELOOP if the last component is something else or a link.
pub fn open_directory(path: &CStr) -> Result<Fd, Errno> {
    open_at(libc::AT_FDCWD, path, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW, 0)
}

/// A second descriptor of a directory, with a reading position of its own.
pub fn reopen_directory(directory: &Fd) -> Result<Fd, Errno> {
    open_at(directory.number(), c".", libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW, 0)
}

/// Makes one directory that only its owner may enter.
pub fn make_directory(path: &CStr) -> Result<(), Errno> {
    // SAFETY: the path ends in a NUL and is only read.
    check(unsafe { libc::mkdirat(libc::AT_FDCWD, path.as_ptr(), 0o700) }.into()).map(drop)
}

/// Makes a file that was not there and opens it for writing and reading; EEXIST if there is anything of that name, a link too.
pub fn create(directory: &Fd, name: &CStr) -> Result<Fd, Errno> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    open_at(directory.number(), name, flags, 0o600)
}

/// The same for a hidden name that is ours: whatever has it is a leftover or a trap, and goes.
pub fn replace(directory: &Fd, name: &CStr) -> Result<Fd, Errno> {
    match create(directory, name) {
        Err(Errno(libc::EEXIST)) => {
            remove(directory, name)?;
            create(directory, name)
        }
        other => other,
    }
}

/// Opens a file for reading and writing. Does not wait for anybody, whatever stands there.
pub fn open_shared(directory: &Fd, name: &CStr) -> Result<Fd, Errno> {
    open_at(directory.number(), name, libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY, 0)
}

/// Opens a file for reading.
pub fn open(directory: &Fd, name: &CStr) -> Result<Fd, Errno> {
    // Should it have become a pipe meanwhile, nobody waits for its other end.
    open_at(directory.number(), name, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY, 0)
}

fn open_at(directory: i32, path: &CStr, flags: i32, mode: libc::c_uint) -> Result<Fd, Errno> {
    loop {
        // SAFETY: the path ends in a NUL and is only read.
        let result =
            unsafe { libc::openat(directory, path.as_ptr(), flags | libc::O_CLOEXEC | libc::O_LARGEFILE, mode) };
        match Fd::opened(result) {
            Err(Errno(libc::EINTR)) => {}
            other => return other,
        }
    }
}

/// Writes all of the bytes, however many calls that takes.
pub fn write_all(file: &Fd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        // SAFETY: pointer and length are those of one slice, which is only read.
        let written = check(unsafe { libc::write(file.number(), bytes.as_ptr().cast(), bytes.len()) } as i64);
        match written {
            // A regular file never takes nothing of something; should one, this ends instead of spinning.
            Ok(0) => return Err(Errno(libc::EIO)),
            Ok(count) => bytes = bytes.get(count as usize..).unwrap_or_default(),
            Err(Errno(libc::EINTR)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of the bytes from this place on.
pub fn write_at(file: &Fd, offset: u64, mut bytes: &[u8]) -> Result<(), Errno> {
    let mut at = libc::off64_t::try_from(offset).map_err(|_| Errno(libc::EFBIG))?;
    while !bytes.is_empty() {
        // SAFETY: pointer and length are those of one slice, which is only read.
        let written = unsafe { libc::pwrite64(file.number(), bytes.as_ptr().cast(), bytes.len(), at) };
        match check(written as i64) {
            Ok(0) => return Err(Errno(libc::EIO)),
            Ok(count) => {
                bytes = bytes.get(count as usize..).unwrap_or_default();
                at = at.saturating_add(count);
            }
            Err(Errno(libc::EINTR)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a file so long.
pub fn set_size(file: &Fd, bytes: u64) -> Result<(), Errno> {
    let bytes = libc::off64_t::try_from(bytes).map_err(|_| Errno(libc::EFBIG))?;
    // SAFETY: takes numbers.
    check(unsafe { libc::ftruncate64(file.number(), bytes) }.into()).map(drop)
}

/// Locks a file or directory for this descriptor and its copies, in children of fork too; EWOULDBLOCK where another has it
/// locked.
pub fn lock(file: &Fd) -> Result<(), Errno> {
    // SAFETY: takes numbers.
    check(unsafe { libc::flock(file.number(), libc::LOCK_EX | libc::LOCK_NB) }.into()).map(drop)
}

/// Gives the lock back, for all copies.
pub fn unlock(file: &Fd) {
    // SAFETY: takes numbers.
    unsafe { libc::flock(file.number(), libc::LOCK_UN) };
}

/// Is this open file what has this name there?
pub fn is_at(file: &Fd, directory: &Fd, name: &CStr) -> bool {
    let Ok(own) = status_of_file(file) else { return false };
    status(directory, name).is_ok_and(|there| (there.device, there.inode) == (own.device, own.inode))
}

/// Reads on; 0 at the end.
pub fn read(file: &Fd, out: &mut [u8]) -> Result<usize, Errno> {
    loop {
        // SAFETY: pointer and length are those of one slice, which is filled at most.
        let count = check(unsafe { libc::read(file.number(), out.as_mut_ptr().cast(), out.len()) } as i64);
        match count {
            Err(Errno(libc::EINTR)) => {}
            other => return other.map(|count| (count.max(0) as usize).min(out.len())),
        }
    }
}

/// Gives a file another name, in place of what had that name.
pub fn rename(directory: &Fd, from: &CStr, to: &CStr) -> Result<(), Errno> {
    let directory = directory.number();
    // SAFETY: both names end in a NUL and are only read.
    check(unsafe { libc::renameat(directory, from.as_ptr(), directory, to.as_ptr()) }.into()).map(drop)
}

/// Removes a file or a link, not a directory.
pub fn remove(directory: &Fd, name: &CStr) -> Result<(), Errno> {
    // SAFETY: the name ends in a NUL and is only read.
    check(unsafe { libc::unlinkat(directory.number(), name.as_ptr(), 0) }.into()).map(drop)
}

/// Status of a name in a directory; of a link itself, not of what it leads to.
pub fn status(directory: &Fd, name: &CStr) -> Result<Status, Errno> {
    status_at(directory.number(), name)
}

/// Status of a path; of a link itself, not of what it leads to.
pub fn status_of_path(path: &CStr) -> Result<Status, Errno> {
    status_at(libc::AT_FDCWD, path)
}

/// Status of an open directory.
pub fn status_of_directory(directory: &Fd) -> Result<Status, Errno> {
    status_at(directory.number(), c".")
}

/// Status of an open file.
pub fn status_of_file(file: &Fd) -> Result<Status, Errno> {
    let mut raw = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the result has room for one structure.
    check(unsafe { libc::fstat64(file.number(), raw.as_mut_ptr()) }.into())?;
    // SAFETY: the structure holds integers only; it was zeroed and then filled.
    Ok(status_from(&unsafe { raw.assume_init() }))
}

fn status_at(directory: i32, path: &CStr) -> Result<Status, Errno> {
    let mut raw = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the path ends in a NUL, the result has room for one structure.
    check(unsafe { libc::fstatat64(directory, path.as_ptr(), raw.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW) }.into())?;
    // SAFETY: as above.
    Ok(status_from(&unsafe { raw.assume_init() }))
}

// The fields' widths differ between platforms; none of these conversions loses anything that occurs.
#[allow(clippy::unnecessary_cast)]
fn status_from(raw: &libc::stat64) -> Status {
    let kind = match raw.st_mode as u32 & libc::S_IFMT as u32 {
        kind if kind == libc::S_IFREG as u32 => Kind::File,
        kind if kind == libc::S_IFDIR as u32 => Kind::Directory,
        _ => Kind::Other,
    };
    let (seconds, nanos) = (raw.st_mtime as i64, raw.st_mtime_nsec as i64);
    Status {
        kind,
        size: raw.st_size.max(0) as u64,
        modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
        device: raw.st_dev as u64,
        inode: raw.st_ino as u64,
    }
}

/// The working directory, without its NUL; ERANGE if it does not fit.
pub fn working_directory(out: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are those of one slice. With a buffer given, nothing is allocated.
    let result = unsafe { libc::getcwd(out.as_mut_ptr().cast(), out.len()) };
    if result.is_null() {
        return Err(Errno::last());
    }
    out.iter().position(|&byte| byte == 0).ok_or(Errno(libc::ERANGE))
}

/// Reads the next names of a directory into `out`, as many as fit; 0 at the end. `directory::Entries` takes them apart.
pub fn read_directory(directory: &Fd, out: &mut [u8]) -> Result<usize, Errno> {
    loop {
        let (room, length) = (out.as_mut_ptr(), out.len());
        // Not readdir, because the C library allocates for it.
        // SAFETY: pointer and length are those of one slice, which the kernel fills at most.
        let result = unsafe { libc::syscall(libc::SYS_getdents64, directory.number(), room, length) };
        match check(result as i64) {
            Err(Errno(libc::EINTR)) => {}
            other => return other.map(|count| (count.max(0) as usize).min(out.len())),
        }
    }
}

/// Opens a file for reading if it is a regular one, and says which it is, as the maps of a process do: device (major and
/// minor number in one) and inode.
pub fn open_regular(path: &CStr) -> Result<(Fd, (u64, u64)), Errno> {
    // Something else might wait for its other end, or do something, when it is opened.
    if status_of_path(path)?.kind != Kind::File {
        return Err(Errno(libc::EINVAL));
    }
    let file = open_at(libc::AT_FDCWD, path, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY, 0)?;
    let status = status_of_file(&file)?;
    #[allow(clippy::unnecessary_cast)] // The width differs between platforms.
    let device = status.device as libc::dev_t;
    let device = (libc::major(device) as u64) << 32 | libc::minor(device) as u64 & 0xffff_ffff;
    if status.kind == Kind::File { Ok((file, (device, status.inode))) } else { Err(Errno(libc::EINVAL)) }
}

/// Reads from this place on, and says how much there was.
pub fn read_at(file: &Fd, offset: u64, out: &mut [u8]) -> usize {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(done as u64).and_then(|at| libc::off64_t::try_from(at).ok());
        let Some(at) = at else { break };
        // SAFETY: pointer and length are those of one slice.
        let read = unsafe { libc::pread64(file.number(), rest.as_mut_ptr().cast(), rest.len(), at) };
        match check(read as i64) {
            Ok(0) => break,
            Ok(count) => done += count as usize,
            Err(Errno(libc::EINTR)) => {}
            Err(_) => break,
        }
    }
    done
}
