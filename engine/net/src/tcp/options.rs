//! TCP options: parses and writes those that we support (RFC 9293 §3.2, RFC 7323 §2 and §3, RFC
//! 2018).
//!
//! A malformed option ends the parse, but the options before it are used: the segment itself is
//! still valid. Nearly every segment has only timestamps, in the layout that RFC 7323 appendix A
//! recommends. This layout is parsed and written without a search.

use super::sequence::SequenceNumber;

/// The most bytes that [`Options::emit`] writes: the most that a header has room for.
pub const OPTIONS_BYTES_MAX: usize = 40;

/// The bytes before the values if timestamps are the first option: two no-operations, the kind and
/// the length.
const TIMESTAMPS_ALONE: [u8; 4] = [1, 1, 8, 10];

/// The largest window shift (RFC 7323 §2.3).
pub const WINDOW_SHIFT_MAX: u8 = 14;

/// A timestamp option (RFC 7323 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the receiver's clock, as the sender last learned it. Valid only with an
    /// acknowledgment.
    pub echo: u32,
}

/// The most SACK blocks in a header (RFC 2018 §3).
pub const SACK_BLOCKS_MAX: usize = 4;

/// The most SACK blocks beside timestamps.
const SACK_BLOCKS_BESIDE_TIMESTAMPS: usize = 3;

/// The kinds of options. The parser of the crate smoltcp is not used: it supports only three SACK
/// blocks, and parses each option separately, although a SYN has five.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK_KIND: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// A range of bytes that were received beyond the acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// The sequence number of the first byte.
    pub start: SequenceNumber,
    /// The sequence number after the last byte.
    pub end: SequenceNumber,
}

/// SACK blocks in wire order. The first may report a duplicate (RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; SACK_BLOCKS_MAX],
    count: u8,
}

impl SackBlocks {
    /// Adds a block, if there is room for it.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(room) = self.blocks.get_mut(usize::from(self.count)) {
            *room = block;
            self.count += 1;
        }
    }

    /// The blocks in wire order.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Removes the first block.
    pub(super) fn take_first(&mut self) -> Option<SackBlock> {
        let first = self.as_slice().first().copied()?;
        self.blocks.rotate_left(1);
        self.count -= 1;
        Some(first)
    }

    /// Sorts the blocks by the distance of their start from `una`.
    pub(super) fn sort_by_distance_from(&mut self, una: SequenceNumber) {
        if let Some(blocks) = self.blocks.get_mut(..usize::from(self.count)) {
            blocks.sort_unstable_by_key(|block| block.start.since(una));
        }
    }

    /// Whether there are no blocks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Parses a SACK option at the start of `bytes`. Returns its blocks, and the bytes after the
    /// option. `None` if the option is malformed or of another kind.
    fn parse(bytes: &[u8]) -> Option<(SackBlocks, &[u8])> {
        let (&[kind, len], _) = bytes.split_first_chunk()?;
        let (option, rest) = bytes.split_at_checked(usize::from(len))?;
        let edges = option
            .get(2..)
            .filter(|edges| kind == SACK_KIND && !edges.is_empty() && edges.len() % 8 == 0)?;
        let mut blocks = SackBlocks::default();
        for edges in edges.chunks_exact(8) {
            if let [a, b, c, d, e, f, g, h] = *edges {
                let (start, end) =
                    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                blocks.push(SackBlock { start: SequenceNumber(start), end: SequenceNumber(end) });
            }
        }
        Some((blocks, rest))
    }
}

impl SackBlock {
    fn to_wire(self) -> [u8; 8] {
        (u64::from(self.start.0) << 32 | u64::from(self.end.0)).to_be_bytes()
    }
}

/// The options of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The largest payload that the sender of the option receives in one segment, in bytes. Only on
    /// a SYN.
    pub mss: Option<u16>,
    /// The shift of the sender's windows. Only on a SYN. At most 14 after `parse`.
    pub window_scale: Option<u8>,
    /// Timestamps: on a SYN to propose them, later on every segment if both ends proposed them.
    pub timestamps: Option<Timestamps>,
    /// Whether the sender of the option understands selective acknowledgments. Only on a SYN.
    pub sack_permitted: bool,
    /// The ranges received beyond a gap. Beside timestamps, only the first three are sent. The
    /// fourth can be left out, because it has not grown for the longest time.
    pub sack: SackBlocks,
}

