//! Damaged recorders: no block that was none, and none of the others lost.

mod recorder_parts;
mod report_common;

use blockcanary::report::recorder::Recorder;
use blockcanary::report::recorder::layout::{HALF, HEAD, TOP};
use blockcanary::report::recorder::recover::Recovery;
use blockcanary::report::recorder::space::{Buffer, Space};
use recorder_parts::*;
use report_common::*;
use std::fs;

#[test]
fn a_write_that_was_cut_leaves_what_was_there_before() {
    let folder = TempDir::new("recorder-cut");
    let directory = open(folder.path());
    let parcel = empty_parcel();
    let mut evidence = Evidence::default();
    (0..20).for_each(|i| stack(&mut evidence, START_NS + i, &["a", "b", &format!("c{i}")]));
    let mut recorder = Recorder::new(DEAD, 1, 2, zeroed::<Space>());
    keep(&mut recorder, &directory, 1, 10, &evidence);
    let before = fs::read(recorder_in(folder.path())).unwrap();
    keep(&mut recorder, &directory, 1, 20, &evidence);
    let after = fs::read(recorder_in(folder.path())).unwrap();
    drop(recorder);
    let changed: Vec<usize> = (0..after.len()).filter(|at| before[*at] != after[*at]).collect();
    assert!(changed.iter().all(|at| (HEAD..HEAD + HALF).contains(at)), "the other half was touched");
    // What the front says is written last: with any part of the rest missing, the half counts for nothing.
    for cut in changed.iter().step_by(97) {
        let mut torn = after.clone();
        torn[*cut] ^= 0xff;
        fs::write(folder.path().join("recorder-2147483647-5.bcr"), &torn).unwrap();
        fs::remove_file(folder.path().join("recorder-2147483647-1.bcr")).ok();
        let walls: Vec<_> = recovered(&directory, parcel).iter().map(|report| report["wall_ms"].clone()).collect();
        assert_eq!(walls, [10], "byte {cut}");
    }
}

#[test]
fn damage_makes_no_block_and_costs_no_other() {
    let folder = TempDir::fast("recorder-damage");
    let directory = open(folder.path());
    let parcel = empty_parcel();
    let mut evidence = Evidence::default();
    (0..5).for_each(|i| stack(&mut evidence, START_NS + i, &["a", "b", &format!("c{i}")]));
    const PLACES: usize = 3;
    let mut recorder = Recorder::new(DEAD, 1, PLACES as u32, zeroed::<Space>());
    (1..=PLACES as u64).for_each(|id| keep(&mut recorder, &directory, id, 10 * id, &evidence));
    drop(recorder);
    let file = recorder_in(folder.path());
    let whole = fs::read(&file).unwrap();
    let originals = recovered(&directory, parcel);
    assert_eq!(originals.len(), PLACES);
    let mut random = random(0x9e37_79b9_7f4a_7c15);
    // Where something is: damage elsewhere is none.
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let (mut kept, mut lost) = (0, 0);
    for round in 0..10_000 {
        let mut damaged = whole.clone();
        let mut hit = [false; PLACES];
        let touched = match round % 4 {
            0 => {
                let at = used[random(used.len())];
                damaged[at] ^= 1 << random(8);
                at..at + 1
            }
            1 => {
                let (from, length) = (random(whole.len()), random(4096) + 1);
                damaged.iter_mut().skip(from).take(length).for_each(|byte| *byte = random(256) as u8);
                from..from + length
            }
            2 => {
                let end = random(whole.len());
                damaged.truncate(end);
                end..whole.len()
            }
            _ => {
                let (from, to, length) = (random(whole.len()), random(whole.len()), random(2 * HALF));
                let length = length.min(whole.len() - from.max(to));
                damaged.copy_within(from..from + length, to);
                to..to + length
            }
        };
        for (number, hit) in hit.iter_mut().enumerate() {
            let place = HEAD + number * 2 * HALF..HEAD + (number + 1) * 2 * HALF;
            *hit = touched.start < place.end && place.start < touched.end;
        }
        let place = folder.path().join("recorder-2147483647-5.bcr");
        fs::write(&place, &damaged).unwrap();
        let found = recovered(&directory, parcel);
        // What cannot be read stays, for as long as reports do.
        let _ = fs::remove_file(&place);
        for report in &found {
            assert!(originals.contains(report), "round {round}: {report}");
        }
        for (number, original) in originals.iter().enumerate() {
            let is_there = found.iter().filter(|report| *report == original).count();
            if !hit[number] {
                assert!(is_there >= 1, "round {round}: block {} is lost", original["id"]);
                kept += 1;
            }
            lost += usize::from(hit[number] && is_there == 0);
        }
    }
    println!("10,000 damaged recorders: {kept} blocks next to the damage, all kept; {lost} hit ones dropped");
    assert!(kept > 10_000 && lost > 3_000);
}

#[test]
fn damage_brings_no_block_back_that_has_ended_or_was_told() {
    let folder = TempDir::fast("recorder-revived");
    let directory = open(folder.path());
    let mut recorder = Recorder::new(DEAD, 1, 3, zeroed::<Space>());
    // Both halves of each place are used.
    for wall_ms in [10, 20] {
        (1..=3).for_each(|id| keep(&mut recorder, &directory, id, wall_ms, &Evidence::default()));
    }
    recorder.free(Some(&directory), 1);
    drop(recorder);
    let mut names = [0; NAMES];
    let mut recovery = Recovery::new(DEAD, 7, None, zeroed::<Buffer>());
    assert!(recovery.find(&directory, &mut names));
    assert_eq!(recovery.record().unwrap().id, 2);
    recovery.owe();
    drop(recovery);
    let file = recorder_in(folder.path());
    let whole = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    for front in (0..4).map(|half| HEAD + half * HALF) {
        for at in (front..front + TOP).filter(|at| whole[*at] != 0) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(folder.path().join("recorder-2147483647-5.bcr"), &damaged).unwrap();
            let mut recovery = Recovery::new(DEAD, 1000 * at as u64, None, zeroed::<Buffer>());
            let mut news = Vec::new();
            while recovery.find(&directory, &mut names) {
                if !recovery.is_told() {
                    news.push(recovery.record().unwrap().id);
                }
                recovery.free();
            }
            assert_eq!(news, [3], "byte {at}");
        }
    }
}
