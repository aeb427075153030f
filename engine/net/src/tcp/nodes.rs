//! What long queues are lent: nodes of pieces and of blocks, and lists of ranges and of runs.
//!
//! Invariant: a node of pieces counts its bytes, so that a search passes over whole nodes.

use alloc::boxed::Box;
use alloc::sync::Arc;

use heapless::{Deque, Vec};
use machine::{Block, Piece};

use super::options::SackBlock;
use super::run::Run;

/// Blocks in one node.
pub(super) const NODE_BLOCKS: usize = 64;

/// A part of a ring.
pub(super) type BlockNode = [Option<Arc<Block>>; NODE_BLOCKS];

/// A node with nothing in it.
pub(super) fn new_block_node() -> Box<BlockNode> {
    Box::new([const { None }; NODE_BLOCKS])
}

/// Ranges that a queue with a long list may have. A segment that would open another gap is dropped, and sent again.
const MANY_RANGES: usize = 1024;

/// Runs that a row with a long list may have.
pub(super) const MANY_RUNS: usize = 2048;

/// A long list of ranges.
pub(super) type LongList = Vec<SackBlock, MANY_RANGES>;

/// A long list of runs.
pub(super) type LongRuns = Vec<Run, MANY_RUNS>;

/// Pieces that lie in one node.
pub(super) const NODE_PIECES: usize = 64;

/// A part of a long row.
#[derive(Default)]
pub(super) struct PieceNode {
    pieces: Deque<Piece, NODE_PIECES>,
    bytes: u32,
}

impl PieceNode {
    /// How many pieces more find a place.
    #[inline]
    pub(super) fn room(&self) -> usize {
        NODE_PIECES - self.pieces.len()
    }

    /// Bytes in all of its pieces.
    #[inline]
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    #[inline]
    pub(super) fn pieces(&self) -> &Deque<Piece, NODE_PIECES> {
        &self.pieces
    }

    /// Adds a piece at the end.
    ///
    /// Errors: the piece when there is no place for it.
    #[inline]
    pub(super) fn push(&mut self, piece: Piece) -> Result<(), Piece> {
        let bytes = piece.len() as u32;
        self.pieces.push_back(piece)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes the first piece away.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.len() as u32;
        Some(piece)
    }

    /// Replaces the last piece by another, not shorter. Returns how many bytes longer it is.
    #[inline]
    pub(super) fn change_last(&mut self, change: impl FnOnce(Piece) -> Piece) -> u32 {
        let grown = self.pieces.back_mut().map_or(0, |last| exchange(last, change));
        self.bytes += grown;
        grown
    }
}

/// Puts another piece, not shorter, in the place of `piece`. Returns how many bytes longer it is.
#[inline]
pub(super) fn exchange(piece: &mut Piece, change: impl FnOnce(Piece) -> Piece) -> u32 {
    let before = piece.len();
    *piece = change(core::mem::replace(piece, Piece::from_static(&[])));
    (piece.len() - before) as u32
}
