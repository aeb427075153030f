//! What request handlers tell the core of a connection.

use alloc::vec::Vec;

use channel::Ticket;
use http::{End, Reply};

/// The answer to a request, or what follows it.
pub struct Replied {
    /// What has asked.
    pub ticket: Ticket,
    /// What it is told.
    pub told: Told,
    /// Of the answer: bytes of the request's form. `None`: the request was answered before.
    pub answers: Option<usize>,
}

/// What is told.
pub enum Told {
    /// This reply.
    Reply(Reply),
    /// The form may come.
    Admitted,
    /// The client has no session any more.
    Stranger,
    /// The message may come, under this number.
    Awaited(u64),
    /// The piece of it was taken that came.
    Taken(u64),
    /// More of the reply with this number, which stays open.
    More(u64, Vec<u8>),
    /// There is no more of it, and why.
    NoMore(u64, End),
}

impl Told {
    /// The number of what it names, if that is lost when nobody hears it.
    pub fn number(&self) -> Option<u64> {
        match self {
            Told::Reply(reply) => reply.number(),
            Told::Awaited(number) => Some(*number),
            _ => None,
        }
    }
}
