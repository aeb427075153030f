//! A first-in, first-out queue of pieces. A short queue is stored in place; a long queue continues
//! in nodes borrowed from the pool.
//!
//! Invariants:
//! - Pieces stored in place are older than pieces in nodes: a piece is stored in place only while
//!   no node is borrowed.
//! - No empty node stays borrowed, and no queue borrows a node beyond its share.

use alloc::boxed::Box;

use heapless::Deque;
use machine::Piece;

use super::blocks::BlockPool;
use super::nodes::{NODE_PIECES, PieceNode, exchange};

/// The most pieces stored in place.
pub(super) const QUEUE_PIECES: usize = 64;

/// The most nodes of one queue. They hold 4 MiB in pieces of half a block, even if the queue begins
/// and ends within a node.
const NODES_MAX: usize = 17;

/// The queue.
#[derive(Default)]
pub(super) struct PieceQueue {
    own: Deque<Piece, QUEUE_PIECES>,
    nodes: Deque<Box<PieceNode>, NODES_MAX>,
    /// Bytes in nodes.
    node_bytes: u32,
}

impl PieceQueue {
    /// The number of pieces that are certain to fit.
    pub(super) fn room(&self, blocks: &BlockPool) -> usize {
        let own = if self.nodes.is_empty() { QUEUE_PIECES - self.own.len() } else { 0 };
        let in_last = self.nodes.back().map_or(0, |node| node.room());
        let nodes =
            (NODES_MAX - self.nodes.len()).min(blocks.share_of_piece_nodes(self.nodes.len()));
        own + in_last + nodes * NODE_PIECES
    }

    /// Adds a piece at the end.
    ///
    /// Errors: the piece, when there is no room for it.
    #[inline]
    pub(super) fn push(&mut self, piece: Piece, blocks: &mut BlockPool) -> Result<(), Piece> {
        if !self.nodes.is_empty() {
            return self.push_to_nodes(piece, blocks);
        }
        self.own.push_back(piece).or_else(|piece| self.push_to_nodes(piece, blocks))
    }

    fn push_to_nodes(&mut self, piece: Piece, blocks: &mut BlockPool) -> Result<(), Piece> {
        if self.nodes.back().is_none_or(|node| node.room() == 0) {
            if self.nodes.is_full() {
                return Err(piece);
            }
            let Some(node) = blocks.lend_piece_node(self.nodes.len()) else { return Err(piece) };
            assert!(self.nodes.push_back(node).is_ok(), "there was a place for the node");
        }
        let bytes = piece.len() as u32;
        let Some(node) = self.nodes.back_mut() else { unreachable!("a node has just been found") };
        node.push(piece)?;
        self.node_bytes += bytes;
        Ok(())
    }

    /// The first piece.
    #[inline]
    pub(super) fn first(&self) -> Option<&Piece> {
        self.own.front().or_else(|| self.nodes.front()?.pieces().front())
    }

    /// Removes the first piece.
    #[inline]
    pub(super) fn pop(&mut self, blocks: &mut BlockPool) -> Option<Piece> {
        if let Some(piece) = self.own.pop_front() {
            return Some(piece);
        }
        let node = self.nodes.front_mut()?;
        let Some(piece) = node.pop() else { unreachable!("a node that is kept without a piece") };
        self.node_bytes -= piece.len() as u32;
        if node.pieces().is_empty()
            && let Some(node) = self.nodes.pop_front()
        {
            blocks.take_back_piece_node(node);
        }
        Some(piece)
    }

    /// Replaces the last piece with one that is at least as long.
    pub(super) fn change_last(&mut self, change: impl FnOnce(Piece) -> Piece) {
        if let Some(node) = self.nodes.back_mut() {
            self.node_bytes += node.change_last(change);
        } else {
            let Some(last) = self.own.back_mut() else {
                unreachable!("a queue without a last piece")
            };
            exchange(last, change);
        }
    }

    /// Passes the pieces one after the other to `take`, starting with the piece that contains the
    /// byte at `offset`, until `take` returns false. `take` also gets the offset in the piece to
    /// start from. `bytes`: the length of all pieces.
    #[inline]
    pub(super) fn visit(
        &self,
        offset: u32,
        bytes: u32,
        mut take: impl FnMut(&Piece, usize) -> bool,
    ) {
        let mut skip = offset as usize;
        let in_row = (bytes - self.node_bytes) as usize;
        if skip < in_row {
            if !visit_each(&self.own, &mut skip, &mut take) {
                return;
            }
        } else {
            skip -= in_row;
        }
        for node in &self.nodes {
            if skip >= node.bytes() as usize {
                skip -= node.bytes() as usize;
            } else if !visit_each(node.pieces(), &mut skip, &mut take) {
                return;
            }
        }
    }
}

/// Skips `skip` bytes and passes the pieces after them to `take`. False: `take` has returned false.
#[inline]
fn visit_each<const COUNT: usize>(
    pieces: &Deque<Piece, COUNT>,
    skip: &mut usize,
    take: &mut impl FnMut(&Piece, usize) -> bool,
) -> bool {
    let (first, last) = pieces.as_slices();
    for part in [first, last] {
        for piece in part {
            let len = piece.len();
            if *skip >= len {
                *skip -= len;
            } else if !take(piece, core::mem::take(skip)) {
                return false;
            }
        }
    }
    true
}
