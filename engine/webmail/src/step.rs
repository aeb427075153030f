//! What comes of a step of a job.

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

/// What comes of a step.
#[derive(Debug)]
pub(crate) enum Progress {
    /// What was asked for is awaited; or, of a part of a job, there was nothing to ask for.
    Waiting,
    /// The store has too much to do: the next turn brings another try.
    Yield,
    /// What has come of a form was taken, and more of it may come.
    Taken,
    /// The job is done: this is the reply.
    Reply(Reply),
    /// The job is done: the browser goes to that path. The page there tells this, and how to undo
    /// it.
    Redirect(String, Said),
    /// The reply begins with this. The job goes on when more of it is wanted.
    Begin(Stream),
    /// There is so much more of the reply.
    Piece(Vec<u8>),
    /// There is no more of the reply.
    End(End),
}

/// The reply that sends the browser of a session to `path`. The page there tells this.
pub(crate) fn redirect(path: &str, said: Said, session: &Digest, sessions: &mut Sessions) -> Reply {
    answer::elsewhere_told(path, sessions.say(session, said))
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
        Refusal::LargerThanQuota => {
            "It is larger than all that your mailbox may hold. Nothing was changed."
        }
        Refusal::ReadOnly => {
            "The server's disk has failed. You can read mail, but nothing can be changed until the disk works again. Try again in a few minutes."
        }
        Refusal::NoSuchMessage | Refusal::NoSuchMailbox | Refusal::NoSuchAccount => {
            "It is not there any more: another window or program has moved or removed it."
        }
        Refusal::Unreadable => {
            "The server's disk failed to read this part of the message. Try again in a moment."
        }
        Refusal::Damaged => {
            "The disk does not give it back as it was written: this part of it cannot be read."
        }
        _ => "The machine has too much to do just now. Nothing was changed: try again in a moment.",
    }
}
