//! IPv6 extension headers (RFC 8200 §4), walked with bounds.
//! - A packet may have at most [`HEADERS_MAX`] headers, and a header at most [`OPTIONS_MAX`]
//!   options. So no sender can make the walk long (RFC 8504 §5.3).
//! - A Hop-by-Hop Options header is valid only directly after the IPv6 header. A routing header
//!   with segments left is refused (RFC 5095: we are a host and forward nothing).
//! - The two highest bits of an unknown option's type decide its treatment (§4.2).
//! - An atomic fragment, which holds the whole packet, is treated as unfragmented (RFC 6946).

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const NOTHING: u8 = 59;
const DESTINATION: u8 = 60;

/// The most headers in one packet.
pub(crate) const HEADERS_MAX: usize = 8;
/// The most options in one header, padding included.
pub(crate) const OPTIONS_MAX: usize = 32;

/// The options that this host skips: padding, and the router alert (RFC 2711).
const PAD_ONE: u8 = 0;
const PAD_MANY: u8 = 1;
const ROUTER_ALERT: u8 = 5;

/// Bytes in a Fragment header, and the unit of the other headers' lengths.
const UNIT_BYTES: usize = 8;

/// An error in a packet, in the terms of ICMPv6's Parameter Problem (RFC 4443 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: u8,
    /// The offset of the wrong byte in the packet.
    pub(crate) pointer: u32,
    /// Whether the error is reported even for a packet to a group.
    pub(crate) concerns_groups: bool,
}

impl Problem {
    /// A field with a wrong value.
    pub(crate) const FIELD: u8 = 0;
    /// An unknown next header.
    pub(crate) const NEXT_HEADER: u8 = 1;
    /// An unknown option.
    pub(crate) const OPTION: u8 = 2;
    /// A first fragment without all headers (RFC 7112 §5).
    pub(crate) const INCOMPLETE: u8 = 3;

    pub(crate) fn new(code: u8, at: usize) -> Problem {
        Problem { code, pointer: at as u32, concerns_groups: false }
    }
}

/// A fragment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The offsets in the packet of its Fragment header (`header_at`) and of its payload (`at`).
    pub(crate) header_at: usize,
    pub(crate) at: usize,
    /// The kind of the header after the Fragment header. Only the value of the first fragment
    /// counts.
    pub(crate) next_header: u8,
    /// The offset in the whole packet, in bytes.
    pub(crate) offset: u16,
    pub(crate) more: bool,
    pub(crate) identification: u32,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// A protocol above IPv6, or an unknown header. `named_at`: the field that names it.
    Payload { protocol: u8, at: usize, named_at: usize },
    /// A fragment.
    Fragment(Fragment),
    /// An error that is reported to the sender.
    Refused(Problem),
    /// The packet is dropped silently: an option demands it, no header follows, or a limit was
    /// reached.
    Dropped,
    /// The packet ends within a header.
    Truncated,
}

/// Walks the extension headers of `packet`. The first header has the kind `first` and begins at
/// `at`. The byte at `named_at` names its kind.
#[inline]
pub(crate) fn walk(packet: &[u8], first: u8, named_at: usize, at: usize) -> Walked {
    match first {
        HOP_BY_HOP | ROUTING | FRAGMENT | NOTHING | DESTINATION => {
            walk_headers(packet, first, named_at, at)
        }
        protocol => Walked::Payload { protocol, at, named_at },
    }
}

fn walk_headers(packet: &[u8], first: u8, first_named_at: usize, first_at: usize) -> Walked {
    let (mut kind, mut named_at, mut at) = (first, first_named_at, first_at);
    for _ in 0..HEADERS_MAX {
        match kind {
            NOTHING => return Walked::Dropped,
            HOP_BY_HOP if at != first_at => {
                return Walked::Refused(Problem::new(Problem::NEXT_HEADER, named_at));
            }
            HOP_BY_HOP | DESTINATION | ROUTING | FRAGMENT => {}
            protocol => return Walked::Payload { protocol, at, named_at },
        }
        let rest = packet.get(at..).unwrap_or_default();
        let Some(&[next, length, type_or_offset, left_or_offset, i, j, k, l]) =
            rest.first_chunk::<UNIT_BYTES>()
        else {
            return Walked::Truncated;
        };
        let header_bytes =
            if kind == FRAGMENT { UNIT_BYTES } else { UNIT_BYTES * (usize::from(length) + 1) };
        let Some(header) = rest.get(..header_bytes) else { return Walked::Truncated };
        match kind {
            FRAGMENT => {
                let field = u16::from_be_bytes([type_or_offset, left_or_offset]);
                let (offset, more) = (field & 0xfff8, field & 1 != 0);
                if offset != 0 || more {
                    let identification = u32::from_be_bytes([i, j, k, l]);
                    let begins = at + UNIT_BYTES;
                    let (header_at, next_header) = (at, next);
                    return Walked::Fragment(Fragment {
                        header_at,
                        at: begins,
                        next_header,
                        offset,
                        more,
                        identification,
                    });
                }
            }
            ROUTING if left_or_offset != 0 => {
                return Walked::Refused(Problem::new(Problem::FIELD, at + 2));
            }
            ROUTING => {}
            _ => {
                if let Some(end) = look_at_options(header, at) {
                    return end;
                }
            }
        }
        (kind, named_at, at) = (next, at, at + header_bytes);
    }
    match kind {
        HOP_BY_HOP | ROUTING | FRAGMENT | NOTHING | DESTINATION => Walked::Dropped,
        protocol => Walked::Payload { protocol, at, named_at },
    }
}

/// The protocol above IPv6, and the offset of its header. The walk stops at an incomplete header,
/// and ignores errors in complete headers. Only the first fragment of a packet has such a protocol.
pub(crate) fn upper(packet: &[u8], first: u8, first_at: usize) -> (u8, usize) {
    let (mut kind, mut at) = (first, first_at);
    for _ in 0..HEADERS_MAX {
        let header = packet.get(at..).and_then(|rest| rest.first_chunk::<UNIT_BYTES>());
        let Some(&[next, length, high, low, ..]) = header else { break };
        match kind {
            FRAGMENT if u16::from_be_bytes([high, low]) & 0xfff8 != 0 => return (NOTHING, at),
            FRAGMENT => at += UNIT_BYTES,
            HOP_BY_HOP | ROUTING | DESTINATION => at += UNIT_BYTES * (usize::from(length) + 1),
            _ => break,
        }
        kind = next;
    }
    (kind, at)
}

/// Checks the options of one header, which begins at `header_at` of the packet. `None`: the walk
/// continues.
fn look_at_options(header: &[u8], header_at: usize) -> Option<Walked> {
    let mut at = 2;
    for _ in 0..OPTIONS_MAX {
        let kind = *header.get(at)?;
        if kind == PAD_ONE {
            at += 1;
            continue;
        }
        let Some(&length) = header.get(at + 1) else { return Some(Walked::Truncated) };
        let end = at + 2 + usize::from(length);
        if end > header.len() {
            return Some(Walked::Truncated);
        }
        let refused = |concerns_groups| {
            Some(Walked::Refused(Problem {
                concerns_groups,
                ..Problem::new(Problem::OPTION, header_at + at)
            }))
        };
        match (kind, kind >> 6) {
            (PAD_MANY | ROUTER_ALERT, _) | (_, 0) => {}
            (_, 1) => return Some(Walked::Dropped),
            (_, 2) => return refused(true),
            _ => return refused(false),
        }
        at = end;
    }
    if at >= header.len() { None } else { Some(Walked::Dropped) }
}
