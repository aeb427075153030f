//! Requests: heads that open streams, and trailers that end bodies.
//!
//! A head is parsed when all its frames have arrived. Until then the caller keeps its bytes, up to
//! [`HEAD_BYTES_MAX`].
//!
//! Implements: RFC 9113 sections 4.3, 5.1.1, 5.1.2, 6.2, 6.10, 8.1 and 8.1.1.

use alloc::boxed::Box;

use heapless::Vec;
use http2::{ErrorCode, FRAME_HEAD_BYTES, FieldList, FrameHead, FrameType, flags};

use super::flood_budget::FrameCost;
use super::frames::BODY_BYTES_MAX;
use super::handler_stream::HandlerStream;
use super::request::{Request, check_trailers};
use super::response::{self, ResponseStart};
use super::sending::SendStep;
use super::session::{H2Progress, Http2Session};
use super::stream::{self, ClientHalf, STREAMS_MAX, Stream};
use super::streams::WAITING_BYTES_MAX;
use crate::actions::{Actions, ExchangeSummary};
use crate::answer::{Course, PendingResponse};
use crate::handler_request::QueuedRequest;
use crate::head::{FieldName, HEAD_BYTES_MAX, RequestHead};
use crate::reply::Reply;
use crate::session::HttpWaitsFor;
use crate::types::Status;

/// The maximum number of frames of one head.
const FRAMES_MAX: usize = 16;

/// The length of a priority in bytes.
const PRIORITY_BYTES: usize = 5;

/// A field block.
enum FieldBlock<'a> {
    /// The block is incomplete.
    Partial,
    /// The block is in one frame. The number is the length of the frame in bytes.
    One(&'a [u8], usize),
    /// The block is in several frames, and their payloads are joined. The number is the length of
    /// all frames in bytes.
    Several(Box<Vec<u8, HEAD_BYTES_MAX>>, usize),
}

impl FieldBlock<'_> {
    /// The block in the frames at the start of `bytes`. The first frame has the head `first`.
    ///
    /// Errors: the frames are invalid, too many, or too long.
    fn find<'a>(first: &FrameHead, bytes: &'a [u8]) -> Result<FieldBlock<'a>, ErrorCode> {
        let mut head = *first;
        let mut at = 0;
        let mut several: Option<Box<Vec<u8, HEAD_BYTES_MAX>>> = None;
        for _ in 0..FRAMES_MAX {
            let end = at + FRAME_HEAD_BYTES + head.length as usize;
            if end > HEAD_BYTES_MAX {
                return Err(ErrorCode::EnhanceYourCalm);
            }
            let Some(payload) = bytes.get(at + FRAME_HEAD_BYTES..end) else {
                return Ok(FieldBlock::Partial);
            };
            let part = if at == 0 { fragment(&head, payload)? } else { payload };
            if head.has(flags::END_HEADERS) && at == 0 {
                return Ok(FieldBlock::One(part, end));
            }
            let whole = several.get_or_insert_default();
            whole.extend_from_slice(part).map_err(|_| ErrorCode::EnhanceYourCalm)?;
            if head.has(flags::END_HEADERS) {
                return Ok(
                    several.map_or(FieldBlock::Partial, |whole| FieldBlock::Several(whole, end))
                );
            }
            at = end;
            let Some(next) = bytes.get(at..).and_then(FrameHead::parse) else {
                return Ok(FieldBlock::Partial);
            };
            if next.kind != FrameType::Continuation || next.stream != first.stream {
                return Err(ErrorCode::ProtocolError);
            }
            head = next;
        }
        Err(ErrorCode::EnhanceYourCalm)
    }
}

/// The field block fragment in the payload of a frame, without padding and priority.
fn fragment<'a>(head: &FrameHead, payload: &'a [u8]) -> Result<&'a [u8], ErrorCode> {
    let mut rest = payload;
    let mut padding = 0;
    if head.has(flags::PADDED) {
        let (length, behind) = rest.split_first().ok_or(ErrorCode::FrameSizeError)?;
        (rest, padding) = (behind, usize::from(*length));
    }
    if head.has(flags::PRIORITY) {
        rest = rest.get(PRIORITY_BYTES..).ok_or(ErrorCode::FrameSizeError)?;
    }
    let length = rest.len().checked_sub(padding).ok_or(ErrorCode::ProtocolError)?;
    Ok(rest.get(..length).unwrap_or_default())
}

