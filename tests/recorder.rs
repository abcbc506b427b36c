//! The flight recorder: what comes back of it, and that nothing else does.

mod recorder_parts;
mod report_common;

use blockcanary::abi::{bc_block_state, bc_cause, bc_sample_method};
use blockcanary::report::block::{
    Block, Context, CpuTick, JavaStack, OtherThread, OtherThreads, Reasons, Scheduling, SystemLoad, TopThread,
};
use blockcanary::report::recorder::Recorder;
use blockcanary::report::recorder::encode::{Known, encode};
use blockcanary::report::recorder::layout::{HEAD, Owner, ROOM, VERSION};
use blockcanary::report::recorder::recover::Recovery;
use blockcanary::report::recorder::space::{Buffer, Space};
use blockcanary::sample::evidence::{INTERNAL, ROLES};
use blockcanary::sample::short::Short;
use blockcanary::sys::process;
use recorder_parts::*;
use report_common::*;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn everything_comes_back() {
    let folder = TempDir::new("recorder-all");
    let directory = open(folder.path());
    let mut evidence = Evidence::default();
    stack(&mut evidence, START_NS + 250 * MS, &["inner", "middle", "outer"]);
    evidence.add(START_NS + 500 * MS, &[]).thread_state = 0;
    let sample = evidence.add(START_NS + 750 * MS, &[(None, 0, None, 0), (ENGINE, 7, None, 5)]);
    (sample.truncated, sample.approximate, sample.frames_cut) = (true, true, 9);
    sample.method = bc_sample_method::BC_SAMPLE_KERNEL_STATE;
    stack(&mut evidence, START_NS + 1000 * MS, &["inner", "middle", "outer"]);
    stack(&mut evidence, START_NS + 1250 * MS, &["another", "outer"]);
    let mut others = Evidence::default();
    stack(&mut others, START_NS + 900 * MS, &["holds", "outer"]);
    stack(&mut others, START_NS + 901 * MS, &["renders", "outer"]);
    others.add(START_NS + 902 * MS, &[]);
    let other =
        |tid, name: &[u8], role, is_watched| Some(OtherThread { tid, name: Short::end_of(name), role, is_watched });
    let whose = [
        other(12, b"Loader", Some(ROLES[0]), false),
        other(13, b"Render", None, true),
        other(14, b"bc-writer", Some(INTERNAL), false),
    ];
    let top = [Some(TopThread { tid: 31, name: Short::end_of(b"busy \"one\""), load: 4321 }), None];
    let system = Some(SystemLoad { busy: 5000, user: 3000, system: 1500, io_wait: 500 });
    let cpu = [
        CpuTick { time_ns: START_NS + 250 * MS, process: 2500, system },
        CpuTick { time_ns: START_NS + 500 * MS, process: 7500, system: None },
    ];
    let block = Block {
        cause: bc_cause::BC_CAUSE_LOCK,
        cause_detail: Some(b"futex 0x1 held by tid 12 'Loader'"),
        run_queue_wait_ns: Some(5 * MS),
        cpu: &cpu,
        progress: Some(blockcanary::report::block::Progress::Progressing),
        reasons: Reasons {
            shares: [0, 100, 0, 900, 0, 0, 0, 0],
            scheduling: Scheduling { slices: Some(3), major_faults: Some(1), ..Scheduling::NONE },
            top: &top,
            others: OtherThreads { whose: &whose, samples: others.view(), left_out: Some(2) },
            java: Some(JavaStack {
                time_ns: START_NS + 8 * MS,
                text: b"a.B.c(B.java:1)\nd.E.f(E.java:2)\n",
                frames_cut: 3,
            }),
        },
        ..block(&evidence)
    };
    let context = Context {
        qualifier: Some(b"qua"),
        version_name: Some(b"1.2"),
        version_code: Some(b"12"),
        user_id: Some(b"me"),
        network_type: Some(b"wifi"),
        model: b"phone",
        api_level: b"34 14",
        cores: 8,
        free_memory_kb: 1000,
        total_memory_kb: 4000,
        ..context()
    };
    let mut recorder = Recorder::new(DEAD, 1, 16, zeroed::<Space>());
    recorder.keep(&directory, &block, &context);
    drop(recorder);
    let parcel = empty_parcel();
    let expected = parsed(&json(&Block { state: bc_block_state::BC_BLOCK_KILLED, ..block }, &context));
    assert_eq!(recovered(&directory, parcel), [expected]);
    assert_eq!(recovered(&directory, parcel), Vec::<Value>::new(), "told twice");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "files are left");
}

