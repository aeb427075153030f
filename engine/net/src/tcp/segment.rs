//! Segments as plain values: received segments, and segments to send. They have no addresses and
//! ports: the caller has already found the connection.

use core::fmt;
use core::num::NonZeroU16;

use super::options::Options;
use super::sequence::SequenceNumber;

/// The control bits of a segment, in wire format (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No bit.
    pub const NONE: TcpFlags = TcpFlags(0);
    /// The sender has sent its last byte.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Reset the connection.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Deliver what has arrived so far.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// Echoes a congestion mark; on a SYN: the sender supports ECN (RFC 3168).
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// The congestion window was reduced; on a SYN: the sender supports ECN.
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Both sets of bits together.
    pub const fn with(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }

    /// The bits without those of `other`.
    pub const fn without(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & !other.0)
    }

    /// Whether every bit of `other` is set.
    pub const fn has(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub const fn has_any(self, other: TcpFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a segment with these flags may open a connection: a SYN without ACK, RST or FIN.
    pub const fn opens(self) -> bool {
        self.has(TcpFlags::SYN)
            && !self.has_any(TcpFlags::ACK.with(TcpFlags::RST).with(TcpFlags::FIN))
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (TcpFlags::SYN, 'S'),
            (TcpFlags::FIN, 'F'),
            (TcpFlags::RST, 'R'),
            (TcpFlags::PSH, 'P'),
            (TcpFlags::ECE, 'E'),
            (TcpFlags::CWR, 'W'),
            (TcpFlags::ACK, '.'),
        ];
        names
            .iter()
            .filter(|(flag, _)| self.has(*flag))
            .try_for_each(|(_, name)| write!(out, "{name}"))
    }
}

/// A received segment with a valid checksum. The payload is borrowed from the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentRepr<'a> {
    /// The sequence number of the first byte of the payload, or of the SYN.
    pub sequence: SequenceNumber,
    /// The next byte that the peer expects; valid only with [`TcpFlags::ACK`].
    pub acknowledgment: SequenceNumber,
    /// The control bits.
    pub flags: TcpFlags,
    /// The window as on the wire, not scaled.
    pub window: u16,
    /// Whether a router has marked the segment (the codepoint CE of RFC 3168).
    pub congestion_experienced: bool,
    /// The options; default when there are none.
    pub options: Options,
    /// The payload.
    pub payload: &'a [u8],
}

impl SegmentRepr<'_> {
    /// The sequence numbers that the segment occupies: its payload, and one each for SYN and FIN
    /// (SEG.LEN of RFC 9293).
    pub fn sequence_len(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.flags.has(TcpFlags::SYN))
            + u32::from(self.flags.has(TcpFlags::FIN))
    }

    /// The segment without its SYN: perhaps an acknowledgment, data and a FIN. `peer_shift`: the
    /// shift of the sender's windows.
    pub(super) fn behind_syn(&self, peer_shift: u8) -> Self {
        SegmentRepr {
            sequence: self.sequence + 1,
            // On a SYN, the bits of ECN are no echo of a mark (RFC 3168 §6.1.1).
            flags: self.flags.without(TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR)),
            // The window in a SYN is never scaled (RFC 7323 §2.2).
            window: self.window >> peer_shift,
            ..*self
        }
    }
}

/// The header of a segment to send; the payload is passed separately as pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentToSend {
    /// The sequence number of the first byte of the payload, or of the SYN.
    pub sequence: SequenceNumber,
    /// The next byte that we expect; zero without [`TcpFlags::ACK`].
    pub acknowledgment: SequenceNumber,
    /// The control bits.
    pub flags: TcpFlags,
    /// The window as on the wire, already scaled.
    pub window: u16,
    /// Whether routers may mark the segment instead of dropping it (the codepoint ECT(0) of RFC
    /// 3168).
    pub may_be_marked: bool,
    /// Options, for [`Options::emit`].
    pub options: Options,
    /// The number of bytes in all pieces together.
    pub payload_bytes: usize,
    /// Set when the payload is longer than one segment: the card divides it into segments of this
    /// many bytes.
    pub segment_bytes: Option<NonZeroU16>,
}

/// The error that the card has no room for another frame now. Nothing was queued; the caller tries
/// again in a later turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CardFull;
