//! Expands macros (RFC 7208 §7.2, §7.3).

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::evaluation::SpfSender;
use crate::specification::{Macro, MacroLetter, MacroPiece, Specification};

/// The most bytes of a name as text.
const NAME_BYTES_MAX: usize = 253;

/// The most bytes of the text that are kept after a piece. Of a longer text only the end is kept,
/// which is enough to make the name.
const TEXT_BYTES_MAX: usize = 1024;

/// The values of macros.
pub(crate) struct Values<'a> {
    pub(crate) sender: &'a SpfSender<'a>,
    /// The domain of the policy.
    pub(crate) domain: &'a [u8],
    /// The validated name of the sending host.
    pub(crate) validated: &'a [u8],
}

impl Values<'_> {
    /// Expands a specification to the text of a name. If the name is too long, its first labels are
    /// dropped (RFC 7208 §7.3). The time is linear in the length of the specification.
    pub(crate) fn expand(&self, specification: &Specification) -> Vec<u8> {
        let mut text = Vec::new();
        for piece in &specification.0 {
            match piece {
                MacroPiece::Literal(byte) => text.push(*byte),
                MacroPiece::Macro(wanted) => self.expand_macro(wanted, &mut text),
            }
            if text.len() > TEXT_BYTES_MAX {
                text.drain(..text.len() - (NAME_BYTES_MAX + 1));
            }
        }
        // The name begins after the first dot that leaves it short enough.
        let start = text.len().saturating_sub(NAME_BYTES_MAX + 1);
        if text.len() > NAME_BYTES_MAX
            && let Some(dot) = text.iter().skip(start).position(|byte| *byte == b'.')
        {
            text.drain(..=start + dot);
        }
        text
    }

    fn expand_macro(&self, wanted: &Macro, text: &mut Vec<u8>) {
        let value = self.value(wanted.macro_letter);
        let mut labels: Vec<&[u8]> = value.split(|byte| wanted.delimiters.contains(byte)).collect();
        if wanted.is_reversed {
            labels.reverse();
        }
        let dropped = wanted.labels.map_or(0, |kept| labels.len().saturating_sub(kept));
        let joined = labels.get(dropped..).unwrap_or_default().join(&b'.');
        for byte in joined {
            if wanted.is_escaped && !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte) {
                let digit = |value: u8| {
                    b"0123456789ABCDEF".get(usize::from(value)).copied().unwrap_or(b'0')
                };
                text.extend([b'%', digit(byte >> 4), digit(byte & 0xf)]);
            } else {
                text.push(byte);
            }
        }
    }

    fn value(&self, macro_letter: MacroLetter) -> Vec<u8> {
        let SpfSender { address, hello, local_part, domain } = self.sender;
        match macro_letter {
            MacroLetter::Sender => [local_part.as_bytes(), domain.as_bytes()].join(&b'@'),
            MacroLetter::LocalPart => local_part.as_bytes().into(),
            MacroLetter::SenderDomain => domain.as_bytes().into(),
            MacroLetter::Domain => self.domain.into(),
            MacroLetter::Address => address_text(*address),
            MacroLetter::ValidatedName => self.validated.into(),
            MacroLetter::Version => if address.is_ipv4() { &b"in-addr"[..] } else { b"ip6" }.into(),
            MacroLetter::Hello => hello.as_bytes().into(),
            MacroLetter::OfExplanations => Vec::new(),
        }
    }
}

/// The value of the macro `i`. For IPv6, it is one hexadecimal digit for each half of a byte, with
/// dots between the digits.
fn address_text(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => alloc::format!("{address}").into(),
        IpAddr::V6(address) => {
            let digits =
                address.octets().map(|byte| alloc::format!("{:x}.{:x}", byte >> 4, byte & 0xf));
            digits.join(".").into()
        }
    }
}
