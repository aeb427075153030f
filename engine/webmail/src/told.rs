//! What cores tell each other for the webmail.

use alloc::boxed::Box;
use alloc::vec::Vec;

use http::{End, Reply};
use tasks::FrameId;

use crate::{Piece, Visit};

/// What a core asks of the request handlers of another.
pub enum Asked {
    /// The client of the session of this frame asks for something.
    Visit(FrameId, Box<Visit>),
    /// A piece of the message with this number has come.
    Piece(u64, Piece),
    /// The client wants more of the reply with this number.
    Wanted(u64),
    /// Nothing listens any more to the reply with this number, or its message does not come.
    Left(u64),
}

/// What request handlers tell the core of a connection.
pub enum Replied {
    /// The answer to a visit from the session of this frame.
    Visit(FrameId, Box<Answer>),
    /// More of a reply that stays open, or its end.
    GoesOn(FrameId, Box<Told>),
}

/// What is answered to a visit.
pub struct Answer {
    /// The answer itself.
    pub told: Told,
    /// Bytes of the visit's form.
    pub form_bytes: usize,
}

/// The answer to a visit, or what follows it.
pub enum Told {
    /// This.
    Reply(Reply),
    /// That his form may come.
    Admitted,
    /// That nobody knows him any more.
    Stranger,
    /// That his letter may come, under this number.
    Awaited(u64),
    /// That the piece of it was taken which came.
    Taken(u64),
    /// More of the reply with this number, which stays open.
    More(u64, Vec<u8>),
    /// That there is no more of it, and why.
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
