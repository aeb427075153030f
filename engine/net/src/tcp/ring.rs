//! The blocks of a receive window, in a ring of slots that is divided into nodes. A block is found
//! by its distance from the first block. Two nodes belong to the ring; a wide window borrows more
//! from the pool.
//!
//! Invariants:
//! - A node is attached when a block in it is first requested, and detached when the start of the
//!   ring has left it.
//! - At most [`BLOCKS_MAX`] blocks are in use. The ring has slots for at least one node more, so
//!   the end never reaches the node of the start.

use alloc::boxed::Box;
use alloc::sync::Arc;

use heapless::Vec;
use machine::{BLOCK_BYTES, Block};

use super::blocks::BlockPool;
use super::nodes::{BlockNode, NODE_BLOCKS, new_block_node};
use super::window::RECEIVE_WINDOW_MAX;

/// One block more than the window fills, because it seldom starts at the start of a block.
const BLOCKS_MAX: usize = (RECEIVE_WINDOW_MAX as usize).div_ceil(BLOCK_BYTES) + 1;

const NODES: usize = BLOCKS_MAX.div_ceil(NODE_BLOCKS) + 1;
const PLACES: usize = NODES * NODE_BLOCKS;
const _: () = assert!(PLACES >= BLOCKS_MAX + NODE_BLOCKS, "the end never meets the beginning");

/// The number of the ring's own nodes. Together they always have room for as many bytes as one node
/// can hold.
const OWN_NODES: usize = 2;

/// The ring.
pub(super) struct Ring {
    nodes: [Option<Box<BlockNode>>; NODES],
    own: Vec<Box<BlockNode>, OWN_NODES>,
    /// The slot of the first block.
    first: usize,
}

impl Default for Ring {
    fn default() -> Ring {
        Ring {
            nodes: [const { None }; NODES],
            own: core::iter::repeat_with(new_block_node).take(OWN_NODES).collect(),
            first: 0,
        }
    }
}

impl Ring {
    /// The block at distance `count` from the first, if there is one.
    #[inline]
    pub(super) fn block(&self, count: usize) -> Option<&Block> {
        let (node, place) = self.place(count);
        self.nodes.get(node)?.as_ref()?.get(place)?.as_deref()
    }

    /// The block at distance `count` from the first. Allocates it if it is missing. `None`: the
    /// pool is empty.
    pub(super) fn block_mut(&mut self, count: usize, blocks: &mut BlockPool) -> Option<&mut Block> {
        assert!(count < BLOCKS_MAX, "blocks are within the window");
        let (node, place) = self.place(count);
        let Some(node) = self.nodes.get_mut(node) else {
            unreachable!("a node above the last one")
        };
        if node.is_none() {
            *node = self.own.pop().or_else(|| blocks.lend_block_node());
        }
        let block = node.as_mut()?.get_mut(place)?;
        if block.is_none() {
            *block = blocks.take();
        }
        let Some(own) = Arc::get_mut(block.as_mut()?) else {
            unreachable!("a block that two queues have")
        };
        Some(own)
    }

    /// Returns the first block to the pool; the next block is now the first.
    pub(super) fn pop(&mut self, blocks: &mut BlockPool) {
        let (node, place) = self.place(0);
        if let Some(block) =
            self.nodes.get_mut(node).and_then(|node| node.as_mut()?.get_mut(place)?.take())
        {
            blocks.give_back(block);
        }
        self.first = (self.first + 1) % PLACES;
        if place + 1 == NODE_BLOCKS {
            self.detach(node, blocks);
        }
    }

    /// Returns all blocks and nodes.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        for node in 0..NODES {
            for block in self
                .nodes
                .get_mut(node)
                .and_then(Option::as_mut)
                .into_iter()
                .flat_map(|node| node.iter_mut())
            {
                if let Some(block) = block.take() {
                    blocks.give_back(block);
                }
            }
            self.detach(node, blocks);
        }
        self.first = 0;
    }

    /// Removes an empty node.
    fn detach(&mut self, node: usize, blocks: &mut BlockPool) {
        if let Some(node) = self.nodes.get_mut(node).and_then(Option::take)
            && let Err(node) = self.own.push(node)
        {
            blocks.take_back_block_node(node);
        }
    }

    #[inline]
    fn place(&self, count: usize) -> (usize, usize) {
        let place = (self.first + count) % PLACES;
        (place / NODE_BLOCKS, place % NODE_BLOCKS)
    }
}
