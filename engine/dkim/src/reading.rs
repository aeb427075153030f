//! A message that arrives, in pieces.

use alloc::boxed::Box;
use alloc::vec::Vec;

use memchr::memmem;

use crate::body::{BodyHash, Form};
use crate::header::Header;
use crate::message::{Bodies, Message, Signed};

/// The most bytes of a header with the empty line behind it: of a message with a longer one no signature passes.
pub const HEADER_BYTES_MAX: usize = 128 * 1024;

/// A message that arrives, in pieces: as it is sent, with lines that end in CRLF and without dots in front of dots.
pub struct Reading(Expect);

/// What arrives next.
enum Expect {
    /// The header, of which so much is here.
    Header(Vec<u8>),
    Body(Box<Opened>),
}

/// A message whose header is here.
struct Opened {
    header: Header,
    signatures: Vec<Signed>,
    /// `None` where the header is too long: then nobody looks at the body.
    bodies: Option<Bodies<BodyHash>>,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading(Expect::Header(Vec::new()))
    }
}

impl Reading {
    /// The next bytes of the message.
    pub fn arrived(&mut self, piece: &[u8]) {
        match &mut self.0 {
            Expect::Header(header) => {
                if let Some(body) = header_arrived(header, piece) {
                    self.0 = Expect::Body(Box::new(Opened::whole(core::mem::take(header))));
                    self.arrived(body);
                } else if header.len() >= HEADER_BYTES_MAX {
                    self.0 = Expect::Body(Box::new(Opened::cut(core::mem::take(header))));
                }
            }
            Expect::Body(opened) => {
                if let Some(bodies) = &mut opened.bodies {
                    bodies.each(|body| body.arrived(piece));
                }
            }
        }
    }

    /// There is no more of it.
    pub fn ended(self) -> Message {
        let Opened { header, signatures, bodies } = match self.0 {
            Expect::Header(header) => Opened::whole(header),
            Expect::Body(opened) => *opened,
        };
        Message { header, signatures, bodies: bodies.map(|bodies| bodies.map(BodyHash::ended)) }
    }
}

impl Opened {
    fn whole(header: Vec<u8>) -> Opened {
        let opened = Opened::cut(header);
        let wants = |form| opened.signatures.iter().any(|signed| signed.body_form() == Some(form));
        let body = |form| wants(form).then(|| BodyHash::new(form));
        let bodies = Bodies { simple: body(Form::Simple), relaxed: body(Form::Relaxed) };
        Opened { bodies: Some(bodies), ..opened }
    }

    fn cut(header: Vec<u8>) -> Opened {
        let header = Header::read(header);
        let signatures = Signed::all_of(&header);
        Opened { header, signatures, bodies: None }
    }
}

/// Takes what belongs to the header. Returns what comes behind the empty line that ends it, once that is here.
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
