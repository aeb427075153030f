//! Requests for a handler on an HTTP/1.1 connection. The session takes no bytes after the head of a
//! request until the handler has admitted the body or has replied. So the handler has only one
//! request of the connection at a time.
//!
//! A body stays in the caller's buffer until its sender is admitted. After the admission, the
//! session sends `100 Continue` if the client waits for it, and keeps the body.

use alloc::boxed::Box;

use crate::actions::Actions;
use crate::answer::PendingResponse;
use crate::framing::BodyFraming;
use crate::handler_request::QueuedRequest;
use crate::reply::Reply;
use crate::response::RESPONSE_HEAD_BYTES_MAX;
use crate::types::{Announced, Status};
use crate::upload::{ArrivingBody, BodyAdmission, PIECE_BYTES};

use super::{Expect, HandlerProgress, HttpWaitsFor, REQUEST_TIMEOUT, RESPONSE_TIMEOUT, Session};

/// The number of framing bytes that a chunked body may have, in addition to one framing byte for
/// each admitted byte of content.
const FRAMING_BYTES_MAX: u64 = 1024;

/// After each piece of this many bytes of a body, the client gets the full time again.
pub(crate) const STRIDE_BYTES: usize = PIECE_BYTES;

/// The interim response to a client that waits before it sends its body (RFC 9110 section 15.2.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A request that the handler has not replied to yet.
#[derive(Debug)]
pub(super) struct Request {
    asked: Box<QueuedRequest>,
    body: BodyFraming,
    waits: Waits,
}

/// A request with a body that is arriving.
#[derive(Debug)]
pub(super) struct Coming {
    request: Request,
    upload: ArrivingBody,
    /// Bytes of the body that may still arrive, including chunk framing.
    left: u64,
    /// Bytes that arrived since the deadline was last set.
    since: usize,
}

/// Whether the client waits for `100 Continue` before it sends its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    Yes,
    No,
}

/// The body that the request announces.
fn announced(body: BodyFraming) -> Announced {
    match body {
        BodyFraming::Length(0) => Announced::Nothing,
        BodyFraming::Length(bytes) => Announced::Bytes(bytes),
        BodyFraming::Chunked(_) => Announced::Something,
    }
}

