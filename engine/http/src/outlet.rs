//! The output side of a connection.

use machine::Piece;

/// The output of a session.
pub trait Outlet {
    /// The number of bytes that can be queued now.
    fn send_room(&self) -> usize;

    /// Queues a copy of `bytes`. A response begins only if there is space for
    /// [`crate::RESPONSE_HEAD_BYTES_MAX`] bytes.
    fn send(&mut self, bytes: &[u8]);

    /// Queues as many of the static `bytes` as there is space for, without a copy. Returns how many
    /// were queued.
    fn send_static(&mut self, bytes: &'static [u8]) -> usize;

    /// Queues a copy of `head`, and then as many of `bytes` as there is space for. Returns how many
    /// of `bytes` were queued. An implementation that encrypts can encrypt both together.
    fn send_before(&mut self, head: &[u8], bytes: &'static [u8]) -> usize {
        self.send(head);
        self.send_static(bytes)
    }

    /// Whether bytes are sent without encryption, so that connections can share them.
    fn shares(&self) -> bool {
        false
    }

    /// Queues a piece that connections share: all of it or nothing. Returns whether it was queued.
    /// Call it only if [`Outlet::shares`] is true.
    fn send_shared(&mut self, _piece: Piece) -> bool {
        false
    }
}
