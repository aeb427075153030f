//! Reads a message that arrives in pieces.

use alloc::boxed::Box;
use alloc::vec::Vec;

use dns::{Knowledge, Question};
use machine::UnixTime;
use memchr::memmem;

use crate::body::{BodyHash, CanonicalForm};
use crate::chain::{ArcError, Chain};
use crate::header::HeaderIndex;
use crate::message::{self, Bodies, CompleteMessage, Signed};
use crate::signing::SIGNED_FORM;

/// The most bytes of a header, including the empty line after it. If a header is longer, no
/// signature of the message passes.
pub const HEADER_BYTES_MAX: usize = 128 * 1024;

/// Reads a message that arrives in pieces. Its lines end in CRLF, and dot-stuffing is already
/// undone.
pub struct MessageReader {
    expect: Expect,
    is_to_be_signed: bool,
}

/// The part of the message that arrives next.
enum Expect {
    /// The header, with the bytes of it that have arrived.
    Header(Vec<u8>),
    Body(Box<BodyReading>),
}

/// A message of which the header was read. If the header is too long, only its beginning was read.
struct BodyReading {
    header: HeaderIndex,
    signatures: Vec<Signed>,
    chain: Result<Chain, ArcError>,
    /// `None`: the header is too long, or has too many fields. In this case the body is not hashed.
    bodies: Option<Bodies<BodyHash>>,
}

impl MessageReader {
    /// A reader for a message with signatures and a chain that must be verified.
    pub fn to_verify() -> MessageReader {
        MessageReader { expect: Expect::Header(Vec::new()), is_to_be_signed: false }
    }

    /// A reader for a message that will be signed, or will get an ARC set.
    pub fn to_sign() -> MessageReader {
        MessageReader { is_to_be_signed: true, ..MessageReader::to_verify() }
    }

    /// Takes the next bytes of the message.
    pub fn arrived(&mut self, piece: &[u8]) {
        match &mut self.expect {
            Expect::Header(header) => {
                if let Some(body) = header_arrived(header, piece) {
                    let opened = BodyReading::after_whole_header(
                        core::mem::take(header),
                        self.is_to_be_signed,
                    );
                    self.expect = Expect::Body(Box::new(opened));
                    self.arrived(body);
                } else if header.len() >= HEADER_BYTES_MAX {
                    self.expect = Expect::Body(Box::new(BodyReading::after_cut_header(
                        core::mem::take(header),
                    )));
                }
            }
            Expect::Body(opened) => {
                if let Some(bodies) = &mut opened.bodies {
                    bodies.each(|body| body.arrived(piece));
                }
            }
        }
    }

    /// The header, once it is complete. If it is too long, the part of it that was read.
    pub fn header(&self) -> Option<&[u8]> {
        match &self.expect {
            Expect::Header(_) => None,
            Expect::Body(opened) => Some(opened.header.bytes()),
        }
    }

    /// Whether [`MessageReader::header`] is only the beginning of the header.
    pub fn is_cut(&self) -> bool {
        matches!(&self.expect, Expect::Body(opened) if opened.bodies.is_none())
    }

    /// The questions about keys for the signatures and the chain that have no answer yet.
    pub fn missing(&self, knowledge: &Knowledge, now: UnixTime) -> Vec<Question> {
        match &self.expect {
            Expect::Header(_) => Vec::new(),
            Expect::Body(opened) => {
                message::missing(&opened.header, &opened.signatures, &opened.chain, knowledge, now)
            }
        }
    }

    /// The approximate memory of the reader, in bytes.
    pub fn footprint(&self) -> usize {
        match &self.expect {
            Expect::Header(header) => header.capacity(),
            Expect::Body(opened) => {
                opened.header.footprint() + opened.chain.as_ref().map_or(0, Chain::footprint)
            }
        }
    }

    /// The message is complete.
    pub fn ended(self) -> CompleteMessage {
        let BodyReading { header, signatures, chain, bodies } = match self.expect {
            Expect::Header(header) => BodyReading::after_whole_header(header, self.is_to_be_signed),
            Expect::Body(opened) => *opened,
        };
        let bodies = bodies.map(|bodies| bodies.map(BodyHash::ended));
        CompleteMessage { header, signatures, chain, bodies, is_to_be_signed: self.is_to_be_signed }
    }
}

impl BodyReading {
    /// Begins to read the body after a complete header. If the header has too many fields, the body
    /// is not hashed.
    fn after_whole_header(header: Vec<u8>, is_to_be_signed: bool) -> BodyReading {
        let opened = BodyReading::after_cut_header(header);
        if !opened.header.is_whole() {
            return opened;
        }
        let wants = |form| {
            let mut links = opened.chain.iter().filter_map(Chain::body_form);
            let signed =
                opened.signatures.iter().filter_map(Signed::body_form).any(|signed| signed == form);
            signed || links.any(|sealed| sealed == form) || is_to_be_signed && form == SIGNED_FORM
        };
        let body = |form| wants(form).then(|| BodyHash::new(form));
        let bodies =
            Bodies { simple: body(CanonicalForm::Simple), relaxed: body(CanonicalForm::Relaxed) };
        BodyReading { bodies: Some(bodies), ..opened }
    }

    /// Reads a header. The body is not hashed.
    fn after_cut_header(header: Vec<u8>) -> BodyReading {
        let header = HeaderIndex::read(header);
        let (signatures, chain) = (Signed::all_of(&header), Chain::read(&header));
        BodyReading { header, signatures, chain, bodies: None }
    }
}

/// Takes bytes of the header. Once the empty line after the header has arrived, returns the bytes
/// after that line.
fn header_arrived<'a>(header: &mut Vec<u8>, piece: &'a [u8]) -> Option<&'a [u8]> {
    let before = header.len();
    header.extend(piece.iter().take(HEADER_BYTES_MAX.saturating_sub(before)));
    let from = before.saturating_sub(3);
    let end = match header.starts_with(b"\r\n") {
        true => 0,
        false => from + 2 + memmem::find(header.get(from..)?, b"\r\n\r\n")?,
    };
    header.truncate(end);
    piece.get((end + 2).saturating_sub(before)..)
}
