//! A mailbox as one file. It contains the messages in order, each after a line that begins with
//! `From `.
//!
//! The variant is *mboxrd*. If a line of a message has `From ` at its beginning or after any number
//! of `>`, the line gets one more `>`. A reader that removes one `>` gets the original line. Lines
//! end in LF, as RFC 4155 requires: a CRLF becomes an LF. No other byte of a message changes. An
//! empty line follows each message.
//!
//! Implements: RFC 4155 appendix A.

use alloc::vec::Vec;

use machine::UnixTime;

use crate::date_time;
use crate::header::{Address, Header, HeaderMailbox};

/// The sender that is written for a message without a sender.
const NOBODY: &[u8] = b"MAILER-DAEMON";

/// The beginning of the line before a message.
const ENVELOPE: &[u8; 5] = b"From ";

/// The longest sender address that is written.
const SENDER_BYTES_MAX: usize = 320;

/// Writes messages into a mailbox file.
#[derive(Debug, Default)]
pub struct MboxWriter {
    line: MboxPosition,
    /// Whether the last byte was a CR. The next byte decides what the CR means.
    has_cr: bool,
}

/// The position in a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum MboxPosition {
    /// At the beginning of the line.
    #[default]
    Beginning,
    /// After one or more `>` at the beginning of the line.
    Quoted,
    /// After this many bytes of `From `, which are held back.
    Envelope(usize),
    /// After the beginning of the line.
    Within,
}

impl MboxWriter {
    /// Begins a message that arrived at this time. `octets`: the first bytes of the message. If
    /// they include the header, its sender is written.
    pub fn message_began(&mut self, octets: &[u8], arrived: UnixTime, out: &mut Vec<u8>) {
        *self = MboxWriter::default();
        let header = Header::new(octets);
        let sender = ["Return-Path", "From"].iter().find_map(|name| {
            let Some(Address::Mailbox(HeaderMailbox { address, .. })) =
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

    /// Writes more of the message.
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

    /// Ends the message.
    pub fn message_ended(&mut self, out: &mut Vec<u8>) {
        if core::mem::take(&mut self.has_cr) {
            self.octet(b'\r', out);
        }
        if self.line != MboxPosition::Beginning {
            self.octet(b'\n', out);
        }
        out.push(b'\n');
    }

    fn octet(&mut self, octet: u8, out: &mut Vec<u8>) {
        let matched = match self.line {
            MboxPosition::Within => {
                out.push(octet);
                self.line =
                    if octet == b'\n' { MboxPosition::Beginning } else { MboxPosition::Within };
                return;
            }
            MboxPosition::Beginning | MboxPosition::Quoted => 0,
            MboxPosition::Envelope(matched) => matched,
        };
        let held_back = ENVELOPE.get(..matched).unwrap_or_default();
        match ENVELOPE.get(matched) {
            Some(next) if *next == octet && matched + 1 < ENVELOPE.len() => {
                self.line = MboxPosition::Envelope(matched + 1)
            }
            Some(next) if *next == octet => {
                out.push(b'>');
                out.extend_from_slice(ENVELOPE);
                self.line = MboxPosition::Within;
            }
            _ => {
                out.extend_from_slice(held_back);
                out.push(octet);
                self.line = match octet {
                    b'\n' => MboxPosition::Beginning,
                    b'>' if matched == 0 => MboxPosition::Quoted,
                    _ => MboxPosition::Within,
                };
            }
        }
    }
}

/// A time in the form of C's `asctime`, in UTC: `Tue Nov  3 21:04:05 2026`.
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
