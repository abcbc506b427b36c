//! A short piece of text by value.

/// At most `N` bytes, `N` at most 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short<const N: usize> {
    length: u8,
    bytes: [u8; N],
}

impl<const N: usize> Short<N> {
    /// Nothing.
    pub const EMPTY: Short<N> = Short { length: 0, bytes: [0; N] };

    /// The last bytes of a text, as many as fit: of a path, the end tells most.
    pub fn end_of(text: &[u8]) -> Short<N> {
        let kept = text.get(text.len().saturating_sub(N.min(255))..).unwrap_or(&[]);
        let mut short = Short::EMPTY;
        short.bytes.iter_mut().zip(kept).for_each(|(to, from)| *to = *from);
        short.length = kept.len() as u8;
        short
    }

    /// How much fits.
    pub fn room(&self) -> usize {
        N
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        assert_eq!(Short::<4>::end_of(b"abcdef").bytes(), b"cdef");
        assert_eq!(Short::<4>::end_of(b"ab").bytes(), b"ab");
        assert_eq!(Short::<255>::end_of(&[7; 600]).bytes(), [7; 255]);
        assert_eq!(Short::<4>::EMPTY.bytes(), b"");
    }
}
