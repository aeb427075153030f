//! The request handlers of a core, which work on the mail of the accounts that the core owns.
//!
//! A client may be connected to any core. Its requests are sent to the core that owns the account.
//! A request handler of that core does the job, and uses only the store of that core. The request's
//! ticket says where to return the reply. So the core that has the mail does the work, without
//! locks.
//!
//! Invariants:
//! - A request gets exactly one answer, even if the machine is stopping or too many requests wait.
//! - A core has at most [`HANDLERS_MAX`] request handlers, in addition to handlers with a number
//!   (`numbered.rs`). Requests wait while all handlers are busy, and accounts take turns
//!   (`waiting.rs`).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use channel::Ticket;
use http::{Reply, ReplyEnd};
use machine::{CoreId, Instant};
use outbound::QueueReply;
use shards::DeliveryHandle;
use signing::Signing;
use store::{AccountId, AccountInfo, Outcome, Store};
use tasks::{Continuation, FrameId, FrameTable};

use crate::context::{JobContext, QueueQuestion, UNAWAITED, WebmailContext, WebmailWaitPoint};
use crate::handler_reply::{AddressedReply, HandlerReply};
use crate::jobs::{Job, UploadPiece};
use crate::layout::AuthenticatedClient;
use crate::listeners::{Listeners, number_of};
use crate::numbered::{
    MoreWanted, NUMBERED_MAX, Numbered, numbered, too_many_messages, too_many_replies,
};
use crate::request::{self, Request};
use crate::sessions::{Digest, WebSessions};
use crate::step::{self, JobProgress};
use crate::stream::DocumentStart;
use crate::waiting::{WaitingRequests, too_many_requests};
use crate::zone::ZoneCache;

/// The maximum number of request handlers of a core.
const HANDLERS_MAX: usize = 64;

/// The maximum number of sessions with state in a core's memory: about two hundred bytes each.
const SESSIONS_MAX: usize = 4096;

/// The request handlers of a core.
pub struct RequestHandlers {
    sessions: WebSessions,
    at_work: FrameTable<Handler>,
    /// Handlers that found the store busy.
    again: Vec<FrameId>,
    waiting: WaitingRequests,
    replies: VecDeque<AddressedReply>,
    /// The open pages that are notified of changes.
    listeners: Listeners,
    /// The handlers of replies that are sent in pieces.
    streams: Numbered<MoreWanted>,
    /// The handlers of messages that are uploaded in pieces.
    messages: Numbered<UploadPiece>,
    /// The count of numbers that were assigned so far.
    numbered: u64,
    /// Questions about the queue, for other cores.
    questions: VecDeque<QueueQuestion>,
    /// The time zones of readers.
    zones: ZoneCache,
}

/// A request handler.
struct Handler {
    ticket: Ticket,
    /// The length of the request's form in bytes.
    form_bytes: usize,
    /// The client's account and session.
    client: AuthenticatedClient,
    job: Job,
    /// The number of requests to the store without an answer.
    under_way: usize,
    /// The delivery that the job has begun.
    delivery: Option<DeliveryHandle>,
    /// The signing of that delivery, if it must be signed. When it begins, the whole form has
    /// arrived. So the handler continues even if the client disconnects.
    signing: Option<Box<Signing>>,
    /// The number of other cores that have not acknowledged or answered yet.
    unacknowledged: u8,
    /// The answers of other cores about the queue.
    queue_answers: Vec<QueueReply>,
    /// The number of the handler's open reply, or of the upload that it receives.
    number: Option<u64>,
}

impl Default for RequestHandlers {
    fn default() -> RequestHandlers {
        RequestHandlers {
            sessions: WebSessions::new(SESSIONS_MAX),
            at_work: FrameTable::with_capacity(HANDLERS_MAX + NUMBERED_MAX),
            again: Vec::with_capacity(HANDLERS_MAX),
            waiting: WaitingRequests::default(),
            replies: VecDeque::new(),
            listeners: Listeners::default(),
            streams: Numbered::replies(),
            messages: Numbered::messages(),
            numbered: 0,
            questions: VecDeque::new(),
            zones: ZoneCache::default(),
        }
    }
}

impl RequestHandlers {
    /// Takes a request from the core of a connection. Returns the delivery to abort, if the client
    /// has disconnected during its upload.
    pub fn asked(&mut self, ticket: Ticket, request: Box<Request>) -> Option<DeliveryHandle> {
        match *request {
            Request::Piece(number, piece) => self.messages.arrived(number, piece),
            Request::Wanted(number) => self.streams.arrived(number, MoreWanted),
            Request::Left(number) => return self.left(number),
            _ => {
                if let Err(request) = self.waiting.push(ticket, request) {
                    self.answer(
                        ticket,
                        HandlerReply::Reply(too_many_requests()),
                        request.form_bytes(),
                    );
                }
            }
        }
        None
    }

