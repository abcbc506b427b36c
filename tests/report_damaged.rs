//! Report files that something has happened to: nobody trips over one, and those beside it stay as they are.

mod report_common;

use blockcanary::report::block::{Block, Repeats};
use blockcanary::report::names::{Format, Name};
use blockcanary::report::shelf;
use blockcanary::report::store::Store;
use blockcanary::sys::errno::Errno;
use report_common::*;
use std::fs;

const ROUNDS: u64 = 10_000;

/// Bits flipped, an end cut off, a part overwritten or moved, or everything gone.
fn damaged(whole: &[u8], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    match random(5) {
        0 => (0..=random(8)).for_each(|_| {
            let at = random(bytes.len());
            bytes[at] ^= 1 << random(8);
        }),
        1 => bytes.truncate(random(whole.len())),
        2 => {
            let (from, length) = (random(whole.len()), random(300));
            bytes.iter_mut().skip(from).take(length).for_each(|byte| *byte = random(256) as u8);
        }
        3 => {
            let (from, to) = (random(whole.len()), random(whole.len()));
            bytes.copy_within(from..from + random(whole.len() - from.max(to)), to);
        }
        _ => bytes.fill(b"\0\n\r\""[random(4)]),
    }
    bytes
}

#[test]
fn damage_is_survived_and_costs_no_other() {
    let temp = TempDir::fast("damaged");
    let mut evidence = Evidence::default();
    for n in 0..6 {
        evidence.add(n, &[(Some(b"/lib/libengine.so"), n, Some(b"inner"), 1), (Some(b"/lib/libc.so"), 2, None, 3)]);
    }
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    let names: Vec<Name> = (1..=3).map(|id| own_name(id as i64, id)).collect();
    let mut whole = Vec::new();
    for name in &names {
        let block = Block { id: name.id, ..block(&evidence) };
        for (format, bytes) in [(TEXT, text(&block, &context())), (JSON, json(&block, &context()))] {
            store.write(name, format, &|_| false, &mut |sink| sink.bytes(&bytes)).unwrap();
            whole.push((*name, format, bytes));
        }
    }
    let place = |name: &Name, format: Format| temp.path().join(file_name(name, format));
    let mut random = random(0x9e37_79b9_7f4a_7c15);
    let (mut refused, mut amended) = (0, 0);
    for round in 0..ROUNDS {
        let hit = random(whole.len());
        let (name, format, bytes) = &whole[hit];
        let file = place(name, *format);
        let content = damaged(bytes, &mut random);
        fs::write(&file, &content).unwrap();
        let repeats = Repeats { count: 1, wall_ns_total: round, last_unix_ms: START_UNIX_MS };
        match store.amend(name, *format, &|_| false, &repeats) {
            // No place for the line was found, so nothing was written.
            Err(Errno(libc::EBADMSG)) => {
                assert_eq!(fs::read(&file).unwrap(), content, "round {round}");
                refused += 1;
            }
            result => {
                result.unwrap();
                amended += 1;
            }
        }
        let mut seen = Vec::new();
        shelf::each(&c_path(temp.path()), &mut |path, name, format| {
            seen.push((name, format));
            !path.is_empty()
        })
        .unwrap();
        assert_eq!(seen.len(), whole.len(), "round {round}");
        assert!(store.tidy(100, &|_| false).unwrap());
        for (number, (name, format, bytes)) in whole.iter().enumerate().filter(|(number, _)| *number != hit) {
            assert!(fs::read(place(name, *format)).unwrap() == *bytes, "round {round}: file {number} has changed");
        }
        fs::write(&file, bytes).unwrap();
    }
    println!("{ROUNDS} damaged reports: {refused} left as they were, {amended} with another line about repeats");
    assert!(refused > 1000 && amended > 1000);
    assert_eq!(listed(temp.path()).len(), whole.len(), "nothing else is left");
}
