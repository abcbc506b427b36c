//! The store on real directories: made, lost, full, read-only, with traps in it.

mod report_common;

use blockcanary::report::names::Name;
use blockcanary::report::sink::{Output, Sink};
use blockcanary::report::store::Store;
use blockcanary::sys::errno::Errno;
use report_common::*;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn a_missing_directory_is_made_and_only_its_owner_may_look() {
    let temp = TempDir::new("missing");
    for path in ["a/b/c", "a/b/c", "d//e/", "f/./g", "a/b/../h"] {
        let path = temp.path().join(path);
        let mut space = space();
        let mut store = Store::open(&c_path(&path), &mut space).unwrap();
        let name = own_name(1, 2);
        write(&mut store, &name, TEXT, "hello").unwrap();
        write(&mut store, &name, JSON, "{}").unwrap();
        let text = path.join(file_name(&name, TEXT));
        assert_eq!(fs::read_to_string(&text).unwrap(), "hello");
        assert_eq!(fs::metadata(&text).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(listed(&path).len(), 2);
        for made in path.ancestors().take_while(|folder| *folder != temp.path()) {
            assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o7777, 0o700, "{made:?}");
        }
    }
}

#[test]
fn a_relative_path_stays_where_it_was() {
    // The working directory belongs to the whole process, so that this only looks at what was kept.
    let mut space = space();
    let store = Store::open(c"target/bc-relative/x/", &mut space).unwrap();
    let expected = std::env::current_dir().unwrap().join("target/bc-relative/x");
    assert_eq!(store.path(), expected.as_os_str().as_bytes());
    let mut out = [0; 4096];
    let length = store.path_of(&own_name(0, 7), JSON, &mut out).unwrap();
    let path = expected.join(file_name(&own_name(0, 7), JSON));
    assert_eq!(&out[..=length], c_path(&path).to_bytes_with_nul());
    assert_eq!(store.path_of(&own_name(0, 7), JSON, &mut out[..length]), Err(Errno(libc::ENAMETOOLONG)));
    fs::remove_dir_all("target/bc-relative").unwrap();
}

#[test]
fn what_is_no_directory_is_refused_and_left_alone() {
    let temp = TempDir::new("refused");
    let file = temp.path().join("file");
    fs::write(&file, "mine").unwrap();
    fs::create_dir(temp.path().join("real")).unwrap();
    symlink(temp.path().join("real"), temp.path().join("link")).unwrap();
    symlink(temp.path().join("nowhere"), temp.path().join("dangling")).unwrap();
    let long = "x/".repeat(3000);
    for (path, error) in [
        ("file", libc::ENOTDIR),
        ("file/below", libc::ENOTDIR),
        ("link", libc::ENOTDIR),
        ("link/", libc::ENOTDIR),
        ("dangling", libc::ENOTDIR),
        (&long, libc::ENAMETOOLONG),
    ] {
        let path = c_path(Path::new(&format!("{}/{path}", temp.path().display())));
        assert_eq!(Store::open(&path, &mut space()).err(), Some(Errno(error)), "{path:?}");
    }
    assert_eq!(Store::open(c"", &mut space()).err(), Some(Errno(libc::ENOENT)));
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
    assert_eq!(listed(temp.path()), ["dangling", "file", "link", "real"]);
    assert!(listed(&temp.path().join("real")).is_empty());
    // A link further up is the user's own way to name things.
    assert!(Store::open(&c_path(&temp.path().join("link/below")), &mut space()).is_ok());
}

/// Runs something as a user without rights of its own; only this thread, only for files.
fn as_nobody<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                // SAFETY: the call takes a number and changes this thread's credentials, which ends right after.
                unsafe { libc::syscall(libc::SYS_setfsuid, 65_534) };
                run()
            })
            .join()
            .unwrap()
    })
}

#[test]
fn a_directory_that_may_not_be_written_is_refused() {
    let temp = TempDir::new("read-only");
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = temp.path().join("closed");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o555)).unwrap();
    as_nobody(|| {
        assert_eq!(Store::open(&c_path(&path), &mut space()).err(), Some(Errno(libc::EACCES)));
        let below = path.join("below/it");
        assert_eq!(Store::open(&c_path(&below), &mut space()).err(), Some(Errno(libc::EACCES)));
    });
    assert!(listed(&path).is_empty());
}

