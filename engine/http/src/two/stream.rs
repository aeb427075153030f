//! One stream, as long as there is something to remember of it: most requests are answered at once, and need nothing here.
//!
//! Answers to: RFC 9113 section 5.1. Of its states only those are kept in which we wait for something; a stream that is none of these, and whose number was used, is closed.

use alloc::boxed::Box;

use http2::ErrorCode;

use crate::answer::Answer;
use crate::outgoing::Outgoing;

/// The most streams of one client, those counted that wait for room or windows.
pub(super) const STREAMS_MAX: usize = 100;

/// A stream that waits.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// How many bytes the client wants to be sent on it; negative when it has changed its mind.
    pub(super) window: i32,
    pub(super) expect: Expect,
    /// Whether the client may go on to send what nobody waits for.
    pub(super) is_unread: bool,
}

/// What a stream waits for. One variant a waiting point.
#[derive(Debug)]
pub(super) enum Expect {
    /// The rest of a request's body, of which so many bytes have come. Then its answer is due.
    Body { answer: Box<Answer>, length: Option<u64>, came: u64 },
    /// Room for the head of its answer.
    Room(Box<Answer>),
    /// Windows and room for the rest of the answer's body; when there is none left, room to say so.
    Window(Outgoing),
    /// Room to say that it is over, and why.
    Reset(ErrorCode),
}

/// What the client may send on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientHalf {
    /// The rest of its request, which is waited for.
    Open,
    /// The same, which nobody waits for.
    Unread,
    /// Nothing.
    Closed,
}

impl Stream {
    pub(super) fn client_half(&self) -> ClientHalf {
        match self.expect {
            Expect::Body { .. } => ClientHalf::Open,
            _ if self.is_unread => ClientHalf::Unread,
            _ => ClientHalf::Closed,
        }
    }

    /// The request's body has ended, or is too long to be waited for. False: it is not as long as it was said to be.
    pub(super) fn body_ended(&mut self, is_last: bool) -> bool {
        let before = core::mem::replace(&mut self.expect, Expect::Reset(ErrorCode::ProtocolError));
        let Expect::Body { answer, length, came } = before else {
            self.expect = before;
            return true;
        };
        let is_right = !is_last || length.is_none_or(|length| length == came);
        if is_right {
            self.expect = Expect::Room(answer);
            self.is_unread = !is_last;
        }
        is_right
    }
}
