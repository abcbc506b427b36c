//! Numbers as text. Not `core::fmt`: its padding and float code weighs more than all reports together.

use super::sink::Sink;

impl Sink<'_> {
    /// A decimal number, with zeros in front of it up to `width` digits.
    pub fn padded(&mut self, value: u64, width: usize) {
        self.digits(value, 10, width);
    }

    /// A decimal number.
    pub fn decimal(&mut self, value: u64) {
        self.digits(value, 10, 1);
    }

    /// A decimal number with its sign.
    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.text("-");
        }
        self.decimal(value.unsigned_abs());
    }

    /// A hexadecimal number in lower case, with zeros in front of it up to `width` digits.
    pub fn hex(&mut self, value: u64, width: usize) {
        self.digits(value, 16, width);
    }

    /// `value` divided by ten to the power of `places`, without zeros at the end.
    pub fn fixed(&mut self, value: u64, places: u32) {
        let unit = 10u64.saturating_pow(places);
        self.decimal(value / unit);
        let (mut rest, mut width) = (value % unit, places as usize);
        if rest == 0 {
            return;
        }
        while rest.is_multiple_of(10) {
            rest /= 10;
            width = width.saturating_sub(1);
        }
        self.text(".");
        self.padded(rest, width);
    }

    /// Nanoseconds as milliseconds, rounded to three places.
    pub fn ms(&mut self, ns: u64) {
        // Not (ns + 500) / 1000, which could overflow.
        self.fixed(ns / 1000 + u64::from(ns % 1000 >= 500), 3);
    }

    /// Milliseconds from one moment to another, which may be the earlier one.
    pub fn ms_between(&mut self, from_ns: u64, to_ns: u64) {
        if to_ns < from_ns && from_ns - to_ns >= 500 {
            self.text("-");
        }
        self.ms(from_ns.abs_diff(to_ns));
    }

    fn digits(&mut self, value: u64, base: u64, width: usize) {
        // The longest is 2^64 - 1 in decimal.
        let mut text = [b'0'; 20];
        let (mut rest, mut used) = (value, 0);
        for place in text.iter_mut().rev() {
            if rest == 0 {
                break;
            }
            let digit = (rest % base) as u8;
            *place = if digit < 10 { b'0' + digit } else { b'a' + (digit - 10) };
            rest /= base;
            used += 1;
        }
        let shown = used.max(width).min(text.len());
        self.bytes(text.get(text.len() - shown..).unwrap_or_default());
    }
}
