//! The blocks of a receive window, each found by how many blocks lie before it: a ring of places, cut into nodes. Two of
//! them belong to the ring; a wide window borrows more from the pool.
//!
//! Invariants:
//! - A node is attached once a block in it is asked for, and detached when the ring's beginning has left it.
//! - At most [`BLOCKS_MAX`] blocks from the first on are in use. That is at least a node less than there are places, so the end
//!   never reaches into the node in which the beginning lies.

use alloc::boxed::Box;
use alloc::sync::Arc;

use heapless::Vec;
use machine::{BLOCK_BYTES, Block};

use super::blocks::BlockPool;
use super::nodes::{BlockNode, NODE_BLOCKS, new_block_node};
use super::window::RECEIVE_WINDOW_MAX;

/// One block more than the window fills, because it seldom starts at a block's start.
const BLOCKS_MAX: usize = (RECEIVE_WINDOW_MAX as usize).div_ceil(BLOCK_BYTES) + 1;

const NODES: usize = BLOCKS_MAX.div_ceil(NODE_BLOCKS) + 1;
const PLACES: usize = NODES * NODE_BLOCKS;
const _: () = assert!(PLACES >= BLOCKS_MAX + NODE_BLOCKS, "the end never meets the beginning");

/// Nodes of the ring's own: with them what lies in as many bytes as one holds always finds its places.
const OWN_NODES: usize = 2;

/// The ring.
pub(super) struct Ring {
    nodes: [Option<Box<BlockNode>>; NODES],
    own: Vec<Box<BlockNode>, OWN_NODES>,
    /// The place of the first block.
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
    /// The block before which `count` lie, if there is one.
    #[inline]
    pub(super) fn block(&self, count: usize) -> Option<&Block> {
        let (node, place) = self.place(count);
        self.nodes.get(node)?.as_ref()?.get(place)?.as_deref()
    }

    /// The same; it is there now, unless the pool has run out.
    pub(super) fn block_mut(&mut self, count: usize, blocks: &mut BlockPool) -> Option<&mut Block> {
        assert!(count < BLOCKS_MAX, "blocks lie within the window");
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

    /// Gives back the first block: the next is the first now.
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

    /// Gives back everything.
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

    /// Takes an empty node away.
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