impl Session {
    /// A request for a handler has arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn handler_request_arrived(
        &mut self,
        asked: Box<QueuedRequest>,
        (body, waits): (BodyFraming, Waits),
        actions: &mut impl Actions,
    ) {
        if !actions.may_keep(size_of::<Request>() + asked.kept_bytes()) {
            let answer = PendingResponse::from_reply(
                &asked,
                Reply::refusal(Status::ServiceUnavailable),
                actions,
            );
            return self.answer_behind(body, answer, waits, actions);
        }
        actions.set_deadline(None);
        let reply = actions.asked(&asked.question(announced(body)));
        self.expect = Expect::Us(Box::new(Request { asked, body, waits }));
        if let Some(reply) = reply {
            self.replied(reply, actions);
        }
    }

    /// Takes the handler's reply to the request. The caller must then call
    /// [`Session::bytes_arrived`], at least with an empty slice, to send the reply.
    #[cold]
    #[inline(never)]
    pub fn replied(&mut self, reply: Reply, actions: &mut impl Actions) {
        let Expect::Us(_) = self.expect else {
            return reply.number().into_iter().for_each(|number| actions.left(number));
        };
        let Expect::Us(request) = core::mem::replace(&mut self.expect, Expect::Closed) else {
            return;
        };
        let answer = PendingResponse::from_reply(&request.asked, reply, actions);
        self.reply_is_due(*request, answer, actions);
    }

    /// The memory that the client makes the server keep, in bytes. Not included: the session
    /// itself, the bodies of replies, and the memory that was admitted for request bodies.
    pub fn kept_bytes(&self) -> usize {
        let waits = match &self.expect {
            Expect::Body { answer, .. } | Expect::Reply { answer, .. } => answer.kept_bytes(),
            Expect::Us(request) => size_of::<Request>() + request.asked.kept_bytes(),
            Expect::Upload(coming) => size_of::<Coming>() + coming.request.asked.kept_bytes(),
            Expect::Head { .. } | Expect::Room { .. } | Expect::More { .. } | Expect::Closed => 0,
        };
        waits + self.outgoing.kept_bytes()
    }

    /// Ends the connection, since the client makes the server keep more than its share of memory. A
    /// request that waits for the handler, or for its own body, gets a 503 response.
    #[cold]
    pub fn overdrawn(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::Us(_) | Expect::Body { .. } | Expect::Upload(_) => {
                self.refuse(Status::ServiceUnavailable, actions);
                self.bytes_arrived(&[], actions);
            }
            Expect::Closed => {}
            _ => self.finish(actions),
        }
    }

    /// The number of bytes of replies that the session holds until the client has taken them.
    pub fn held_bytes(&self) -> usize {
        match &self.expect {
            Expect::Body { answer, .. } | Expect::Reply { answer, .. } => answer.own_bytes(),
            _ => self.outgoing.own_bytes(),
        }
    }

    fn reply_is_due(
        &mut self,
        request: Request,
        answer: PendingResponse,
        actions: &mut impl Actions,
    ) {
        actions.set_deadline(Some(RESPONSE_TIMEOUT));
        let Request { body, waits, .. } = request;
        self.expect = Expect::Reply { body, waits, answer: Box::new(answer) };
        self.waits_for = HttpWaitsFor::Bytes;
    }

    /// There may be space now for the head of a reply. The reply begins only if there is space for
    /// its whole head, even if the handler has replied late.
    pub(super) fn reply_goes_out(&mut self, actions: &mut impl Actions) -> HandlerProgress {
        if actions.send_room() < RESPONSE_HEAD_BYTES_MAX {
            return HandlerProgress::AndWait(0, HttpWaitsFor::SendRoom);
        }
        if let Expect::Reply { body, waits, answer } =
            core::mem::replace(&mut self.expect, Expect::Closed)
        {
            self.answer_behind(body, *answer, waits, actions);
        }
        HandlerProgress::AndGoOn(0)
    }

    /// The handler admits the body of the request, up to the limit of `admission`. A longer body
    /// gets a 413 response. The caller must then call [`Session::bytes_arrived`], at least with an
    /// empty slice, to continue. If `admission` has no number, the handler gets the complete body,
    /// by [`Actions::body_arrived`]. If `admission` has a number, the handler gets the body in
    /// pieces, by [`Actions::piece_arrived`] and [`Actions::pieces_ended`].
    #[cold]
    #[inline(never)]
    pub fn admitted(&mut self, admission: BodyAdmission, actions: &mut impl Actions) {
        let Expect::Us(_) = self.expect else { return admission.give_up(actions) };
        let Expect::Us(request) = core::mem::replace(&mut self.expect, Expect::Closed) else {
            return;
        };
        let length =
            if let BodyFraming::Length(length) = request.body { Some(length) } else { None };
        let upload = ArrivingBody::begin(admission, length);
        if upload.is_too_large() {
            let answer = admission.refuse(&request.asked, actions);
            return self.reply_is_due(*request, answer, actions);
        }
        let left = admission.bytes.saturating_mul(2).saturating_add(FRAMING_BYTES_MAX);
        let coming = Coming { request: *request, upload, left, since: 0 };
        actions.set_deadline(Some(REQUEST_TIMEOUT));
        self.expect = Expect::Upload(Box::new(coming));
        self.waits_for = HttpWaitsFor::Bytes;
    }

    /// The handler has taken a piece of the body `number`, so more bytes may arrive.
    #[cold]
    #[inline(never)]
    pub fn piece_taken(&mut self, number: u64, actions: &mut impl Actions) {
        if let Expect::Upload(coming) = &mut self.expect
            && coming.upload.piece_taken(number)
        {
            actions.set_deadline(Some(REQUEST_TIMEOUT));
            self.waits_for = HttpWaitsFor::Bytes;
        }
    }

    /// Bytes of an admitted body have arrived.
    pub(super) fn upload_arrived(
        &mut self,
        bytes: &[u8],
        actions: &mut impl Actions,
    ) -> HandlerProgress {
        let Expect::Upload(coming) = &mut self.expect else { return HandlerProgress::AndGoOn(0) };
        if coming.upload.is_with_handler() {
            return HandlerProgress::AndWait(0, HttpWaitsFor::Us);
        }
        if coming.request.waits == Waits::Yes {
            if actions.send_room() < CONTINUE.len() {
                return HandlerProgress::AndWait(0, HttpWaitsFor::SendRoom);
            }
            actions.send(CONTINUE);
            coming.request.waits = Waits::No;
        }
        let Coming { request, upload, left, since } = &mut **coming;
        let most = upload.room().min(usize::try_from(*left).unwrap_or(usize::MAX));
        let within_limit = bytes.get(..most).unwrap_or(bytes);
        let taken = match request.body.read(within_limit, |part| upload.keep(part)) {
            Err(status) => return self.refuse(status, actions),
            Ok(taken) => taken,
        };
        *left -= taken as u64;
        *since += taken;
        if *since >= STRIDE_BYTES {
            *since = 0;
            actions.set_deadline(Some(REQUEST_TIMEOUT));
        }
        let is_too_large = upload.is_too_large() || *left == 0;
        if !is_too_large && !request.body.is_over() {
            upload.hand_over(actions);
            if upload.is_with_handler() {
                actions.set_deadline(None);
                return HandlerProgress::AndWait(taken, HttpWaitsFor::Us);
            }
            return HandlerProgress::AndWait(taken, HttpWaitsFor::Bytes);
        }
        let Expect::Upload(coming) = core::mem::replace(&mut self.expect, Expect::Closed) else {
            return HandlerProgress::AndGoOn(taken);
        };
        if is_too_large {
            self.upload_is_too_large(*coming, actions)
        } else {
            self.upload_ended(*coming, actions)
        }
        HandlerProgress::AndGoOn(taken)
    }

    fn upload_is_too_large(&mut self, coming: Coming, actions: &mut impl Actions) {
        let mut answer = coming.upload.admission().refuse(&coming.request.asked, actions);
        if !coming.request.body.is_over() {
            answer.ends_connection();
        }
        self.reply_is_due(Request { body: BodyFraming::NONE, ..coming.request }, answer, actions);
    }

    fn upload_ended(&mut self, coming: Coming, actions: &mut impl Actions) {
        let Coming { mut request, upload, .. } = coming;
        actions.set_deadline(None);
        request.body = BodyFraming::NONE;
        let reply = upload.end(&request.asked, actions);
        self.expect = Expect::Us(Box::new(request));
        self.waits_for = HttpWaitsFor::Us;
        if let Some(reply) = reply {
            self.replied(reply, actions);
        }
    }

    /// Gives up a body that was arriving, since the connection ends.
    pub(super) fn upload_given_up(&mut self, actions: &mut impl Actions) {
        if let Expect::Upload(coming) = &self.expect {
            coming.upload.admission().give_up(actions);
            self.expect = Expect::Closed;
        }
    }
}
