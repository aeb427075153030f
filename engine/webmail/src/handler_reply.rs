//! Messages from request handlers to the core of a connection.

use alloc::vec::Vec;

use channel::Ticket;
use http::{Reply, ReplyEnd};

/// The answer to a request, or something that follows it.
pub struct AddressedReply {
    /// The request.
    pub ticket: Ticket,
    /// The message.
    pub reply: HandlerReply,
    /// In an answer: bytes of the request's form. `None`: the request was answered before.
    pub answers: Option<usize>,
}

/// A message to the core of the connection.
pub enum HandlerReply {
    /// The reply to the client.
    Reply(Reply),
    /// The form may come.
    FormAdmitted,
    /// The client has no session any more.
    NoSession,
    /// The message may come, under this number.
    UploadAdmitted(u64),
    /// The piece of the message was processed.
    PieceTaken(u64),
    /// More of the reply with this number, which stays open.
    More(u64, Vec<u8>),
    /// The reply with this number has ended, and how.
    NoMore(u64, ReplyEnd),
}

impl HandlerReply {
    /// The number of the reply or message that must be given up when the connection is gone.
    pub fn number(&self) -> Option<u64> {
        match self {
            HandlerReply::Reply(reply) => reply.number(),
            HandlerReply::UploadAdmitted(number) => Some(*number),
            _ => None,
        }
    }
}