/// All threads of a large process: those that have to do with the block stay, the block's own samples, too, and the rest
/// is counted.
#[test]
fn threads_without_a_part_in_the_block_give_way() {
    let folder = TempDir::new("recorder-threads");
    let directory = open(folder.path());
    let mut evidence = Evidence::default();
    (0..100).for_each(|n| stack(&mut evidence, START_NS + n * MS, &["inner", "outer"]));
    let mut others = Evidence::default();
    let names: Vec<String> = (0..1000).map(|n| format!("a_function_of_thread_{n}")).collect();
    names.iter().for_each(|name| stack(&mut others, START_NS, &[name, name, name, "outer"]));
    let thread = |tid: i32| OtherThread {
        tid,
        name: Short::end_of(b"one of many"),
        role: (tid == 999).then_some(ROLES[0]),
        is_watched: false,
    };
    let whose: Vec<_> = (0..1000).map(|tid| Some(thread(tid))).collect();
    let block = Block {
        reasons: Reasons {
            others: OtherThreads { whose: &whose, samples: others.view(), left_out: Some(5) },
            ..Reasons::default()
        },
        ..block(&evidence)
    };
    let mut recorder = Recorder::new(DEAD, 1, 1, zeroed::<Space>());
    recorder.keep(&directory, &block, &context());
    drop(recorder);
    let [report] = recovered(&directory, empty_parcel()).try_into().unwrap();
    let threads = report["threads"].as_array().unwrap();
    // As many as the parcel has room for.
    assert_eq!((threads.len(), &report["threads_left_out"]), (8, &serde_json::json!(1005 - 8)));
    assert_eq!((&threads[0]["tid"], &threads[0]["role"]), (&serde_json::json!(999), &serde_json::json!(ROLES[0])));
    assert_eq!(report["samples"].as_array().unwrap().len(), 100);
}

#[test]
fn the_latest_of_each_block_that_goes_on() {
    let folder = TempDir::new("recorder-latest");
    let directory = open(folder.path());
    let mut evidence = Evidence::default();
    stack(&mut evidence, START_NS, &["inner", "outer"]);
    let mut recorder = Recorder::new(DEAD, 1, 4, zeroed::<Space>());
    for wall_ms in 1..=50 {
        for id in 1..=4 {
            keep(&mut recorder, &directory, id, wall_ms * id, &evidence);
        }
    }
    recorder.free(Some(&directory), 3);
    keep(&mut recorder, &directory, 5, 7, &evidence);
    recorder.free(Some(&directory), 1);
    drop(recorder);
    let mut found: Vec<_> = recovered(&directory, empty_parcel())
        .iter()
        .map(|report| (report["id"].as_u64().unwrap(), report["wall_ms"].as_u64().unwrap()))
        .collect();
    found.sort();
    assert_eq!(found, [(2, 100), (4, 200), (5, 7)]);
}

