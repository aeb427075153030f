//! The results of a client's response.

use alloc::borrow::Cow;

/// The result of a client's response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SaslStep {
    /// Send this challenge unchanged to the client, which responds to it. It has at most
    /// [`crate::CHALLENGE_BYTES_MAX`] bytes.
    Challenge(Cow<'static, [u8]>),
    /// The client has sent its last response, and the host has got its [`crate::Credentials`].
    Complete,
    /// The exchange is over: the client was accepted, and has acknowledged our signature.
    Acknowledged,
    /// The exchange is over: the client has cancelled.
    GivenUp,
    /// The exchange is over: the response is not base64, too long, or not in the form that the
    /// mechanism expects.
    Malformed,
    /// The exchange is over: the client wants to act as another user, or its proof belongs to
    /// another exchange.
    NotAllowed,
}
