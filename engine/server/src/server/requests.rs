//! What cores tell each other for the webmail: requests go to the core that has the account, and
//! replies to the core that has the connection.
//!
//! A number names a reply that stays open, or a message that comes in pieces. The core that has
//! given a number is part of it, and whatever concerns it goes there.
//!
//! Invariants:
//! - A visit gets one answer. So many visits to another core wait for theirs as that link has
//!   credits; one more is refused here.
//! - What is told to this core itself takes no way round.

use alloc::boxed::Box;

use certificates::Upload;
use channel::{Class, Ticket};
use http::{Reply, Status};
use machine::{CoreId, Entropy};
use outbound::QueueTold;
use store::{AccountId, Outcome};
use tasks::FrameId;
use web::WebRequest;
use webmail::told::{Answer, Asked, Replied, Told};
use webmail::{Clerks, Context, QueueQuestion, Visit, giver_of};

use crate::links::Message;
use crate::parts::Parts;

use super::{Server, Services, Webmail};

impl Server {
    /// Asks this of the core that gave the number.
    fn tell_giver(&mut self, number: u64, class: Class, asked: Asked) {
        let giver = giver_of(number);
        if giver == self.parts.links.own() {
            return self.clerks_asked(giver, asked);
        }
        self.parts.links.tell(giver, class, Message::ClerksAsked(asked));
    }

    /// A core asks this of the request handlers of this one.
    pub(crate) fn clerks_asked(&mut self, from: CoreId, asked: Asked) {
        match asked {
            Asked::Visit(frame, visit) => self.services.webmail.clerks.visited(Ticket { core: from, frame }, visit),
            Asked::Piece(number, piece) => self.services.webmail.clerks.piece_arrived(number, piece),
            Asked::Wanted(number) => self.services.webmail.clerks.reply_wanted(number),
            Asked::Left(number) => {
                if let Some(letter) = self.services.webmail.clerks.left(number) {
                    self.parts.store.abort(letter);
                }
            }
        }
    }

    /// What HTTP sessions want of others goes there.
    #[cold]
    #[inline(never)]
    pub(crate) fn bring_requests(&mut self) {
        while let Some(request) = self.services.web.next_request() {
            match request {
                WebRequest::Visit(account, frame, visit) => self.visit(account, frame, visit),
                WebRequest::Piece(number, piece) => {
                    self.tell_giver(number, Class::Bulk, Asked::Piece(number, piece));
                }
                WebRequest::Wanted(number) => self.tell_giver(number, Class::Answer, Asked::Wanted(number)),
                WebRequest::Left(number) => self.tell_giver(number, Class::Answer, Asked::Left(number)),
                WebRequest::Certificate(frame, pem) => {
                    let upload = Upload { ticket: Ticket { core: self.parts.links.own(), frame }, pem };
                    self.parts.links.tell(self.parts.links.own(), Class::Answer, Message::Upload(Box::new(upload)));
                }
            }
        }
    }

    /// The client of the session of `frame` asks for something of an account's webmail. The answer
    /// is told later.
    fn visit(&mut self, account: AccountId, frame: FrameId, visit: Box<Visit>) {
        let Parts { links, store, .. } = &mut self.parts;
        let (own, owner, form_bytes) = (links.own(), store.owner(account), visit.form_bytes());
        if owner == own {
            return self.services.webmail.clerks.visited(Ticket { core: own, frame }, visit);
        }
        if links.ask(owner, Class::Answer, Message::ClerksAsked(Asked::Visit(frame, visit))).is_err() {
            self.services.web.answered(form_bytes);
            let refused = Replied::GoesOn(frame, Box::new(Told::Reply(too_many())));
            links.tell(own, Class::Answer, Message::ClerksReplied(refused));
        }
    }

