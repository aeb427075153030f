//! Where the bytes of a connection go.

use machine::Piece;

/// Where a session's words go.
pub trait Outlet {
    /// How many bytes of responses can be queued now.
    fn send_room(&self) -> usize;

    /// Queues a copy of `bytes`. A response is begun only while there is [`crate::RESPONSE_HEAD_BYTES_MAX`] of room.
    fn send(&mut self, bytes: &[u8]);

    /// Queues bytes that stay where they are, as many as there is room for, and returns how many that were.
    fn send_static(&mut self, bytes: &'static [u8]) -> usize;

    /// Both at once: queues a copy of `head`, and behind it as many of `bytes` as there is room for, and returns how many of these that were. Whoever seals what is
    /// sent seals both together.
    fn send_before(&mut self, head: &[u8], bytes: &'static [u8]) -> usize {
        self.send(head);
        self.send_static(bytes)
    }

    /// Whether what is sent goes out as it is, so that connections can share it.
    fn shares(&self) -> bool {
        false
    }

    /// Queues bytes that connections share, all of them or none; whether there was room. Only where they can be shared.
    fn send_shared(&mut self, _piece: Piece) -> bool {
        false
    }
}
