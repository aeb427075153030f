//! The output side of a connection.

use machine::Piece;

/// The output of a session.
pub trait Outlet {
    /// How many bytes of responses can be queued now.
    fn send_room(&self) -> usize;

    /// Queues a copy of `bytes`. A response begins only if there is space for
    /// [`crate::RESPONSE_HEAD_BYTES_MAX`] bytes.
    fn send(&mut self, bytes: &[u8]);

    /// Queues bytes that stay where they are, as many as there is space for. Returns their number.
    fn send_static(&mut self, bytes: &'static [u8]) -> usize;

    /// Does both at once: queues a copy of `head`, and after it as many of `bytes` as there is
    /// space for. Returns the number of the latter. An implementation that encrypts can encrypt
    /// both together.
    fn send_before(&mut self, head: &[u8], bytes: &'static [u8]) -> usize {
        self.send(head);
        self.send_static(bytes)
    }

    /// Whether bytes are sent without encryption, so that connections can share them.
    fn shares(&self) -> bool {
        false
    }

    /// Queues bytes that connections share: all of them or none. Returns whether there was space.
    /// Only for a connection that can share bytes.
    fn send_shared(&mut self, _piece: Piece) -> bool {
        false
    }
}
