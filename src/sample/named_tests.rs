use super::*;

fn named_with(bytes: usize) -> Named {
    Named::new(
        vec![Place::EMPTY; PLACES].leak(),
        vec![0; PLACES / WAYS].leak(),
        Strings::new(vec![0; bytes].leak(), vec![0; 1024].leak()),
    )
}

fn named() -> Named {
    named_with(1 << 16)
}

fn key(pc: u64, table: u32) -> Key {
    Key { pc, is_outer: true, table }
}

fn module(path: &[u8]) -> Module<'_> {
    Module { path, build_id: b"00ff", file: (1 << 32 | 2, 3), file_offset: 0x4000, is_whole: true }
}

fn found<'a>(path: &'a [u8], identity: u64, symbol: &'a [u8], search: Search) -> Found<'a> {
    Found { module: module(path), identity, module_offset: 0x10, symbol: Some((symbol, 5)), search }
}

fn put(named: &mut Named, key: Key, path: &[u8], identity: u64, symbol: &[u8]) {
    assert_eq!(named.keep(key, || Some(identity)), Held::Missing);
    named.put(key, &found(path, identity, symbol, Search::Done));
    assert_eq!(named.keep(key, || panic!("not asked for what is there")), Held::Known);
}

fn symbol(named: &Named, key: Key) -> Option<&[u8]> {
    named.find(key)?.symbol
}

#[test]
fn a_frame_is_found_by_all_of_its_key() {
    let mut named = named();
    put(&mut named, key(0x1000, 1), b"/lib/one.so", 7, b"one");
    let name = named.find(key(0x1000, 1)).unwrap();
    assert_eq!(name.module, module(b"/lib/one.so"));
    assert_eq!((name.module_offset, name.symbol, name.symbol_offset), (0x10, Some(b"one".as_slice()), 5));
    for other in [key(0x1000, 2), key(0x1000, 0), key(0x1001, 1), Key { is_outer: false, ..key(0x1000, 1) }] {
        assert!(named.find(other).is_none(), "{other:?}");
    }
    assert!(named.find(key(0, 0)).is_none());
}

#[test]
fn equal_names_share_a_place() {
    let mut named = named();
    put(&mut named, key(0x1000, 1), b"/lib/one.so", 7, b"one");
    put(&mut named, key(0x1010, 1), b"/lib/one.so", 7, b"one");
    let (first, second) = (named.find(key(0x1000, 1)).unwrap(), named.find(key(0x1010, 1)).unwrap());
    assert_eq!((first.module_at, first.symbol_at), (second.module_at, second.symbol_at));
}

#[test]
fn another_module_in_the_same_place_does_not_take_the_old_ones_name() {
    let mut named = named();
    put(&mut named, key(0x1000, 1), b"/lib/one.so", 7, b"one");
    put(&mut named, key(0x1000, 2), b"/lib/two.so", 8, b"two");
    // The first one comes back: known without a look, and table 2 is the second one's all the same.
    assert_eq!(named.keep(key(0x1000, 3), || Some(7)), Held::Known);
    assert_eq!(named.keep(key(0x1000, 4), || Some(7)), Held::Known);
    assert_eq!(named.keep(key(0x1000, 5), || Some(8)), Held::Known);
    let expected: [&[u8]; 5] = [b"one", b"two", b"one", b"one", b"two"];
    for (table, expected) in (1..).zip(expected) {
        assert_eq!(symbol(&named, key(0x1000, table)), Some(expected), "{table}");
    }
    assert_eq!(named.keep(key(0x1000, 6), || None), Held::Missing);
    assert_eq!(named.keep(key(0x1000, 6), || Some(9)), Held::Missing);
}

#[test]
fn tables_that_nobody_was_sampled_by_are_skipped() {
    let mut named = named();
    put(&mut named, key(0x1000, 1), b"/lib/one.so", 7, b"one");
    assert_eq!(named.keep(key(0x1000, 90), || Some(7)), Held::Known);
    assert_eq!(symbol(&named, key(0x1000, 90)), Some(b"one".as_slice()));
    let places = named.places.iter().filter(|place| place.pc == 0x1000).count();
    assert_eq!(places, 1);
}

