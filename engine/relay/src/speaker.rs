//! Who speaks by a connection that we have made: bytes out and in, whatever they mean.

use crate::outcome::Lost;

/// Who speaks by a connection.
pub trait Speaker {
    /// What is to be sent. Take from its beginning, and say how much: [`Speaker::sent`].
    fn output(&self) -> &[u8];

    /// So many bytes of the output were sent.
    fn sent(&mut self, count: usize);

    /// The peer has said this.
    fn arrived(&mut self, bytes: &[u8]);

    /// TLS is spoken from now on.
    fn secured(&mut self) {}

    /// Nothing more comes: the connection is over, or was never made, or is given up.
    fn lost(&mut self, lost: Lost);
}
