//! Civil time, because the C library's allocates on first use and takes locks.
//!
//! The day number arithmetic is Howard Hinnant's (`civil_from_days` and `days_from_civil` of "chrono-Compatible Low-Level
//! Date Algorithms"): years begin in March, so that the leap day is the last of its year, and 400 years repeat exactly.

/// A moment as calendars and clocks show it, in the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999.
    pub milli: u16,
}

const DAY_MS: i64 = 86_400_000;
/// From 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// 400 years.
const ERA_DAYS: i64 = 146_097;

/// Milliseconds since 1970-01-01 00:00 on a clock that is `utc_offset_s` ahead of UTC.
pub fn local_ms(unix_ms: i64, utc_offset_s: i32) -> i64 {
    unix_ms.saturating_add(i64::from(utc_offset_s) * 1000)
}

impl Civil {
    /// What a clock shows `ms` milliseconds after its own 1970-01-01 00:00 (see `local_ms`). Any number will do.
    pub fn from_ms(ms: i64) -> Civil {
        let shifted = ms.div_euclid(DAY_MS) + EPOCH_DAYS;
        let era = shifted.div_euclid(ERA_DAYS);
        let day_of_era = shifted.rem_euclid(ERA_DAYS);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March on; 153 days make five months, of 31, 30, 31, 30 and 31 days.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let time = ms.rem_euclid(DAY_MS);
        Civil {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month: month as u8,
            day: day as u8,
            hour: (time / 3_600_000) as u8,
            minute: (time / 60_000 % 60) as u8,
            second: (time / 1000 % 60) as u8,
            milli: (time % 1000) as u16,
        }
    }

    /// The reverse; `None` if there is no such moment (a 30th of February, a 25th hour) or it is too far off to count.
    pub fn to_ms(self) -> Option<i64> {
        let month = i64::from(self.month);
        let year = self.year.checked_sub(i64::from(month <= 2))?;
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era.checked_mul(ERA_DAYS)?.checked_add(day_of_era - EPOCH_DAYS)?;
        let time = i64::from(self.hour) * 3_600_000
            + i64::from(self.minute) * 60_000
            + i64::from(self.second) * 1000
            + i64::from(self.milli);
        let ms = days.checked_mul(DAY_MS)?.checked_add(time)?;
        // Whatever was out of its range has carried over and comes back as something else.
        (Civil::from_ms(ms) == self).then_some(ms)
    }
}