/// Runs something with a file system of its own at a path, if this user may have one.
fn with_mount(path: &Path, flags: libc::c_ulong, options: &str, run: impl FnOnce() + Send) {
    let (path, options) = (c_path(path), CString::new(options).unwrap());
    let ran = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: strings end in a NUL; what is mounted is seen by this thread only and gone with it.
            let mounted = unsafe {
                libc::unshare(libc::CLONE_NEWNS) == 0
                    && libc::mount(
                        c"none".as_ptr(),
                        c"/".as_ptr(),
                        std::ptr::null(),
                        libc::MS_REC | libc::MS_PRIVATE,
                        std::ptr::null(),
                    ) == 0
                    && libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), flags, options.as_ptr().cast())
                        == 0
            };
            if mounted {
                run();
            }
            mounted
        });
        thread.join().unwrap()
    });
    if !ran {
        eprintln!("not allowed to mount: this part was left out");
    }
}

#[test]
fn a_read_only_file_system_is_refused() {
    let temp = TempDir::new("rofs");
    with_mount(temp.path(), libc::MS_RDONLY, "size=64k", || {
        for below in ["", "x/y"] {
            let path = temp.path().join(below);
            assert_eq!(Store::open(&c_path(&path), &mut space()).err(), Some(Errno(libc::EROFS)));
        }
    });
}

#[test]
fn a_full_disk_costs_the_report_and_nothing_else() {
    let temp = TempDir::new("full");
    with_mount(temp.path(), 0, "size=64k", || {
        let mut space = space();
        let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
        let (first, second) = (own_name(1, 1), own_name(2, 2));
        write(&mut store, &first, TEXT, "first").unwrap();
        let large = "x".repeat(200_000);
        for name in [&first, &second] {
            assert_eq!(write(&mut store, name, TEXT, &large), Err(Errno(libc::ENOSPC)));
        }
        assert_eq!(listed(temp.path()), [file_name(&first, TEXT)], "no half file, no leftover");
        assert_eq!(fs::read_to_string(temp.path().join(file_name(&first, TEXT))).unwrap(), "first");
        write(&mut store, &second, TEXT, "second").unwrap();
        assert!(store.make_room(2, &|_| false).unwrap());
        assert_eq!(listed(temp.path()), [file_name(&second, TEXT)]);
    });
}

/// Takes some bytes, then has no room.
struct Full(usize, usize);

impl Output for Full {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        self.1 += 1;
        self.0 = self.0.checked_sub(bytes.len()).ok_or(Errno(libc::ENOSPC))?;
        Ok(())
    }
}

#[test]
fn the_first_error_is_kept_and_nothing_more_is_asked() {
    for size in [0, 1, 7, 4096] {
        let mut full = Full(100, 0);
        let mut buffer = vec![0; size];
        let mut sink = Sink::new(&mut full, &mut buffer);
        let mut lines = 0;
        while !sink.failed() {
            sink.text("0123456789");
            lines += 1;
        }
        assert!((11..=411).contains(&lines), "{lines}");
        for _ in 0..1000 {
            sink.text("more");
        }
        assert_eq!(sink.finish(), Err(Errno(libc::ENOSPC)));
        let calls = full.1;
        assert!(calls <= 101, "{calls}");
    }
    assert_eq!(rendered(|sink| sink.hex(u64::MAX, 30)), b"0000ffffffffffffffff");
}

#[test]
fn links_and_leftovers_in_the_way_are_replaced_not_followed() {
    let temp = TempDir::new("links");
    let path = temp.path().join("reports");
    let mut space = space();
    let mut store = Store::open(&c_path(&path), &mut space).unwrap();
    let victim = temp.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let name = own_name(5, 6);
    let unfinished = String::from_utf8(name.unfinished(TEXT).as_bytes().to_vec()).unwrap();
    symlink(&victim, path.join(&unfinished)).unwrap();
    symlink(&victim, path.join(file_name(&name, TEXT))).unwrap();
    write(&mut store, &name, TEXT, "report").unwrap();
    let metadata = fs::symlink_metadata(path.join(file_name(&name, TEXT))).unwrap();
    assert!(metadata.is_file());
    assert_eq!(fs::read_to_string(path.join(file_name(&name, TEXT))).unwrap(), "report");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    // Hard links and files of that name, too.
    fs::hard_link(&victim, path.join(&unfinished)).unwrap();
    write(&mut store, &name, TEXT, "again").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    // What can't be replaced is an error, and nothing is left behind.
    let blocked = own_name(7, 8);
    fs::create_dir(path.join(file_name(&blocked, TEXT))).unwrap();
    assert_eq!(write(&mut store, &blocked, TEXT, "x"), Err(Errno(libc::EISDIR)));
    assert_eq!(listed(&path), [file_name(&name, TEXT), file_name(&blocked, TEXT)]);
}

