//! An HTTP connection, and its request until the reply.
//!
//! A session has at most one pending request on its own core. Such a request is kept in the
//! connection, and continues in the session's turn. The core that owns the account, or the core
//! that stores the certificates, answers all other requests.
//!
//! Invariant: the memory of bodies on this core is bounded (`bodies_max`). The bytes of a form
//! count from its admission until its answer. The bytes of an answer count until the client has
//! taken them.

use alloc::boxed::Box;

use accounts::logins::Decision;
use budget::Charge;
use certificates::{CertificateAction, UPLOAD_BYTES_MAX, described};
use http::{BodyAdmission, Reply, Status};
use mail::PasswordMark;
use store::AccountId;
use webmail::handler_reply::HandlerReply;
use webmail::{LoginFacts, ProofFailure, Request};

use super::context::{HttpCall, WebContext};
use super::host::{HttpHost, kept_for};
use super::passwords::PasswordPreparation;
use super::pending::{LoginPurpose, PendingRequest, Refused};
use super::session::HttpSession;
use super::shared::busy;

/// The number of unread response bytes above which a client's next request waits. So clients that
/// never read their responses cannot exhaust the memory.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// The number of body bytes above which no certificate upload is admitted. The rest of the memory
/// for bodies is for the webmail.
const CERTIFICATES_BYTES_MAX: usize = 8 * UPLOAD_BYTES_MAX;

/// The number of bytes that each connection may make the server keep even if memory is short: see
/// [`budget`].
pub const KEPT_BYTES_LEAST: u32 = 2048;

/// One HTTP connection.
pub struct HttpConversation {
    session: HttpSession,
    /// The session's request, while it waits on this core.
    pending: Option<Box<PendingRequest>>,
    /// The bytes of replies that the session held at the last count.
    held: usize,
    /// The charge for all other memory that the client makes the server keep.
    charge: Charge,
}

impl HttpConversation {
    /// A client has connected.
    pub fn begin(call: &mut HttpCall<'_>) -> HttpConversation {
        HttpConversation::with_session(UNREAD_BYTES_MAX, call, |host| {
            HttpSession::One(http::Session::connected(host))
        })
    }

    /// A client has connected and has negotiated HTTP/2.
    pub fn begin_two(call: &mut HttpCall<'_>) -> HttpConversation {
        HttpConversation::with_session(usize::MAX, call, |host| {
            HttpSession::Two(Box::new(http::h2::Http2Session::connected(host)))
        })
    }

    fn with_session(
        unread_bytes_max: usize,
        call: &mut HttpCall<'_>,
        begin: impl FnOnce(&mut HttpHost<'_, '_>) -> HttpSession,
    ) -> HttpConversation {
        let (mut pending, charge) = (None, Charge::new(KEPT_BYTES_LEAST));
        let session = begin(&mut HttpHost {
            call,
            pending: &mut pending,
            charge: &charge,
            unread_bytes_max,
            replied_bytes: 0,
        });
        let mut conversation = HttpConversation { session, pending, held: 0, charge };
        conversation.settle(call);
        conversation
    }

    /// The event that the session waits for.
    pub fn waits_for(&self) -> http::HttpWaitsFor {
        match &self.session {
            HttpSession::One(session) => session.waits_for(),
            HttpSession::Two(session) => session.waits_for(),
        }
    }

    /// Whether no request is in progress.
    pub fn is_between_requests(&self) -> bool {
        match &self.session {
            HttpSession::One(session) => session.is_between_requests(),
            HttpSession::Two(session) => session.is_between_requests(),
        }
    }

    /// Runs `act` on the session, and then charges the client for its memory.
    pub fn with<R>(
        &mut self,
        call: &mut HttpCall<'_>,
        act: impl FnOnce(&mut HttpSession, &mut HttpHost<'_, '_>) -> R,
    ) -> R {
        let done = self.let_act(call, act);
        self.settle(call);
        if self.held > 0 {
            self.count_held(call);
        }
        done
    }

    /// Runs `act` on the session, without charging the client.
    fn let_act<R>(
        &mut self,
        call: &mut HttpCall<'_>,
        act: impl FnOnce(&mut HttpSession, &mut HttpHost<'_, '_>) -> R,
    ) -> R {
        // In HTTP/2, unread bytes of one stream must not block the other streams. So an HTTP/2
        // session may use the whole buffer.
        let unread_bytes_max =
            if let HttpSession::One(_) = self.session { UNREAD_BYTES_MAX } else { usize::MAX };
        let HttpConversation { session, pending, charge, .. } = self;
        let mut host = HttpHost { call, pending, charge, unread_bytes_max, replied_bytes: 0 };
        let done = act(session, &mut host);
        let replied_bytes = host.replied_bytes;
        if replied_bytes > 0 {
            call.web.replies -= replied_bytes;
            self.count_held(call);
        }
        done
    }