#[test]
fn nothing_is_left_when_all_have_ended() {
    let folder = TempDir::new("recorder-ended");
    let directory = open(folder.path());
    let mut recorder = Recorder::new(DEAD, 1, 4, zeroed::<Space>());
    for round in 0..3 {
        keep(&mut recorder, &directory, round + 1, 5, &Evidence::default());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        recorder.free(Some(&directory), round + 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_block_that_ends_needs_no_more_of_the_disk() {
    use std::os::unix::fs::MetadataExt;
    let folder = TempDir::new("recorder-full");
    let directory = open(folder.path());
    let mut evidence = Evidence::default();
    stack(&mut evidence, START_NS, &["inner", "outer"]);
    let mut recorder = Recorder::new(DEAD, 1, 2, zeroed::<Space>());
    (1..=2).for_each(|id| keep(&mut recorder, &directory, id, 5, &evidence));
    let blocks = || {
        let file = fs::File::open(recorder_in(folder.path())).unwrap();
        // Some file systems find a place on the device only then.
        file.sync_all().unwrap();
        file.metadata().unwrap().blocks()
    };
    let before = blocks();
    recorder.free(Some(&directory), 2);
    assert_eq!(blocks(), before);
    // The place can be had again, as often as there are blocks.
    for id in 3..=5 {
        keep(&mut recorder, &directory, id, 7, &evidence);
        recorder.free(Some(&directory), id);
    }
    drop(recorder);
    let taken = recorder_in(folder.path());
    let mut recovery = Recovery::new(DEAD, 7, None, zeroed::<Buffer>());
    assert!(recovery.find(&directory, &mut [0; NAMES]));
    assert_eq!(recovery.record().unwrap().id, 1);
    assert!(!taken.exists());
    let before = blocks();
    recovery.free();
    assert_eq!(blocks(), before);
    assert!(!recovery.find(&directory, &mut [0; NAMES]));
}

#[test]
fn a_block_without_a_report_is_told_once_and_kept_for_a_while() {
    let folder = TempDir::new("recorder-owed");
    let directory = open(folder.path());
    let mut evidence = Evidence::default();
    stack(&mut evidence, START_NS, &["inner", "outer"]);
    let mut recorder = Recorder::new(DEAD, 1, 3, zeroed::<Space>());
    (1..=3).for_each(|id| keep(&mut recorder, &directory, id, 5, &evidence));
    drop(recorder);
    let own = Owner { pid: process::id(), started: process::started(process::id()).unwrap() };
    let mut tries = 0;
    let mut names = [0; NAMES];
    // The same installation starts again, and others come after it.
    for installation in 1..=20 {
        let mut recovery = Recovery::new(own, installation * 1000, None, zeroed::<Buffer>());
        for _ in 0..2 {
            let mut ids = Vec::new();
            while recovery.find(&directory, &mut names) {
                let id = recovery.record().unwrap().id;
                ids.push((id, recovery.is_told()));
                if id == 2 { recovery.owe() } else { recovery.free() }
            }
            match tries {
                0 => assert_eq!(ids, [(1, false), (2, false), (3, false)]),
                1..10 => assert_eq!(ids, [(2, true)], "try {tries}"),
                _ => assert_eq!(ids, []),
            }
            tries += 1;
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), usize::from(tries < 10), "try {tries}");
        }
    }
}

#[test]
fn one_that_cannot_be_written_any_more_goes_with_all_blocks() {
    let folder = TempDir::new("recorder-closed");
    let directory = open(folder.path());
    let mut recorder = Recorder::new(DEAD, 1, 2, zeroed::<Space>());
    (1..=2).for_each(|id| keep(&mut recorder, &directory, id, 5, &Evidence::default()));
    // As a program that closes whatever is open, and then opens something.
    let file = recorder_in(folder.path());
    let mut open_ones = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let its = open_ones.find(|path| fs::read_link(path).is_ok_and(|to| to == file)).unwrap();
    let its: i32 = its.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let null = fs::File::open("/dev/null").unwrap();
    // SAFETY: takes numbers; nobody but the recorder has the descriptor, which checks it before each use.
    assert_eq!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), its) }, its);
    recorder.free(Some(&directory), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "what has ended would be told as killed");
    keep(&mut recorder, &directory, 2, 7, &Evidence::default());
    drop(recorder);
    // SAFETY: ours since then.
    unsafe { libc::close(its) };
    let ids: Vec<_> = recovered(&directory, empty_parcel()).iter().map(|report| report["id"].clone()).collect();
    assert_eq!(ids, [2]);
}

#[test]
fn one_whose_directory_went_elsewhere_holds_nothing_any_more() {
    let folder = TempDir::new("recorder-moved");
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    fs::create_dir(&here).unwrap();
    let mut recorder = Recorder::new(DEAD, 1, 4, zeroed::<Space>());
    for id in [1, 2] {
        keep(&mut recorder, &open(&here), id, 5, &Evidence::default());
    }
    fs::rename(&here, &there).unwrap();
    fs::create_dir(&here).unwrap();
    keep(&mut recorder, &open(&here), 1, 7, &Evidence::default());
    let found = |path: &Path| -> Vec<_> {
        let reports = recovered(&open(path), empty_parcel());
        reports.iter().map(|report| (report["id"].as_u64().unwrap(), report["wall_ms"].as_u64().unwrap())).collect()
    };
    assert_eq!(found(&there), []);
    assert_eq!(found(&here), [(1, 7)]);
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0);
}

#[test]
fn one_in_use_is_left_alone_and_one_left_to_a_child_is_not() {
    let folder = TempDir::new("recorder-alive");
    let directory = open(folder.path());
    let parcel = empty_parcel();
    let own = Owner { pid: process::id(), started: process::started(process::id()).unwrap() };
    let mut alive = Recorder::new(own, 1, 4, zeroed::<Space>());
    keep(&mut alive, &directory, 1, 5, &Evidence::default());
    assert_eq!(recovered(&directory, parcel).len(), 0);
    // Its lock is held, as a child of fork holds it, but its process is gone: by its id, or by its begin.
    for owner in [DEAD, Owner { started: own.started + 1, ..own }] {
        let mut left = Recorder::new(owner, 2, 4, zeroed::<Space>());
        keep(&mut left, &directory, 2, 5, &Evidence::default());
        assert_eq!(recovered(&directory, parcel).len(), 1);
    }
    // Locks may be of no use on a file system; an earlier process may have had the id.
    drop(alive);
    assert_eq!(recovered(&directory, parcel).len(), 1);
}