#[test]
fn a_directory_that_was_taken_away_comes_back() {
    let temp = TempDir::new("lost");
    let path = temp.path().join("a/b");
    let mut space = space();
    let mut store = Store::open(&c_path(&path), &mut space).unwrap();
    write(&mut store, &own_name(1, 1), TEXT, "x").unwrap();
    fs::remove_dir_all(temp.path().join("a")).unwrap();
    write(&mut store, &own_name(2, 2), TEXT, "x").unwrap();
    assert_eq!(listed(&path), [file_name(&own_name(2, 2), TEXT)]);
    // Moved away: the path counts, not what it once led to.
    fs::rename(&path, temp.path().join("moved")).unwrap();
    assert!(store.make_room(1, &|_| false).unwrap());
    write(&mut store, &own_name(3, 3), TEXT, "x").unwrap();
    assert_eq!(listed(&path), [file_name(&own_name(3, 3), TEXT)]);
    assert_eq!(listed(&temp.path().join("moved")), [file_name(&own_name(2, 2), TEXT)]);
    // Replaced by a file: an error as long as that lasts.
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    assert_eq!(write(&mut store, &own_name(4, 4), TEXT, "x"), Err(Errno(libc::ENOTDIR)));
    assert!(store.make_room(1, &|_| false).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
    write(&mut store, &own_name(5, 5), TEXT, "x").unwrap();
    assert_eq!(listed(&path), [file_name(&own_name(5, 5), TEXT)]);
    // Taken away while a report is being written.
    let name = own_name(6, 6);
    let mut calls = 0;
    store
        .write(&name, TEXT, &|_| false, &mut |sink| {
            calls += 1;
            sink.text("whole");
            if calls == 1 {
                fs::remove_dir_all(&path).unwrap();
            }
        })
        .unwrap();
    assert_eq!(calls, 2);
    assert_eq!(fs::read_to_string(path.join(file_name(&name, TEXT))).unwrap(), "whole");
}

#[test]
fn readers_see_whole_files_only() {
    let temp = TempDir::new("whole");
    let done = AtomicBool::new(false);
    let name = own_name(1, 1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = std::collections::BTreeSet::new();
            while !done.load(Relaxed) {
                for file in listed(temp.path()).iter().filter(|file| file.starts_with("looper-")) {
                    let text = fs::read(temp.path().join(file)).unwrap();
                    assert_eq!(text.len(), 300_000);
                    assert!(text.iter().all(|byte| *byte == text[0]), "a mixture");
                    seen.insert(text[0]);
                }
            }
            seen
        });
        let mut space = space();
        let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
        for state in 0..400 {
            let letter = [b'a' + (state % 26) as u8; 1000];
            store.write(&name, JSON, &|_| false, &mut |sink| (0..300).for_each(|_| sink.bytes(&letter))).unwrap();
        }
        done.store(true, Relaxed);
        assert!(reader.join().unwrap().len() > 1, "the reader came too late");
    });
    assert_eq!(listed(temp.path()), [file_name(&name, JSON)], "the same name throughout");
}

#[test]
fn unfinished_files_of_the_dead_go_and_of_the_living_stay() {
    let temp = TempDir::new("unfinished");
    let alive = Name::new(1, 0, std::os::unix::process::parent_id() as i32, 1).unfinished(TEXT);
    let names = [
        alive,
        Name::new(1, 0, dead_pid(), 2).unfinished(JSON),
        own_name(1, 3).unfinished(TEXT),
        own_name(1, 4).unfinished(JSON),
    ];
    for name in &names {
        fs::write(temp.path().join(std::str::from_utf8(name.as_bytes()).unwrap()), "half").unwrap();
    }
    let mut space = space();
    let _store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    assert_eq!(listed(temp.path()), [std::str::from_utf8(alive.as_bytes()).unwrap()]);
}

#[test]
fn descriptors_are_given_back_and_not_inherited() {
    let temp = TempDir::new("descriptors");
    let leading_here = || -> Vec<u64> {
        let all = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
            let entry = entry.unwrap();
            let target = fs::read_link(entry.path()).ok()?;
            target.starts_with(temp.path()).then(|| entry.file_name().to_str().unwrap().parse().unwrap())
        });
        all.collect()
    };
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    for id in 1..20 {
        store.make_room(5, &|_| false).unwrap();
        write(&mut store, &own_name(id, id as u64), TEXT, "x").unwrap();
    }
    let open = leading_here();
    assert_eq!(open.len(), 1);
    // SAFETY: asks for a descriptor's flags.
    let flags = unsafe { libc::fcntl(open[0] as i32, libc::F_GETFD) };
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    drop(store);
    assert!(leading_here().is_empty());
}
