//! Bytes that are unsent or unacknowledged, as a queue of pieces. A connection borrows the queue
//! only while there are such bytes.
//!
//! Small replies are appended to the last block until the card begins to read it. Then the next
//! bytes start another block. So bytes that the card reads never change. `Arc::get_mut` proves that
//! the card does not share a block.
//!
//! Invariants:
//! - `len` is the sum of the pieces' lengths minus `acknowledged`, which is less than the first
//!   piece's length.
//! - No piece is empty.

use alloc::sync::Arc;

use heapless::Vec;
use machine::{BLOCK_BYTES, PIECES_MAX, Piece};

use super::blocks::BlockPool;
use super::cubic::Epoch;
use super::flight::Flight;
use super::piece_queue::PieceQueue;
use super::recovery::Recovery;
use super::slow_start::SlowStart;

/// Bytes that every connection may have queued and unacknowledged, if there are enough blocks.
pub const SEND_BYTES: u32 = 256 * 1024;

/// The most bytes that one connection may have queued and unacknowledged, even on the longest path.
pub const SEND_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// The pieces of one output.
pub(super) type Pieces = Vec<Piece, PIECES_MAX>;

/// The queued bytes of one connection.
#[derive(Default)]
pub(super) struct SendQueue {
    pieces: PieceQueue,
    len: u32,
    /// Bytes of the first piece that are acknowledged.
    acknowledged: u32,
    /// The number of filled bytes in the last piece's block, if more bytes may be appended to it.
    filled: Option<u16>,
    /// The state of the data in flight, of loss recovery, and of both kinds of window growth.
    pub(super) flight: Flight,
    pub(super) recovery: Recovery,
    pub(super) epoch: Epoch,
    pub(super) slow_start: SlowStart,
}

impl SendQueue {
    /// Bytes queued and not acknowledged.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// The number of bytes that `append` accepts now in any case.
    pub(super) fn room(&self, limit: u32, blocks: &BlockPool) -> usize {
        let pieces = self.pieces.room(blocks).min(blocks.free_for_sending());
        let bytes = limit.saturating_sub(self.len) as usize;
        bytes.min(pieces * BLOCK_BYTES)
    }

