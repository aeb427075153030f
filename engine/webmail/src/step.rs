//! The result of a step of a job.

use alloc::string::String;
use alloc::vec::Vec;

use http::{Reply, ReplyEnd};
use store::Refusal;

use crate::answer;
use crate::flash::FlashMessage;
use crate::sessions::{Digest, WebSessions};
use crate::stream::DocumentStart;

/// The maximum number of reads that a request handler has in progress.
pub const READS_MAX: usize = 8;

/// The result of a step.
#[derive(Debug)]
pub(crate) enum JobProgress {
    /// The job waits for the store. If no request is under way, the current stage of the job has
    /// all that it asked for.
    Waiting,
    /// The store is busy, and the job tries again in the next turn.
    Yield,
    /// The piece of the form was processed, and the next piece may arrive.
    Taken,
    /// The job is done, with this reply.
    Reply(Reply),
    /// The job is done. The browser is redirected to this path. The page there shows the flash
    /// message, with an undo button if it has an undo action.
    Redirect(String, FlashMessage),
    /// The reply begins with this piece. The job continues when the connection asks for more.
    Begin(DocumentStart),
    /// The next piece of the reply.
    Piece(Vec<u8>),
    /// The open reply ends.
    End(ReplyEnd),
}

/// A redirect to `path`. The page there shows the flash message.
pub(crate) fn redirect(
    path: &str,
    flash: FlashMessage,
    session: &Digest,
    sessions: &mut WebSessions,
) -> Reply {
    answer::redirect_with_flash(path, sessions.push_flash(session, flash))
}

/// The text for the reader about a refusal of the store.
pub(crate) fn why(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::DiskFull => "The server’s disk is full. Delete some messages and try again.",
        Refusal::IndexFull => {
            "The server has reached its maximum number of messages. Delete some messages and try again."
        }
        Refusal::OverQuota => {
            "Your mailbox is full. Delete messages, also from Trash, and try again."
        }
        Refusal::LargerThanQuota => "This is larger than your whole mailbox quota.",
        Refusal::ReadOnly => {
            "The server’s disk has failed. You can read mail, but nothing can be changed until the disk works again. Try again in a few minutes."
        }
        Refusal::NoSuchMessage | Refusal::NoSuchMailbox | Refusal::NoSuchAccount => {
            "This message or folder no longer exists. It was moved or deleted in another window or program."
        }
        Refusal::Unreadable => {
            "The server’s disk failed to read this part of the message. Try again in a moment."
        }
        Refusal::Damaged => {
            "This part of the message is damaged on the server’s disk and cannot be read."
        }
        _ => "The server is busy. Try again in a moment.",
    }
}
