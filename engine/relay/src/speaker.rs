//! A protocol client on a connection that we have made, as a source and a sink of bytes.

use crate::outcome::Lost;

/// A protocol client on a connection.
pub trait Speaker {
    /// The bytes to send. The caller sends them from the beginning, and then calls
    /// [`Speaker::sent`].
    fn output(&self) -> &[u8];

    /// Removes `count` bytes from the beginning of the output, since they were sent.
    fn sent(&mut self, count: usize);

    /// Takes bytes of the peer.
    fn arrived(&mut self, bytes: &[u8]);

    /// Notes that TLS is in use from now on.
    fn secured(&mut self) {}

    /// Notes that nothing more arrives: the connection is over, was never made, or is given up.
    fn lost(&mut self, lost: Lost);
}
