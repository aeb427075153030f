//! Bytes that are to be sent or were sent and not acknowledged yet: a row of pieces. Lent to a connection only while
//! there are such bytes.
//!
//! Small replies are appended to the last block while the card does not read it; once it does, the next bytes start
//! another block, so what the card reads never changes. The block is one nobody else holds, which `Arc::get_mut` proves.
//!
//! Invariants:
//! - `len` is the sum of the pieces' lengths, less `acknowledged`, which is less than the first piece's length.
//! - No piece is empty.

use alloc::sync::Arc;

use heapless::{Deque, Vec};
use machine::{BLOCK_BYTES, PIECES_MAX, Piece};

use super::cubic::Epoch;
use super::flight::Flight;
use super::pools::BlockPool;
use super::recovery::Recovery;

/// Bytes that one connection may have queued and unacknowledged.
pub const SEND_BYTES_MAX: u32 = 256 * 1024;

/// Pieces that one connection may have queued and unacknowledged.
pub const SEND_PIECES_MAX: usize = 64;

/// The pieces of one output.
pub(super) type Pieces = Vec<Piece, PIECES_MAX>;

/// Queued bytes of one connection.
#[derive(Default)]
pub(super) struct SendQueue {
    pieces: Deque<Piece, SEND_PIECES_MAX>,
    len: u32,
    /// Bytes of the first piece that are acknowledged.
    acknowledged: u32,
    /// Up to where the last piece's block is filled, when it is a block that may be appended to.
    filled: Option<u16>,
    /// What of it is on the way, how losses of it are repaired, and the climb of the congestion window.
    pub(super) flight: Flight,
    pub(super) recovery: Recovery,
    pub(super) epoch: Epoch,
}

impl SendQueue {
    /// Bytes queued and not acknowledged.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// How many bytes `append` would surely take.
    pub(super) fn room(&self, blocks: &BlockPool) -> usize {
        let pieces = (SEND_PIECES_MAX - self.pieces.len()).min(blocks.free_for_sending());
        let bytes = SEND_BYTES_MAX.saturating_sub(self.len) as usize;
        bytes.min(pieces * BLOCK_BYTES)
    }

    /// Copies as many of `bytes` as fit and returns how many did.
    pub(super) fn append(&mut self, bytes: &[u8], blocks: &mut BlockPool) -> usize {
        let bytes = bytes.get(..SEND_BYTES_MAX.saturating_sub(self.len) as usize).unwrap_or(bytes);
        let mut taken = self.append_to_last(bytes);
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            let count = self.append_block(rest, blocks);
            if count == 0 {
                break;
            }
            taken += count;
        }
        self.len += taken as u32;
        taken
    }

    fn append_to_last(&mut self, bytes: &[u8]) -> usize {
        let Some(filled) = self.filled.map(usize::from).filter(|filled| *filled < BLOCK_BYTES) else { return 0 };
        let Some(last) = self.pieces.pop_back() else { return 0 };
        let start = filled - last.len();
        let Some(mut block) = last.into_block() else { return 0 };
        let count = match Arc::get_mut(&mut block) {
            Some(own) => fill(own, filled, bytes),
            None => 0,
        };
        self.filled = Some((filled + count) as u16);
        let grown = Piece::from_block(block, start as u32..(filled + count) as u32);
        assert!(self.pieces.push_back(grown).is_ok(), "the piece has just left its place");
        count
    }

    fn append_block(&mut self, bytes: &[u8], blocks: &mut BlockPool) -> usize {
        if self.pieces.is_full() {
            return 0;
        }
        let Some(mut block) = blocks.take_for_sending() else { return 0 };
        let count = Arc::get_mut(&mut block).map_or(0, |own| fill(own, 0, bytes));
        let pushed = self.pieces.push_back(Piece::from_block(block, 0..count as u32));
        assert!(pushed.is_ok() && count > 0, "a fresh block takes bytes, and there was a place for it");
        self.filled = Some(count as u16);
        count
    }

    /// Queues a piece as it is.
    ///
    /// Errors: the piece when there is no room.
    pub(super) fn push(&mut self, piece: Piece) -> Result<(), Piece> {
        let len = piece.len() as u64;
        if u64::from(self.len) + len > u64::from(SEND_BYTES_MAX) {
            return Err(piece);
        }
        self.pieces.push_back(piece)?;
        self.filled = None;
        self.len += len as u32;
        Ok(())
    }

    /// Drops the first `count` bytes.
    pub(super) fn acknowledge(&mut self, count: u32, blocks: &mut BlockPool) {
        assert!(count <= self.len, "no more is acknowledged than is queued");
        self.len -= count;
        self.acknowledged += count;
        while let Some(first) = self.pieces.front() {
            let len = first.len() as u32;
            if self.acknowledged < len {
                return;
            }
            self.acknowledged -= len;
            if let Some(piece) = self.pieces.pop_front() {
                blocks.give_back_piece(piece);
            }
        }
        self.filled = None;
    }

    /// Collects up to `count` bytes from `offset` on as pieces, at most as many as one output takes, and returns how many
    /// bytes they hold.
    pub(super) fn collect(&self, offset: u32, count: u32, pieces: &mut Pieces) -> u32 {
        let mut skip = (offset + self.acknowledged) as usize;
        let mut wanted = count as usize;
        for piece in &self.pieces {
            let len = piece.len();
            if skip >= len {
                skip -= len;
                continue;
            }
            let part = piece.part(skip..skip.saturating_add(wanted));
            let part_len = part.len();
            if wanted == 0 || pieces.push(part).is_err() {
                break;
            }
            wanted -= part_len;
            skip = 0;
        }
        count - wanted as u32
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        while let Some(piece) = self.pieces.pop_front() {
            blocks.give_back_piece(piece);
        }
        self.len = 0;
        self.acknowledged = 0;
        self.filled = None;
        self.flight.clear();
        self.recovery = Recovery::default();
        self.epoch.end();
    }
}

/// How many bytes an empty queue would surely take.
pub(super) fn room_when_empty(blocks: &BlockPool) -> usize {
    (SEND_BYTES_MAX as usize).min(blocks.free_for_sending() * BLOCK_BYTES)
}

/// Copies what fits of `bytes` to `block` from `start` on.
fn fill(block: &mut machine::Block, start: usize, bytes: &[u8]) -> usize {
    let count = bytes.len().min(BLOCK_BYTES - start);
    match (block.get_mut(start..start + count), bytes.get(..count)) {
        (Some(target), Some(source)) => {
            target.copy_from_slice(source);
            count
        }
        _ => 0,
    }
}
