//! A session: the state of one HTTP/1.1 connection between two events.
//!
//! Each variant of [`Expect`] is a wait point and has one handler function. `answer.rs` decides the
//! response to a request, and `outgoing.rs` sends its bytes.
//!
//! A request body is read to its end before the response is sent. So a request with a malformed
//! body gets only a 400 response. A long body is not awaited: the response is sent at once, and the
//! connection ends after it (RFC 9112 section 9.6). The same happens if the client waits for `100
//! Continue` (RFC 9110 section 10.1.1), since such a client may or may not send the body. Requests
//! for a handler differ: see `handler.rs`.
//!
//! Implements: RFC 9112 sections 2.2, 9.3 (persistence), 9.5 and 9.6; RFC 9110 section 10.1.1.

mod cached;
mod handler;
mod open;

use alloc::boxed::Box;

use machine::Micros;

use crate::actions::{Actions, ExchangeSummary};
use crate::answer::{Course, PendingResponse};
use crate::framing::BodyFraming;
use crate::head::{self, FieldName, RequestHead, Start};
use crate::open_reply::ReplyPace;
use crate::outgoing::OutgoingBody;
use crate::response::{RESPONSE_HEAD_BYTES_MAX, ResponseHead};
use crate::types::{After, HttpsPolicy, Status};

pub(crate) use handler::STRIDE_BYTES;
use handler::{Coming, Request, Waits};

/// The time for which a connection may be open without a request.
pub(crate) const IDLE_TIMEOUT: Micros = Micros::from_secs(60);
/// The time that a client has for a whole head, and for a whole body. Single bytes do not extend
/// it.
pub(crate) const REQUEST_TIMEOUT: Micros = Micros::from_secs(30);
/// The time that a client has to free buffer space for more of a response.
pub(crate) const RESPONSE_TIMEOUT: Micros = Micros::from_secs(60);
/// The longest body that is read to keep a connection open, in bytes with chunk framing.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// The connection of one client.
#[derive(Debug)]
pub struct Session {
    expect: Expect,
    waits_for: HttpWaitsFor,
    stopping: bool,
    outgoing: OutgoingBody,
}

const _: () = assert!(size_of::<Session>() <= 112);

/// The event that the session waits for. Each variant is a wait point with one handler function.
#[derive(Debug)]
enum Expect {
    /// A request. The first `searched` bytes of its head were already searched for its end.
    Head { searched: usize },
    /// The rest of a request body, of which at most `left` bytes are read. After that the answer is
    /// sent.
    Body { body: BodyFraming, left: usize, answer: Box<PendingResponse> },
    /// The handler's reply.
    Us(Box<Request>),
    /// The rest of an admitted request body.
    Upload(Box<Coming>),
    /// Space for the head of a reply. If the request has a body that the handler did not admit,
    /// that body is read first.
    Reply { body: BodyFraming, waits: Waits, answer: Box<PendingResponse> },
    /// Space for the rest of a response.
    Room { after: After },
    /// More bytes from the handler of an open reply.
    More { after: After },
    /// The session is over.
    Closed,
}

/// The event that must happen before the session takes bytes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpWaitsFor {
    /// Only the arrival of more bytes.
    Bytes,
    /// Space for a response, or for more of a response. When there is space, offer the bytes again,
    /// or offer none.
    SendRoom,
    /// The handler. Offer the bytes again after it has replied. In HTTP/2 new bytes may be worth
    /// offering earlier.
    Us,
    /// The session is over.
    Nothing,
}

/// The result of a handler function: the number of bytes that it took, and the next step.
enum HandlerProgress {
    /// The function took this many bytes, and the next handler function may have work.
    AndGoOn(usize),
    /// The function took this many bytes, and waits for this event.
    AndWait(usize, HttpWaitsFor),
}