    /// Runs all handlers that can continue.
    pub fn work(&mut self, cx: &mut WebmailContext<'_>) {
        for frame in core::mem::take(&mut self.again) {
            self.go_on(frame, cx);
        }
        while let Some((frame, MoreWanted)) = self.streams.next() {
            self.go_on_with_reply(frame, cx);
        }
        while let Some((frame, piece)) = self.messages.next() {
            self.piece_arrived(frame, &piece, cx);
        }
        while self.has_room()
            && let Some((ticket, request)) =
                self.waiting.pop(|account| of_account(&self.at_work, account))
        {
            self.begin(ticket, *request, cx);
        }
        self.sessions.ended_mut().look(&mut cx.archive.own.store, cx.turn.now, UNAWAITED);
        self.tell_listeners(cx);
    }

    /// Begins a request. It is answered at once, or gets a handler.
    fn begin(&mut self, ticket: Ticket, request: Request, cx: &mut WebmailContext<'_>) {
        let mut secret = [0; 32];
        cx.entropy.random(&mut secret);
        let (form_bytes, core, at_work) = (request.form_bytes(), cx.archive.core(), &self.at_work);
        let sessions = request::SessionContext {
            sessions: &mut self.sessions,
            unawaited: UNAWAITED,
            is_changing: &|account| {
                at_work
                    .iter()
                    .any(|(_, one)| one.client.account == account && one.job.changes_password())
            },
            cx,
        };
        match request::job_for(request, secret, sessions) {
            Err(reply) => self.answer(ticket, reply, form_bytes),
            Ok((client, Job::Listen)) => {
                let number = self.next_number(core);
                let listener = (client.account, client.session);
                let (reply, gone) =
                    self.listeners.begin(ticket, listener, number, &cx.archive.own.store);
                if let Some((ticket, reply)) = gone {
                    self.tell(ticket, reply);
                }
                self.answer(ticket, HandlerReply::Reply(reply), form_bytes);
            }
            Ok((client, job @ Job::Write(_))) => self.begin_upload(ticket, client, job, core),
            Ok((client, job)) => {
                let frame = self.insert(Handler::new(ticket, form_bytes, client, job));
                self.go_on(frame, cx);
            }
        }
    }

    /// Adds a handler to the table.
    fn insert(&mut self, handler: Handler) -> FrameId {
        let Ok(frame) = self.at_work.insert(handler) else {
            unreachable!(
                "a request begins while there is room, and numbered handlers have their own"
            )
        };
        frame
    }

    fn go_on(&mut self, frame: FrameId, cx: &mut WebmailContext<'_>) {
        self.step(frame, cx, Job::go_on);
    }

    /// Notifies listeners of changes. If the session of a listener has ended, its stream ends.
    fn tell_listeners(&mut self, cx: &mut WebmailContext<'_>) {
        let (sessions, replies, now) = (&self.sessions, &mut self.replies, cx.turn.wall);
        let is_known =
            |account: &AccountInfo<'_>, session: &Digest| sessions.is_known(account, session, now);
        let tell =
            |ticket, reply| replies.push_back(AddressedReply { ticket, reply, answers: None });
        self.listeners.look(&mut cx.archive.own.store, is_known, tell);
    }

    /// Begins to receive a message for this job, if the account may begin one more upload.
    fn begin_upload(
        &mut self,
        ticket: Ticket,
        client: AuthenticatedClient,
        job: Job,
        core: CoreId,
    ) {
        if !self.messages.may_begin(client.account) {
            return self.answer(ticket, HandlerReply::Reply(too_many_messages()), 0);
        }
        let (number, account) = (self.next_number(core), client.account);
        let frame =
            self.insert(Handler { number: Some(number), ..Handler::new(ticket, 0, client, job) });
        self.messages.begin(number, account, frame);
        self.answer(ticket, HandlerReply::UploadAdmitted(number), 0);
    }

    /// Continues the handler of an upload with a piece. The session may have ended in the meantime.
    fn piece_arrived(&mut self, frame: FrameId, piece: &UploadPiece, cx: &mut WebmailContext<'_>) {
        let has_session_ended = piece.is_last && !self.is_known(frame, cx);
        self.step(frame, cx, |job, client, under_way, cx| {
            if has_session_ended {
                job.session_ended();
            }
            job.piece_arrived(piece);
            job.go_on(client, under_way, cx)
        });
    }

