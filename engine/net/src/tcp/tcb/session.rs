//! The session's operations on a connection: it queues bytes to send, and consumes or leaves
//! received bytes.
//!
//! Bytes to send are copied once, into blocks that are shared with the card. The blocks are kept
//! until the bytes are acknowledged. Pieces are not copied at all. Received bytes are delivered in
//! place, and only the bytes that the session leaves are copied.

use machine::{Instant, Piece};
use sometimes::buggify;

use super::Tcb;
use crate::tcp::actions::Actions;
use crate::tcp::pools::Pools;
use crate::tcp::send_queue::{SEND_BYTES, SEND_BYTES_MAX, room_when_empty};
use crate::tcp::state::{Owed, State};
use crate::tcp::window::RECEIVE_WINDOW_SCARCE;

impl Tcb {
    /// Queues a copy of `bytes`, and returns the number of bytes queued. If some bytes did not fit,
    /// `Actions::send_room` follows. Before the connection is established, and after it is closed
    /// for sending, no byte fits and no action follows.
    pub fn send(&mut self, now: Instant, bytes: &[u8], pools: &mut Pools) -> usize {
        if !self.may_queue() || bytes.is_empty() {
            return 0;
        }
        if self.send_queue.is_none() {
            self.send_queue = pools.lend_send_queue();
        }
        let limit = self.send_limit(pools);
        let taken = self
            .send_queue
            .as_mut()
            .map_or(0, |queue| queue.append(bytes, limit, &mut pools.blocks));
        if taken < bytes.len() {
            self.settle_send_queue(pools);
            self.want_room(now);
        }
        taken
    }

    /// Lets `write` place bytes directly in the send queue. `write` gets a buffer of at least
    /// `least` bytes and at most a block, and returns the number of bytes written.
    ///
    /// Returns that number, or 0 if there is no room; then `Actions::send_room` follows as for
    /// `send`. `least`: at most [`machine::BLOCK_BYTES`].
    pub fn send_with(
        &mut self,
        now: Instant,
        least: usize,
        pools: &mut Pools,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> usize {
        if !self.may_queue() {
            return 0;
        }
        if self.send_queue.is_none() {
            self.send_queue = pools.lend_send_queue();
        }
        let limit = self.send_limit(pools);
        let queue = self.send_queue.as_mut();
        let written =
            queue.map_or(0, |queue| queue.append_with(least, limit, &mut pools.blocks, write));
        if written == 0 {
            self.settle_send_queue(pools);
            self.want_room(now);
        }
        written
    }

    /// Queues a piece without copying it: static bytes, or a block from [`Pools::lend_block`].
    ///
    /// Errors: the piece. Either there is no room for it, and `Actions::send_room` follows; or the
    /// connection is not established yet, or closed for sending.
    pub fn send_piece(
        &mut self,
        now: Instant,
        piece: Piece,
        pools: &mut Pools,
    ) -> Result<(), Piece> {
        if !self.may_queue() {
            return Err(piece);
        }
        if piece.is_empty() {
            pools.blocks.give_back_piece(piece);
            return Ok(());
        }
        if self.send_queue.is_none() {
            self.send_queue = pools.lend_send_queue();
        }
        let limit = self.send_limit(pools);
        let result = match self.send_queue.as_mut() {
            Some(queue) => queue.push(piece, limit, &mut pools.blocks),
            None => Err(piece),
        };
        self.settle_send_queue(pools);
        if result.is_err() {
            self.want_room(now);
        }
        result
    }

    /// The number of bytes that `send` is certain to accept now.
    pub fn send_room(&self, pools: &Pools) -> usize {
        match &self.send_queue {
            _ if !self.may_queue() => 0,
            Some(queue) => queue.room(self.send_limit(pools), &pools.blocks),
            None if pools.free_send_queues() == 0 || buggify!(NoSendRoom) => 0,
            None => room_when_empty(self.send_limit(pools), &pools.blocks),
        }
    }

    /// The number of queued bytes that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.queued() as usize
    }

    /// Bytes acknowledged by the peer plus bytes consumed by the session, modulo 2^32. While this
    /// number stays the same, the connection makes no progress.
    pub fn bytes_moved(&self) -> u32 {
        self.snd_una.0.wrapping_add(self.receive.nxt.0).wrapping_sub(self.kept())
    }

    /// Whether the connection borrows from a pool in which at most 1/`parts` of the buffers is
    /// free. A connection with a queue borrows blocks too.
    pub fn borrows_scarce(&self, parts: usize, pools: &Pools) -> bool {
        let (sends, receives) = (self.send_queue.is_some(), self.receive_queue.is_some());
        (sends || receives) && pools.blocks_are_down_to_one_in(parts)
            || sends && pools.send_queues_are_down_to_one_in(parts)
            || receives && pools.receive_queues_are_down_to_one_in(parts)
    }

    /// The most bytes that may be queued: twice as many as may be in flight, because as many again
    /// must be ready when these are acknowledged. Above [`SEND_BYTES`], the limit is a share of the
    /// free blocks, so that later connections find some.
    fn send_limit(&self, pools: &Pools) -> u32 {
        let wanted = self.congestion.window().min(self.snd_wnd).saturating_mul(2);
        if wanted <= SEND_BYTES {
            return SEND_BYTES;
        }
        wanted.min(pools.blocks.share_for_sending()).clamp(SEND_BYTES, SEND_BYTES_MAX)
    }

