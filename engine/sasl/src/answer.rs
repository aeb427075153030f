//! What comes of a client's response.

use alloc::borrow::Cow;

/// What comes of a response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The client is to be told this, at most [`crate::CHALLENGE_BYTES_MAX`] bytes, as it is, and responds to it.
    Challenge(Cow<'static, [u8]>),
    /// The client has said all: its [`Credentials`] were told to the host.
    Complete,
    /// The exchange is over: the client, which was let in, has heard our signature.
    Acknowledged,
    /// The exchange is over: the client has given up.
    GivenUp,
    /// The exchange is over: the response is no base64, too long, or not what the mechanism asks for.
    Malformed,
    /// The exchange is over: the client wants to act for somebody else than itself, or what it proves is about another exchange.
    NotAllowed,
}