    /// Ends the handler with this number, since its client has left the open reply or the upload.
    /// Later answers of the store to the handler are dropped. Returns the delivery to abort.
    fn left(&mut self, number: u64) -> Option<DeliveryHandle> {
        self.listeners.left(number);
        let frame = self.streams.end(number).or_else(|| self.messages.end(number))?;
        self.remove(frame).delivery
    }

    /// Whether the session of this handler is still valid.
    fn is_known(&self, frame: FrameId, cx: &WebmailContext<'_>) -> bool {
        let Some(handler) = self.at_work.get(frame) else { return false };
        let account = cx.archive.own.store.account(handler.client.account);
        account.is_some_and(|account| {
            self.sessions.is_known(&account, &handler.client.session, cx.turn.wall)
        })
    }

    /// Continues the handler in this frame with the store's answer to its request.
    pub fn woken(&mut self, frame: FrameId, outcome: Outcome, cx: &mut WebmailContext<'_>) {
        self.step(frame, cx, |job, client, under_way, cx| {
            job.woken(outcome, client, under_way, cx)
        });
    }

    /// Whether a handler is in this frame.
    pub fn has(&self, frame: FrameId) -> bool {
        self.at_work.get(frame).is_some()
    }

    /// The number of pages that are notified of changes.
    pub fn listeners(&self) -> usize {
        self.listeners.count()
    }

    /// The next reply, or the next piece of an open reply.
    pub fn next_reply(&mut self) -> Option<AddressedReply> {
        self.replies.pop_front()
    }

    /// The next question about the queue.
    pub fn next_question(&mut self) -> Option<QueueQuestion> {
        self.questions.pop_front()
    }

    /// Continues the handler in this frame if the signature that it waits for is ready.
    pub fn sign(&mut self, frame: FrameId, cx: &mut WebmailContext<'_>) {
        let Some(signing) =
            self.at_work.get_mut(frame).and_then(|handler| handler.signing.as_mut())
        else {
            return;
        };
        if signing.take_signature(cx.compute) {
            self.woken(frame, Outcome::DeliveryReady, cx);
        }
    }

    fn step(
        &mut self,
        frame: FrameId,
        cx: &mut WebmailContext<'_>,
        step: impl FnOnce(
            &mut Job,
            &AuthenticatedClient,
            &mut usize,
            &mut JobContext<'_, '_>,
        ) -> JobProgress,
    ) {
        let Some(handler) = self.at_work.get_mut(frame) else { return };
        let (ticket, number) = (handler.ticket, handler.number);
        let continuation = Continuation { frame, entry: WebmailWaitPoint::Asked.entry() };
        let mut job_cx = JobContext {
            cx,
            continuation,
            delivery: &mut handler.delivery,
            signing: &mut handler.signing,
            unacknowledged: &mut handler.unacknowledged,
            queue_answers: &mut handler.queue_answers,
            questions: &mut self.questions,
            zones: &mut self.zones,
        };
        match step(&mut handler.job, &handler.client, &mut handler.under_way, &mut job_cx) {
            JobProgress::Waiting => {}
            JobProgress::Yield => self.again.push(frame),
            JobProgress::Taken => self.tell(ticket, HandlerReply::PieceTaken(numbered(number))),
            JobProgress::Reply(reply) => self.done(frame, reply),
            JobProgress::Redirect(path, flash) => {
                let reply =
                    step::redirect(&path, flash, &handler.client.session, &mut self.sessions);
                self.done(frame, reply);
            }
            JobProgress::Begin(stream) => self.reply_begins(frame, stream, cx.archive.core()),
            JobProgress::Piece(bytes) => {
                self.tell(ticket, HandlerReply::More(numbered(number), bytes))
            }
            JobProgress::End(end) => self.end_reply(frame, end),
        }
    }

    /// Ends a handler with this reply, after its job is done.
    fn done(&mut self, frame: FrameId, reply: Reply) {
        let Handler { ticket, form_bytes, number, .. } = self.remove(frame);
        match number {
            // The request was answered when the upload was admitted.
            Some(number) => {
                let ended = self.messages.end(number);
                assert!(ended.is_some(), "a handler with a number that replies is an upload");
                self.tell(ticket, HandlerReply::Reply(reply));
            }
            None => self.answer(ticket, HandlerReply::Reply(reply), form_bytes),
        }
    }

    fn remove(&mut self, frame: FrameId) -> Handler {
        let Some(handler) = self.at_work.remove(frame) else {
            unreachable!("a handler stays in the table until its end")
        };
        handler
    }

