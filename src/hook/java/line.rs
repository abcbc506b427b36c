//! What a Looper's log line says of the message: `>>>>> Dispatching to Handler (class) {hash} callback: what`.
//!
//! Handlers and callbacks may say anything of themselves, also what was typed or loaded, so only names of classes are taken
//! from there, and the number.

use arrayvec::ArrayVec;

/// The message's name: class of the handler, class of the callback, number.
pub type What = ArrayVec<u8, 255>;

const BEGIN: &[u8] = b">>>>> Dispatching to ";

/// Bytes of a line that are looked at, if it is a long one: callbacks may tell all that they have in them.
const HEAD: usize = 1024;
/// Bytes at its end, where the number is.
const TAIL: usize = 64;

/// A line, or begin and end of a long one.
pub struct Line {
    head: ArrayVec<u8, HEAD>,
    tail: Option<ArrayVec<u8, TAIL>>,
}

impl Line {
    /// Of no message.
    pub const NONE: Line = Line { head: ArrayVec::new_const(), tail: None };

    /// Has the begin read by `copy`, which is given room and says how many bytes it has put there.
    pub fn read_head(&mut self, copy: impl FnOnce(&mut [u8]) -> usize) {
        self.head = read(copy);
    }

    /// The same of the end, of a line that is longer.
    pub fn read_tail(&mut self, copy: impl FnOnce(&mut [u8]) -> usize) {
        self.tail = Some(read(copy));
    }

    /// The message's name; empty where it says nothing of a known form.
    pub fn what(&self) -> What {
        what(&self.head, self.tail.as_deref())
    }
}

fn read<const ROOM: usize>(copy: impl FnOnce(&mut [u8]) -> usize) -> ArrayVec<u8, ROOM> {
    let mut room = [0; ROOM];
    let length = copy(&mut room);
    room.iter().take(length).copied().collect()
}

/// `tail`: the line is longer than its begin, and ends so.
fn what(line: &[u8], tail: Option<&[u8]>) -> What {
    let mut what = What::new();
    let Some(rest) = line.strip_prefix(BEGIN) else { return what };
    // A handler that tells of itself in other words has no class that would be known.
    let (handler, rest) = match rest.strip_prefix(b"Handler (").and_then(|rest| split(rest, b") {")) {
        Some((class, rest)) => (class_name(class), split(rest, b"} ").map_or(&[][..], |(_, rest)| rest)),
        None => (None, rest),
    };
    // Nothing that is as long as that is a class, and what of it is there may end anywhere.
    let callback = rsplit(rest, b": ").filter(|_| tail.is_none()).map_or(&[][..], |(callback, _)| callback);
    let number = rsplit(tail.unwrap_or(line), b": ").map(|(_, number)| number).filter(|number| is_number(number));
    put(&mut what, handler.unwrap_or(b"Handler"));
    if let Some(callback) = class_of(callback) {
        put_whole(&mut what, b" callback=", callback);
    }
    if let Some(number) = number {
        put_whole(&mut what, b" what=", number);
    }
    what
}

/// What does not fit is left out, between letters.
fn put(what: &mut What, text: &[u8]) {
    let mut fits = text.len().min(what.remaining_capacity());
    while text.get(fits).is_some_and(|byte| byte & 0xc0 == 0x80) {
        fits -= 1;
    }
    what.extend(text.iter().copied().take(fits));
}

/// The class of an object that tells of itself by class and hash, as all do that say nothing else.
fn class_of(object: &[u8]) -> Option<&[u8]> {
    let (class, hash) = rsplit(object, b"@")?;
    let is_hash = (1..=8).contains(&hash.len()) && hash.iter().all(u8::is_ascii_hexdigit);
    // What stands behind a slash tells generated classes of one name apart.
    class.split(|byte| *byte == b'/').next().filter(|_| is_hash).and_then(class_name)
}

/// Both or nothing.
fn put_whole(what: &mut What, key: &[u8], value: &[u8]) {
    if key.len() + value.len() <= what.remaining_capacity() {
        put(what, key);
        put(what, value);
    }
}

/// A class's name has letters, digits and a few signs, and a part before each dot: nothing that a sentence is.
fn class_name(text: &[u8]) -> Option<&[u8]> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"_$.-".contains(byte);
    (!text.is_empty() && text.iter().all(is_part)).then_some(text)
}

fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    (1..=10).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
}

fn split<'a>(text: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = text.windows(by.len()).position(|part| part == by)?;
    Some((text.get(..place)?, text.get(place + by.len()..)?))
}

fn rsplit<'a>(text: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = text.windows(by.len()).rposition(|part| part == by)?;
    Some((text.get(..place)?, text.get(place + by.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_numbers_and_nothing_else() {
        let table: [(&str, &str); 10] = [
            (
                ">>>>> Dispatching to Handler (android.view.ViewRootImpl$ViewRootHandler) {3e4f2a} null: 7",
                "android.view.ViewRootImpl$ViewRootHandler what=7",
            ),
            (
                ">>>>> Dispatching to Handler (android.os.Handler) {1f} com.game.Main$$Lambda$14/0x0000@abc123: 0",
                "android.os.Handler callback=com.game.Main$$Lambda$14 what=0",
            ),
            (">>>>> Dispatching to Handler (a.B) {1} null: -2147483648", "a.B what=-2147483648"),
            // A callback with words of its own, an address among them.
            (">>>>> Dispatching to Handler (a.B) {1} mail to jane@example.com: now: 3", "a.B what=3"),
            (">>>>> Dispatching to Handler (a b) {1} x: secret", "Handler"),
            (">>>>> Dispatching to Handler (a.B) {1} /home/jane@1: 4", "a.B what=4"),
            (">>>>> Dispatching to My own words: 5", "Handler what=5"),
            (">>>>> Dispatching to ", "Handler"),
            ("<<<<< Finished to Handler (a.B) {1} null", ""),
            ("", ""),
        ];
        for (line, expected) in table {
            assert_eq!(String::from_utf8_lossy(&what(line.as_bytes(), None)), expected, "{line}");
        }
        let long = format!(">>>>> Dispatching to Handler ({}) {{1}} null: 1", "x".repeat(400));
        assert_eq!(what(long.as_bytes(), None).len(), 255);
        let long = format!(">>>>> Dispatching to Handler ({}) {{1}} null: 1", "\u{1d4b3}".repeat(400));
        assert_eq!(what(long.as_bytes(), None).as_slice(), "\u{1d4b3}".repeat(63).as_bytes());
    }

    #[test]
    fn long_lines_have_their_number_at_their_end() {
        // The begin may end within what the callback says: in what looks like a number, or like a class.
        for head in [" pin: 1234", " jane@abc: 1", ""] {
            let head = format!(">>>>> Dispatching to Handler (a.B) {{1}}{head}");
            assert_eq!(what(head.as_bytes(), Some(b" and so on: -77")).as_slice(), b"a.B what=-77", "{head}");
            assert_eq!(what(head.as_bytes(), Some(b"none")).as_slice(), b"a.B", "{head}");
        }
    }
}
