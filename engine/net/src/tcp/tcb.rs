//! The connection.

use machine::{Instant, Piece};

use super::actions::Actions;
use super::handshake::Handshake;
use super::pools::Pools;
use super::segment::{Full, SegmentRepr, SegmentToSend};
use super::sequence::SequenceNumber;
use super::time_wait::TimeWait;

/// How a connection ended, once nothing is left to be sent for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Nothing is to be remembered.
    Gone,
    /// To be remembered in the [`super::TimeWaitTable`].
    TimeWait(TimeWait),
}

/// What one output may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendLimits {
    /// Payload bytes in one output when the card cuts it into segments; `None` when each output is one segment.
    pub segmentation_bytes: Option<u32>,
}

/// One connection.
pub struct Tcb {}

impl Tcb {
    /// A connection whose handshake a [`super::HalfOpenTable`] has completed. Give it the completing segment next.
    pub fn accepted(_now: Instant, _handshake: &Handshake) -> Tcb {
        Tcb {}
    }

    /// A connection that we open. The SYN goes out by the next `output`. `local_mss`: the largest payload that we take in
    /// one segment, in bytes. `iss`: from [`super::InitialSequences::next`].
    pub fn connect(_now: Instant, _iss: SequenceNumber, _local_mss: u16) -> Tcb {
        Tcb {}
    }

    /// A segment of this connection has arrived, its checksum found good.
    pub fn segment_arrived(&mut self, _now: Instant, _segment: &SegmentRepr<'_>, _pools: &mut Pools) -> Actions {
        Actions::default()
    }

    /// When [`Tcb::deadline_expired`] is to be called; it may change with every call of anything else.
    pub fn deadline(&self) -> Option<Instant> {
        None
    }

    /// A deadline may have expired: does what is due, and nothing if none is.
    pub fn deadline_expired(&mut self, _now: Instant, _pools: &mut Pools) -> Actions {
        Actions::default()
    }

    /// Whether `output` has something to send now.
    pub fn wants_output(&self) -> bool {
        false
    }

    /// Sends all that may be sent now: data, acknowledgments, FIN, probes, resets.
    ///
    /// Errors: `Full` as `emit` says; what was not sent yet is sent by the next call, nothing is sent twice.
    pub fn output(
        &mut self,
        _now: Instant,
        _limits: SendLimits,
        _pools: &Pools,
        _emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), Full>,
    ) -> Result<(), Full> {
        Ok(())
    }

    /// Queues a copy of `bytes` and returns how many fitted. When not all did, `Actions::send_room` follows.
    pub fn send(&mut self, _now: Instant, bytes: &[u8], _pools: &mut Pools) -> usize {
        bytes.len()
    }

    /// Queues a piece without copying it: static bytes, or a block from [`Pools::lend_block`].
    ///
    /// Errors: the piece when there is no room for it, or no more is to be sent; `Actions::send_room` follows.
    pub fn send_piece(&mut self, _now: Instant, _piece: Piece, _pools: &mut Pools) -> Result<(), Piece> {
        Ok(())
    }

    /// How many bytes `send` would take now.
    pub fn send_room(&self, _pools: &Pools) -> usize {
        0
    }

    /// Keeps what the session left of the `Actions::data` just delivered: exactly its last bytes. To be called before
    /// anything else happens to this connection. They come back through `waiting`.
    pub fn keep(&mut self, _bytes: &[u8], _pools: &mut Pools) {}

    /// The first bytes that wait to be read; empty when none do. There may be more behind them.
    pub fn waiting(&self) -> &[u8] {
        &[]
    }

    /// Drops the first `count` of the waiting bytes: the session has taken them. The window opens.
    pub fn consumed(&mut self, _count: usize, _pools: &mut Pools) {}

    /// Sends no more than what is queued, then a FIN. Receiving goes on until the peer closes too.
    pub fn close(&mut self, _now: Instant) {}

    /// Resets the connection. What is queued is dropped; the RST goes out by the next `output`. No `closed` action follows.
    pub fn abort(&mut self, _pools: &mut Pools) {}

    /// How the connection ended; `None` while it lives or has a last segment to send.
    pub fn ended(&self) -> Option<Ended> {
        None
    }

    /// Gives back all that the connection was lent. To be called before it is dropped.
    pub fn release(&mut self, _pools: &mut Pools) {}

    /// Asserts what always holds between events. For tests and simulators; costs a few dozen instructions.
    pub fn assert_invariants(&self) {}
}
