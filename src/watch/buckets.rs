//! The rule by which durations are counted: seven buckets in each power of two.
//!
//! Bucket 0 counts what is shorter than 256 ns. Bucket 1 + 7 q + r, for r from 0 to 6, begins at 256 ns * 2^q times 8, 9,
//! 10, 11, 12, 13.5, 15 eighths and ends where the next one begins. The last, 255, has no end; it begins at 6.1 hours.
//! A bucket's end is at most 1.125 of its begin, so the harmonic mean of both is at most 5.9 % from any duration in it.

/// How many there are.
pub const BUCKETS: usize = 256;

/// Bits of the shortest duration that is told apart.
const SHORTEST: u32 = 8;
/// Buckets in a power of two.
const EACH: u32 = 7;
/// Where they begin, in sixteenths of that power.
const BEGINS: [u64; EACH as usize] = [16, 18, 20, 22, 24, 27, 30];
/// Which of them each sixteenth is in, four bits for each, the lowest first.
const PLACES: u64 = 0x6655_5444_3322_1100;

/// The bucket of a duration.
#[inline(always)]
pub fn bucket(ns: u64) -> u8 {
    let Some(power) = (63 - (ns | 1).leading_zeros()).checked_sub(SHORTEST) else { return 0 };
    let sixteenth = (ns >> (power + SHORTEST - 4)) & 15;
    let place = (PLACES >> (4 * sixteenth)) as u32 & 15;
    (1 + EACH * power + place).min(BUCKETS as u32 - 1) as u8
}

/// The shortest duration in a bucket.
pub fn begin(bucket: u8) -> u64 {
    let Some(above) = u32::from(bucket).checked_sub(1) else { return 0 };
    let sixteenths = BEGINS.get((above % EACH) as usize).copied().unwrap_or(0);
    sixteenths << (above / EACH + SHORTEST - 4)
}

/// The duration that stands for all in a bucket.
pub fn middle(bucket: u8) -> u64 {
    let begin = begin(bucket);
    match bucket {
        0 => 1 << (SHORTEST - 1),
        u8::MAX => begin,
        _ => {
            let end = self::begin(bucket + 1);
            (2 * u128::from(begin) * u128::from(end) / u128::from(begin + end)) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_one_before_ends() {
        for number in 1..=u8::MAX {
            let begin = begin(number);
            assert_eq!(bucket(begin), number, "begin {begin}");
            assert_eq!(bucket(begin - 1), number - 1, "end {begin}");
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, 255));
    }

    #[test]
    fn from_256_ns_to_hours_the_middle_is_within_6_percent() {
        assert_eq!(begin(1), 256);
        assert!(begin(255) > 5 * 3_600_000_000_000);
        for number in 1..u8::MAX {
            let middle = middle(number) as f64;
            for edge in [begin(number), begin(number + 1) - 1] {
                assert!((middle / edge as f64 - 1.0).abs() <= 0.06, "{edge} beside {middle}");
            }
        }
    }

    #[test]
    fn longer_durations_are_never_in_lower_buckets() {
        let mut last = 0;
        let mut ns = 1u64;
        while ns < 1 << 60 {
            let number = bucket(ns);
            assert!(number >= last, "{ns}");
            assert!(begin(number) <= ns && (number == 255 || ns < begin(number + 1)), "{ns} in {number}");
            last = number;
            ns += 1 + ns / 997;
        }
    }
}
