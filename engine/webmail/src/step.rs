//! What comes of a step of a clerk.

use alloc::string::String;
use alloc::vec::Vec;

use http::{End, Reply};
use store::Refusal;

use crate::answer;
use crate::said::Said;
use crate::sessions::{Digest, Sessions};
use crate::stream::Stream;

/// Parts of messages that a clerk asks for at a time.
pub const READS_MAX: usize = 8;

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// The clerk waits for what he has asked for.
    Woken,
    /// The store has too much to do: he tries again in the next turn.
    Turn,
    /// He has taken what came of a form, and more of it may come.
    Taken,
    /// He is done.
    Done(Done),
    /// The reply begins. He goes on when more of it is wanted, or is forgotten when it is not wanted any more.
    Begun(Stream),
    /// There is so much more of it.
    Said(Vec<u8>),
    /// There is no more of it.
    Over(End),
}

/// A task that is done.
#[derive(Debug)]
pub enum Done {
    /// This is answered to who asked.
    Reply(Reply),
    /// Who asked is sent on to that path, where the page tells him this, and what would take it back.
    SentOn(String, Said),
}

/// What came of a step.
pub(crate) enum Step {
    /// Something was asked for, or there was nothing to ask for.
    Asked,
    /// The store has no time.
    Busy,
    /// All was taken that came of a form.
    Taken,
}

impl Done {
    pub(crate) fn with(reply: Reply) -> Done {
        Done::Reply(reply)
    }

    /// What is answered to who asked, by a request of this session.
    pub fn reply(self, session: &Digest, sessions: &mut Sessions) -> Reply {
        match self {
            Done::Reply(reply) => reply,
            Done::SentOn(then, said) => answer::elsewhere_told(&then, sessions.say(session, said)),
        }
    }
}

/// What a refusal of the store means for people.
pub(crate) fn why(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::DiskFull | Refusal::IndexFull => {
            "There is no space left on the disk. Nothing was changed: delete something, and try again."
        }
        Refusal::OverQuota => {
            "Your mailbox is full. Nothing was changed: delete something for good, also from Trash, and try again."
        }
        Refusal::LargerThanQuota => "It is larger than all that your mailbox may hold. Nothing was changed.",
        Refusal::ReadOnly => {
            "The server's disk has failed. You can read mail, but nothing can be changed until the disk works again. Try again in a few minutes."
        }
        Refusal::NoSuchMessage | Refusal::NoSuchMailbox | Refusal::NoSuchAccount => {
            "It is not there any more: another window or program has moved or removed it."
        }
        Refusal::Unreadable => "The server's disk failed to read this part of the message. Try again in a moment.",
        Refusal::Damaged => "The disk does not give it back as it was written: this part of it cannot be read.",
        _ => "The machine has too much to do just now. Nothing was changed: try again in a moment.",
    }
}
