//! Bytes of unknown origin as text: always valid UTF-8, never something that the surrounding text is built from.
//!
//! What is no UTF-8 becomes U+FFFD, one for each piece that a decoder would replace.

use super::sink::Sink;

const REPLACEMENT: &str = "\u{fffd}";

impl Sink<'_> {
    /// A JSON string with its quotes.
    pub fn json_string(&mut self, bytes: &[u8]) {
        self.text("\"");
        for chunk in bytes.utf8_chunks() {
            self.json_text(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.text(REPLACEMENT);
            }
        }
        self.text("\"");
    }

    /// A JSON string, or `null`.
    pub fn json_optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.json_string(bytes),
            None => self.text("null"),
        }
    }

    fn json_text(&mut self, text: &str) {
        let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        let mut rest = text.as_bytes();
        while let Some(position) = rest.iter().position(|&byte| special(byte)) {
            let (plain, from) = rest.split_at_checked(position).unwrap_or_default();
            self.bytes(plain);
            let Some((&byte, after)) = from.split_first() else { return };
            if byte < 0x20 {
                self.text("\\u");
                self.hex(u64::from(byte), 4);
            } else {
                self.bytes(&[b'\\', byte]);
            }
            rest = after;
        }
        self.bytes(rest);
    }

    /// Text that stays on its line: whatever some reader takes for a line's end, and every other control character,
    /// becomes a question mark.
    pub fn plain(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some((position, control)) = rest.char_indices().find(|&(_, char)| breaks_line(char)) {
                let (plain, from) = rest.split_at_checked(position).unwrap_or_default();
                self.text(plain);
                self.text("?");
                rest = from.get(control.len_utf8()..).unwrap_or_default();
            }
            self.text(rest);
            if !chunk.invalid().is_empty() {
                self.text(REPLACEMENT);
            }
        }
    }
}

/// Control characters and Unicode's own separators of lines and paragraphs.
fn breaks_line(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}
