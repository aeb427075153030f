//! One stream, as long as there is something to remember of it: most requests are answered at once, and need nothing here.
//!
//! Answers to: RFC 9113 section 5.1. Of its states only those are kept in which we wait for something; a stream that is none of these, and whose number was used, is closed.

use alloc::boxed::Box;

use http2::ErrorCode;
use machine::Micros;

use crate::answer::Answer;
use crate::open_reply::{Open, Pace};
use crate::outgoing::Outgoing;
use crate::upload::Admission;

use super::inquiry::Inquiry;

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
    /// Its turn to be asked, or to hand over its body.
    Turn(Box<Inquiry>),
    /// What the program says to it.
    Us(Box<Inquiry>),
    /// The rest of a body whose sender was admitted.
    Upload(Box<Inquiry>),
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
    /// The same, of which nobody knows yet whether it is wanted.
    Undecided,
    /// The same, which nobody waits for.
    Unread,
    /// Nothing.
    Closed,
}

impl Stream {
    pub(super) fn client_half(&self) -> ClientHalf {
        match self.expect {
            Expect::Body { .. } | Expect::Upload(_) => ClientHalf::Open,
            Expect::Turn(_) | Expect::Us(_) if self.is_unread => ClientHalf::Undecided,
            _ if self.is_unread => ClientHalf::Unread,
            _ => ClientHalf::Closed,
        }
    }

    /// The request's body has ended, or is too long to be waited for. False: it is not as long as it was said to be.
    pub(super) fn body_ended(&mut self, is_last: bool) -> bool {
        let before = core::mem::replace(&mut self.expect, Expect::Reset(ErrorCode::ProtocolError));
        let (length, came, next) = match before {
            Expect::Body { answer, length, came } => (length, came, Expect::Room(answer)),
            Expect::Upload(inquiry) => (inquiry.length(), inquiry.came(), Expect::Turn(inquiry)),
            other => {
                self.expect = other;
                return true;
            }
        };
        let is_right = !is_last || length.is_none_or(|length| length == came);
        if is_right {
            self.expect = next;
            self.is_unread = !is_last;
        }
        is_right
    }

    /// Its question, if that has no answer yet.
    pub(super) fn inquiry(&self) -> Option<&Inquiry> {
        match &self.expect {
            Expect::Turn(inquiry) | Expect::Us(inquiry) | Expect::Upload(inquiry) => Some(inquiry),
            _ => None,
        }
    }

    pub(super) fn inquiry_mut(&mut self) -> Option<&mut Inquiry> {
        match &mut self.expect {
            Expect::Turn(inquiry) | Expect::Us(inquiry) | Expect::Upload(inquiry) => Some(inquiry),
            _ => None,
        }
    }

    /// Whether the rest of a body is for the client to send, and not for the program to take.
    pub(super) fn is_to_be_sent(&self) -> bool {
        self.client_half() == ClientHalf::Open
            && !self.inquiry().is_some_and(Inquiry::is_with_program)
    }

    /// What was admitted of a body, as long as it is held.
    pub(super) fn admitted(&self) -> Option<Admission> {
        self.inquiry().and_then(Inquiry::admitted)
    }

    /// Bytes of memory that its answer holds until it is sent.
    pub(super) fn own_bytes(&self) -> usize {
        match &self.expect {
            Expect::Room(answer) => answer.own_bytes(),
            Expect::Window(outgoing) => outgoing.own_bytes(),
            _ => 0,
        }
    }

    /// Bytes of memory that it takes beside its place in the list, but for those and what was
    /// admitted.
    pub(super) fn kept_bytes(&self) -> usize {
        match &self.expect {
            Expect::Body { answer, .. } | Expect::Room(answer) => answer.kept_bytes(),
            Expect::Turn(inquiry) | Expect::Us(inquiry) | Expect::Upload(inquiry) => {
                inquiry.kept_bytes()
            }
            Expect::Window(outgoing) => outgoing.kept_bytes(),
            Expect::Reset(_) => 0,
        }
    }

    /// Whether it is for the client to take something.
    pub(super) fn is_to_be_taken(&self) -> bool {
        match &self.expect {
            Expect::Window(outgoing) => !outgoing.is_silent(),
            Expect::Room(_) | Expect::Reset(_) => true,
            _ => false,
        }
    }

    /// What its program names its answer by, if that is one that stays open.
    pub(super) fn number(&self) -> Option<u64> {
        match &self.expect {
            Expect::Body { answer, .. } | Expect::Room(answer) => answer.number(),
            Expect::Window(_) => self.open_reply().map(|open| open.number),
            _ => None,
        }
    }

    /// How long nothing may be said on it, once the reply has begun that stays open and of which the program sets the pace.
    pub(super) fn silence(&self) -> Option<Micros> {
        if let Pace::Program { silence, .. } = self.open_reply()?.pace {
            Some(silence)
        } else {
            None
        }
    }

    /// The reply that stays open on it, once that has begun.
    pub(super) fn open_reply(&self) -> Option<Open> {
        if let Expect::Window(outgoing) = &self.expect { outgoing.open_reply() } else { None }
    }
}
