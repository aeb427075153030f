//! Questions on a connection of HTTP/1.1: one at a time, since nothing that follows a request is looked at before its answer.
//!
//! A body stays where it is until its sender is admitted: then it is asked for, if the client waits for that, and kept.

use alloc::boxed::Box;

use crate::actions::Actions;
use crate::answer::Answer;
use crate::framing::Body;
use crate::question::Asked;
use crate::reply::Reply;
use crate::response::RESPONSE_HEAD_BYTES_MAX;
use crate::types::{Announced, Status};
use crate::upload::{Admission, PIECE_BYTES, Upload};

use super::{Expect, REQUEST_TIMEOUT, RESPONSE_TIMEOUT, Session, Taken, WaitsFor};

/// Bytes that chunks may be framed with, beside as many as what is in them.
const FRAMING_BYTES_MAX: u64 = 1024;

/// Bytes of a body for which its sender has all of the time again.
pub(crate) const STRIDE_BYTES: usize = PIECE_BYTES;

/// What to tell a client that waits to be told to send its body (RFC 9110 section 15.2.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A question without an answer.
#[derive(Debug)]
pub(super) struct Request {
    asked: Box<Asked>,
    body: Body,
    waits: Waits,
}

/// A question whose body comes.
#[derive(Debug)]
pub(super) struct Coming {
    request: Request,
    upload: Upload,
    /// Bytes of the body that may still come, what frames chunks counted in.
    left: u64,
    /// Bytes that came since the client was given time.
    since: usize,
}

/// Whether the client waits to be told to send its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    Yes,
    No,
}

/// What was announced.
fn announced(body: Body) -> Announced {
    match body {
        Body::Length(0) => Announced::Nothing,
        Body::Length(bytes) => Announced::Bytes(bytes),
        Body::Chunked(_) => Announced::Something,
    }
}

impl Session {
    /// Something is asked that a program answers.
    #[cold]
    #[inline(never)]
    pub(super) fn question_arrived(
        &mut self,
        asked: Box<Asked>,
        (body, waits): (Body, Waits),
        actions: &mut impl Actions,
    ) {
        if !actions.may_keep(size_of::<Request>() + asked.kept_bytes()) {
            let answer =
                Answer::to_question(&asked, Reply::refusal(Status::ServiceUnavailable), actions);
            return self.answer_behind(body, answer, waits, actions);
        }
        actions.set_deadline(None);
        actions.asked(&asked.question(announced(body)));
        self.expect = Expect::Us(Box::new(Request { asked, body, waits }));
    }

    /// This is the answer to what was asked. It goes out when the session is offered bytes, or none.
    #[cold]
    #[inline(never)]
    pub fn replied(&mut self, reply: Reply, actions: &mut impl Actions) {
        let Expect::Us(_) = self.expect else {
            return reply.number().into_iter().for_each(|number| actions.left(number));
        };
        let Expect::Us(request) = core::mem::replace(&mut self.expect, Expect::Closed) else {
            return;
        };
        let answer = Answer::to_question(&request.asked, reply, actions);
        self.reply_is_due(*request, answer, actions);
    }

    /// Bytes of memory that the client makes us keep, but for the session itself, the bodies of
    /// replies, and what was admitted of the bodies of requests.
    pub fn kept_bytes(&self) -> usize {
        let waits = match &self.expect {
            Expect::Body { answer, .. } | Expect::Reply { answer, .. } => answer.kept_bytes(),
            Expect::Us(request) => size_of::<Request>() + request.asked.kept_bytes(),
            Expect::Upload(coming) => size_of::<Coming>() + coming.request.asked.kept_bytes(),
            Expect::Head { .. } | Expect::Room { .. } | Expect::More { .. } | Expect::Closed => 0,
        };
        waits + self.outgoing.kept_bytes()
    }

    /// The client makes us keep more than its share: the connection ends.
    #[cold]
    pub fn overdrawn(&mut self, actions: &mut impl Actions) {
        if !matches!(self.expect, Expect::Closed) {
            self.finish(actions);
        }
    }

    /// Bytes of replies that the session holds until the client has taken them.
    pub fn held_bytes(&self) -> usize {
        match &self.expect {
            Expect::Reply { answer, .. } => answer.own_bytes(),
            _ => self.outgoing.own_bytes(),
        }
    }

    fn reply_is_due(&mut self, request: Request, answer: Answer, actions: &mut impl Actions) {
        actions.set_deadline(Some(RESPONSE_TIMEOUT));
        let Request { body, waits, .. } = request;
        self.expect = Expect::Reply { body, waits, answer: Box::new(answer) };
        self.waits_for = WaitsFor::Bytes;
    }

