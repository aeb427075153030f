//! A lenient quoted-printable decoder for mail, in pieces.
//!
//! Invariants:
//! - An invalid escape is passed on unchanged.
//! - White space at the end of a line was added in transit, and is removed (RFC 2045 section 6.7,
//!   rule 3). White space that is longer than the longest line is kept.
//!
//! Implements: RFC 2045 section 6.7.

use alloc::vec::Vec;
use core::mem;

use crate::header::hex_value;

/// The most white space that is held back: a whole line of RFC 5322 section 2.1.1.
const SPACES_MAX: usize = 998;

/// The position in the text.
#[derive(Clone, Debug, Default)]
pub(super) struct QuotedPrintable {
    expect: Expect,
    /// White space that may be at the end of the line.
    spaces: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Expect {
    #[default]
    Text,
    /// After an equals sign.
    Escape,
    /// After this digit, the first of an escape.
    Digit(u8),
    /// After an equals sign and white space, perhaps at the end of a line that continues in the
    /// next line.
    SoftEnd,
    /// Before the LF after a CR.
    SoftLineFeed,
}

impl QuotedPrintable {
    pub(super) fn text_arrived(&mut self, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            self.expect = match (self.expect, byte) {
                (Expect::Escape, _) if byte.is_ascii_hexdigit() => Expect::Digit(byte),
                (Expect::Digit(high), _) if byte.is_ascii_hexdigit() => {
                    out.push(hex_value(high) << 4 | hex_value(byte));
                    Expect::Text
                }
                (Expect::Escape | Expect::SoftEnd, b'\r') => Expect::SoftLineFeed,
                (Expect::Escape | Expect::SoftEnd, b'\n') => self.line_goes_on(),
                (Expect::SoftLineFeed, b'\n') => self.line_goes_on(),
                (Expect::Escape | Expect::SoftEnd, b' ' | b'\t')
                    if self.spaces.len() < SPACES_MAX =>
                {
                    self.spaces.push(byte);
                    Expect::SoftEnd
                }
                _ => self.no_escape_arrived(byte, out),
            };
        }
    }

    pub(super) fn text_ended(&mut self, out: &mut Vec<u8>) {
        if let Expect::Digit(high) = self.expect {
            out.extend([b'=', high]);
        }
        *self = QuotedPrintable::default();
    }

    fn line_goes_on(&mut self) -> Expect {
        self.spaces.clear();
        Expect::Text
    }

    /// Handles a byte that does not continue an escape. If an escape had begun, its characters are
    /// text.
    fn no_escape_arrived(&mut self, byte: u8, out: &mut Vec<u8>) -> Expect {
        match mem::take(&mut self.expect) {
            Expect::Escape | Expect::SoftEnd => out.push(b'='),
            Expect::Digit(high) => out.extend([b'=', high]),
            Expect::Text | Expect::SoftLineFeed => {}
        }
        match byte {
            b' ' | b'\t' if self.spaces.len() < SPACES_MAX => {
                self.spaces.push(byte);
                return Expect::Text;
            }
            b'\r' | b'\n' => self.spaces.clear(),
            _ => out.append(&mut self.spaces),
        }
        match byte {
            b'=' => Expect::Escape,
            _ => {
                out.push(byte);
                Expect::Text
            }
        }
    }
}