    /// Copies as many of `bytes` as fit. Returns the number of bytes copied. `limit`: the most
    /// bytes that may be queued.
    pub(super) fn append(&mut self, bytes: &[u8], limit: u32, blocks: &mut BlockPool) -> usize {
        let bytes = bytes.get(..limit.saturating_sub(self.len) as usize).unwrap_or(bytes);
        let mut taken = self.append_to_last(1, |room| copy(bytes, room));
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            let count = self.append_block(|room| copy(rest, room), blocks);
            if count == 0 {
                break;
            }
            taken += count;
        }
        self.len += taken as u32;
        taken
    }

    /// Lets `write` fill at least `least` free bytes at the end of a block, and returns the number
    /// of bytes written. The block is the last one if it has enough room, otherwise a new block.
    /// `least`: at most the size of a block. If there is no room, `write` is not called.
    pub(super) fn append_with(
        &mut self,
        least: usize,
        limit: u32,
        blocks: &mut BlockPool,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> usize {
        let most = limit.saturating_sub(self.len) as usize;
        if most < least {
            return 0;
        }
        let mut write = Some(write);
        let mut once = |room: &mut [u8]| {
            let room_bytes = room.len().min(most);
            let Some(room) = room.get_mut(..room_bytes) else {
                unreachable!("the part is at most the whole")
            };
            write.take().map_or(0, |write| write(room))
        };
        let mut written = self.append_to_last(least, &mut once);
        // Once `write` has written bytes, they must be queued. So the room for their piece is
        // checked first.
        if written == 0 && self.pieces.room(blocks) > 0 {
            written = self.append_block(&mut once, blocks);
        }
        self.len += written as u32;
        written
    }

    fn append_to_last(&mut self, least: usize, write: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let Some(filled) =
            self.filled.map(usize::from).filter(|filled| filled + least <= BLOCK_BYTES)
        else {
            return 0;
        };
        let mut count = 0;
        self.pieces.change_last(|last| {
            let start = filled - last.len();
            let Some(mut block) = last.into_block() else {
                unreachable!("only a block is filled further")
            };
            let room = Arc::get_mut(&mut block).and_then(|own| own.get_mut(filled..));
            count = room.map_or(0, write);
            Piece::from_block(block, start as u32..(filled + count) as u32)
        });
        self.filled = Some((filled + count) as u16);
        count
    }

    fn append_block(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> usize,
        blocks: &mut BlockPool,
    ) -> usize {
        let Some(mut block) = blocks.take_for_sending() else { return 0 };
        let Some(own) = Arc::get_mut(&mut block) else {
            unreachable!("a free block that is still shared")
        };
        let count = write(own);
        if count == 0 {
            blocks.give_back(block);
            return 0;
        }
        if let Err(piece) = self.pieces.push(Piece::from_block(block, 0..count as u32), blocks) {
            blocks.give_back_piece(piece);
            return 0;
        }
        self.filled = Some(count as u16);
        count
    }

    /// Queues a piece without copying. `limit`: the most bytes that may be queued.
    ///
    /// Errors: the piece, when there is no room.
    pub(super) fn push(
        &mut self,
        piece: Piece,
        limit: u32,
        blocks: &mut BlockPool,
    ) -> Result<(), Piece> {
        let len = piece.len() as u64;
        if u64::from(self.len) + len > u64::from(limit) {
            return Err(piece);
        }
        self.pieces.push(piece, blocks)?;
        self.filled = None;
        self.len += len as u32;
        Ok(())
    }

    /// Drops the first `count` bytes.
    pub(super) fn acknowledge(&mut self, count: u32, blocks: &mut BlockPool) {
        assert!(count <= self.len, "no more is acknowledged than is queued");
        self.len -= count;
        self.acknowledged += count;
        self.flight.shorten(blocks);
        while let Some(first) = self.pieces.first() {
            let len = first.len() as u32;
            if self.acknowledged < len {
                return;
            }
            self.acknowledged -= len;
            let Some(piece) = self.pieces.pop(blocks) else {
                unreachable!("the first piece has just been found")
            };
            blocks.give_back_piece(piece);
        }
        self.filled = None;
    }

    /// Collects up to `count` bytes from `offset` on, as pieces: at least one byte, and at most as
    /// many pieces as one output takes. Returns the number of bytes collected.
    pub(super) fn collect(&self, offset: u32, count: u32, pieces: &mut Pieces) -> u32 {
        let mut wanted = count as usize;
        self.pieces.visit(
            offset + self.acknowledged,
            self.len + self.acknowledged,
            |piece, from| {
                let part = piece.part(from..from.saturating_add(wanted));
                let part_len = part.len();
                if pieces.push(part).is_err() {
                    return false;
                }
                wanted -= part_len;
                wanted > 0
            },
        );
        count - wanted as u32
    }

    /// Returns all buffers.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        while let Some(piece) = self.pieces.pop(blocks) {
            blocks.give_back_piece(piece);
        }
        self.len = 0;
        self.acknowledged = 0;
        self.filled = None;
        self.flight.clear(blocks);
        self.recovery = Recovery::default();
        self.epoch.end();
        self.slow_start = SlowStart::default();
    }
}

/// The number of bytes that an empty queue accepts in any case.
pub(super) fn room_when_empty(limit: u32, blocks: &BlockPool) -> usize {
    (limit as usize).min(blocks.free_for_sending() * BLOCK_BYTES)
}

/// Copies as many of `bytes` as fit into `room`. Returns the number of bytes copied.
fn copy(bytes: &[u8], room: &mut [u8]) -> usize {
    let count = bytes.len().min(room.len());
    let (Some(target), Some(source)) = (room.get_mut(..count), bytes.get(..count)) else {
        unreachable!("the smaller of two lengths fits both")
    };
    target.copy_from_slice(source);
    count
}