    /// There may be room now for the head of a reply. That it came long after its question is no reason to send half of it.
    pub(super) fn reply_goes_out(&mut self, actions: &mut impl Actions) -> Taken {
        if actions.send_room() < RESPONSE_HEAD_BYTES_MAX {
            return Taken::AndWait(0, WaitsFor::SendRoom);
        }
        if let Expect::Reply { body, waits, answer } =
            core::mem::replace(&mut self.expect, Expect::Closed)
        {
            self.answer_behind(body, *answer, waits, actions);
        }
        Taken::AndGoOn(0)
    }

    /// The body of what was asked is wanted, up to so many bytes of it; a longer one is answered by 413. It is handed over when it is there and the session is offered bytes, or
    /// none, by [`Actions::body_arrived`]; or as it comes, if the admission has a number, by [`Actions::piece_arrived`], and its end by [`Actions::pieces_ended`].
    #[cold]
    #[inline(never)]
    pub fn admitted(&mut self, admission: Admission, actions: &mut impl Actions) {
        let Expect::Us(_) = self.expect else { return admission.give_up(actions) };
        let Expect::Us(request) = core::mem::replace(&mut self.expect, Expect::Closed) else {
            return;
        };
        let length = if let Body::Length(length) = request.body { Some(length) } else { None };
        let upload = Upload::begin(admission, length);
        if upload.is_too_large() {
            let answer = admission.refuse(&request.asked, actions);
            return self.reply_is_due(*request, answer, actions);
        }
        let left = admission.bytes.saturating_mul(2).saturating_add(FRAMING_BYTES_MAX);
        let coming = Coming { request: *request, upload, left, since: 0 };
        actions.set_deadline(Some(REQUEST_TIMEOUT));
        self.expect = Expect::Upload(Box::new(coming));
        self.waits_for = WaitsFor::Bytes;
    }

    /// The program has taken a piece of the body with this number: more may come.
    #[cold]
    #[inline(never)]
    pub fn piece_taken(&mut self, number: u64, actions: &mut impl Actions) {
        if let Expect::Upload(coming) = &mut self.expect
            && coming.upload.piece_taken(number)
        {
            actions.set_deadline(Some(REQUEST_TIMEOUT));
            self.waits_for = WaitsFor::Bytes;
        }
    }

    /// Bytes of a body whose sender was admitted.
    pub(super) fn upload_arrived(&mut self, bytes: &[u8], actions: &mut impl Actions) -> Taken {
        let Expect::Upload(coming) = &mut self.expect else { return Taken::AndGoOn(0) };
        if coming.upload.is_with_program() {
            return Taken::AndWait(0, WaitsFor::Us);
        }
        if coming.request.waits == Waits::Yes {
            if actions.send_room() < CONTINUE.len() {
                return Taken::AndWait(0, WaitsFor::SendRoom);
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
            if upload.is_with_program() {
                actions.set_deadline(None);
                return Taken::AndWait(taken, WaitsFor::Us);
            }
            return Taken::AndWait(taken, WaitsFor::Bytes);
        }
        let Expect::Upload(coming) = core::mem::replace(&mut self.expect, Expect::Closed) else {
            return Taken::AndGoOn(taken);
        };
        if is_too_large {
            self.upload_is_too_large(*coming, actions)
        } else {
            self.upload_ended(*coming, actions)
        }
        Taken::AndGoOn(taken)
    }

    fn upload_is_too_large(&mut self, coming: Coming, actions: &mut impl Actions) {
        let mut answer = coming.upload.admission().refuse(&coming.request.asked, actions);
        if !coming.request.body.is_over() {
            answer.ends_connection();
        }
        self.reply_is_due(Request { body: Body::NONE, ..coming.request }, answer, actions);
    }

    fn upload_ended(&mut self, coming: Coming, actions: &mut impl Actions) {
        let Coming { mut request, upload, .. } = coming;
        actions.set_deadline(None);
        request.body = Body::NONE;
        upload.end(&request.asked, actions);
        self.expect = Expect::Us(Box::new(request));
        self.waits_for = WaitsFor::Us;
    }

    /// A body that was coming is of no use any more.
    pub(super) fn upload_given_up(&mut self, actions: &mut impl Actions) {
        if let Expect::Upload(coming) = &self.expect {
            coming.upload.admission().give_up(actions);
            self.expect = Expect::Closed;
        }
    }
}
