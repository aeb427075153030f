//! A stream that waits for something. Most requests are answered at once, and their streams never
//! get an entry.
//!
//! Implements: RFC 9113 section 5.1. A stream has an entry only while the server waits for
//! something. A stream is closed if its number was used and it has no entry.

use alloc::boxed::Box;

use http2::ErrorCode;
use machine::Micros;

use crate::answer::PendingResponse;
use crate::open_reply::{OpenReply, ReplyPace};
use crate::outgoing::OutgoingBody;
use crate::upload::BodyAdmission;

use super::handler_stream::HandlerStream;

/// The maximum number of streams of one client, including streams that wait for space or windows.
pub(super) const STREAMS_MAX: usize = 100;

/// A stream that waits.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// The number of bytes that the client accepts on the stream. It can be negative after the
    /// client has reduced the initial window.
    pub(super) window: i32,
    pub(super) expect: Expect,
    /// Whether the client may still send a body, which is dropped.
    pub(super) is_unread: bool,
}

/// The event that a stream waits for. Each variant is a wait point.
#[derive(Debug)]
pub(super) enum Expect {
    /// The rest of a request body, of which `came` bytes have arrived. When the body has ended, the
    /// answer is sent.
    Body { answer: Box<PendingResponse>, length: Option<u64>, came: u64 },
    /// The turn of the stream's request, or of its complete body, to be passed to the handler.
    Turn(Box<HandlerStream>),
    /// The handler's reply.
    Us(Box<HandlerStream>),
    /// The rest of an admitted body.
    Upload(Box<HandlerStream>),
    /// Space for the head of the stream's response.
    Room(Box<PendingResponse>),
    /// Window and space for the rest of the response body. If no byte is left, the stream waits for
    /// space for the empty frame that ends the body.
    Window(OutgoingBody),
    /// Space for the frame that resets the stream with this code.
    Reset(ErrorCode),
}

/// The frames that the client may still send on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientHalf {
    /// The rest of the request, which the server awaits.
    Open,
    /// The rest of the request. The handler has not decided whether to admit it.
    Undecided,
    /// The rest of the request, which is dropped.
    Unread,
    /// Nothing: the client must send no more frames.
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

    /// The request body has ended, or is too long to wait for. Returns false if its length differs
    /// from the announced length.
    pub(super) fn body_ended(&mut self, is_last: bool) -> bool {
        let before = core::mem::replace(&mut self.expect, Expect::Reset(ErrorCode::ProtocolError));
        let (length, came, next) = match before {
            Expect::Body { answer, length, came } => (length, came, Expect::Room(answer)),
            Expect::Upload(handler_stream) => {
                (handler_stream.length(), handler_stream.came(), Expect::Turn(handler_stream))
            }
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

    /// The request for a handler, if the handler has not replied yet.
    pub(super) fn handler_stream(&self) -> Option<&HandlerStream> {
        match &self.expect {
            Expect::Turn(handler_stream)
            | Expect::Us(handler_stream)
            | Expect::Upload(handler_stream) => Some(handler_stream),
            _ => None,
        }
    }

    pub(super) fn handler_stream_mut(&mut self) -> Option<&mut HandlerStream> {
        match &mut self.expect {
            Expect::Turn(handler_stream)
            | Expect::Us(handler_stream)
            | Expect::Upload(handler_stream) => Some(handler_stream),
            _ => None,
        }
    }

    /// Whether the stream waits for the client to send the rest of a body. The result is false
    /// while the handler holds a piece of the body.
    pub(super) fn waits_for_body(&self) -> bool {
        self.client_half() == ClientHalf::Open
            && !self.handler_stream().is_some_and(HandlerStream::is_with_handler)
    }

    /// The admission of a body, while it is held.
    pub(super) fn admitted(&self) -> Option<BodyAdmission> {
        self.handler_stream().and_then(HandlerStream::admitted)
    }

    /// The size of the handler's bytes that the response holds until they are sent.
    pub(super) fn own_bytes(&self) -> usize {
        match &self.expect {
            Expect::Room(answer) => answer.own_bytes(),
            Expect::Window(outgoing) => outgoing.own_bytes(),
            _ => 0,
        }
    }

    /// The memory of the stream in bytes, without its entry in the list, [`Stream::own_bytes`], and
    /// the admitted memory of a body.
    pub(super) fn kept_bytes(&self) -> usize {
        match &self.expect {
            Expect::Body { answer, .. } | Expect::Room(answer) => answer.kept_bytes(),
            Expect::Turn(handler_stream)
            | Expect::Us(handler_stream)
            | Expect::Upload(handler_stream) => handler_stream.kept_bytes(),
            Expect::Window(outgoing) => outgoing.kept_bytes(),
            Expect::Reset(_) => 0,
        }
    }

    /// Whether the stream waits for the client to take a part of a response.
    pub(super) fn waits_for_reader(&self) -> bool {
        match &self.expect {
            Expect::Window(outgoing) => !outgoing.is_silent(),
            Expect::Room(_) | Expect::Reset(_) => true,
            _ => false,
        }
    }

    /// The handler's number for the open reply, if the stream has one.
    pub(super) fn number(&self) -> Option<u64> {
        match &self.expect {
            Expect::Body { answer, .. } | Expect::Room(answer) => answer.number(),
            Expect::Window(_) => self.open_reply().map(|open| open.number),
            _ => None,
        }
    }

    /// The longest silence on the open reply, if the reply has begun and the handler sets the pace.
    pub(super) fn silence(&self) -> Option<Micros> {
        if let ReplyPace::Handler { silence, .. } = self.open_reply()?.pace {
            Some(silence)
        } else {
            None
        }
    }

    /// The open reply on the stream, if the reply has begun.
    pub(super) fn open_reply(&self) -> Option<OpenReply> {
        if let Expect::Window(outgoing) = &self.expect { outgoing.open_reply() } else { None }
    }
}
