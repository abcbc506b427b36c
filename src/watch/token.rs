//! What a `bc_loop *` is: the number of a slot and which of its lives is meant. Never an address.

/// Loops that can be watched at a time.
pub const SLOTS: usize = 256;

/// Bit 0 is set, so that no token is NULL or an aligned address; then 8 bits of slot number; the rest is the generation,
/// which grows each time the slot is taken and wraps after 2^23 times on 32-bit machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(usize);

impl Token {
    /// The token of a slot's life.
    pub fn new(slot: u8, generation: usize) -> Token {
        Token(generation << 9 | usize::from(slot) << 1 | 1)
    }

    /// What a caller gave.
    #[inline]
    pub fn from_raw(raw: usize) -> Option<Token> {
        (raw & 1 == 1).then_some(Token(raw))
    }

    /// What a caller gets.
    #[inline]
    pub fn raw(self) -> usize {
        self.0
    }

    /// The slot's number.
    #[inline]
    pub fn slot(self) -> u8 {
        (self.0 >> 1) as u8
    }

    /// The next generation's number.
    pub fn next_generation(self) -> usize {
        (self.0 >> 9).wrapping_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_slot_and_life() {
        for slot in [0, 1, 255] {
            let token = Token::new(slot, 7);
            assert_eq!(Token::from_raw(token.raw()), Some(token));
            assert_eq!((token.slot(), token.next_generation()), (slot, 8));
            assert_ne!(token, Token::new(slot, 8));
        }
        assert_eq!(Token::from_raw(0), None);
        assert_eq!(Token::from_raw(0x7fad_bee0), None);
    }
}
