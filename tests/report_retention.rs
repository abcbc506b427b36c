//! How many reports the store keeps, and whose.

mod report_common;

use blockcanary::report::names::Name;
use blockcanary::report::shelf;
use blockcanary::report::store::Store;
use report_common::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

#[test]
fn the_cap_holds_at_every_moment() {
    for cap in [1u32, 5, 500] {
        let temp = TempDir::fast(&format!("cap{cap}"));
        let mut space = space();
        let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
        for id in 1..=2000u64 {
            assert!(store.make_room(cap, &|_| false).unwrap());
            // Blocks begin at most some at once; names of equal time are ordered by id.
            let name = own_name(id as i64 / 3, id);
            write(&mut store, &name, TEXT, "text").unwrap();
            write(&mut store, &name, JSON, "{}").unwrap();
            if cap < 10 || id % 50 == 0 {
                let left = listed(temp.path());
                let newest = (id + 1).saturating_sub(cap.into()).max(1)..=id;
                let mut expected: Vec<String> = newest
                    .flat_map(|id| [TEXT, JSON].map(|format| file_name(&own_name(id as i64 / 3, id), format)))
                    .collect();
                expected.sort();
                assert_eq!(left, expected);
            }
        }
    }
}

#[test]
fn a_block_counts_once_whatever_its_formats() {
    let temp = TempDir::new("formats");
    for (id, formats) in [(1, &[TEXT][..]), (2, &[JSON]), (3, &[TEXT, JSON]), (4, &[JSON])] {
        for &format in formats {
            fs::write(temp.path().join(file_name(&own_name(id, id as u64), format)), "x").unwrap();
        }
    }
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    assert!(store.trim(4, &|_| false).unwrap());
    assert_eq!(listed(temp.path()).len(), 5);
    assert!(store.make_room(3, &|_| false).unwrap());
    assert_eq!(listed(temp.path()).len(), 3);
    let mut visited = Vec::new();
    let shelf = store.shelf();
    shelf::each(shelf.path(), &mut |path, name, format| {
        visited.push((path.to_owned(), name.id, format));
        true
    })
    .unwrap();
    visited.sort_by_key(|(path, ..)| path.clone());
    let expected = [(3, JSON), (3, TEXT), (4, JSON)]
        .map(|(id, format)| (c_path(&temp.path().join(file_name(&own_name(id as i64, id), format))), id, format));
    assert_eq!(visited, expected);
    let mut calls = 0;
    shelf::each(shelf.path(), &mut |_, _, _| {
        calls += 1;
        false
    })
    .unwrap();
    assert_eq!(calls, 1);
}

#[test]
fn open_blocks_and_other_living_processes_keep_theirs() {
    let temp = TempDir::new("kept");
    let alive = std::os::unix::process::parent_id() as i32;
    let dead = dead_pid();
    let keep = |name: &Name| fs::write(temp.path().join(file_name(name, TEXT)), "x").unwrap();
    (0..3).for_each(|n| keep(&Name::new(n, 0, alive, n as u64)));
    (3..6).for_each(|n| keep(&Name::new(n, 0, dead, n as u64)));
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    for n in 6..9 {
        write(&mut store, &own_name(n, n as u64), TEXT, "x").unwrap();
    }
    // Nine are there; five are the living process's or open.
    assert!(store.make_room(6, &|id| id < 8).unwrap());
    let left: Vec<u64> = listed(temp.path()).iter().map(|file| Name::parse(file.as_bytes()).unwrap().0.id).collect();
    assert_eq!(left, [0, 1, 2, 6, 7], "{left:?}");
    assert!(!store.make_room(5, &|id| id < 8).unwrap(), "no room");
    assert_eq!(listed(temp.path()).len(), 5);
    assert!(store.make_room(5, &|_| false).unwrap());
    assert_eq!(listed(temp.path()).len(), 4);
    // When the blocks have ended, the younger one of them is left.
    assert!(listed(temp.path()).contains(&file_name(&own_name(7, 7), TEXT)));
}