impl Http2Session {
    /// The head of a frame with a request head, or with trailers, has arrived.
    pub(super) fn head_arrived(
        &mut self,
        head: &FrameHead,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> Result<H2Progress, ErrorCode> {
        if head.stream.is_multiple_of(2) {
            return Err(ErrorCode::ProtocolError);
        }
        let found = FieldBlock::find(head, bytes)?;
        self.is_within_head = matches!(found, FieldBlock::Partial);
        let (block, length, frames) = match &found {
            FieldBlock::Partial => return Ok(H2Progress::AndWait(HttpWaitsFor::Bytes)),
            FieldBlock::One(block, length) => (*block, *length, FrameCost::Look),
            FieldBlock::Several(block, length) => (block.as_slice(), *length, FrameCost::Nothing),
        };
        if !self.output.has_room(actions) {
            return Ok(H2Progress::AndWait(HttpWaitsFor::SendRoom));
        }
        if frames == FrameCost::Nothing {
            self.flood_budget.pay(frames)?;
        }
        let mut fields = FieldList::new();
        self.decoder.decode(block, &mut fields).map_err(|_| ErrorCode::CompressionError)?;
        match self.streams.client_half(head.stream) {
            Some(ClientHalf::Open) => self.trailers_arrived(head, &fields, actions)?,
            // `Undecided` cannot occur here, since `frame_arrived` stops such a frame earlier.
            Some(ClientHalf::Undecided | ClientHalf::Unread) => {}
            // By the RFC this is an error of the stream only. But a stream has an entry only until
            // its response is sent. Without an entry, the error is one of the connection, so the
            // connection ends in either case.
            Some(ClientHalf::Closed) => return Err(ErrorCode::StreamClosed),
            None if head.stream > self.last_stream => self.stream_begins(head, &fields, actions)?,
            // The client may have sent the frame before it received our reset.
            None if self.streams.was_reset(head.stream) => {
                self.flood_budget.pay(FrameCost::Nothing)?
            }
            None if head.stream == self.last_stream => return Err(ErrorCode::StreamClosed),
            None => return Err(ErrorCode::ProtocolError),
        }
        Ok(H2Progress::AndGoOn(length))
    }

    fn trailers_arrived(
        &mut self,
        head: &FrameHead,
        fields: &FieldList,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        let is_right = head.has(flags::END_STREAM) && check_trailers(fields).is_ok();
        if !is_right {
            self.flood_budget.pay(FrameCost::Reset)?;
            return self.reset(head.stream, ErrorCode::ProtocolError, actions);
        }
        self.streams.body_ended(head.stream, true, &mut self.flood_budget, actions)
    }

    /// The client opens a stream with a request.
    fn stream_begins(
        &mut self,
        head: &FrameHead,
        fields: &FieldList,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        if self.is_ending {
            // One side has already sent GOAWAY, so the request is ignored.
            return self.flood_budget.pay(FrameCost::Nothing);
        }
        self.last_stream = head.stream;
        if self.streams.len() >= STREAMS_MAX || !self.may_keep_stream(actions) {
            self.flood_budget.pay(FrameCost::Reset)?;
            return self.reset(head.stream, ErrorCode::RefusedStream, actions);
        }
        let is_whole = head.has(flags::END_STREAM);
        if fields.is_too_large() {
            let answer = refusal(Status::HeaderFieldsTooLarge, false, actions);
            return self.answer(head.stream, answer, is_whole, actions);
        }
        let request = Request::read(fields).ok();
        let Some(request) = request.filter(|request| !is_whole || request.length.unwrap_or(0) == 0)
        else {
            self.flood_budget.pay(FrameCost::Reset)?;
            return self.reset(head.stream, ErrorCode::ProtocolError, actions);
        };
        let asked = request.head();
        let length = request.length;
        let answer = match course_of(&asked, actions) {
            Course::Known(answer) => answer,
            Course::Handler(asked) => {
                return self.handler_request_arrived(
                    head.stream,
                    asked,
                    (is_whole, length),
                    actions,
                );
            }
        };
        let is_waited_for = length.unwrap_or(0) <= BODY_BYTES_MAX
            && !asked.lists(FieldName::Expect, "100-continue");
        if is_whole || !is_waited_for {
            return self.answer(head.stream, answer, is_whole, actions);
        }
        let expect = stream::Expect::Body { answer: Box::new(answer), length, came: 0 };
        let window = self.output.initial_window();
        self.streams.push(Stream { id: head.stream, window, expect, is_unread: false });
        Ok(())
    }

    /// A request for a handler has arrived. `is_whole`: the request has no body. `length`: the
    /// length of the body in bytes, if the client announced it.
    #[cold]
    #[inline(never)]
    fn handler_request_arrived(
        &mut self,
        id: u32,
        asked: Box<QueuedRequest>,
        (is_whole, length): (bool, Option<u64>),
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        let handler_stream = Box::new(HandlerStream::new(asked, length));
        let is_too_much =
            self.streams.asked_bytes() + handler_stream.asked().bytes() > WAITING_BYTES_MAX;
        if is_too_much || !actions.may_keep(self.kept_bytes() + handler_stream.kept_bytes()) {
            let answer = PendingResponse::from_reply(
                handler_stream.asked(),
                Reply::refusal(Status::ServiceUnavailable),
                actions,
            );
            return self.answer(id, answer, is_whole, actions);
        }
        let window = self.output.initial_window();
        self.streams.push(Stream {
            id,
            window,
            expect: stream::Expect::Turn(handler_stream),
            is_unread: !is_whole,
        });
        Ok(())
    }

    /// Begins to send an answer. The caller has checked that there is space for the head. The part
    /// that cannot be sent at once waits for its turn.
    fn answer(
        &mut self,
        id: u32,
        mut answer: PendingResponse,
        is_whole: bool,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        let mut beginning = ResponseStart::new();
        let outgoing = response::begin(id, &mut answer, &mut beginning, actions);
        self.flood_budget.answered();
        let is_over = outgoing.is_nothing();
        if is_over {
            actions.send(&beginning);
            beginning.clear();
        }
        if is_over && is_whole {
            return Ok(());
        }
        let expect = if is_over {
            stream::Expect::Reset(ErrorCode::NoError)
        } else {
            stream::Expect::Window(outgoing)
        };
        let window = self.output.initial_window();
        let mut stream = Stream { id, window, expect, is_unread: !is_whole && !is_over };
        // Most responses fit into their first frame.
        let is_alone = self.streams.is_empty() && is_whole;
        let is_done = is_alone
            && self.output.send_body(
                &mut stream,
                &mut beginning,
                &mut self.flood_budget,
                actions,
            )? == SendStep::Done;
        if !beginning.is_empty() {
            actions.send(&beginning);
        }
        if !is_done {
            self.streams.push(stream);
        }
        Ok(())
    }
}

fn refusal(status: Status, head_only: bool, actions: &mut impl Actions) -> PendingResponse {
    let answer = PendingResponse::refusal(status, head_only, actions.site());
    actions.answered(|| ExchangeSummary {
        method: "",
        target: "",
        status: status.code(),
        bytes: answer.body_bytes(),
    });
    answer
}

/// Decides on the request as in HTTP/1.1. The difference: a malformed request gets a response on
/// its stream, and the connection continues.
fn course_of(head: &RequestHead<'_, '_>, actions: &mut impl Actions) -> Course {
    let answer = match head.check_host().and_then(|()| PendingResponse::to(head, actions)) {
        Ok(Course::Known(answer)) => answer,
        Ok(asked) => return asked,
        Err(status) => return Course::Known(refusal(status, head.method == b"HEAD", actions)),
    };
    actions.answered(|| ExchangeSummary {
        method: core::str::from_utf8(head.method).unwrap_or_default(),
        target: core::str::from_utf8(head.target).unwrap_or_default(),
        status: answer.status().code(),
        bytes: answer.body_bytes(),
    });
    Course::Known(answer)
}
