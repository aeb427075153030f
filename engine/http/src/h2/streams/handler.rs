//! Requests for a handler on an HTTP/2 connection.
//!
//! The rule: **the handler has one request of a connection at a time. The others wait for their
//! turn, the oldest first.** The turn of a request ends when the handler has replied or has
//! admitted the body. While bodies arrive, the handler gets other requests, and each complete body
//! is passed to it in its turn. The session keeps reading frames, with one exception. If a client
//! sends a body on which the handler has not decided, that frame and all later frames stay unread
//! until the handler decides.
//!
//! Invariants:
//! - No byte of a body is kept before its sender is admitted, and at most the admitted length is
//!   kept.
//! - Requests that wait take at most [`WAITING_BYTES_MAX`] of memory, and never more than the
//!   client's share. A request that would exceed these limits gets a 503 response.
//! - No request is passed to the handler while more than [`UNSENT_BYTES_MAX`] of replies are
//!   unsent. If a body arrives for a stream that waits for this reason, the stream is refused.
//!   Otherwise the unread body would block the frames after it, although one of these may open the
//!   windows.
//! - A reply is sent on the stream of its request. If that stream was reset, the reply is dropped.

use alloc::boxed::Box;

use http2::{ErrorCode, FrameType};

use super::StreamList;
use crate::actions::Actions;
use crate::answer::PendingResponse;
use crate::h2::flood_budget::{FloodBudget, FrameCost};
use crate::h2::handler_stream::HandlerStream;
use crate::h2::sending::{StreamOutput, send_frame};
use crate::h2::stream::{self, Stream};
use crate::reply::Reply;
use crate::session::STRIDE_BYTES;
use crate::types::Announced;
use crate::upload::{ArrivingBody, BodyAdmission};

/// The maximum memory of requests without a reply, in bytes.
pub(crate) const WAITING_BYTES_MAX: usize = 64 * 1024;

/// The number of unsent bytes of replies above which no request is passed to the handler.
pub(crate) const UNSENT_BYTES_MAX: usize = 4 << 20;

impl StreamList {
    /// Passes the oldest waiting request, or its body, to the handler, if no other request is with
    /// the handler. Returns whether the handler has replied at once.
    #[cold]
    #[inline(never)]
    pub(in crate::h2) fn ask_next(&mut self, actions: &mut impl Actions) -> bool {
        if self.asking.is_some() || self.has_too_much_unsent() {
            return false;
        }
        let may_ask = |stream: &Stream| matches!(&stream.expect, stream::Expect::Turn(handler_stream) if !handler_stream.is_with_handler());
        let next = self.list.iter_mut().find(|stream| may_ask(stream));
        let Some(stream) = next else {
            self.has_waiting_requests = false;
            return false;
        };
        let before =
            core::mem::replace(&mut stream.expect, stream::Expect::Reset(ErrorCode::NoError));
        let stream::Expect::Turn(mut handler_stream) = before else { return false };
        self.asking = Some(stream.id);
        let reply = match handler_stream.take_upload() {
            None => {
                let announced = match handler_stream.length() {
                    _ if !stream.is_unread => Announced::Nothing,
                    Some(length) => Announced::Bytes(length),
                    None => Announced::Something,
                };
                actions.asked(&handler_stream.asked().question(announced))
            }
            Some(upload) => upload.end(handler_stream.asked(), actions),
        };
        stream.expect = stream::Expect::Us(handler_stream);
        let Some(reply) = reply else { return false };
        self.replied(reply, actions);
        true
    }

    /// The number of bytes of replies that the session holds until the client has taken them.
    pub(in crate::h2) fn held_bytes(&self) -> usize {
        self.list.iter().map(Stream::own_bytes).sum()
    }

    pub(in crate::h2) fn has_too_much_unsent(&self) -> bool {
        self.held_bytes() > UNSENT_BYTES_MAX
    }

    /// Ends the turn of the request that is with the handler. Returns its stream, if the stream
    /// still waits.
    fn take_asker(&mut self) -> Option<(&mut Stream, Box<HandlerStream>)> {
        let id = self.asking.take()?;
        let stream = self.get_mut(id)?;
        match core::mem::replace(&mut stream.expect, stream::Expect::Reset(ErrorCode::NoError)) {
            stream::Expect::Us(handler_stream) => Some((stream, handler_stream)),
            other => {
                stream.expect = other;
                None
            }
        }
    }

    /// The handler has replied: see [`crate::h2::Http2Session::replied`].
    pub(in crate::h2) fn replied(&mut self, reply: Reply, actions: &mut impl Actions) {
        let number = reply.number();
        match self.take_asker() {
            Some((stream, handler_stream)) => {
                stream.expect = stream::Expect::Room(Box::new(PendingResponse::from_reply(
                    handler_stream.asked(),
                    reply,
                    actions,
                )));
            }
            None => number.into_iter().for_each(|number| actions.left(number)),
        }
    }

