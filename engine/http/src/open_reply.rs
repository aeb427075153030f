//! Replies that stay open: their pace, and how they end.

use machine::Micros;

/// The property of a reply that stays open. Its body lasts as long as the handler continues it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenReply {
    /// The handler's number for it.
    pub number: u64,
    /// The side that decides when more is sent.
    pub pace: ReplyPace,
}

/// The side that decides when more of an open reply is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyPace {
    /// The handler, when it has something to say. If the client does not take it in time, the reply
    /// ends.
    Handler {
        /// The longest time in which nothing is sent.
        silence: Micros,
        /// Bytes that are sent after that time, to find out whether the client is still there.
        sign_of_life: &'static [u8],
    },
    /// The client, by taking what was sent. Then [`crate::Actions::wanted`] asks the handler for
    /// more, and the handler gives as much as it is willing to hold.
    Client {
        /// Bytes of the whole body, if the handler knows the number.
        length: Option<u64>,
    },
}

/// How an open reply ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyEnd {
    /// All of it was sent.
    Whole,
    /// A part is missing. The client must be able to see that, as far as its protocol can show it.
    Cut,
}

impl OpenReply {
    /// Whether the client sets the pace.
    pub(crate) fn is_paced_by_client(&self) -> bool {
        matches!(self.pace, ReplyPace::Client { .. })
    }
}
