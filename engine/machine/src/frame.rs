//! Received frames, frames to send, and the offloads of the card.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroU16;
use core::ops::Range;

/// A hardware address (IEEE 802 EUI-48).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ethernet(pub [u8; 6]);

impl fmt::Display for Ethernet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// The properties of the network card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Card {
    /// The card's own address.
    pub address: Ethernet,
    /// The largest IP packet that one frame carries, in bytes.
    pub mtu: u16,
    /// The work that the card does for the engine.
    pub offloads: Offloads,
    /// The number of queue pairs in use, at least one. The cores with the lowest numbers have one
    /// pair each. A core without a pair receives and sends no frames itself: other cores do that
    /// for it.
    pub queues: u8,
}

/// The work that a card does for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offloads {
    /// Fills in the TCP or UDP checksum that [`OutgoingFrame::checksum`] points at.
    pub checksum: bool,
    /// Splits an [`OutgoingFrame`] of TCP over IPv4 into frames of [`OutgoingFrame::segment_bytes`]
    /// each.
    pub segmentation_ipv4: bool,
    /// Splits an [`OutgoingFrame`] of TCP over IPv6 into frames of [`OutgoingFrame::segment_bytes`]
    /// each.
    pub segmentation_ipv6: bool,
}

impl Offloads {
    /// Whether the card can split `frame`.
    #[inline]
    pub fn can_cut(&self, frame: &OutgoingFrame<'_>) -> bool {
        if frame.is_ipv6() { self.segmentation_ipv6 } else { self.segmentation_ipv4 }
    }
}

/// The state of the transport checksum of a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// The checksum was not verified, so the engine must verify it.
    Unknown,
    /// The card has verified the checksum, or the frame never left the memory of this host.
    Verified,
}

/// A received Ethernet frame, contiguous, in a buffer that belongs to the card.
///
/// With receive offloads a frame may be far longer than the MTU, since the card joins segments of
/// one connection.
#[derive(Debug)]
pub struct Frame {
    buffer: Box<[u8]>,
    range: Range<usize>,
    checksum: Checksum,
}

impl Frame {
    /// The frame at `range` of `buffer`. The part of the range outside of the buffer is cut off.
    pub fn new(buffer: Box<[u8]>, range: Range<usize>, checksum: Checksum) -> Frame {
        let end = range.end.min(buffer.len());
        Frame { range: range.start.min(end)..end, buffer, checksum }
    }

    /// The frame from its Ethernet header on.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }

    /// The bytes of the frame from its Ethernet header on, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.range.clone()).unwrap_or_default()
    }

    /// The state of the transport checksum.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Returns the whole buffer, for the card that owns it.
    pub fn into_buffer(self) -> Box<[u8]> {
        self.buffer
    }
}

/// Bytes in one [`Block`]. A page of 4 KB fits in a block together with the head of its reply, so
/// both are sent in one TLS record.
pub const BLOCK_BYTES: usize = 8192;

/// A buffer for bytes to send. It is kept until the peer has acknowledged the bytes.
pub type Block = [u8; BLOCK_BYTES];

/// Bytes to send. The card shares them with the connection, which may have to send them again.
#[derive(Clone, Debug)]
pub struct Piece {
    source: Source,
    range: Range<u32>,
}

#[derive(Clone, Debug)]
enum Source {
    Static(&'static [u8]),
    Block(Arc<Block>),
    Shared(Arc<Block>),
}

impl Piece {
    /// Bytes that live as long as the machine, at most 4 GiB.
    pub fn from_static(bytes: &'static [u8]) -> Piece {
        Piece {
            range: 0..u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            source: Source::Static(bytes),
        }
    }

    /// The bytes of `block` at `range`. The part of the range outside of the block is cut off.
    pub fn from_block(block: Arc<Block>, range: Range<u32>) -> Piece {
        let end = range.end.min(BLOCK_BYTES as u32);
        Piece { range: range.start.min(end)..end, source: Source::Block(block) }
    }

    /// The first `length` bytes of a `block` that belongs to no pool. The creator of the block
    /// keeps it, and many connections can send it without a copy.
    pub fn from_shared(block: Arc<Block>, length: u32) -> Piece {
        Piece { range: 0..length.min(BLOCK_BYTES as u32), source: Source::Shared(block) }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        let whole: &[u8] = match &self.source {
            Source::Static(bytes) => bytes,
            Source::Block(block) | Source::Shared(block) => block.as_slice(),
        };
        whole.get(self.range.start as usize..self.range.end as usize).unwrap_or_default()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the piece is empty.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The part of this piece at `range`, which counts from the first byte of the piece. The part
    /// of the range outside of the piece is cut off.
    pub fn part(&self, range: Range<usize>) -> Piece {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        Piece {
            source: self.source.clone(),
            range: self.range.start.saturating_add(start as u32)
                ..self.range.start.saturating_add(end as u32),
        }
    }

    /// Returns the block of the piece, for the pool that lent it. `None` if the bytes belong to no
    /// pool.
    pub fn into_block(self) -> Option<Arc<Block>> {
        match self.source {
            Source::Static(_) | Source::Shared(_) => None,
            Source::Block(block) => Some(block),
        }
    }
}

/// The maximum number of bytes of headers in one [`OutgoingFrame`]: Ethernet 14, IPv6 40, TCP 60,
/// and some spare bytes.
pub const HEAD_BYTES_MAX: usize = 128;

/// The maximum number of pieces in one [`OutgoingFrame`].
pub const PIECES_MAX: usize = 17;

/// The place where the card writes the transport checksum that it computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChecksumOffload {
    /// The offset of the first byte that the checksum covers, counted from the start of the frame.
    /// The checksum covers all bytes from there to the end of the frame.
    pub start: u16,
    /// The offset of the checksum field, counted from `start`. The field already has the sum of the
    /// pseudo header.
    pub offset: u16,
}

/// A frame to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrame<'a> {
    /// All headers, and possibly a small payload. At most [`HEAD_BYTES_MAX`] bytes if `payload` is
    /// not empty, or else at most one frame. The card copies the head.
    pub head: &'a [u8],
    /// The bytes after the head: at most [`PIECES_MAX`] pieces. Head and payload together have at
    /// most 65,535 bytes.
    pub payload: &'a [Piece],
    /// The transport checksum that the card fills in. `None` if the head already has its checksum.
    pub checksum: Option<ChecksumOffload>,
    /// The number of payload bytes in each of the frames that the card splits this frame into.
    /// `None` for a frame that fits the MTU.
    pub segment_bytes: Option<NonZeroU16>,
}

impl OutgoingFrame<'_> {
    /// Whether the Ethernet header names IPv6. A card that splits the frame needs this information.
    #[inline]
    pub fn is_ipv6(&self) -> bool {
        self.head.get(12..14).is_some_and(|kind| kind == [0x86, 0xdd])
    }
}

/// The reason why a frame was not queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransmitError {
    /// The card's ring has no space. The caller tries again in a later turn.
    Full,
    /// The frame breaks a limit of [`OutgoingFrame`], so it will never be sent.
    Malformed,
}
