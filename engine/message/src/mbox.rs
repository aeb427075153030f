//! A mailbox as one file: messages one behind the other, each behind a line that begins with `From `.
//!
//! Of the variants this is *mboxrd*: a line of a message that begins with `From `, however many `>` stand before that, gets one `>` more; so whoever takes one away has the
//! line again. Lines end in LF, as RFC 4155 has it: a CRLF becomes an LF, and nothing else of a message changes. Behind each message stands an empty line.
//!
//! Answers to: RFC 4155 appendix A.

use alloc::vec::Vec;

use machine::UnixTime;

use crate::date_time;
use crate::header::{Address, Header, Mailbox};

/// Who is said to have sent what does not say it.
const NOBODY: &[u8] = b"MAILER-DAEMON";

/// What stands at the beginning of a message.
const ENVELOPE: &[u8; 5] = b"From ";

/// Bytes of an address that are taken.
const SENDER_BYTES_MAX: usize = 320;

/// Writes a message into such a file.
#[derive(Debug, Default)]
pub struct MboxWriter {
    line: Line,
    /// Whether a CR came last, and what follows decides what it is.
    has_cr: bool,
}

/// Where in a line it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Line {
    /// At its beginning.
    #[default]
    Beginning,
    /// Only `>` came.
    Quoted,
    /// So many bytes of `From ` came, and are held back.
    Envelope(usize),
    /// Within it.
    Within,
}

impl MboxWriter {
    /// A message begins, which arrived then. `octets`: as many of it as there are; if the header is among them, it says who has sent it.
    pub fn message_began(&mut self, octets: &[u8], arrived: UnixTime, out: &mut Vec<u8>) {
        *self = MboxWriter::default();
        let header = Header::new(octets);
        let sender = ["Return-Path", "From"].iter().find_map(|name| {
            let Some(Address::Mailbox(Mailbox { address, .. })) =
                header.field(name)?.addresses().into_iter().next()
            else {
                return None;
            };
            let is_word =
                !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_graphic());
            (is_word && address.len() <= SENDER_BYTES_MAX).then_some(address)
        });
        out.extend_from_slice(ENVELOPE);
        out.extend_from_slice(sender.as_ref().map_or(NOBODY, |sender| sender.as_bytes()));
        out.push(b' ');
        out.extend_from_slice(&moment(arrived));
        out.push(b'\n');
    }

    /// More octets of it.
    pub fn octets_arrived(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        for octet in octets {
            if core::mem::take(&mut self.has_cr) && *octet != b'\n' {
                self.octet(b'\r', out);
            }
            match octet {
                b'\r' => self.has_cr = true,
                octet => self.octet(*octet, out),
            }
        }
    }

    /// It has ended.
    pub fn message_ended(&mut self, out: &mut Vec<u8>) {
        if core::mem::take(&mut self.has_cr) {
            self.octet(b'\r', out);
        }
        if self.line != Line::Beginning {
            self.octet(b'\n', out);
        }
        out.push(b'\n');
    }

    fn octet(&mut self, octet: u8, out: &mut Vec<u8>) {
        let came = match self.line {
            Line::Within => {
                out.push(octet);
                self.line = if octet == b'\n' { Line::Beginning } else { Line::Within };
                return;
            }
            Line::Beginning | Line::Quoted => 0,
            Line::Envelope(came) => came,
        };
        let held_back = ENVELOPE.get(..came).unwrap_or_default();
        match ENVELOPE.get(came) {
            Some(next) if *next == octet && came + 1 < ENVELOPE.len() => {
                self.line = Line::Envelope(came + 1)
            }
            Some(next) if *next == octet => {
                out.push(b'>');
                out.extend_from_slice(ENVELOPE);
                self.line = Line::Within;
            }
            _ => {
                out.extend_from_slice(held_back);
                out.push(octet);
                self.line = match octet {
                    b'\n' => Line::Beginning,
                    b'>' if came == 0 => Line::Quoted,
                    _ => Line::Within,
                };
            }
        }
    }
}

/// As C's `asctime` writes it, in UTC: `Tue Nov  3 21:04:05 2026`.
fn moment(time: UnixTime) -> [u8; 24] {
    let [
        w0,
        w1,
        w2,
        _,
        _,
        d0,
        d1,
        _,
        m0,
        m1,
        m2,
        _,
        y0,
        y1,
        y2,
        y3,
        _,
        h0,
        h1,
        _,
        n0,
        n1,
        _,
        s0,
        s1,
        ..,
    ] = date_time(time);
    let d0 = if d0 == b'0' { b' ' } else { d0 };
    [
        w0, w1, w2, b' ', m0, m1, m2, b' ', d0, d1, b' ', h0, h1, b':', n0, n1, b':', s0, s1, b' ',
        y0, y1, y2, y3,
    ]
}