#[test]
#[cfg_attr(
    any(target_arch = "aarch64", target_arch = "riscv64"),
    ignore = "an emulator tells when the thread that asks began, not when its process did"
)]
fn each_is_told_by_one_of_those_who_find_it() {
    let folder = TempDir::new("recorder-race");
    let directory = open(folder.path());
    const FILES: u64 = 60;
    for number in 1..=FILES {
        let mut recorder = Recorder::new(DEAD, number, 2, zeroed::<Space>());
        keep(&mut recorder, &directory, number, 5, &Evidence::default());
    }
    let ids = std::thread::scope(|scope| {
        let finders: Vec<_> = (0..3u64)
            .map(|finder| {
                let path = folder.path();
                scope.spawn(move || {
                    let directory = open(path);
                    let own = Owner { pid: process::id(), started: process::started(process::id()).unwrap() };
                    let mut recovery = Recovery::new(own, (finder + 1) << 32, None, zeroed::<Buffer>());
                    let mut names = [0; NAMES];
                    let mut ids = Vec::new();
                    while recovery.find(&directory, &mut names) {
                        ids.push(recovery.record().unwrap().id);
                        recovery.free();
                    }
                    ids
                })
            })
            .collect();
        finders.into_iter().flat_map(|finder| finder.join().unwrap()).collect::<Vec<u64>>()
    });
    let mut sorted = ids.clone();
    sorted.sort();
    assert_eq!(sorted, (1..=FILES).collect::<Vec<_>>());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn others_files_are_left_alone_until_they_are_old() {
    let folder = TempDir::new("recorder-foreign");
    let directory = open(folder.path());
    let parcel = empty_parcel();
    let mut recorder = Recorder::new(DEAD, 1, 2, zeroed::<Space>());
    keep(&mut recorder, &directory, 1, 10, &Evidence::default());
    drop(recorder);
    let mut newer = fs::read(recorder_in(folder.path())).unwrap();
    fs::remove_file(recorder_in(folder.path())).unwrap();
    newer[8] = VERSION as u8 + 1;
    newer[HEAD..].fill(0);
    fs::write(folder.path().join("recorder-1-1.bcr"), &newer).unwrap();
    fs::write(folder.path().join("recorder-1-2.bcr"), "somebody's text").unwrap();
    fs::write(folder.path().join("recorder.bcr"), "not one of ours").unwrap();
    std::os::unix::fs::symlink("recorder-1-2.bcr", folder.path().join("recorder-1-3.bcr")).unwrap();
    fs::create_dir(folder.path().join("recorder-1-4.bcr")).unwrap();
    fs::write(folder.path().join(".recorder-1-5.bcr.tmp"), "never finished").unwrap();
    assert_eq!(recovered(&directory, parcel).len(), 0);
    let left = |folder: &TempDir| fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left(&folder), 5, "all but the one that was never finished");
    // As if they were older than a report may be.
    for name in ["recorder-1-1.bcr", "recorder-1-2.bcr"] {
        let file = fs::File::options().write(true).open(folder.path().join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(61)).unwrap();
    }
    let owner = Owner { pid: process::id(), started: process::started(process::id()).unwrap() };
    let mut recovery = Recovery::new(owner, 9, Some(60), zeroed::<Buffer>());
    assert!(!recovery.find(&directory, &mut [0; NAMES]));
    assert_eq!(left(&folder), 3, "the newer one and the unreadable one are gone");
}

#[test]
fn what_does_not_fit_is_left_out_and_said_nothing_false_of() {
    let mut evidence = Evidence::default();
    for i in 0..400u64 {
        let names: Vec<String> = (0..100).map(|depth| format!("function_{i}_{depth}_{}", "x".repeat(40))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        stack(&mut evidence, START_NS + i, &names);
    }
    let block = block(&evidence);
    let mut room = vec![0; ROOM];
    let known = zeroed::<Known>();
    let length = encode(&block, &context(), known, &mut room).unwrap();
    assert!(length <= ROOM && length > ROOM / 2);
    let record = blockcanary::report::recorder::decode::Record::read(&room[..length]).unwrap();
    let parcel = empty_parcel();
    parcel.restore(&record);
    let report = parsed(&json(&parcel.block(), &context()));
    let samples = report["samples"].as_array().unwrap();
    assert!(samples.len() >= 3 && samples.len() < 400, "{} samples", samples.len());
    assert!(samples.iter().all(|sample| sample["frames"].as_array().unwrap().len() == 100));
    let name = |sample: &Value| sample["frames"][0]["symbol"].as_str().unwrap().to_owned();
    assert!(name(&samples[0]).starts_with("function_0_0_"));
    assert!(name(&samples[samples.len() - 1]).starts_with("function_399_0_"));
    // Too little room for anything: said so.
    for room in [0, 1, 10, 100] {
        assert_eq!(encode(&block, &context(), known, &mut vec![0; room]), None);
    }
}
