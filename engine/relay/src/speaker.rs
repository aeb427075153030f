//! A protocol client on a connection that we have made: bytes out and in, whatever they mean.

use crate::outcome::Lost;

/// A protocol client on a connection.
pub trait Speaker {
    /// The bytes to send. Take from the beginning, and say how many with [`Speaker::sent`].
    fn output(&self) -> &[u8];

    /// `count` bytes of the output were sent.
    fn sent(&mut self, count: usize);

    /// Bytes of the peer have arrived.
    fn arrived(&mut self, bytes: &[u8]);

    /// TLS is in use from now on.
    fn secured(&mut self) {}

    /// Nothing more arrives: the connection is over, was never made, or is given up.
    fn lost(&mut self, lost: Lost);
}