    /// Charges the client for the memory that it now makes the server keep. A client above its
    /// share gets an error, and its connection ends.
    #[inline]
    fn settle(&mut self, call: &mut HttpCall<'_>) {
        let kept = self.kept_bytes();
        if kept != self.charge.bytes()
            && call.cx.memory.charge(&mut self.charge, call.caller.address, kept).is_err()
        {
            self.end_overdrawn(call);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_overdrawn(&mut self, call: &mut HttpCall<'_>) {
        self.give_up_pending(call);
        self.let_act(call, |session, host| session.overdrawn(host));
        let kept = self.kept_bytes();
        if call.cx.memory.charge(&mut self.charge, call.caller.address, kept).is_err() {
            call.cx.connections.reset(call.caller.connection);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.session.kept_bytes() + kept_for(self.pending.as_deref())
    }

    /// The number of bytes that the client makes the server keep without a charge.
    pub fn uncharged(&self) -> usize {
        self.kept_bytes().saturating_sub(self.charge.bytes())
    }

    /// The charge for the client's memory.
    pub fn charge(&self) -> &Charge {
        &self.charge
    }

    /// Continues the pending request, since the session's turn has come.
    #[cold]
    #[inline(never)]
    pub fn resumed(&mut self, call: &mut HttpCall<'_>) {
        self.pending_resumed(call);
        self.settle(call);
    }

    fn pending_resumed(&mut self, call: &mut HttpCall<'_>) {
        let decision = match self.pending.as_deref_mut() {
            // The turn was for an earlier request.
            None
            | Some(PendingRequest::FormAdmission { .. } | PendingRequest::UploadAdmission { .. }) =>
            {
                return;
            }
            Some(PendingRequest::Admission(_)) => None,
            Some(PendingRequest::NewPassword(making)) => {
                if let Some(request) = making.step(call) {
                    self.pending = None;
                    call.web.ask(call.caller.connection.0, request);
                }
                return;
            }
            Some(PendingRequest::Login { attempt, .. }) => {
                let caller = call.caller;
                let (logins, mut cx) = call.cx.logins();
                match logins.decide(attempt, caller, &mut cx) {
                    Some(Decision::HeldBack) | None => return,
                    decision => decision,
                }
            }
        };
        match self.take_pending() {
            Some(PendingRequest::Admission(bytes)) => self.admit(BodyAdmission::whole(bytes), call),
            Some(PendingRequest::Login { attempt, purpose }) => {
                call.cx.logins.end(&attempt, call.cx.turn.now);
                match (decision, purpose) {
                    (Some(Decision::Granted(account)), LoginPurpose::Certificates(action)) => {
                        let is_administrator =
                            call.cx.directory.is_administrator(call.cx.store, account);
                        self.granted(action, is_administrator, call);
                    }
                    (
                        Some(Decision::Granted(account)),
                        LoginPurpose::Webmail { program, next, draft, .. },
                    ) => {
                        let password = password_of(account, call);
                        let arrival = LoginFacts { password, from: call.caller.address, program };
                        call.web.ask(
                            call.caller.connection.0,
                            Request::Begin(account, arrival, next, draft),
                        );
                    }
                    (Some(Decision::Granted(account)), LoginPurpose::Password(new)) => {
                        let replaced = password_of(account, call);
                        let making = Box::new(PasswordPreparation::begin(new, replaced, call));
                        self.pending = Some(Box::new(PendingRequest::NewPassword(making)));
                    }
                    (decision, purpose) => {
                        let why = match decision {
                            Some(Decision::TooMany) => ProofFailure::TooMany,
                            Some(Decision::NotReady) => ProofFailure::NotReady,
                            _ => ProofFailure::Wrong,
                        };
                        self.refused(&purpose, why, call);
                    }
                }
            }
            Some(
                PendingRequest::FormAdmission { .. }
                | PendingRequest::UploadAdmission { .. }
                | PendingRequest::NewPassword(_),
            )
            | None => {
                unreachable!("the pending request waits for a turn or a login")
            }
        }
    }

    fn take_pending(&mut self) -> Option<PendingRequest> {
        self.pending.take().map(|pending| *pending)
    }

    /// Answers a request after its login has failed.
    fn refused(&mut self, purpose: &LoginPurpose, why: ProofFailure, call: &mut HttpCall<'_>) {
        match purpose.refused(why, &call.web.hostname) {
            Refused::Reply(reply) => self.replied(reply, call),
            Refused::Ask(request) => call.web.ask(call.caller.connection.0, request),
        }
    }

    /// Admits a body if there is memory for it. Otherwise refuses the request.
    fn admit(&mut self, admission: BodyAdmission, call: &mut HttpCall<'_>) {
        if call.web.bodies + admission.memory > call.web.bodies_max {
            admission
                .number
                .into_iter()
                .for_each(|number| call.web.leave(call.caller.connection.0, number));
            return self.replied(busy(), call);
        }
        call.web.bodies += admission.memory;
        self.with(call, |session, host| session.admitted(admission, host));
    }

    /// Continues a request for the certificates after its login has succeeded.
    fn granted(
        &mut self,
        action: CertificateAction,
        is_administrator: bool,
        call: &mut HttpCall<'_>,
    ) {
        let reply = match action {
            _ if !is_administrator => Reply::refusal(Status::Forbidden),
            CertificateAction::Read => {
                Reply::text(Status::Ok, described(call.cx.connections.tls().certificates()))
            }
            CertificateAction::Replace
                if call.web.bodies + UPLOAD_BYTES_MAX > CERTIFICATES_BYTES_MAX =>
            {
                Reply::text(
                    Status::ServiceUnavailable,
                    "Too many certificate uploads at the same time. Try again in a moment.\n"
                        .into(),
                )
            }
            CertificateAction::Replace => {
                return self.admit(BodyAdmission::whole(UPLOAD_BYTES_MAX), call);
            }
        };
        self.replied(reply, call);
    }

    /// Passes the reply to the session. If replies take too much memory already, the client gets a
    /// short error instead.
    pub fn replied(&mut self, reply: Reply, call: &mut HttpCall<'_>) {
        let number = reply.number();
        let reply = call.web.within_limit(reply);
        if let Some(number) = number.filter(|_| reply.number().is_none()) {
            call.web.leave(call.caller.connection.0, number);
        }
        self.with(call, |session, host| session.replied(reply, host));
        self.count_held(call);
    }

    /// Counts the bytes of replies that the session holds now.
    #[cold]
    #[inline(never)]
    fn count_held(&mut self, call: &mut HttpCall<'_>) {
        let held = self.session.held_bytes();
        call.web.replies = call.web.replies - self.held + held;
        self.held = held;
    }

    /// The connection's deadline has expired. It belongs to the session, or to the delayed answer
    /// to a failed login.
    pub fn deadline_expired(&mut self, call: &mut HttpCall<'_>) {
        let held_back =
            self.pending.take_if(|pending| pending.is_held_back()).map(|pending| *pending);
        match held_back {
            Some(PendingRequest::Login { attempt, purpose }) => {
                call.cx.logins.end(&attempt, call.cx.turn.now);
                self.refused(&purpose, ProofFailure::Wrong, call);
            }
            _ => self.with(call, |session, host| session.deadline_expired(host)),
        }
        self.settle(call);
    }

    /// The connection has ended. Releases its memory, and abandons its pending request.
    pub fn ended(&mut self, call: &mut HttpCall<'_>) {
        call.web.replies -= self.held;
        call.cx.memory.release(&mut self.charge, call.caller.address);
        self.give_up_pending(call);
    }

    /// Gives up a request that is pending on this core. A request stays if the core of the account
    /// has still to decide on the admission of its body.
    fn give_up_pending(&mut self, call: &mut HttpCall<'_>) {
        match self.pending.take_if(|pending| !pending.awaits_admission()).as_deref() {
            Some(PendingRequest::Login { attempt, .. }) => {
                let WebContext { logins, compute, turn, .. } = &mut call.cx;
                logins.abandon(attempt, turn.now, compute);
            }
            Some(PendingRequest::NewPassword(making)) => making.abandoned(call.cx.compute),
            Some(
                PendingRequest::Admission(_)
                | PendingRequest::FormAdmission { .. }
                | PendingRequest::UploadAdmission { .. },
            )
            | None => {}
        }
    }

    /// A request handler of this or another core has replied to a request.
    pub fn webmail_replied(&mut self, reply: HandlerReply, call: &mut HttpCall<'_>) {
        self.pending_answered(reply, call);
        self.settle(call);
    }

    fn pending_answered(&mut self, reply: HandlerReply, call: &mut HttpCall<'_>) {
        match reply {
            HandlerReply::More(number, bytes) => self.continue_reply(number, &bytes, call),
            HandlerReply::NoMore(number, end) => {
                self.with(call, |session, host| session.end_reply(number, end, host))
            }
            HandlerReply::PieceTaken(number) => {
                self.with(call, |session, host| session.piece_taken(number, host))
            }
            HandlerReply::Reply(reply) => {
                self.pending = None;
                self.replied(reply, call);
            }
            HandlerReply::NoSession => {
                self.pending = None;
                self.replied(webmail::login(), call);
            }
            // If the client has disconnected, the session is over. But its pending request still
            // exists.
            HandlerReply::FormAdmitted => {
                let Some(PendingRequest::FormAdmission { bytes }) = self.take_pending() else {
                    unreachable!("a form waits for this admission")
                };
                self.admit(BodyAdmission::whole(bytes), call);
            }
            HandlerReply::UploadAdmitted(number) => {
                let Some(PendingRequest::UploadAdmission { bytes, memory }) = self.take_pending()
                else {
                    unreachable!("an upload waits for this admission")
                };
                self.admit(BodyAdmission { bytes, memory, number: Some(number) }, call);
            }
        }
    }

    /// Passes the next piece of an open reply to the session.
    fn continue_reply(&mut self, number: u64, bytes: &[u8], call: &mut HttpCall<'_>) {
        self.with(call, |session, _| session.continue_reply(number, bytes));
        self.count_held(call);
    }
}

/// The mark that distinguishes the account's password from its later ones, for a client that has
/// just logged in.
fn password_of(account: AccountId, call: &HttpCall<'_>) -> PasswordMark {
    let Some(known) = call.cx.store.account(account) else {
        unreachable!("the login has found {account:?}")
    };
    PasswordMark::of(known.password_hash)
}