#[test]
fn only_files_of_the_very_pattern_are_touched() {
    let temp = TempDir::new("pattern");
    let mut foreign = vec![
        "looper-2024-02-29_13-34-56.789.log".to_string(),
        "looper-2024-02-29_13-34-56.789-1-2.log.gz".to_string(),
        "notes.txt".to_string(),
        ".looper-2024-02-29_13-34-56.789-1-2.tmp".to_string(),
        "looper-2024-02-30_13-34-56.789-1-2.log".to_string(),
    ];
    for name in &foreign {
        fs::write(temp.path().join(name), "mine").unwrap();
    }
    // A directory and a link with the name of a report are no reports.
    let folder = file_name(&Name::new(0, 0, 999_999_999, 1), TEXT);
    let link = file_name(&Name::new(0, 0, 999_999_999, 2), TEXT);
    fs::create_dir(temp.path().join(&folder)).unwrap();
    symlink("notes.txt", temp.path().join(&link)).unwrap();
    foreign.extend([folder, link]);
    foreign.sort();
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    for id in 1..=10 {
        assert!(store.make_room(1, &|_| false).unwrap());
        write(&mut store, &own_name(id, id as u64), TEXT, "x").unwrap();
    }
    assert!(store.trim(0, &|_| false).unwrap());
    assert_eq!(listed(temp.path()), foreign);
}

#[test]
fn an_earlier_process_of_our_id_has_no_claim_and_a_second_copy_of_us_has() {
    let temp = TempDir::new("copies");
    let (earlier, copys, own) = (own_name(1, 1), own_name(2, 1 << 40), own_name(3, 500));
    let file = |name: &Name| temp.path().join(file_name(name, TEXT));
    fs::write(file(&earlier), "x").unwrap();
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    write(&mut store, &own, TEXT, "x").unwrap();
    // File times are coarse: until one is later than the store's opening.
    let time = |path: &Path| fs::metadata(path).map(|meta| (meta.mtime(), meta.mtime_nsec())).unwrap();
    let opened = time(&file(&own));
    while !fs::exists(file(&copys)).unwrap() || time(&file(&copys)) <= opened {
        fs::write(file(&copys), "x").unwrap();
    }
    assert!(!store.trim(0, &|_| false).unwrap());
    assert_eq!(listed(temp.path()), [file_name(&copys, TEXT)]);
}

#[test]
fn blocks_that_somebody_else_adds_or_removes_are_noticed() {
    let temp = TempDir::new("somebody");
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    let dead = dead_pid();
    let age = |id: u64| own_name(1000 + id as i64, id);
    for id in 1..=50 {
        assert!(store.make_room(10, &|_| false).unwrap());
        write(&mut store, &age(id), TEXT, "x").unwrap();
        // The directory's time of change is coarse: wait until this change shows.
        let changed = || fs::metadata(temp.path()).map(|meta| (meta.mtime(), meta.mtime_nsec())).unwrap();
        let before = changed();
        while changed() <= before {
            let foreign = temp.path().join(file_name(&Name::new(id as i64, 0, dead, id), TEXT));
            fs::write(&foreign, "x").unwrap();
            if id % 5 == 0 {
                fs::remove_file(temp.path().join(file_name(&age(id), TEXT))).unwrap_or_default();
            }
            let other = temp.path().join("other");
            fs::write(&other, "").unwrap();
            fs::remove_file(other).unwrap();
        }
        assert!(listed(temp.path()).len() <= 11, "{}", listed(temp.path()).len());
    }
    assert!(store.trim(10, &|_| false).unwrap());
    assert_eq!(listed(temp.path()).len(), 10);
}

#[test]
fn a_hundred_thousand_files() {
    let temp = TempDir::fast("many");
    let dead = dead_pid();
    // Not in the order of their age.
    let name = |n: u64| Name::new((n * 7919 % 100_000) as i64, 0, dead, n);
    for n in 0..100_000 {
        fs::File::create(temp.path().join(file_name(&name(n), if n % 2 == 0 { TEXT } else { JSON }))).unwrap();
    }
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    let begin = std::time::Instant::now();
    for id in 0..100 {
        assert!(store.make_room(100_000, &|_| false).unwrap());
        write(&mut store, &own_name(1_000_000 + id, id as u64), TEXT, "x").unwrap();
    }
    eprintln!("100 blocks among 100,000 files: {:?}", begin.elapsed());
    assert_eq!(listed(temp.path()).len(), 100_000);
    let begin = std::time::Instant::now();
    assert!(store.trim(90_000, &|_| false).unwrap());
    eprintln!("down to 90,000: {:?}", begin.elapsed());
    let left = listed(temp.path());
    assert_eq!(left.len(), 90_000);
    let oldest = Name::parse(left[0].as_bytes()).unwrap().0.local_ms;
    assert_eq!(oldest, 10_100, "the newest are left");
}
