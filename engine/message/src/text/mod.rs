//! Decodes the body of a part to readable text, in pieces.

mod flow;
mod meta;

use alloc::string::String;
use alloc::vec::Vec;

use encoding_rs::{CoderResult, Decoder, WINDOWS_1252};

use crate::charset;
use crate::structure::Part;
use crate::transfer::BodyDecoder;
use flow::Joining;

/// Decodes a part as text: its transfer encoding, its charset, and its flowed lines.
///
/// HTML without a charset in its header fields has the charset that its `<meta>` names (RFC 6657
/// section 2).
///
/// Invariants: the output does not depend on how the body is cut into pieces. It is at most three
/// times as long as the input, including bytes that were held back.
#[derive(Debug)]
pub struct TextDecoder {
    body: BodyDecoder,
    bytes: Vec<u8>,
    charset: Charset,
    /// Joins the lines, if they must be joined.
    joining: Option<Joining>,
    text: String,
}

/// The charset of the bytes.
#[derive(Debug)]
enum Charset {
    Known(Decoder),
    /// HTML names its charset itself, in these bytes or in further ones.
    OfHtml(Vec<u8>),
    /// UTF-8 so far, with the beginning of a character that the next piece may complete.
    Guessed([u8; 3], usize),
}

impl TextDecoder {
    /// A decoder at the beginning of a part's body.
    pub fn new(part: &Part) -> TextDecoder {
        let encoding = part.charset.as_deref().and_then(|name| charset::encoding(name.as_bytes()));
        let guessed = || match &*part.media_type {
            "text/html" => Charset::OfHtml(Vec::new()),
            _ => Charset::Guessed([0; 3], 0),
        };
        TextDecoder {
            body: BodyDecoder::new(part.encoding),
            bytes: Vec::new(),
            charset: encoding.map_or_else(guessed, |encoding| {
                Charset::Known(encoding.new_decoder_with_bom_removal())
            }),
            joining: Joining::new(part.flow),
            text: String::new(),
        }
    }

    /// Decodes the next bytes of the body and adds their text to `out`.
    pub fn bytes_arrived(&mut self, bytes: &[u8], out: &mut String) {
        let mut decoded = core::mem::take(&mut self.bytes);
        self.body.bytes_arrived(bytes, &mut decoded);
        self.decode(&decoded, EndOfText::No, out);
        decoded.clear();
        self.bytes = decoded;
    }

    /// The body has ended: adds the text that was held back.
    pub fn body_ended(&mut self, out: &mut String) {
        let mut decoded = core::mem::take(&mut self.bytes);
        self.body.body_ended(&mut decoded);
        self.decode(&decoded, EndOfText::Yes, out);
        if let Some(joining) = &mut self.joining {
            joining.text_ended(out);
        }
    }

    fn decode(&mut self, bytes: &[u8], last: EndOfText, out: &mut String) {
        match &mut self.joining {
            None => self.charset.decode(bytes, last, out),
            Some(joining) => {
                self.charset.decode(bytes, last, &mut self.text);
                joining.text_arrived(&self.text, out);
                self.text.clear();
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EndOfText {
    Yes,
    No,
}

impl Charset {
    fn decode(&mut self, bytes: &[u8], last: EndOfText, out: &mut String) {
        match self {
            Charset::Known(decoder) => push_decoded(decoder, bytes, last, out),
            Charset::OfHtml(beginning) => {
                beginning.extend_from_slice(bytes);
                if beginning.len() >= meta::BYTES_SEARCHED || last == EndOfText::Yes {
                    let beginning = core::mem::take(beginning);
                    *self = match meta::charset(&beginning) {
                        Some(encoding) => Charset::Known(encoding.new_decoder_with_bom_removal()),
                        None => Charset::Guessed([0; 3], 0),
                    };
                    self.decode(&beginning, last, out);
                }
            }
            Charset::Guessed(held, length) => {
                let mut all = held.get(..*length).unwrap_or_default().to_vec();
                all.extend_from_slice(bytes);
                self.guess(&all, last, out);
            }
        }
    }

    fn guess(&mut self, bytes: &[u8], last: EndOfText, out: &mut String) {
        let (text, rest) = match core::str::from_utf8(bytes) {
            Ok(text) => (text, &[][..]),
            Err(error) => {
                let (valid, rest) = bytes.split_at_checked(error.valid_up_to()).unwrap_or_default();
                let text = core::str::from_utf8(valid).unwrap_or_default();
                if error.error_len().is_some() || last == EndOfText::Yes {
                    out.push_str(text);
                    let mut decoder = WINDOWS_1252.new_decoder_without_bom_handling();
                    push_decoded(&mut decoder, rest, last, out);
                    *self = Charset::Known(decoder);
                    return;
                }
                (text, rest)
            }
        };
        out.push_str(text);
        let mut held = [0; 3];
        held.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
        *self = Charset::Guessed(held, rest.len());
    }
}

fn push_decoded(decoder: &mut Decoder, bytes: &[u8], last: EndOfText, out: &mut String) {
    let mut rest = bytes;
    loop {
        // This is enough for the usual result. If more space is needed, the next round provides it.
        out.reserve(rest.len() + 16);
        let (result, read, _) = decoder.decode_to_string(rest, out, last == EndOfText::Yes);
        rest = rest.get(read..).unwrap_or_default();
        if result == CoderResult::InputEmpty {
            return;
        }
    }
}
