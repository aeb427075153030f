//! Transfer encodings: decodes a body in pieces.

pub(crate) mod base64;
mod quoted_printable;
mod uuencode;

use alloc::vec::Vec;

use crate::structure::Encoding;
use base64::Base64;
use quoted_printable::QuotedPrintable;
use uuencode::Uuencode;

/// Decodes the body of a part.
///
/// Invariants: the output does not depend on how the body is cut into pieces. The output is never
/// longer than the input plus about a thousand bytes of earlier input that were held back.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    kind: DecoderState,
}

#[derive(Clone, Debug)]
enum DecoderState {
    Identity,
    QuotedPrintable(QuotedPrintable),
    Base64(Base64),
    Uuencode(Uuencode),
}

impl BodyDecoder {
    /// A decoder at the beginning of a body. A body in an unknown encoding is passed on unchanged.
    pub fn new(encoding: Encoding) -> BodyDecoder {
        let kind = match encoding {
            Encoding::Identity | Encoding::Unknown => DecoderState::Identity,
            Encoding::QuotedPrintable => DecoderState::QuotedPrintable(QuotedPrintable::default()),
            Encoding::Base64 => DecoderState::Base64(Base64::default()),
            Encoding::Uuencode => DecoderState::Uuencode(Uuencode::default()),
        };
        BodyDecoder { kind }
    }

    /// Decodes the next bytes of the body and adds the result to `out`.
    pub fn bytes_arrived(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.kind {
            DecoderState::Identity => out.extend_from_slice(bytes),
            DecoderState::QuotedPrintable(quoted) => quoted.text_arrived(bytes, out),
            DecoderState::Base64(base64) => base64.text_arrived(bytes, out),
            DecoderState::Uuencode(uuencode) => uuencode.text_arrived(bytes, out),
        }
    }

    /// The body has ended: adds the bytes that were held back.
    pub fn body_ended(&mut self, out: &mut Vec<u8>) {
        match &mut self.kind {
            DecoderState::Identity => {}
            DecoderState::QuotedPrintable(quoted) => quoted.text_ended(out),
            DecoderState::Base64(base64) => base64.text_ended(out),
            DecoderState::Uuencode(uuencode) => uuencode.text_ended(out),
        }
    }
}
