//! The parts that long queues borrow: nodes of pieces and of blocks, and lists of ranges and of
//! runs.
//!
//! Invariant: a node of pieces counts its bytes, so that a search skips whole nodes.

use alloc::boxed::Box;
use alloc::sync::Arc;

use heapless::{Deque, Vec};
use machine::{Block, Piece};

use super::options::SackBlock;
use super::run::Run;

/// The number of blocks in one node.
pub(super) const NODE_BLOCKS: usize = 64;

/// A part of a ring of blocks.
pub(super) type BlockNode = [Option<Arc<Block>>; NODE_BLOCKS];

/// An empty node.
pub(super) fn new_block_node() -> Box<BlockNode> {
    Box::new([const { None }; NODE_BLOCKS])
}

/// The most ranges in a long list. A segment that would open another gap is dropped, and the peer
/// sends it again.
const MANY_RANGES: usize = 1024;

/// The most runs in a long list.
pub(super) const MANY_RUNS: usize = 2048;

/// A long list of ranges.
pub(super) type LongList = Vec<SackBlock, MANY_RANGES>;

/// A long list of runs.
pub(super) type LongRuns = Vec<Run, MANY_RUNS>;

/// The most pieces in one node.
pub(super) const NODE_PIECES: usize = 64;

/// A part of a long piece queue.
#[derive(Default)]
pub(super) struct PieceNode {
    pieces: Deque<Piece, NODE_PIECES>,
    bytes: u32,
}

impl PieceNode {
    /// The number of further pieces that fit.
    #[inline]
    pub(super) fn room(&self) -> usize {
        NODE_PIECES - self.pieces.len()
    }

    /// The number of bytes in all pieces of the node.
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
    /// Errors: the piece, when there is no room for it.
    #[inline]
    pub(super) fn push(&mut self, piece: Piece) -> Result<(), Piece> {
        let bytes = piece.len() as u32;
        self.pieces.push_back(piece)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Removes the first piece.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.len() as u32;
        Some(piece)
    }

    /// Replaces the last piece with one that is at least as long. Returns by how many bytes the
    /// piece has grown.
    #[inline]
    pub(super) fn change_last(&mut self, change: impl FnOnce(Piece) -> Piece) -> u32 {
        let grown = self.pieces.back_mut().map_or(0, |last| exchange(last, change));
        self.bytes += grown;
        grown
    }
}

/// Replaces `piece` with one that is at least as long. Returns by how many bytes the piece has
/// grown.
#[inline]
pub(super) fn exchange(piece: &mut Piece, change: impl FnOnce(Piece) -> Piece) -> u32 {
    let before = piece.len();
    *piece = change(core::mem::replace(piece, Piece::from_static(&[])));
    (piece.len() - before) as u32
}