impl Options {
    /// Parses the options of a header. Unknown options are skipped.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Options {
        if let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = *bytes {
            let (value, echo) =
                (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            return Options { timestamps: Some(Timestamps { value, echo }), ..Options::default() };
        }
        Options::parse_list(bytes)
    }

    /// Parses options in any layout. A malformed option ends the list.
    fn parse_list(bytes: &[u8]) -> Options {
        let mut options = Options::default();
        let mut rest = bytes;
        loop {
            rest = match *rest {
                [END, ..] | [] => return options,
                [NO_OPERATION, ref rest @ ..] => rest,
                [MSS, 4, high, low, ref rest @ ..] => {
                    options.mss = Some(u16::from_be_bytes([high, low]));
                    rest
                }
                [WINDOW_SCALE, 3, shift, ref rest @ ..] => {
                    options.window_scale = Some(shift.min(WINDOW_SHIFT_MAX));
                    rest
                }
                [SACK_PERMITTED, 2, ref rest @ ..] => {
                    options.sack_permitted = true;
                    rest
                }
                [TIMESTAMPS, 10, a, b, c, d, e, f, g, h, ref rest @ ..] => {
                    let (value, echo) =
                        (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                    options.timestamps = Some(Timestamps { value, echo });
                    rest
                }
                [SACK_KIND, ..] => match SackBlocks::parse(rest) {
                    Some((sack, rest)) => {
                        options.sack = sack;
                        rest
                    }
                    None => return options,
                },
                [MSS | WINDOW_SCALE | SACK_PERMITTED, ..] => return options,
                // Unknown options are skipped.
                [_, length, ..] if length >= 2 => {
                    rest.get(usize::from(length)..).unwrap_or_default()
                }
                [..] => return options,
            };
        }
    }

    /// The number of bytes that `emit` writes, a multiple of four.
    #[inline]
    pub fn len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let permitted = if self.sack_permitted { 4 } else { 0 };
        let blocks = if self.sack.is_empty() { 0 } else { 4 + 8 * self.blocks_to_send().len() };
        timestamps + mss + scale + permitted + blocks
    }

    /// The SACK blocks that fit beside the other options.
    fn blocks_to_send(&self) -> &[SackBlock] {
        let blocks = self.sack.as_slice();
        let most =
            if self.timestamps.is_some() { SACK_BLOCKS_BESIDE_TIMESTAMPS } else { SACK_BLOCKS_MAX };
        blocks.get(..most).unwrap_or(blocks)
    }

    /// Whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the options to the start of `bytes`, which must hold [`Options::len`] bytes. In a
    /// shorter slice, options that do not fit are omitted.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
        let rest = match self.timestamps {
            Some(stamps) => stamps.emit(bytes),
            None => Some(bytes),
        };
        if let Some(rest) = rest.filter(|_| self.len() > 12 || self.timestamps.is_none()) {
            self.emit_list(rest);
        }
    }

    fn emit_list(&self, bytes: &mut [u8]) {
        let mut rest = bytes;
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            rest = put(rest, [MSS, 4, high, low]);
        }
        if let Some(shift) = self.window_scale {
            rest = put(rest, [NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            rest = put(rest, [NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
        let blocks = self.blocks_to_send();
        let edges = blocks.len() * 8;
        if let Some((head, rest)) =
            rest.split_first_chunk_mut().filter(|(_, rest)| edges > 0 && rest.len() >= edges)
        {
            *head = [1, 1, SACK_KIND, 2 + edges as u8];
            for (room, block) in rest.chunks_exact_mut(8).zip(blocks) {
                room.copy_from_slice(&block.to_wire());
            }
        }
    }
}

/// Writes an option of four bytes, if there is room for it, and returns the room after it.
fn put(room: &mut [u8], option: [u8; 4]) -> &mut [u8] {
    match room.split_first_chunk_mut() {
        Some((place, _)) => *place = option,
        None => return room,
    }
    room.get_mut(option.len()..).unwrap_or_default()
}

impl Timestamps {
    /// Writes the aligned option, and returns the room after it. `None` when there is no room for
    /// it.
    #[inline]
    fn emit(self, bytes: &mut [u8]) -> Option<&mut [u8]> {
        let (room, rest) = bytes.split_first_chunk_mut::<12>()?;
        let (head, stamps) = room.split_at_mut(4);
        head.copy_from_slice(&TIMESTAMPS_ALONE);
        stamps.copy_from_slice(&(u64::from(self.value) << 32 | u64::from(self.echo)).to_be_bytes());
        Some(rest)
    }
}