    /// The handler admits the body: see [`crate::h2::Http2Session::admitted`].
    pub(in crate::h2) fn admitted(&mut self, admission: BodyAdmission, actions: &mut impl Actions) {
        match self.take_asker() {
            None => admission.give_up(actions),
            Some((stream, mut handler_stream)) => {
                let length = if stream.is_unread { handler_stream.length() } else { None };
                let upload = ArrivingBody::begin(admission, length);
                if upload.is_too_large() {
                    let answer = admission.refuse(handler_stream.asked(), actions);
                    stream.expect = stream::Expect::Room(Box::new(answer));
                } else {
                    handler_stream.admit(upload);
                    let is_to_come = core::mem::take(&mut stream.is_unread);
                    stream.expect = if is_to_come {
                        stream::Expect::Upload(handler_stream)
                    } else {
                        stream::Expect::Turn(handler_stream)
                    };
                }
            }
        }
        self.has_waiting_requests = true;
    }

    /// The handler has taken a piece of the body `number`. Returns false if that body no longer
    /// exists.
    pub(in crate::h2) fn piece_taken(&mut self, number: u64, actions: &mut impl Actions) -> bool {
        let handler_streams = self.list.iter_mut().filter_map(Stream::handler_stream_mut);
        let mut uploads = handler_streams.filter_map(HandlerStream::upload_mut);
        let Some(upload) = uploads.find(|upload| upload.admission().number == Some(number)) else {
            return false;
        };
        upload.piece_taken(number);
        upload.hand_over(actions);
        (self.has_waiting_requests, self.has_unreported) = (true, true);
        true
    }

    /// The head of a DATA frame of an admitted body has arrived. Records that a window update is
    /// due if enough bytes have arrived.
    pub(in crate::h2) fn upload_comes(&mut self, id: u32, frame_bytes: u32) {
        let Some(stream) = self.get_mut(id) else { return };
        let stream::Expect::Upload(handler_stream) = &mut stream.expect else { return };
        if handler_stream.frame_comes(frame_bytes) {
            self.has_upload_progress = true;
            self.has_unreported = true;
        }
    }

    /// Opens the windows of admitted bodies. Returns true if all due updates were sent.
    pub(in crate::h2) fn open_windows(
        &mut self,
        output: &StreamOutput,
        actions: &mut impl Actions,
    ) -> bool {
        if self.has_unreported {
            self.open_all_windows(output, actions);
        }
        !self.has_unreported
    }

    /// Opens the windows of admitted bodies, until there is no buffer space for another update.
    #[cold]
    #[inline(never)]
    fn open_all_windows(&mut self, output: &StreamOutput, actions: &mut impl Actions) {
        for stream in &mut self.list {
            let stream::Expect::Upload(handler_stream) = &mut stream.expect else { continue };
            let unreported = handler_stream.unreported();
            if unreported as usize >= STRIDE_BYTES {
                if !output.has_room(actions) {
                    return;
                }
                handler_stream.reported(unreported);
                send_frame(
                    FrameType::WindowUpdate,
                    0,
                    stream.id,
                    &unreported.to_be_bytes(),
                    actions,
                );
            }
        }
        self.has_unreported = false;
    }

    /// The body of a request has ended, or is too long to wait for.
    ///
    /// Errors: too many bodies differed from their announced length.
    pub(in crate::h2) fn body_ended(
        &mut self,
        id: u32,
        is_last: bool,
        flood_budget: &mut FloodBudget,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        let Some(stream) = self.get_mut(id) else { return Ok(()) };
        let admitted = stream.admitted();
        if !stream.body_ended(is_last) {
            admitted.into_iter().for_each(|admission| admission.give_up(actions));
            return flood_budget.pay(FrameCost::Reset);
        }
        self.has_waiting_requests |= admitted.is_some();
        Ok(())
    }

    /// Refuses a body that is larger than admitted.
    #[cold]
    #[inline(never)]
    fn upload_is_too_large(&mut self, id: u32, is_last: bool, actions: &mut impl Actions) {
        let Some(stream) = self.get_mut(id) else { return };
        let stream::Expect::Upload(handler_stream) = &mut stream.expect else { return };
        let Some(admission) = handler_stream.admitted() else { return };
        let answer = admission.refuse(handler_stream.asked(), actions);
        stream.expect = stream::Expect::Room(Box::new(answer));
        stream.is_unread = !is_last;
    }

    /// The end of a DATA frame of an admitted body has arrived.
    pub(in crate::h2) fn upload_part_ended(
        &mut self,
        id: u32,
        is_last: bool,
        flood_budget: &mut FloodBudget,
        actions: &mut impl Actions,
    ) -> Result<(), ErrorCode> {
        let Some(handler_stream) = self.get_mut(id).and_then(|stream| stream.handler_stream_mut())
        else {
            return Ok(());
        };
        match handler_stream.is_too_large() {
            true => self.upload_is_too_large(id, is_last, actions),
            false if is_last => return self.body_ended(id, true, flood_budget, actions),
            false => {
                handler_stream
                    .upload_mut()
                    .into_iter()
                    .for_each(|upload| upload.hand_over(actions));
                self.has_unreported = true;
            }
        }
        Ok(())
    }
}
