//! Messages from request handlers to the core of a connection.

use alloc::vec::Vec;

use channel::Ticket;
use http::{Reply, ReplyEnd};

/// The answer to a request, or a later message about the request.
pub struct AddressedReply {
    /// The ticket of the request.
    pub ticket: Ticket,
    /// The message to the core of the connection.
    pub reply: HandlerReply,
    /// The length of the request's form in bytes, if this message answers the request. `None`: the
    /// request was answered earlier.
    pub answers: Option<usize>,
}

/// A message to the core of the connection.
pub enum HandlerReply {
    /// The reply to the client.
    Reply(Reply),
    /// The form is admitted.
    FormAdmitted,
    /// The client's session has ended.
    NoSession,
    /// The upload of a message is admitted, under this number.
    UploadAdmitted(u64),
    /// A piece of the upload with this number was processed.
    PieceTaken(u64),
    /// The next bytes of the open reply with this number.
    More(u64, Vec<u8>),
    /// The end of the open reply with this number.
    NoMore(u64, ReplyEnd),
}

impl HandlerReply {
    /// The number of the open reply or the upload that must be given up if the connection has
    /// ended.
    pub fn number(&self) -> Option<u64> {
        match self {
            HandlerReply::Reply(reply) => reply.number(),
            HandlerReply::UploadAdmitted(number) => Some(*number),
            _ => None,
        }
    }
}
