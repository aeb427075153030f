//! A lenient base64 decoder for mail, in pieces.
//!
//! Libraries refuse input that is common in mail. Lines may be too long or of odd lengths. Padding
//! may be missing, or be in the middle where two encoded texts were joined. A list server may have
//! added plain text after the encoded text. Only mail is decoded here, and no secrets, so the time
//! of decoding may depend on the data.
//!
//! Invariants:
//! - The output does not depend on how the text is cut into pieces. It is never longer than three
//!   quarters of the input plus two bytes.
//! - [`Base64`] skips bytes outside the alphabet (RFC 2045 section 6.8). [`decode_word`] skips only
//!   white space, and returns `None` for any other such byte.
//!
//! Implements: RFC 2045 section 6.8, RFC 4648 section 4.

use alloc::vec::Vec;

/// The value of each byte.
const ALPHABET: [u8; 256] = alphabet();
/// The value of a byte outside the alphabet.
const OTHER: u8 = 0xff;
/// The value of `=`.
const PADDING: u8 = 0xfe;

const fn alphabet() -> [u8; 256] {
    let mut table = [OTHER; 256];
    let characters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut rest: &[u8] = characters;
    let mut value = 0;
    while let [character, after @ ..] = rest {
        // The index is a byte, and the table has 256 entries.
        #[allow(clippy::indexing_slicing)]
        {
            table[*character as usize] = value;
        }
        value += 1;
        rest = after;
    }
    #[allow(clippy::indexing_slicing)]
    {
        table[b'=' as usize] = PADDING;
    }
    table
}

/// The bits of a base64 text that do not form whole bytes yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Base64 {
    /// The characters of an incomplete group of four, six bits each.
    bits: u32,
    /// The number of these characters: 0 to 3.
    characters: u8,
}

impl Base64 {
    /// Decodes the next piece of the text and adds the bytes to `out`.
    pub(crate) fn text_arrived(&mut self, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            match ALPHABET.get(usize::from(byte)).copied().unwrap_or(OTHER) {
                OTHER => {}
                PADDING => self.text_ended(out),
                value => self.character_arrived(value, out),
            }
        }
    }

    /// Ends a group of four characters, which may be incomplete.
    pub(crate) fn text_ended(&mut self, out: &mut Vec<u8>) {
        let [_, high, middle, _] =
            (self.bits << (6 * (4 - u32::from(self.characters)))).to_be_bytes();
        match self.characters {
            2 => out.push(high),
            3 => out.extend([high, middle]),
            // A single character is less than a byte.
            _ => {}
        }
        *self = Base64::default();
    }

    fn character_arrived(&mut self, value: u8, out: &mut Vec<u8>) {
        self.bits = self.bits << 6 | u32::from(value);
        self.characters += 1;
        if self.characters == 4 {
            let [_, high, middle, low] = self.bits.to_be_bytes();
            out.extend([high, middle, low]);
            *self = Base64::default();
        }
    }
}

/// Decodes all of `text`, in which the padding may be missing. `None` in three cases: `text` has
/// bytes that are neither base64 nor white space, it has more than three bytes of padding at its
/// end, or its last character does not form a byte with the characters before it.
pub(crate) fn decode_word(text: &[u8]) -> Option<Vec<u8>> {
    let characters = text.trim_ascii_end();
    let padding = characters.iter().rev().take_while(|byte| **byte == b'=').count();
    let (characters, _) = characters.split_at_checked(characters.len() - padding)?;
    let is_character =
        |byte: &u8| ALPHABET.get(usize::from(*byte)).is_some_and(|value| *value < 64);
    if padding > 3
        || !characters
            .iter()
            .all(|byte| is_character(byte) || matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
    {
        return None;
    }
    let mut out = Vec::with_capacity(characters.len() / 4 * 3 + 2);
    let mut base64 = Base64::default();
    base64.text_arrived(characters, &mut out);
    (base64.characters != 1).then(|| {
        base64.text_ended(&mut out);
        out
    })
}
