//! Reports that are written again with other repeats, and how many bytes of them are kept.

mod report_common;

use blockcanary::report::block::{Block, Context, Repeats};
use blockcanary::report::module_list::ModuleList;
use blockcanary::report::names::{Format, Name};
use blockcanary::report::store::Store;
use blockcanary::sys::errno::Errno;
use report_common::reader::read_as_block_canary;
use report_common::*;
use std::fs;

const NASTY: &[u8] = b"x\nrepeat-count = 7\n\"repeats\":{\r\nrepeat-\xff";

fn nasty(evidence: &Evidence) -> Block<'_> {
    Block { what: Some(NASTY), loop_name: NASTY, cause_detail: Some(NASTY), ..block(evidence) }
}

fn rendered_as(format: Format, block: &Block) -> Vec<u8> {
    match format {
        TEXT => text(block, &context()),
        JSON => json(block, &context()),
    }
}

#[test]
fn an_amended_report_is_the_one_that_would_be_written_with_these_repeats() {
    let temp = TempDir::new("amended");
    let mut evidence = Evidence::default();
    for n in 0..40 {
        evidence.add(n, &[(Some(NASTY), n, Some(NASTY), 1), (Some(b"/lib/repeat-count = 5"), 2, Some(b"repeat-"), 3)]);
    }
    let mut block = nasty(&evidence);
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    let name = own_name(1, 2);
    for format in [TEXT, JSON] {
        let file = temp.path().join(file_name(&name, format));
        block.repeats = Repeats::default();
        let bytes = rendered_as(format, &block);
        store.write(&name, format, &|_| false, &mut |sink| sink.bytes(&bytes)).unwrap();
        for repeats in [(1, 120_500_000), (12_345, u64::MAX), (0, 0), (2, 7)] {
            block.repeats = Repeats { count: repeats.0, wall_ns_total: repeats.1, last_unix_ms: START_UNIX_MS };
            store.amend(&name, format, &|_| false, &block.repeats).unwrap();
            assert_eq!(
                String::from_utf8_lossy(&fs::read(&file).unwrap()),
                String::from_utf8_lossy(&rendered_as(format, &block))
            );
        }
    }
    assert_eq!(listed(temp.path()).len(), 2);
}

#[test]
fn what_is_no_report_of_ours_is_left_as_it_is() {
    let temp = TempDir::new("unlike");
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    let name = own_name(1, 2);
    assert_eq!(store.amend(&name, TEXT, &|_| false, &Repeats::default()), Err(Errno(libc::ENOENT)));
    for (format, content) in [(TEXT, ""), (TEXT, "repeat-count = 0"), (JSON, "{\"repeats\":{}}\n"), (JSON, "\"repeat")]
    {
        let file = temp.path().join(file_name(&name, format));
        fs::write(&file, content).unwrap();
        assert_eq!(
            store.amend(&name, format, &|_| false, &Repeats::default()),
            Err(Errno(libc::EBADMSG)),
            "{content:?}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
        fs::remove_file(&file).unwrap();
    }
    assert!(listed(temp.path()).is_empty());
}

#[test]
fn the_cap_on_bytes_holds_and_the_newest_are_kept() {
    let temp = TempDir::fast("bytes");
    let mut space = space();
    let mut store = Store::open(&c_path(temp.path()), &mut space).unwrap();
    store.limits.bytes = 10_000;
    let total =
        || -> u64 { listed(temp.path()).iter().map(|name| fs::metadata(temp.path().join(name)).unwrap().len()).sum() };
    for id in 1..=500u64 {
        let name = own_name(id as i64, id);
        assert!(store.make_room(1000, &|_| false).unwrap());
        for (format, size) in [(TEXT, id % 7 * 300 + 1), (JSON, id % 5 * 400 + 1)] {
            write(&mut store, &name, format, &"x".repeat(size as usize)).unwrap();
            assert!(total() <= 10_000, "{} bytes with block {id}", total());
        }
        // Written again, larger or smaller.
        write(&mut store, &name, TEXT, &"x".repeat((id % 3 * 1000 + 1) as usize)).unwrap();
        assert!(total() <= 10_000 && total() > 4_000.min(id * 200), "{} bytes with block {id}", total());
        assert!(listed(temp.path()).contains(&file_name(&name, JSON)));
    }
    // Somebody else's bytes count, too.
    for n in 0..3 {
        fs::write(temp.path().join(file_name(&Name::new(n, 0, dead_pid(), n as u64), TEXT)), "x".repeat(4000)).unwrap();
    }
    write(&mut store, &own_name(1000, 1000), TEXT, "x").unwrap();
    assert!(total() <= 10_000);
    let too_large = "x".repeat(10_001);
    assert_eq!(write(&mut store, &own_name(1001, 1001), TEXT, &too_large), Err(Errno(libc::EFBIG)));
    // What may not go leaves no room.
    assert_eq!(
        store.write(&own_name(1002, 1002), TEXT, &|_| true, &mut |sink| sink.text(&too_large[..9_999])),
        Err(Errno(libc::ENOSPC))
    );
    assert!(total() > 0 && listed(temp.path()).iter().all(|name| !name.ends_with(".tmp")));
}

#[test]
fn modules_of_concern_lead_the_text() {
    let mut evidence = Evidence::default();
    let often = [(Some(b"/lib/often.so".as_slice()), 1, Some(b"often".as_slice()), 0)];
    let seldom = [often[0], (Some(b"/lib/mine.so".as_slice()), 2, Some(b"seldom".as_slice()), 9)];
    for n in 0..5 {
        evidence.add(START_NS + n * MS, if n == 3 { &seldom } else { &often });
    }
    let block = block(&evidence);
    for (concern, leads, first) in
        [("", "often", "56.789"), ("none.so", "often", "56.789"), ("mine.so", "seldom", "56.792")]
    {
        let context = Context { concern: ModuleList::new(concern.as_bytes()), ..context() };
        let log = text(&block, &context);
        let read = read_as_block_canary(&log).unwrap();
        assert_eq!(read.stack.len(), 5 * 2, "{:?}", read.stack);
        assert!(read.stack[0].contains(first), "{concern}: {:?}", read.stack[0]);
        let log = String::from_utf8(log).unwrap();
        let frames = log.split("*** ***\n").nth(1).unwrap().split("\n\n").next().unwrap();
        assert_eq!(frames.contains("seldom"), leads == "seldom", "{frames}");
    }
}
