//! Names of report files and the calendar behind them.

use blockcanary::report::names::{Format, Name};
use blockcanary::sys::calendar::{Civil, local_ms};

/// A row of numbers that looks random and is the same each time.
struct Numbers(u64);

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    }
}

fn gmtime(seconds: i64) -> libc::tm {
    // SAFETY: all zeros are a valid `tm`; both pointers are to values of ours.
    unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        let time = libc::time_t::try_from(seconds).unwrap();
        assert!(!libc::gmtime_r(&time, &mut tm).is_null());
        tm
    }
}

#[test]
fn civil_time_is_the_c_librarys() {
    let special = [0, -1, 999, 1000, -62_167_219_200_000, 253_402_300_799_999, 951_782_399_999, 951_782_400_000];
    // From a day to a hundred million years around 1970.
    let random = Numbers(1).zip((0..20).cycle()).map(|(number, shift)| (number as i64) >> (1 + shift)).take(200_000);
    let far = 1i64 << 61;
    // On 32 bits the C library knows times up to 2038.
    let is_told = |ms: i64| libc::time_t::try_from(ms.div_euclid(1000)).is_ok();
    for ms in special.into_iter().chain(random).filter(|ms| ms.abs() < far && is_told(*ms)) {
        let civil = Civil::from_ms(ms);
        let tm = gmtime(ms.div_euclid(1000));
        assert_eq!(civil.year, i64::from(tm.tm_year) + 1900, "{ms}");
        let clock = [civil.month, civil.day, civil.hour, civil.minute, civil.second].map(i32::from);
        assert_eq!(clock, [tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec], "{ms}");
        assert_eq!(i64::from(civil.milli), ms.rem_euclid(1000));
        assert_eq!(civil.to_ms(), Some(ms));
    }
}

#[test]
fn no_time_is_too_far() {
    for ms in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
        for offset in [i32::MIN, -1, 0, 1, i32::MAX] {
            let civil = Civil::from_ms(local_ms(ms, offset));
            assert!((1..=12).contains(&civil.month) && (1..=31).contains(&civil.day), "{civil:?}");
            Name::new(ms, offset, 1, 1).file(Format::Text);
        }
    }
    for year in [i64::MIN, i64::MAX, i64::MAX / 2] {
        assert_eq!(Civil { year, ..Civil::from_ms(0) }.to_ms(), None);
    }
    assert_eq!(Civil { month: 2, day: 30, ..Civil::from_ms(0) }.to_ms(), None);
    assert_eq!(Civil { month: 255, day: 255, hour: 255, ..Civil::from_ms(0) }.to_ms(), None);
}

#[test]
fn a_name_is_what_the_contract_says() {
    let name = Name::new(1_709_210_096_789, 3600, 4242, 77);
    assert_eq!(name.file(Format::Text).as_bytes(), b"looper-2024-02-29_13-34-56.789-4242-77.log");
    assert_eq!(name.file(Format::Json).as_bytes(), b"looper-2024-02-29_13-34-56.789-4242-77.json");
    assert_eq!(name.unfinished(Format::Json).as_bytes(), b".looper-2024-02-29_13-34-56.789-4242-77.json.tmp");
    let longest = Name::new(i64::MAX, 0, i32::MAX, u64::MAX);
    let unfinished = longest.unfinished(Format::Json);
    assert_eq!(unfinished.as_bytes(), b".looper-9999-12-31_23-59-59.999-2147483647-18446744073709551615.json.tmp");
    assert_eq!(Name::parse_unfinished(unfinished.as_bytes()), Some((longest, Format::Json)));
}

#[test]
fn names_come_back() {
    let mut numbers = Numbers(7);
    let mut next = || numbers.next().unwrap();
    for _ in 0..50_000 {
        let start = (next() as i64) >> (1 + next() % 22);
        let name = Name::new(start, (next() as i32) % 50_000, next() as i32 & i32::MAX, next() >> (next() % 64));
        for format in [Format::Text, Format::Json] {
            assert_eq!(Name::parse(name.file(format).as_bytes()), Some((name, format)));
            assert_eq!(Name::parse_unfinished(name.unfinished(format).as_bytes()), Some((name, format)));
            assert_eq!(Name::parse(name.unfinished(format).as_bytes()), None);
            assert_eq!(Name::parse_unfinished(name.file(format).as_bytes()), None);
        }
    }
}

#[test]
fn only_the_very_pattern_is_a_name() {
    let good = b"looper-2024-02-29_13-34-56.789-4242-77.log";
    assert!(Name::parse(good).is_some());
    for bad in [
        "",
        "looper-",
        "looper-2024-02-29_13-34-56.789.log",
        "looper-2024-02-29_13-34-56.789-4242.log",
        "looper-2024-02-29_13-34-56.789-4242-.log",
        "looper-2024-02-29_13-34-56.789--77.log",
        "looper-2024-02-29_13-34-56.789-4242-77",
        "looper-2024-02-29_13-34-56.789-4242-77.LOG",
        "looper-2024-02-29_13-34-56.789-4242-77.log.bak",
        "looper-2024-02-29_13-34-56.789-4242-77.log ",
        "looper-2024-02-29_13-34-56.789-04242-77.log",
        "looper-2024-02-29_13-34-56.789-4242-077.log",
        "looper-2024-02-29_13-34-56.789--4242-77.log",
        "looper-2024-02-29_13-34-56.789-+4242-77.log",
        "looper-2024-02-29_13-34-56.789-4242-77-1.log",
        "looper-2024-02-29_13-34-56.789-2147483648-77.log",
        "looper-2024-02-29_13-34-56.789-4242-18446744073709551616.log",
        "looper-2023-02-29_13-34-56.789-4242-77.log",
        "looper-2024-13-29_13-34-56.789-4242-77.log",
        "looper-2024-02-00_13-34-56.789-4242-77.log",
        "looper-2024-02-29_24-34-56.789-4242-77.log",
        "looper-2024-02-29_13-60-56.789-4242-77.log",
        "looper-2024-02-29_13-34-60.789-4242-77.log",
        "looper-2024-02-29-13-34-56.789-4242-77.log",
        "looper-2024-02-29_13-34-56-789-4242-77.log",
        "looper-02024-02-29_13-34-56.789-4242-77.log",
        "looper-2024-2-29_13-34-56.789-4242-77.log",
        "looper-2024-02-29_13-34-56.78-4242-77.log",
        "Looper-2024-02-29_13-34-56.789-4242-77.log",
        "xlooper-2024-02-29_13-34-56.789-4242-77.log",
        "looper-2024-02-29_13-34-56.789-4242-7a.log",
        "looper-2024-02-29_13-34-56.789-4242-7\u{661}.log",
    ] {
        assert_eq!(Name::parse(bad.as_bytes()), None, "{bad}");
    }
    // Nothing that is one byte away is taken for the same file.
    for place in 0..good.len() {
        for byte in 0..=255u8 {
            let mut near = *good;
            near[place] = byte;
            if let Some((name, format)) = Name::parse(&near) {
                assert_eq!(name.file(format).as_bytes(), near);
            }
        }
    }
}

#[test]
fn names_are_ordered_by_time_first() {
    let at = |ms, pid, id| Name::new(ms, 0, pid, id);
    let mut names = [at(5, 1, 1), at(-5, 9, 9), at(5, 1, 2), at(0, 7, 7), at(5, 2, 1)];
    names.sort();
    assert_eq!(names, [at(-5, 9, 9), at(0, 7, 7), at(5, 1, 1), at(5, 2, 1), at(5, 1, 2)]);
}
