//! Messages between cores for the webmail: requests go to the core that has the account, and
//! replies to the core that has the connection.
//!
//! A number names an open reply, or a body that arrives in pieces. The number contains the core
//! that has issued it, and all messages with the number go to that core.
//!
//! Invariants:
//! - A request gets one answer. The credits of the link to another core limit how many requests
//!   wait for that core. A request above the limit is refused here.
//! - A message from this core to itself does not pass a link.

use alloc::boxed::Box;

use certificates::CertificateUpload;
use channel::{Class, Ticket};
use machine::{CoreId, Entropy};
use outbound::QueueReply;
use store::Outcome;
use tasks::FrameId;
use webmail::handler_reply::{AddressedReply, HandlerReply};
use webmail::{
    QueueQuestion, Request, RequestHandlers, WebmailContext, issuer_of, too_many_requests,
};

use crate::links::Message;
use crate::parts::Parts;

use super::{Server, Services, Webmail};

impl Server {
    /// Passes a request from a core to the request handlers of this core.
    pub(crate) fn webmail_asked(&mut self, ticket: Ticket, request: Box<Request>) {
        if let Some(given_up) = self.services.webmail.handlers.asked(ticket, request) {
            self.parts.store.abort(given_up);
        }
    }

    /// Passes on the requests of HTTP sessions.
    #[cold]
    #[inline(never)]
    pub(crate) fn bring_requests(&mut self) {
        let own = self.parts.links.own();
        while let Some((frame, request)) = self.services.web.next_request() {
            self.ask_webmail(Ticket { core: own, frame }, request);
        }
        while let Some((frame, pem)) = self.services.web.next_upload() {
            let upload = CertificateUpload { ticket: Ticket { core: own, frame }, pem };
            self.parts.links.tell(own, Class::Answer, Message::Upload(Box::new(upload)));
        }
    }

    /// Passes a request to the core that owns the account, or that has issued the number. The
    /// answer arrives later.
    fn ask_webmail(&mut self, ticket: Ticket, request: Box<Request>) {
        let Parts { links, store, .. } = &mut self.parts;
        let (number, form_bytes) = (request.number(), request.form_bytes());
        let owner = number.map_or_else(|| store.owner(request.account()), issuer_of);
        if owner == links.own() {
            return self.webmail_asked(ticket, request);
        }
        let class = if let Request::Piece(..) = *request { Class::Bulk } else { Class::Answer };
        let message = Message::WebmailAsked(ticket.frame, request);
        if number.is_some() {
            links.tell(owner, class, message);
        } else if links.ask(owner, class, message).is_err() {
            let refused = AddressedReply {
                ticket,
                reply: HandlerReply::Reply(too_many_requests()),
                answers: Some(form_bytes),
            };
            links.tell(ticket.core, Class::Answer, Message::WebmailReplied(Box::new(refused)));
        }
    }

    /// Calls `act` with the request handlers. Passes their questions about the queue to the cores
    /// that own the accounts.
    fn with_handlers(
        &mut self,
        entropy: &mut dyn Entropy,
        act: impl FnOnce(&mut RequestHandlers, &mut WebmailContext<'_>),
    ) {
        let Parts { links, store, directory, signer, compute, hostname, console, turn, .. } =
            &mut self.parts;
        let Services { webmail: Webmail { handlers, rows }, submission, outbound, .. } =
            &mut self.services;
        let mut cx = WebmailContext {
            archive: store,
            submission,
            rows,
            directory,
            signer,
            compute,
            hostname,
            console,
            message_octets_max: smtp::SmtpSettings::default().message_bytes_max,
            turn: *turn,
            entropy,
        };
        act(handlers, &mut cx);
        while let Some(QueueQuestion { owner, frame, asked }) = handlers.next_question() {
            if owner == links.own() {
                outbound.enqueue(Ticket { core: owner, frame }, asked);
            } else {
                links.tell(owner, Class::Answer, Message::QueueAsked(frame, Box::new(asked)));
            }
        }
    }

    /// Runs request handlers that can continue, and passes on their replies.
    #[inline(never)]
    pub(crate) fn run_handlers(&mut self, entropy: &mut dyn Entropy) {
        self.with_handlers(entropy, RequestHandlers::work);
        self.end_outdated_sessions();
        self.bring_replies();
    }

    /// Continues a request handler that waited for a signature.
    pub(crate) fn handler_signed(&mut self, frame: FrameId, entropy: &mut dyn Entropy) {
        self.with_handlers(entropy, |handlers, cx| handlers.sign(frame, cx));
    }

    /// Continues a request handler after all other cores have acknowledged its new password.
    pub(crate) fn password_known(&mut self, frame: FrameId, entropy: &mut dyn Entropy) {
        if self.services.webmail.handlers.acknowledged(frame) {
            self.handler_woken(frame, Outcome::Changed, entropy);
        }
    }

    /// Passes answers about this core's queue to the request handlers on all cores.
    pub(crate) fn tell_of_queue(&mut self, entropy: &mut dyn Entropy) {
        while let Some((ticket, reply)) = self.services.outbound.next_reply() {
            if ticket.core == self.parts.links.own() {
                self.queue_told(ticket.frame, reply, entropy);
            } else {
                let message = Message::QueueTold(ticket.frame, Box::new(reply));
                self.parts.links.tell(ticket.core, Class::Answer, message);
            }
        }
    }

    /// Continues a request handler that waited for an answer about the queue.
    pub(crate) fn queue_told(
        &mut self,
        frame: FrameId,
        reply: QueueReply,
        entropy: &mut dyn Entropy,
    ) {
        if self.services.webmail.handlers.queue_answered(frame, reply) {
            self.handler_woken(frame, Outcome::Changed, entropy);
        }
    }

    #[inline(never)]
    pub(crate) fn handler_woken(
        &mut self,
        frame: FrameId,
        outcome: Outcome,
        entropy: &mut dyn Entropy,
    ) {
        if !self.services.webmail.handlers.has(frame) {
            return self.parts.store.forget(outcome);
        }
        self.with_handlers(entropy, |handlers, cx| handlers.woken(frame, outcome, cx));
        self.end_outdated_sessions();
    }

    /// Ends sessions with an old password, after a request handler may have set a new one.
    pub(crate) fn end_outdated_sessions(&mut self) {
        while let Some(account) = self.parts.store.next_outdated() {
            self.end_sessions_of(account);
        }
    }

    /// Passes on the replies of this core's request handlers.
    fn bring_replies(&mut self) {
        while let Some(replied) = self.services.webmail.handlers.next_reply() {
            let core = replied.ticket.core;
            match core == self.parts.links.own() {
                true => self.webmail_replied(replied),
                false => self.parts.links.tell(
                    core,
                    Class::Answer,
                    Message::WebmailReplied(Box::new(replied)),
                ),
            }
        }
    }

    fn webmail_replied(&mut self, replied: AddressedReply) {
        self.let_sessions(|sessions, cx| sessions.webmail_replied(replied, cx));
    }

    /// Passes a reply of the request handlers of another core to a session of this core.
    pub(crate) fn webmail_reply_arrived(&mut self, from: CoreId, replied: AddressedReply) {
        if replied.answers.is_some() {
            self.parts.links.answered(from);
        }
        self.webmail_replied(replied);
    }
}
