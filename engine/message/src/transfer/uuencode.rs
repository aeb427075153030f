//! A lenient decoder for uuencoded bodies, in pieces. Some old programs send files this way, with
//! the transfer encoding `x-uuencode`.
//!
//! A body has a line `begin MODE NAME`, lines of bytes, and a line `end`. The first character of a
//! line of bytes gives their number, and each four characters after it are three bytes. A character
//! stands for six bits: its code minus 32.
//!
//! Invariants:
//! - A body that does not begin with `begin` is passed on unchanged, but for empty lines before it.
//! - The output is never longer than the input. So the bytes that a shortened line lacks at its end
//!   are not replaced by zeros, except within a group of three bytes.
//!
//! Source: POSIX.1-2017, `uuencode`, historical algorithm.

use alloc::vec::Vec;

const BEGIN: &[u8] = b"begin ";

#[derive(Clone, Debug, Default)]
pub(super) struct Uuencode {
    expect: Expect,
    /// The bytes that the line still has.
    bytes_left: u8,
    /// The bits of the characters of a group of four, and the number of these characters.
    bits: u32,
    characters: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Expect {
    /// The first line. Empty lines may come before it.
    #[default]
    Start,
    /// The rest of [`BEGIN`], after this many of its bytes.
    Begin(u8),
    /// The end of the first line, or of a line that has all its bytes.
    LineEnd,
    /// The first character of a line.
    Length,
    Group,
    /// Nothing: the rest of the body is ignored.
    Nothing,
    /// Text that is not encoded.
    Text,
}

impl Uuencode {
    pub(super) fn text_arrived(&mut self, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            self.expect = match (self.expect, byte) {
                (Expect::Start, b'\r' | b'\n') => Expect::Start,
                (Expect::Start, _) => self.begin(0, byte, out),
                (Expect::Begin(matched), _) => self.begin(matched, byte, out),
                (Expect::LineEnd, b'\n') => Expect::Length,
                (Expect::LineEnd, _) => Expect::LineEnd,
                (Expect::Length, b'\r' | b'\n') => Expect::Length,
                (Expect::Length, b' '..=b'`') => {
                    self.bytes_left = (byte - b' ') & 63;
                    if self.bytes_left == 0 { Expect::LineEnd } else { Expect::Group }
                }
                // This is the line `end`, or no uuencoded line.
                (Expect::Length | Expect::Nothing, _) => Expect::Nothing,
                (Expect::Group, b'\n') => {
                    self.group_ended(out);
                    Expect::Length
                }
                (Expect::Group, b'\r') => Expect::Group,
                (Expect::Group, _) => self.character_arrived(byte, out),
                (Expect::Text, _) => {
                    out.push(byte);
                    Expect::Text
                }
            };
        }
    }

    pub(super) fn text_ended(&mut self, out: &mut Vec<u8>) {
        match self.expect {
            Expect::Group => self.group_ended(out),
            Expect::Begin(matched) => out.extend(BEGIN.iter().take(matched.into())),
            _ => {}
        }
        *self = Uuencode::default();
    }

    /// Handles a byte after the first `matched` bytes of [`BEGIN`].
    fn begin(&mut self, matched: u8, byte: u8, out: &mut Vec<u8>) -> Expect {
        match BEGIN.get(usize::from(matched)..) {
            Some([expected, rest @ ..]) if *expected == byte => {
                if rest.is_empty() {
                    Expect::LineEnd
                } else {
                    Expect::Begin(matched + 1)
                }
            }
            _ => {
                out.extend(BEGIN.iter().take(matched.into()));
                out.push(byte);
                Expect::Text
            }
        }
    }

    fn character_arrived(&mut self, character: u8, out: &mut Vec<u8>) -> Expect {
        self.bits = self.bits << 6 | u32::from(character.wrapping_sub(b' ') & 63);
        self.characters += 1;
        if self.characters == 4 {
            self.group_ended(out);
        }
        if self.bytes_left == 0 { Expect::LineEnd } else { Expect::Group }
    }

    /// Adds the bytes of a group. Characters that are missing at the end of a line stand for zeros:
    /// they were spaces, and were removed in transit.
    fn group_ended(&mut self, out: &mut Vec<u8>) {
        let characters = core::mem::take(&mut self.characters);
        let bits = core::mem::take(&mut self.bits) << (6 * u32::from(4 - characters));
        let [_, bytes @ ..] = bits.to_be_bytes();
        let count = if characters > 0 { self.bytes_left.min(3) } else { 0 };
        out.extend(bytes.iter().take(count.into()));
        self.bytes_left -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;

    fn decoded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut decoder, mut out) = (Uuencode::default(), Vec::new());
        pieces.into_iter().for_each(|piece| decoder.text_arrived(piece, &mut out));
        decoder.text_ended(&mut out);
        out
    }

    /// Encodes as the standard describes it, with `zero` as the character of six zero bits.
    fn encoded(bytes: &[u8], zero: u8) -> Vec<u8> {
        let character = |value: u8| if value & 63 == 0 { zero } else { (value & 63) + b' ' };
        let mut text = b"begin 644 a name.png\r\n".to_vec();
        for line in bytes.chunks(45) {
            text.push(character(line.len() as u8));
            for group in line.chunks(3) {
                let [a, b, c] = [0, 1, 2].map(|at| group.get(at).copied().unwrap_or(0));
                text.extend([a >> 2, a << 4 | b >> 4, b << 2 | c >> 6, c].map(character));
            }
            text.extend(b"\r\n");
        }
        text.push(zero);
        text.extend(b"\r\nend\r\n");
        text
    }

    #[test]
    fn text_without_a_begin_line_is_unchanged() {
        for text in ["Hello", "beg", "begin", "begin\r\nM", "no begin 644 a\r\n"] {
            assert_eq!(decoded([text.as_bytes()]), text.as_bytes());
        }
        assert_eq!(decoded(["\r\n\r\nbegin 644 a\r\n".as_bytes()]), b"");
        // Python: binascii.b2a_uu(b"Cat").
        let cat = |rest: &str| decoded([format!("begin 644 a\n#0V%T\n`\nend\n{rest}").as_bytes()]);
        assert_eq!(cat("text after the end"), b"Cat");
    }

    #[test]
    fn spaces_that_were_removed_in_transit_are_zeros() {
        // Python: binascii.a2b_uu(b"#0V").
        assert_eq!(decoded([&b"begin 644 a\n#0V\n#0V%T\n"[..]]), b"C`\0Cat");
    }

    proptest! {
        #[test]
        fn uuencoded_bytes_are_decoded_however_they_are_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            zero in proptest::sample::select(alloc::vec![b'`', b' ']),
            size in 1..80_usize,
        ) {
            let text = encoded(&bytes, zero);
            prop_assert_eq!(decoded(text.chunks(size)), bytes);
        }

        #[test]
        fn decoded_uuencode_is_never_longer_than_its_input(text in "(begin 1 a\n)?[ -~\r\n]{0,200}", size in 1..80_usize) {
            let out = decoded(text.as_bytes().chunks(size));
            prop_assert!(out.len() <= text.len());
            prop_assert_eq!(out, decoded([text.as_bytes()]));
        }
    }
}
