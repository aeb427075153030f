//! Content codings, and the choice of the coding that a client prefers.
//!
//! Implements: RFC 9110 sections 8.4 and 12.5.3, RFC 7932 (br).

use crate::head::list;

/// The coding of the bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// No coding.
    Identity,
    /// The gzip format (RFC 1952).
    Gzip,
    /// The Brotli format (RFC 7932).
    Brotli,
}

impl Coding {
    /// All codings, the one that usually gives the fewest bytes first.
    pub(crate) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Gzip, Coding::Identity];

    /// The name of the coding in header fields.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
        }
    }

    /// The suffix that distinguishes the entity tag of this coding from the tags of the others.
    pub(crate) fn tag_suffix(self) -> &'static str {
        match self {
            Coding::Identity => "",
            Coding::Gzip => "-gz",
            Coding::Brotli => "-br",
        }
    }
}

/// The weight of a coding in a client's list, in thousandths (RFC 9110 section 12.4.2).
type Quality = u16;

/// The codings that a client accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Accepted {
    gzip: Quality,
    brotli: Quality,
    identity: Quality,
}

impl Accepted {
    /// Reads the values of `Accept-Encoding` fields. Without such a field the client gets only
    /// identity, although the RFC would allow every coding.
    pub(crate) fn from_fields<'a>(values: impl Iterator<Item = &'a [u8]>) -> Accepted {
        let (mut gzip, mut brotli, mut identity, mut others) = (None, None, None, None);
        for item in values.flat_map(list) {
            let (name, quality) = parse(item);
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            let place = match () {
                () if is(b"br") => &mut brotli,
                () if is(b"gzip") || is(b"x-gzip") => &mut gzip,
                () if is(b"identity") => &mut identity,
                () if is(b"*") => &mut others,
                () => continue,
            };
            *place = Some(quality);
        }
        Accepted {
            gzip: gzip.or(others).unwrap_or(0),
            brotli: brotli.or(others).unwrap_or(0),
            identity: identity.or(others).unwrap_or(1).max(1),
        }
    }

    /// The coding that the client prefers among the codings for which `is_there` is true. Among
    /// equally preferred codings, the first in [`Coding::ALL`].
    pub(crate) fn best(self, is_there: impl Fn(Coding) -> bool) -> Coding {
        let mut best = (Coding::Identity, 0);
        for coding in Coding::ALL {
            let quality = self.quality(coding);
            if quality > best.1 && is_there(coding) {
                best = (coding, quality);
            }
        }
        best.0
    }

    fn quality(self, coding: Coding) -> Quality {
        match coding {
            Coding::Identity => self.identity,
            Coding::Gzip => self.gzip,
            Coding::Brotli => self.brotli,
        }
    }
}

/// Splits an item such as `gzip;q=0.5` into name and quality. A malformed quality counts as zero.
fn parse(item: &[u8]) -> (&[u8], Quality) {
    let mut parts = item.split(|&byte| byte == b';');
    let name = parts.next().unwrap_or_default().trim_ascii();
    let quality = parts
        .map(<[u8]>::trim_ascii)
        .find_map(|part| part.strip_prefix(b"q=").or(part.strip_prefix(b"Q=")));
    (name, quality.map_or(1000, |quality| thousandths(quality).unwrap_or(0)))
}

/// Parses a `qvalue`, such as `0`, `1`, `0.85` or `1.000`.
fn thousandths(text: &[u8]) -> Option<Quality> {
    let (whole, fraction) = match text {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut value = match whole {
        b'0' => 0,
        b'1' => 1,
        _ => return None,
    };
    for place in 0..3 {
        let digit = fraction.get(place).unwrap_or(&b'0');
        value = value * 10 + Quality::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    (value <= 1000).then_some(value)
}