    /// Opens the reply of a job that has its first piece.
    fn reply_begins(&mut self, frame: FrameId, stream: DocumentStart, core: CoreId) {
        let number = self.next_number(core);
        let Some(handler) = self.at_work.get_mut(frame) else {
            unreachable!("a running handler is in the table")
        };
        assert!(handler.number.is_none(), "a reply begins once, and never for an upload");
        let (ticket, form_bytes) = (handler.ticket, core::mem::take(&mut handler.form_bytes));
        if !self.streams.may_begin(handler.client.account) {
            self.remove(frame);
            return self.answer(ticket, HandlerReply::Reply(too_many_replies()), form_bytes);
        }
        self.streams.begin(number, handler.client.account, frame);
        handler.number = Some(number);
        self.answer(ticket, HandlerReply::Reply(stream.reply(number)), form_bytes);
    }

    /// Continues an open reply at the connection's request. Cuts it if its session has ended.
    fn go_on_with_reply(&mut self, frame: FrameId, cx: &mut WebmailContext<'_>) {
        if self.is_known(frame, cx) {
            self.go_on(frame, cx);
        } else {
            self.end_reply(frame, ReplyEnd::Cut);
        }
    }

    /// Ends the open reply of this handler.
    fn end_reply(&mut self, frame: FrameId, end: ReplyEnd) {
        let Handler { ticket, number, .. } = self.remove(frame);
        let number = numbered(number);
        let ended = self.streams.end(number);
        assert!(ended.is_some(), "a reply that ends in pieces is open");
        self.tell(ticket, HandlerReply::NoMore(number, end));
    }

    fn next_number(&mut self, core: CoreId) -> u64 {
        self.numbered += 1;
        number_of(self.numbered, core)
    }

    /// Answers a request. `form_bytes`: the length of its form.
    fn answer(&mut self, ticket: Ticket, reply: HandlerReply, form_bytes: usize) {
        self.replies.push_back(AddressedReply { ticket, reply, answers: Some(form_bytes) });
    }

    /// Sends a message that follows the answer.
    fn tell(&mut self, ticket: Ticket, reply: HandlerReply) {
        self.replies.push_back(AddressedReply { ticket, reply, answers: None });
    }

    /// Another core has acknowledged a message of the handler in this frame. Returns whether all
    /// cores have.
    pub fn acknowledged(&mut self, frame: FrameId) -> bool {
        self.at_work.get_mut(frame).is_some_and(|handler| {
            assert!(handler.unacknowledged > 0, "each core answers once");
            handler.unacknowledged -= 1;
            handler.unacknowledged == 0
        })
    }

    /// Another core has answered the question about the queue. Returns whether all cores have.
    pub fn queue_answered(&mut self, frame: FrameId, answer: QueueReply) -> bool {
        if let Some(handler) = self.at_work.get_mut(frame) {
            handler.queue_answers.push(answer);
        }
        self.acknowledged(frame)
    }

    /// The time of the next check of ended sessions.
    #[inline]
    pub fn next_deadline(&self) -> Instant {
        self.sessions.ended().look_at()
    }

    /// Whether a handler can continue at once, or a listener must be notified of a change.
    #[inline]
    pub fn has_work(&self, store: &Store, now: Instant) -> bool {
        !self.again.is_empty()
            || self.sessions.ended().look_at() <= now
            || !self.replies.is_empty()
            || self.can_go_on()
            || self.listeners.has_changes(store)
    }

    /// Whether a request or a piece can be processed at once, a reply can continue, or a listener
    /// can be notified. A handler that found the store busy does not count, since the store's next
    /// completion starts a turn anyway.
    #[inline]
    pub fn can_go_on(&self) -> bool {
        self.waiting.count() > 0 && self.has_next_request()
            || self.messages.has_arrived()
            || self.streams.has_arrived()
            || self.listeners.has_concerned()
    }

    #[inline(never)]
    fn has_next_request(&self) -> bool {
        self.has_room() && self.waiting.has_next(|account| of_account(&self.at_work, account))
    }

    /// Whether one more handler without a number may begin.
    fn has_room(&self) -> bool {
        self.at_work.len() - self.streams.count() - self.messages.count() < HANDLERS_MAX
    }

    /// The number of requests without an answer.
    pub fn under_way(&self) -> usize {
        let answers = self.replies.iter().filter(|replied| replied.answers.is_some()).count();
        self.at_work.len() + self.waiting.count() + answers
    }
}

/// The number of the account's request handlers that count for [`HANDLERS_MAX`].
fn of_account(at_work: &FrameTable<Handler>, account: AccountId) -> usize {
    at_work.iter().filter(|(_, one)| one.number.is_none() && one.client.account == account).count()
}

impl Handler {
    fn new(ticket: Ticket, form_bytes: usize, client: AuthenticatedClient, job: Job) -> Handler {
        Handler {
            ticket,
            form_bytes,
            client,
            job,
            under_way: 0,
            delivery: None,
            signing: None,
            unacknowledged: 0,
            queue_answers: Vec::new(),
            number: None,
        }
    }
}
