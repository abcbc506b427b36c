use super::*;

fn open(marks: &Marks) -> Option<(u64, u64)> {
    let seen = marks.look().unwrap();
    assert_eq!(seen.open, marks.open_stretch().is_some());
    seen.open.then_some((seen.at.0, seen.tag))
}

#[test]
fn an_inner_dispatch_restarts_the_stretch() {
    let marks = Marks::new();
    let begin = |now, tag| marks.begin(Ticks(now), 100, ptr::null(), tag);
    assert_eq!(open(&marks), None);
    begin(10, 1);
    begin(20, 2);
    assert_eq!(open(&marks), Some((20, 2)));
    marks.end(Ticks(30), Ticks(0), 100);
    assert_eq!(open(&marks), Some((30, 1)));
    marks.end(Ticks(40), Ticks(0), 100);
    assert_eq!(open(&marks), None);
    assert_eq!(marks.end(Ticks(50), Ticks(0), 100), None);
}

#[test]
fn depth_beyond_the_names_is_balanced() {
    let marks = Marks::new();
    for depth in 0..20 {
        assert_eq!(marks.begin(Ticks(depth), 100, ptr::null(), depth), depth < 16);
    }
    assert_eq!(open(&marks), Some((19, 0)));
    (0..19).for_each(|_| assert!(marks.end(Ticks(99), Ticks(0), 100).is_some()));
    assert_eq!(open(&marks), Some((99, 0)));
    assert!(marks.end(Ticks(100), Ticks(0), 100).is_some());
    assert_eq!(open(&marks), None);
}

#[test]
fn a_poll_waits_however_many_dispatches_are_open() {
    let marks = Marks::new();
    marks.begin(Ticks(5), 100, ptr::null(), 1);
    marks.poll_begins(Ticks(10), Ticks(0));
    assert_eq!(open(&marks), None);
    let outer = marks.callback_begins(Ticks(20), 100, ptr::null(), 7);
    assert_eq!(open(&marks), Some((20, 7)));
    // A nested loop inside the callback, left between two polls.
    marks.poll_begins(Ticks(22), Ticks(0));
    assert_eq!(open(&marks), None);
    marks.poll_returns(Some(Ticks(25)), 100, 33);
    assert_eq!(open(&marks), Some((25, 33)));
    marks.callback_ends(Ticks(30), Ticks(0), 100, outer);
    assert_eq!(open(&marks), None);
    marks.poll_returns(None, 100, 34);
    assert_eq!(open(&marks), Some((30, 34)));
    // An inner dispatch has its own name, then the poll's again.
    marks.begin(Ticks(40), 100, ptr::null(), 2);
    assert_eq!(open(&marks), Some((40, 2)));
    marks.end(Ticks(50), Ticks(0), 100);
    assert_eq!(open(&marks), Some((50, 34)));
    marks.poll_begins(Ticks(60), Ticks(0));
    marks.poll_returns(Some(Ticks(61)), 100, 35);
    marks.end(Ticks(62), Ticks(0), 100);
    marks.poll_begins(Ticks(63), Ticks(0));
    assert_eq!(open(&marks), None);
}

#[test]
fn what_a_callback_leaves_open_is_counted_with_it() {
    let marks = Marks::new();
    let timed = || marks.counts().histogram.iter().sum::<u64>();
    marks.begin(Ticks(1000), 100, ptr::null(), 1);
    marks.poll_begins(Ticks(2000), Ticks(0));
    let outer = marks.callback_begins(Ticks(5000), 100, ptr::null(), 2);
    marks.begin(Ticks(6000), 100, ptr::null(), 3);
    marks.poll_begins(Ticks(6000), Ticks(0));
    marks.poll_returns(Some(Ticks(6500)), 100, 4);
    marks.callback_ends(Ticks(7000), Ticks(0), 100, outer);
    // The callback, the dispatch in it, and the time since its own poll.
    assert_eq!((timed(), marks.counts().busy_ns, marks.counts().untimed), (3, 0, 0));
    marks.poll_returns(None, 100, 5);
    assert_eq!(marks.end(Ticks(7100), Ticks(0), 100), Some(7100 - 1000 - 3000 - 500));
    assert_eq!((timed(), marks.counts().busy_ns), (4, 2600));
    marks.poll_begins(Ticks(7200), Ticks(0));
    assert_eq!(timed(), 5);
    assert!(!marks.is_inside_since(Ticks(9000)));
}