impl Session {
    /// A client has connected. The client sends first.
    pub fn connected(actions: &mut impl Actions) -> Session {
        actions.set_deadline(Some(IDLE_TIMEOUT));
        Session {
            expect: Expect::Head { searched: 0 },
            waits_for: HttpWaitsFor::Bytes,
            stopping: false,
            outgoing: OutgoingBody::Nothing,
        }
    }

    /// The event that must happen before it is useful to offer bytes.
    pub fn waits_for(&self) -> HttpWaitsFor {
        self.waits_for
    }

    /// Whether no request is in progress: every request with a complete head has its response.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.expect, Expect::Head { .. })
    }

    /// Bytes have arrived, or there may be space now. Returns the number of bytes that the session
    /// took. Offer the rest again, with the bytes that follow it, after the event of
    /// [`Session::waits_for`]. The rest is at most [`crate::HEAD_BYTES_MAX`] bytes, unless the
    /// session waits for space or for the handler.
    pub fn bytes_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> usize {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            match self.step(rest, actions) {
                HandlerProgress::AndGoOn(count) => taken += count,
                HandlerProgress::AndWait(count, event) => {
                    self.waits_for = event;
                    return taken + count;
                }
            }
        }
    }

    fn step(&mut self, bytes: &[u8], actions: &mut impl Actions) -> HandlerProgress {
        match &mut self.expect {
            Expect::Head { searched } => {
                let searched = *searched;
                self.head_bytes_arrived(bytes, searched, actions)
            }
            Expect::Body { body, left, .. } => {
                let within_limit = bytes.get(..*left).unwrap_or(bytes);
                match body.pass_over(within_limit) {
                    Err(status) => self.refuse(status, actions),
                    Ok(taken) => {
                        *left -= taken;
                        match (body.is_over(), *left) {
                            (false, 1..) => HandlerProgress::AndWait(taken, HttpWaitsFor::Bytes),
                            (is_over, _) => self.body_ended(taken, is_over, actions),
                        }
                    }
                }
            }
            Expect::Us(_) => HandlerProgress::AndWait(0, HttpWaitsFor::Us),
            Expect::Upload(_) => self.upload_arrived(bytes, actions),
            Expect::Reply { .. } => self.reply_goes_out(actions),
            Expect::Room { after } => {
                let after = *after;
                self.room_may_be_there(after, actions)
            }
            Expect::More { after } => {
                let after = *after;
                self.more_goes_out(bytes.len(), after, actions)
            }
            // All bytes are taken: unread bytes would make TCP send a reset, which could overtake
            // the response.
            Expect::Closed => HandlerProgress::AndWait(bytes.len(), HttpWaitsFor::Nothing),
        }
    }

    fn head_bytes_arrived(
        &mut self,
        bytes: &[u8],
        searched: usize,
        actions: &mut impl Actions,
    ) -> HandlerProgress {
        if bytes.is_empty() {
            return HandlerProgress::AndWait(0, HttpWaitsFor::Bytes);
        }
        if actions.send_room() < RESPONSE_HEAD_BYTES_MAX {
            return HandlerProgress::AndWait(0, HttpWaitsFor::SendRoom);
        }
        if let Some((head, page, place)) = actions.response_cache().recall(bytes)
            && actions.https_policy() != HttpsPolicy::Redirect
        {
            self.cached_request_arrived(head, page, place, actions);
            return HandlerProgress::AndGoOn(head.len());
        }
        let mut room = head::FieldBuffer::new();
        if searched == 0
            && let Ok(head) = RequestHead::read(bytes, &mut room)
        {
            return self.head_arrived(bytes, &head, actions);
        }
        match head::start(bytes, searched) {
            Start::EmptyLine => HandlerProgress::AndGoOn(2),
            Start::Bad(status) => self.refuse(status, actions),
            Start::Partial(count) => {
                if searched == 0 && count > 0 {
                    actions.set_deadline(Some(REQUEST_TIMEOUT));
                }
                self.expect = Expect::Head { searched: count };
                HandlerProgress::AndWait(0, HttpWaitsFor::Bytes)
            }
            Start::Whole => {
                room.clear();
                match RequestHead::read(bytes, &mut room) {
                    Ok(head) => self.head_arrived(bytes, &head, actions),
                    Err(status) => self.refuse(status, actions),
                }
            }
        }
    }

    /// The head of a request is complete. Sends the response, or waits for the body. Refuses a
    /// request without a known end.
    fn head_arrived(
        &mut self,
        bytes: &[u8],
        head: &RequestHead<'_, '_>,
        actions: &mut impl Actions,
    ) -> HandlerProgress {
        match self.request_arrived(bytes, head, actions) {
            Ok(()) => HandlerProgress::AndGoOn(head.length),
            Err(status) => self.refuse(status, actions),
        }
    }

    /// Reads the framing of a request, and answers it or passes it to a handler. `bytes` begin with
    /// the head.
    ///
    /// Errors: the end of the request cannot be known.
    fn request_arrived(
        &mut self,
        bytes: &[u8],
        head: &RequestHead<'_, '_>,
        actions: &mut impl Actions,
    ) -> Result<(), Status> {
        let body = BodyFraming::of(head)?;
        let course = PendingResponse::to(head, actions)?;
        let expects_continue = !body.is_over() && head.lists(FieldName::Expect, "100-continue");
        let waits = if expects_continue { Waits::Yes } else { Waits::No };
        let answer = match course {
            Course::Known(answer) => answer,
            Course::Handler(asked) => {
                self.handler_request_arrived(asked, (body, waits), actions);
                return Ok(());
            }
        };
        actions.answered(|| exchange(head.method, head.target, &answer));
        if let Some(page) = answer.page().filter(|_| body.is_over() && !head.has_secret()) {
            actions.response_cache().keep(bytes, head.length, page);
        }
        self.answer_behind(body, answer, waits, actions);
        Ok(())
    }

    /// Sends the answer at once, or first waits for the body.
    fn answer_behind(
        &mut self,
        body: BodyFraming,
        mut answer: PendingResponse,
        waits: Waits,
        actions: &mut impl Actions,
    ) {
        let is_long = matches!(body, BodyFraming::Length(length) if length > BODY_BYTES_MAX as u64);
        if !body.is_over() && !is_long && waits == Waits::No {
            actions.set_deadline(Some(REQUEST_TIMEOUT));
            self.expect = Expect::Body { body, left: BODY_BYTES_MAX, answer: Box::new(answer) };
            self.waits_for = HttpWaitsFor::Bytes;
            return;
        }
        if self.stopping || !body.is_over() {
            answer.ends_connection();
        }
        self.respond(&mut answer, actions);
    }

    /// The body has ended, or is too long to wait for.
    fn body_ended(
        &mut self,
        taken: usize,
        is_over: bool,
        actions: &mut impl Actions,
    ) -> HandlerProgress {
        let Expect::Body { mut answer, .. } = core::mem::replace(&mut self.expect, Expect::Closed)
        else {
            return HandlerProgress::AndGoOn(taken);
        };
        if self.stopping || !is_over {
            answer.ends_connection();
        }
        self.respond(&mut answer, actions);
        HandlerProgress::AndGoOn(taken)
    }

    fn respond(&mut self, answer: &mut PendingResponse, actions: &mut impl Actions) {
        let mut head = ResponseHead::default();
        self.outgoing = answer.begin(&mut head, actions);
        self.outgoing.send_behind(head.end(), actions);
        if let Some(open) = self.outgoing.open_reply() {
            actions.set_deadline(Some(if let ReplyPace::Handler { silence, .. } = open.pace {
                silence
            } else {
                RESPONSE_TIMEOUT
            }));
            self.expect = Expect::More { after: answer.after() };
            if answer.is_in_chunks() {
                self.outgoing.begin_chunks();
            }
            if self.stopping {
                self.outgoing.end_if_handler_paced();
            }
        } else {
            // The client wants only the head, so the open reply has already ended.
            answer.number().into_iter().for_each(|number| actions.left(number));
            self.expect = Expect::Room { after: answer.after() };
        }
        // The session does not wait for space yet. The next step tries to send the rest.
        self.waits_for = HttpWaitsFor::Bytes;
    }

    /// Continues to send the response. Reads the next request when the whole response is queued.
    /// Until all of it is queued, the deadline restarts whenever the client takes bytes.
    fn room_may_be_there(&mut self, after: After, actions: &mut impl Actions) -> HandlerProgress {
        let before = (self.waits_for == HttpWaitsFor::SendRoom).then(|| actions.send_room());
        if !self.outgoing.send_on(actions) {
            if before != Some(actions.send_room()) {
                actions.set_deadline(Some(RESPONSE_TIMEOUT));
            }
            return HandlerProgress::AndWait(0, HttpWaitsFor::SendRoom);
        }
        if after == After::Close || self.stopping {
            self.finish(actions);
        } else {
            self.expect = Expect::Head { searched: 0 };
            actions.set_deadline(Some(IDLE_TIMEOUT));
        }
        HandlerProgress::AndGoOn(0)
    }

    /// Answers a request without a known end, and ends the session.
    fn refuse(&mut self, status: Status, actions: &mut impl Actions) -> HandlerProgress {
        self.upload_given_up(actions);
        self.open_reply_ended(actions);
        let mut answer = PendingResponse::refusal(status, false, actions.site());
        actions.answered(|| ExchangeSummary {
            method: "",
            target: "",
            status: status.code(),
            bytes: answer.body_bytes(),
        });
        self.respond(&mut answer, actions);
        HandlerProgress::AndGoOn(0)
    }

    /// The deadline that was set last has expired.
    pub fn deadline_expired(&mut self, actions: &mut impl Actions) {
        match self.expect {
            Expect::More { .. } if let Some(sign_of_life) = self.sign_of_life_is_due() => {
                self.outgoing.say(sign_of_life);
                self.bytes_arrived(&[], actions);
            }
            Expect::Head { searched: 0 }
            | Expect::Room { .. }
            | Expect::More { .. }
            | Expect::Us(_)
            | Expect::Reply { .. } => self.finish(actions),
            Expect::Head { .. } | Expect::Body { .. } | Expect::Upload(_) => {
                self.refuse(Status::RequestTimeout, actions);
                self.bytes_arrived(&[], actions);
            }
            Expect::Closed => {}
        }
    }

    /// The server is about to stop. Requests that have arrived are still answered.
    pub fn stopping(&mut self, actions: &mut impl Actions) {
        self.stopping = true;
        match self.expect {
            Expect::Head { .. } => self.finish(actions),
            Expect::More { .. } => self.outgoing.end_if_handler_paced(),
            _ => {}
        }
    }

    /// The client sends no more bytes, or the connection is lost or no longer useful. If the client
    /// only stopped sending, this must be called when all earlier bytes have been offered and the
    /// session waits for bytes.
    pub fn peer_closed(&mut self, actions: &mut impl Actions) {
        if !matches!(self.expect, Expect::Closed) {
            self.finish(actions);
        }
    }

    fn finish(&mut self, actions: &mut impl Actions) {
        self.upload_given_up(actions);
        self.open_reply_ended(actions);
        self.expect = Expect::Closed;
        self.waits_for = HttpWaitsFor::Nothing;
        self.outgoing = OutgoingBody::Nothing;
        actions.set_deadline(None);
        actions.close();
    }
}

/// The log entry for a well-formed request. `method` and `target`: visible ASCII.
fn exchange<'a>(
    method: &'a [u8],
    target: &'a [u8],
    answer: &PendingResponse,
) -> ExchangeSummary<'a> {
    let [method, target] =
        [method, target].map(|word| core::str::from_utf8(word).unwrap_or_default());
    ExchangeSummary { method, target, status: answer.status().code(), bytes: answer.body_bytes() }
}