    fn may_queue(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
    }

    /// Requests `Actions::send_room` for the time when there is room to send. A send that queued
    /// only a part of its bytes has requested it already.
    pub fn want_room(&mut self, now: Instant) {
        self.owe(Owed::ROOM);
        self.look_for_room_later(now);
    }

    /// Sets a timer to check for room, if nothing is queued. With queued bytes, an acknowledgment
    /// makes room. Without them, room depends on other connections, and no event reports it.
    fn look_for_room_later(&mut self, now: Instant) {
        if self.send_queue.is_none() {
            self.arm_idle(now);
        }
    }

    /// Reports room to the session, if there is enough and the session waits for it.
    pub(super) fn offer_room(&mut self, now: Instant, pools: &mut Pools, actions: &mut Actions) {
        pools.blocks.collect_retired();
        if self.send_room(pools) >= machine::BLOCK_BYTES {
            self.forgive(Owed::ROOM);
            actions.send_room = true;
        } else {
            self.look_for_room_later(now);
        }
    }

    /// Buffers the end of the last `Actions::data`, from the first byte that the session did not
    /// consume. It must be called before anything else happens to this connection. `waiting`
    /// returns the bytes later.
    pub fn keep(&mut self, bytes: &[u8], pools: &mut Pools) {
        if bytes.is_empty() || self.receive_queue.is_some() || self.state == State::Closed {
            return;
        }
        let fin = u32::from(!self.may_receive());
        let at = self.receive.nxt - fin - bytes.len() as u32;
        let kept = match pools.lend_receive_queue() {
            Some(mut queue) => {
                queue.begin(at);
                let kept = queue.append(bytes, &mut pools.blocks);
                self.receive_queue = Some(queue);
                kept
            }
            None => 0,
        };
        assert!(kept == bytes.len(), "a segment is accepted only if its bytes can be kept");
    }

    /// The first contiguous bytes that wait to be read; empty if none wait. More bytes may follow
    /// them.
    pub fn waiting(&self) -> &[u8] {
        self.receive_queue.as_ref().map_or(&[], |queue| queue.front())
    }

    /// Copies the first waiting bytes into `into`, and returns the number of bytes copied. They
    /// stay in the buffer.
    pub fn copy_waiting(&self, into: &mut [u8]) -> usize {
        self.receive_queue.as_ref().map_or(0, |queue| queue.copy_front(into))
    }

    /// The number of bytes that wait to be read.
    pub fn waiting_bytes(&self) -> usize {
        self.receive_queue.as_ref().map_or(0, |queue| queue.readable() as usize)
    }

    /// Overwrites the first waiting bytes with `bytes`, for a session that decodes data in place.
    /// At least as many bytes must be waiting.
    pub fn put_back(&mut self, bytes: &[u8], pools: &mut Pools) {
        if let Some(queue) = self.receive_queue.as_mut() {
            queue.overwrite_front(bytes, &mut pools.blocks);
        }
    }

    /// Drops the first `count` waiting bytes, which the session has consumed. The receive window
    /// opens.
    pub fn consumed(&mut self, count: usize, pools: &mut Pools) {
        if let Some(queue) = self.receive_queue.as_mut() {
            queue.consume(u32::try_from(count).unwrap_or(u32::MAX), &mut pools.blocks);
        }
        self.settle_receive_queue(pools);
        let limit = self.window_limit(pools);
        if self.may_receive()
            && self.receive.should_announce(self.kept(), limit, u32::from(self.mss))
        {
            self.owe(Owed::ACK);
        }
    }

    /// The most bytes that this connection may have buffered or in flight. Fewer are allowed when
    /// blocks are scarce.
    pub(super) fn window_limit(&self, pools: &Pools) -> u32 {
        let limit = self.receive.limit();
        let sayable = u32::from(u16::MAX) << self.shift();
        pools.share_for_receiving(limit).clamp(RECEIVE_WINDOW_SCARCE, limit).min(sayable)
    }

    /// Keeps the data of a SYN that does not acknowledge ours, until the connection is established.
    /// Until then RCV.NXT stays before the data. If buffers are scarce, the data is dropped. In
    /// both cases the peer may send it again.
    pub(super) fn keep_early_bytes(&mut self, bytes: &[u8], pools: &mut Pools) {
        let bytes = bytes.get(..self.receive.open() as usize).unwrap_or(bytes);
        if bytes.is_empty() {
            return;
        }
        self.receive_queue = pools.lend_receive_queue_for_gaps();
        if let Some(queue) = self.receive_queue.as_mut() {
            // To the queue, the SYN is a gap of one byte before the data.
            queue.begin(self.receive.nxt - 1);
            queue.insert(self.receive.nxt, bytes, &mut pools.blocks);
        }
        self.settle_receive_queue(pools);
    }

    /// Accepts the bytes that came with the SYN, now that the connection is established.
    pub(super) fn take_early_bytes(&mut self, pools: &mut Pools, actions: &mut Actions) {
        if let Some(queue) = self.receive_queue.as_mut() {
            let filled = queue.append(&[0], &mut pools.blocks);
            assert!(filled == 1, "the gap is in the block of the bytes behind it");
            queue.consume(1, &mut pools.blocks);
            self.receive.nxt = queue.tail();
            actions.buffered = true;
            self.owe(Owed::ACK);
        }
    }
}
