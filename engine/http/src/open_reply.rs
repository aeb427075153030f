//! Open replies: a handler continues the body after the head is sent.

use machine::Micros;

/// The properties of an open reply. Its body lasts as long as the handler continues it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenReply {
    /// The handler's number for the reply.
    pub number: u64,
    /// The side that decides when more of the reply is sent.
    pub pace: ReplyPace,
}

/// The side that decides when more of an open reply is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyPace {
    /// The handler: it adds bytes at any time. If the client leaves too many of them untaken, the
    /// reply ends.
    Handler {
        /// The longest time in which nothing is sent.
        silence: Micros,
        /// Bytes that are sent after `silence`, to find out whether the client is still connected.
        sign_of_life: &'static [u8],
    },
    /// The client: when it has taken all bytes, [`crate::Actions::wanted`] asks the handler for
    /// more. The handler decides how many bytes it adds.
    Client {
        /// The length of the whole body in bytes, if the handler knows it.
        length: Option<u64>,
    },
}

/// The end of an open reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyEnd {
    /// The handler has given the whole body.
    Whole,
    /// A part of the body is missing. The session shows this to the client, as far as the protocol
    /// allows.
    Cut,
}

impl OpenReply {
    /// Whether the client sets the pace.
    pub(crate) fn is_paced_by_client(&self) -> bool {
        matches!(self.pace, ReplyPace::Client { .. })
    }
}