/// The name of a frame that had to make room is not replaced by that of the module before it.
#[test]
fn a_gap_that_an_evicted_frame_leaves_is_not_bridged() {
    let mut named = named();
    put(&mut named, key(0x1000, 1), b"/lib/one.so", 7, b"one");
    put(&mut named, key(0x1000, 2), b"/lib/two.so", 8, b"two");
    let same_set = (1u64..).map(|number| 0x1000 + number * 16).filter(|pc| named.set(*pc) == named.set(0x1000));
    for pc in same_set.take(7).collect::<Vec<_>>() {
        named.begin_sample();
        // The first one is used all the time, the second one is pushed out.
        assert_eq!(named.keep(key(0x1000, 1), || None), Held::Known);
        put(&mut named, key(pc, 2), b"/lib/three.so", 9, b"three");
    }
    assert!(named.find(key(0x1000, 2)).is_none());
    assert_eq!(named.keep(key(0x1000, 3), || Some(7)), Held::Known);
    assert!(named.find(key(0x1000, 2)).is_none());
    assert_eq!(symbol(&named, key(0x1000, 3)), Some(b"one".as_slice()));
}

#[test]
fn what_is_used_stays_while_others_come_and_go() {
    let mut named = named();
    put(&mut named, key(0x1000, 1), b"/lib/one.so", 7, b"one");
    for number in 0..10_000_u64 {
        named.begin_sample();
        assert_eq!(named.keep(key(0x1000, 1), || None), Held::Known);
        let text = format!("a_function_with_the_number_{number}");
        put(&mut named, key(0x10_0000 + number * 4, 1), b"/lib/many.so", 8, text.as_bytes());
    }
    assert_eq!(symbol(&named, key(0x1000, 1)), Some(b"one".as_slice()));
    // Whatever is found is right: nothing reads another one's text.
    let mut found = 0;
    for number in 0..10_000_u64 {
        if let Some(name) = named.find(key(0x10_0000 + number * 4, 1)) {
            assert_eq!(name.module.path, b"/lib/many.so");
            if let Some(symbol) = name.symbol {
                assert_eq!(symbol, format!("a_function_with_the_number_{number}").as_bytes());
                found += 1;
            }
        }
    }
    assert!((100..=PLACES).contains(&found), "{found}");
}

#[test]
fn what_is_pending_is_filled_in_by_the_monitor_or_the_writer() {
    let mut named = named();
    let one = key(0x1000, 1);
    named.put(one, &Found { symbol: None, ..found(b"/lib/one.so", 7, b"", Search::Pending) });
    assert_eq!(named.keep(one, || None), Held::Pending);
    assert_eq!(named.keep(key(0x1000, 2), || Some(7)), Held::Pending);
    named.put(key(0x1000, 2), &found(b"/lib/one.so", 7, b"one", Search::InMemory));
    assert_eq!((named.keep(one, || None), symbol(&named, one)), (Held::Known, Some(b"one".as_slice())));
    let at = named.searched(one, Some((b"better", 9)));
    let name = named.find(key(0x1000, 2)).unwrap();
    assert_eq!((name.symbol, name.symbol_offset, name.symbol_at), (Some(b"better".as_slice()), 9, at));
    assert_eq!(name.search, Search::Done);
    assert_eq!(named.searched(one, None), at);
    assert_eq!(named.searched(key(0x2000, 1), Some((b"nobody's", 1))), 0);
}

#[test]
fn the_longest_path_and_a_tiny_ring_do_no_harm() {
    let mut named = named();
    let path = vec![b'p'; 10_000];
    named.put(key(0x1000, 1), &found(&path, 7, &[b's'; 512], Search::Done));
    let name = named.find(key(0x1000, 1)).unwrap();
    assert!(path.starts_with(name.module.path) && name.module.path.len() > 4096);
    for bytes in [0, 1, 64, 300, 1000] {
        let mut named = named_with(bytes);
        for pc in 1..1000 {
            named.begin_sample();
            named.put(key(pc, 1), &found(b"/lib/one.so", 7, b"one", Search::Done));
            let _ = named.keep(key(pc, 2), || Some(7));
            if let Some(name) = named.find(key(pc, 1)) {
                assert_eq!((name.module.path, name.symbol), (b"/lib/one.so".as_slice(), Some(b"one".as_slice())));
            }
        }
    }
}