    /// Lets the request handlers act. What they ask about the queue goes to the cores that own the
    /// accounts.
    fn let_clerks(&mut self, entropy: &mut dyn Entropy, act: impl FnOnce(&mut Clerks, &mut Context<'_>)) {
        let Parts { links, store, directory, signer, compute, hostname, console, turn, .. } = &mut self.parts;
        let Services { webmail: Webmail { clerks, rows }, submission, outbound, .. } = &mut self.services;
        let mut cx = Context {
            archive: store,
            submission,
            rows,
            directory,
            signer,
            compute,
            hostname,
            console,
            letter_octets_max: smtp::Settings::default().message_bytes_max,
            turn: *turn,
            entropy,
        };
        act(clerks, &mut cx);
        while let Some(QueueQuestion { owner, frame, asked }) = clerks.next_question() {
            if owner == links.own() {
                outbound.asked(Ticket { core: owner, frame }, asked);
            } else {
                links.tell(owner, Class::Answer, Message::QueueAsked(frame, Box::new(asked)));
            }
        }
    }

    /// Phase 4 too: clerks who can go on do, and answers are brought to who asked.
    #[inline(never)]
    pub(crate) fn let_clerks_work(&mut self, entropy: &mut dyn Entropy) {
        self.let_clerks(entropy, Clerks::work);
        self.end_outdated_sessions();
        self.bring_replies();
    }

    /// The signature that a request handler has asked for was computed.
    pub(crate) fn clerk_signs(&mut self, frame: FrameId, entropy: &mut dyn Entropy) {
        self.let_clerks(entropy, |clerks, cx| clerks.sign(frame, cx));
    }

    /// Another core knows the password that a clerk has told it.
    pub(crate) fn password_known(&mut self, frame: FrameId, entropy: &mut dyn Entropy) {
        if self.services.webmail.clerks.heard(frame) {
            self.clerk_woken(frame, Outcome::Changed, entropy);
        }
    }

    /// What clerks have asked about the queue of this core is told them, on whatever core they are.
    pub(crate) fn tell_of_queue(&mut self, entropy: &mut dyn Entropy) {
        while let Some((ticket, told)) = self.services.outbound.next_told() {
            if ticket.core == self.parts.links.own() {
                self.queue_told(ticket.frame, told, entropy);
            } else {
                let message = Message::QueueTold(ticket.frame, Box::new(told));
                self.parts.links.tell(ticket.core, Class::Answer, message);
            }
        }
    }

    /// A core has told what a clerk asks about the queue.
    pub(crate) fn queue_told(&mut self, frame: FrameId, told: QueueTold, entropy: &mut dyn Entropy) {
        if self.services.webmail.clerks.told(frame, told) {
            self.clerk_woken(frame, Outcome::Changed, entropy);
        }
    }

    #[inline(never)]
    pub(crate) fn clerk_woken(&mut self, frame: FrameId, outcome: Outcome, entropy: &mut dyn Entropy) {
        if !self.services.webmail.clerks.has(frame) {
            return self.parts.store.forget(outcome);
        }
        self.let_clerks(entropy, |clerks, cx| clerks.woken(frame, outcome, cx));
        self.end_outdated_sessions();
    }

    /// A clerk may have told a new password: whoever has logged in on this core by the old one is
    /// logged out.
    fn end_outdated_sessions(&mut self) {
        while let Some(account) = self.parts.store.next_outdated() {
            self.end_sessions_of(account);
        }
    }

    /// Brings what the request handlers of this core have for others to where it is wanted.
    fn bring_replies(&mut self) {
        while let Some((ticket, answer)) = self.services.webmail.clerks.next_answer() {
            match ticket.core == self.parts.links.own() {
                true => self.visit_answered(ticket.frame, answer),
                false => self.tell_visitor(ticket, Replied::Visit(ticket.frame, Box::new(answer))),
            }
        }
        while let Some((ticket, told)) = self.services.webmail.clerks.next_news() {
            match ticket.core == self.parts.links.own() {
                true => self.tell(ticket.frame, |session, cx| session.visit_answered(told, cx)),
                false => self.tell_visitor(ticket, Replied::GoesOn(ticket.frame, Box::new(told))),
            }
        }
    }

    fn visit_answered(&mut self, frame: FrameId, answer: Answer) {
        self.let_sessions(|sessions, cx| sessions.visit_answered(frame, answer, cx));
    }

    fn tell_visitor(&mut self, ticket: Ticket, replied: Replied) {
        self.parts.links.tell(ticket.core, Class::Answer, Message::ClerksReplied(replied));
    }

    /// The request handlers of a core have told this to a session of this one.
    pub(crate) fn clerks_replied(&mut self, from: CoreId, replied: Replied) {
        match replied {
            Replied::Visit(frame, answer) => {
                self.parts.links.answered(from);
                self.visit_answered(frame, *answer);
            }
            Replied::GoesOn(frame, told) => self.tell(frame, |session, cx| session.visit_answered(*told, cx)),
        }
    }
}

/// What is said to a client while too many wait for the core that has its mail.
fn too_many() -> Reply {
    let words = "Too much is being done with mail just now. Nothing is lost: go back, and try again in a moment.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}
