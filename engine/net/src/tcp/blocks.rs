//! The blocks of bytes that queues borrow, and the nodes and lists that extend long queues.
//!
//! In its first stage, while it is short, a queue may borrow any free block. Later it grows only
//! while it holds less than a quarter of the number of free blocks. So a single growing queue ends
//! with a fifth of the blocks. Several growing queues end with smaller shares. Some blocks always
//! stay free.
//!
//! Invariants:
//! - A block in `free` is not shared. A block in `retired` may still be read by the card.
//! - Sending leaves [`RECEIVE_RESERVE`] blocks free. So the unconsumed part of one received frame
//!   can always be stored, even if the same session has just queued a reply. Therefore no received
//!   bytes are lost that we are about to acknowledge.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{BLOCK_BYTES, Block, Piece};

use super::nodes::{
    BlockNode, LongList, LongRuns, NODE_BLOCKS, NODE_PIECES, PieceNode, new_block_node,
};

/// Blocks reserved for received bytes. They suffice for the largest frame (64 KiB), even if it
/// begins and ends within a block.
pub const RECEIVE_RESERVE: usize = 64 * 1024 / BLOCK_BYTES + 2;

/// The most retired blocks that one search checks.
const RETIRED_LOOKED_AT_MAX: usize = 8;

/// A queue beyond its first stage may hold one block for each group of this many free blocks.
pub(super) const SHARES: usize = 4;

/// For each group of this many blocks, the pool has one long list of ranges and one of runs.
const BLOCKS_PER_LONG_LIST: usize = 128;

/// Blocks of bytes, each owned by the pool, by a queue, or by a queue and the card. Also the nodes
/// of the queues that hold the blocks.
#[expect(
    clippy::vec_box,
    reason = "the pool lends a pointer, not a node of 1.5 KB or a list of up to 24 KB"
)]
pub(super) struct BlockPool {
    free: Vec<Arc<Block>>,
    retired: VecDeque<Arc<Block>>,
    piece_nodes: Vec<Box<PieceNode>>,
    block_nodes: Vec<Box<BlockNode>>,
    block_nodes_made: usize,
    long_lists: Vec<Box<LongList>>,
    long_runs: Vec<Box<LongRuns>>,
}

impl BlockPool {
    pub(super) fn with_capacity(count: usize) -> BlockPool {
        // Twice as many nodes as the blocks would need if every node were full. A node is not full
        // where a queue begins, ends, or has gaps.
        let block_nodes_made = 2 * count.div_ceil(NODE_BLOCKS);
        BlockPool {
            free: (0..count).map(|_| Arc::new([0; BLOCK_BYTES])).collect(),
            retired: VecDeque::with_capacity(count),
            piece_nodes: (0..2 * count.div_ceil(NODE_PIECES)).map(|_| Box::default()).collect(),
            block_nodes: (0..block_nodes_made).map(|_| new_block_node()).collect(),
            block_nodes_made,
            long_lists: (0..count.div_ceil(BLOCKS_PER_LONG_LIST)).map(|_| Box::default()).collect(),
            long_runs: (0..count.div_ceil(BLOCKS_PER_LONG_LIST)).map(|_| Box::default()).collect(),
        }
    }

    /// The number of bytes that one connection may have queued now, beyond its first stage.
    pub(super) fn share_for_sending(&self) -> u32 {
        bytes_of(self.free_for_sending() / SHARES)
    }

    /// The number of further nodes that a piece queue with `lent` nodes may borrow.
    pub(super) fn share_of_piece_nodes(&self, lent: usize) -> usize {
        self.piece_nodes.len().saturating_sub(lent * SHARES).div_ceil(SHARES + 1)
    }

    /// Lends an empty node, unless the caller's `lent` nodes are its whole share.
    pub(super) fn lend_piece_node(&mut self, lent: usize) -> Option<Box<PieceNode>> {
        if self.share_of_piece_nodes(lent) > 0 { self.piece_nodes.pop() } else { None }
    }

