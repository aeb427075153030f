//! The buffers that a connection borrows while it has data to send or to keep. These are blocks of
//! bytes, the queues that hold the blocks, and nodes that extend long queues on long paths.
//!
//! All buffers are allocated at construction, and none later. If a pool is empty, the request is
//! refused. Then the peer's retransmission, or the session's next attempt, is another request.
//!
//! `blocks` defines the number of buffers that one queue may have.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{BLOCK_BYTES, Block};
use sometimes::buggify;

use super::blocks::{BlockPool, RECEIVE_RESERVE, SHARES, bytes_of};
use super::nodes::NODE_BLOCKS;
use super::receive_queue::ReceiveQueue;
use super::send_queue::SendQueue;
use super::window::RECEIVE_WINDOW;

/// The sizes of the pools, which are allocated at construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolSizes {
    /// The number of blocks of [`machine::BLOCK_BYTES`] bytes, for both directions. It is more than
    /// [`RECEIVE_RESERVE`].
    pub blocks: usize,
    /// The number of connections that may have unsent or unacknowledged bytes at the same time.
    /// Each takes 2.9 KB.
    pub send_queues: usize,
    /// The number of connections that may keep received bytes at the same time. Each takes 1.4 KB.
    /// While all are in use, no other connection can receive anything. The reason is that a session
    /// may leave received bytes unread, and these must be kept.
    pub receive_queues: usize,
}

/// The pools of one core. The queues are boxed because they are lent: only a pointer moves.
#[expect(clippy::vec_box, reason = "a queue of 2 KB must not be copied when it is lent")]
pub struct Pools {
    /// The blocks.
    pub(super) blocks: BlockPool,
    blocks_made: usize,
    send_queues_made: usize,
    receive_queues_made: usize,
    send_queues: Vec<Box<SendQueue>>,
    receive_queues: Vec<Box<ReceiveQueue>>,
}

impl Pools {
    /// Allocates all pools.
    pub fn new(sizes: PoolSizes) -> Pools {
        assert!(
            sizes.blocks > RECEIVE_RESERVE,
            "the pool must hold more blocks than receiving reserves"
        );
        Pools {
            blocks: BlockPool::with_capacity(sizes.blocks),
            blocks_made: sizes.blocks,
            send_queues_made: sizes.send_queues,
            receive_queues_made: sizes.receive_queues,
            send_queues: (0..sizes.send_queues).map(|_| Box::default()).collect(),
            receive_queues: (0..sizes.receive_queues).map(|_| Box::default()).collect(),
        }
    }

    /// The number of free blocks.
    pub fn free_blocks(&self) -> usize {
        self.blocks.free()
    }

    /// The number of blocks that nothing holds: free blocks, and blocks that become free when the
    /// next block is returned.
    pub fn unheld_blocks(&self) -> usize {
        self.blocks.unheld()
    }

    /// Lends a block to fill and pass to [`super::Tcb::send_piece`], which saves a copy. `None`: no
    /// block is free for sending, so sending must wait.
    pub fn lend_block(&mut self) -> Option<Arc<Block>> {
        self.blocks.take_for_sending()
    }

    /// Takes back a block of [`Pools::lend_block`] that was not sent after all.
    pub fn give_back_block(&mut self, block: Arc<Block>) {
        self.blocks.give_back(block);
    }

    /// The number of free send queues.
    pub fn free_send_queues(&self) -> usize {
        self.send_queues.len()
    }

    /// The number of free receive queues.
    pub fn free_receive_queues(&self) -> usize {
        self.receive_queues.len()
    }

    /// Whether at most 1/`parts` of some pool is left. Then the caller should take back buffers
    /// from idle connections.
    pub fn are_down_to_one_in(&self, parts: usize) -> bool {
        self.blocks_are_down_to_one_in(parts)
            || self.send_queues_are_down_to_one_in(parts)
            || self.receive_queues_are_down_to_one_in(parts)
    }

    /// Whether the blocks left for sending are at most 1/`parts` of all blocks.
    pub(super) fn blocks_are_down_to_one_in(&self, parts: usize) -> bool {
        self.blocks.free_for_sending() * parts <= self.blocks_made
    }

    /// Whether at most 1/`parts` of the send queues is left.
    pub(super) fn send_queues_are_down_to_one_in(&self, parts: usize) -> bool {
        self.send_queues.len() * parts <= self.send_queues_made
    }

    /// Whether at most 1/`parts` of the receive queues is left.
    pub(super) fn receive_queues_are_down_to_one_in(&self, parts: usize) -> bool {
        self.receive_queues.len() * parts <= self.receive_queues_made
    }

    /// Lends a receive queue for bytes beyond a gap. Such bytes may never become readable, so they
    /// get at most half of each pool. So peers that never fill their gaps cannot starve the others.
    pub(super) fn lend_receive_queue_for_gaps(&mut self) -> Option<Box<ReceiveQueue>> {
        let is_plenty =
            self.free_receive_queues() * 2 > self.receive_queues_made && self.may_fill_gaps();
        if is_plenty { self.lend_receive_queue() } else { None }
    }

    /// Whether blocks may be taken for bytes beyond a gap.
    pub(super) fn may_fill_gaps(&self) -> bool {
        self.free_blocks() * 2 > self.blocks_made
            && self.blocks.has_half_of_block_nodes()
            && !buggify!(NoRoomForGap)
    }

    /// Whether `count` bytes could be buffered if the session did not consume them. Sending always
    /// leaves room for one frame.
    #[inline]
    pub(super) fn can_keep(&self, count: usize) -> bool {
        self.free_receive_queues() > 0 && count.div_ceil(BLOCK_BYTES) <= self.free_blocks()
    }

    /// The number of bytes that one connection may keep now: its share of the free blocks. `limit`:
    /// the most bytes that the connection may have. If `limit` is beyond the first stage (see
    /// `blocks`), nodes are needed too.
    #[inline]
    pub(super) fn share_for_receiving(&self, limit: u32) -> u32 {
        let share = bytes_of(self.free_blocks() / SHARES);
        if limit <= RECEIVE_WINDOW {
            return share;
        }
        share.min(
            bytes_of(self.blocks.free_block_nodes() * NODE_BLOCKS / SHARES).max(RECEIVE_WINDOW),
        )
    }

    pub(super) fn lend_send_queue(&mut self) -> Option<Box<SendQueue>> {
        self.send_queues.pop()
    }

    pub(super) fn take_back_send_queue(&mut self, mut queue: Box<SendQueue>) {
        queue.clear(&mut self.blocks);
        self.send_queues.push(queue);
    }

    pub(super) fn lend_receive_queue(&mut self) -> Option<Box<ReceiveQueue>> {
        self.receive_queues.pop()
    }

    pub(super) fn take_back_receive_queue(&mut self, mut queue: Box<ReceiveQueue>) {
        queue.clear(&mut self.blocks);
        self.receive_queues.push(queue);
    }
}
