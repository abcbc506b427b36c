//! Java's form of UTF-8, which has NUL in two bytes, and each half of a character beyond 16 bits in three.

/// Makes it the form of everybody else, in place, where it never is longer. How many bytes it has then. A half without the
/// other, and NUL, become `?`.
pub fn to_standard(text: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while let Some(rest) = text.get(from..).filter(|rest| !rest.is_empty()) {
        let (taken, letter) = match *rest {
            [0xed, high @ 0xa0..=0xaf, high_low, 0xed, low @ 0xb0..=0xbf, low_low, ..] => {
                let high = u32::from(high & 0x0f) << 6 | u32::from(high_low & 0x3f);
                let low = u32::from(low & 0x0f) << 6 | u32::from(low_low & 0x3f);
                (6, char::from_u32(0x1_0000 + (high << 10) + low))
            }
            [0xed, 0xa0..=0xbf, _, ..] => (3, Some('?')),
            [0xc0, 0x80, ..] => (2, Some('?')),
            [byte, ..] => {
                if let Some(place) = text.get_mut(to) {
                    *place = byte;
                }
                (from, to) = (from + 1, to + 1);
                continue;
            }
            [] => break,
        };
        let mut bytes = [0; 4];
        let letter = letter.unwrap_or('?').encode_utf8(&mut bytes).as_bytes();
        if let Some(place) = text.get_mut(to..to + letter.len()) {
            place.copy_from_slice(letter);
        }
        (from, to) = (from + taken, to + letter.len());
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_java_says_is_what_others_read() {
        let table: [(&[u8], &str); 8] = [
            (b"plain", "plain"),
            ("\u{dc}ber \u{4f60}".as_bytes(), "\u{dc}ber \u{4f60}"),
            (b"a\xed\xa0\xb5\xed\xb2\xb3b", "a\u{1d4b3}b"),
            ("\u{1f600}".as_bytes(), "\u{1f600}"),
            (b"\xed\xa0\xbd", "?"),
            (b"\xed\xb8\x80\xed\xa0\xbd\xed\xb8\x80", "?\u{1f600}"),
            (b"a\xc0\x80b", "a?b"),
            (b"", ""),
        ];
        for (modified, expected) in table {
            let mut text = modified.to_vec();
            let length = to_standard(&mut text);
            assert_eq!(core::str::from_utf8(&text[..length]), Ok(expected), "{modified:x?}");
        }
    }
}