    pub(super) fn take_back_piece_node(&mut self, node: Box<PieceNode>) {
        self.piece_nodes.push(node);
    }

    /// Lends an empty node.
    pub(super) fn lend_block_node(&mut self) -> Option<Box<BlockNode>> {
        self.block_nodes.pop()
    }

    /// Lends an empty list of ranges.
    pub(super) fn lend_long_list(&mut self) -> Option<Box<LongList>> {
        self.long_lists.pop()
    }

    pub(super) fn take_back_long_list(&mut self, mut list: Box<LongList>) {
        list.clear();
        self.long_lists.push(list);
    }

    /// Lends an empty list of runs.
    pub(super) fn lend_long_runs(&mut self) -> Option<Box<LongRuns>> {
        self.long_runs.pop()
    }

    pub(super) fn take_back_long_runs(&mut self, mut list: Box<LongRuns>) {
        list.clear();
        self.long_runs.push(list);
    }

    pub(super) fn take_back_block_node(&mut self, node: Box<BlockNode>) {
        self.block_nodes.push(node);
    }

    /// The number of free block nodes.
    #[inline]
    pub(super) fn free_block_nodes(&self) -> usize {
        self.block_nodes.len()
    }

    /// Whether more than half of the block nodes are free.
    pub(super) fn has_half_of_block_nodes(&self) -> bool {
        self.block_nodes.len() * 2 > self.block_nodes_made
    }

    /// The number of free blocks.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// The number of free blocks, plus the retired blocks that the card has released. Checks all
    /// retired blocks.
    pub(super) fn unheld(&self) -> usize {
        self.free.len() + self.retired.iter().filter(|block| Arc::strong_count(block) == 1).count()
    }

    /// The number of blocks that sending may take.
    pub(super) fn free_for_sending(&self) -> usize {
        self.free.len().saturating_sub(RECEIVE_RESERVE)
    }

    /// The number of free nodes of both kinds, and of free long lists of both kinds.
    #[cfg(test)]
    pub(super) fn free_nodes(&self) -> [usize; 4] {
        [
            self.piece_nodes.len(),
            self.block_nodes.len(),
            self.long_lists.len(),
            self.long_runs.len(),
        ]
    }

    /// Takes a free block, which is not shared.
    pub(super) fn take(&mut self) -> Option<Arc<Block>> {
        self.free.pop()
    }

    /// Takes a free block, unless all free blocks are reserved for receiving.
    pub(super) fn take_for_sending(&mut self) -> Option<Arc<Block>> {
        if self.free.len() <= RECEIVE_RESERVE {
            self.collect_retired();
        }
        if self.free.len() > RECEIVE_RESERVE { self.free.pop() } else { None }
    }

    /// Returns a block. The block is retired while the card still reads it.
    pub(super) fn give_back(&mut self, mut block: Arc<Block>) {
        self.collect_retired();
        if Arc::get_mut(&mut block).is_some() {
            self.free.push(block);
        } else {
            self.retired.push_back(block);
        }
    }

    /// Returns the block of a piece, if it has one.
    pub(super) fn give_back_piece(&mut self, piece: Piece) {
        if let Some(block) = piece.into_block() {
            self.give_back(block);
        }
    }

    /// Frees retired blocks that the card has released.
    pub(super) fn collect_retired(&mut self) {
        for _ in 0..RETIRED_LOOKED_AT_MAX {
            let Some(mut block) = self.retired.pop_front() else { return };
            if Arc::get_mut(&mut block).is_some() {
                self.free.push(block);
            } else {
                self.retired.push_back(block);
                return;
            }
        }
    }
}

/// The number of bytes in `blocks` blocks.
pub(super) fn bytes_of(blocks: usize) -> u32 {
    u32::try_from(blocks.saturating_mul(BLOCK_BYTES)).unwrap_or(u32::MAX)
}
