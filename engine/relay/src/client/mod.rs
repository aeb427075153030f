//! The client: the outgoing end of one connection, for several letters one after the other.
//!
//! What there is to say is in [`Speaker::output`], until the caller says that it took it; what else there is to do comes out of [`Client::next_action`]. The order of things:
//!
//! ```text
//!   greeting ── EHLO ─┬─ STARTTLS ── handshake ── EHLO ─┬─ AUTH ─┬─▸ idle ── MAIL, RCPT…, DATA ── message ── . ─┐
//!                └ HELO ────────────────────────────────────────┘    ▴     all at once, if the peer can      │
//!                                                                     └── RSET, if a transaction is open ◂────┘
//! ```
//! For a peer that takes ASCII alone a message is looked through before MAIL, whatever was said of it.
//!
//! Invariants:
//! - Each recipient of a letter has exactly one outcome, whatever comes.
//! - A reply answers a command that was said: one that comes while the command is still in [`Speaker::output`] answers nothing, and ends the connection.
//! - After a reply that makes no sense nothing is believed any more: what is open is to be tried again, by another connection.
//! - Nothing heard in the clear outlives it: behind the reply to STARTTLS nothing may come, and what was offered is asked for again (RFC 3207 section 4.2).
//! - A password is said under TLS, or where the settings say that there is to be none; and nowhere where the peer lets us prove it without (SCRAM). There the peer has to prove that it knows it, too.
//! - What is kept is bounded: the output by [`RECIPIENTS_MAX`] commands and [`BODY_ROOM_BYTES`] of a message, what is read by `reply`.
//!
//! `421` ends everything at any time (RFC 5321 section 3.8). A `4yz` or `5yz` while the message is on its way is the peer's answer to it: it said so early, and the rest is spared.
//!
//! Answers to: RFC 5321 sections 3.1, 3.3, 3.8, 4.1.4, 4.3 and 4.5.3.2; the rest as in `lib.rs`.

mod opening;
mod output;
mod transaction;

use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt;

use machine::Micros;
use sasl::Claim;

use crate::extensions::Extensions;
use crate::letter::Letter;
use crate::outcome::{Cause, Lost, Misbehaviour, Outcome, Reason, Stage};
use crate::reply::{Heard, Reader, Reply};
use crate::speaker::Speaker;
use output::Output;
use transaction::Transaction;

pub use output::BODY_ROOM_BYTES;

/// So many recipients a letter has at most: what every server has to take (RFC 5321 section 4.5.3.1.8).
pub const RECIPIENTS_MAX: usize = 100;

/// How to speak with a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// What we call ourselves: a domain, or an address literal.
    pub hello: String,
    /// Whether TLS is spoken.
    pub tls: Tls,
    /// As whom to log in.
    pub login: Option<Login>,
}

/// Whether TLS is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tls {
    /// It is not.
    Never,
    /// If the peer offers it. Where it fails ([`Lost::Tls`]), another connection without it may do.
    IfOffered,
    /// Or nothing is sent.
    Required,
    /// It is already, since before the greeting.
    Implicit,
}

/// As whom to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
    /// What was never said before, and nobody can guess: where the password is proved and not said, that is proved with it.
    pub nonce: String,
}

impl fmt::Debug for Login {
    /// Without the password: what is printed is read by others.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Begin TLS, as the client, when all of [`Speaker::output`] has been sent; then [`Speaker::secured`].
    StartTls,
    /// Compute for a while what proves the password: [`Client::compute`]. Said again until that is done.
    Compute,
    /// Bring more of the message: [`Client::body`] or [`Client::body_ended`]. Said again when there is room again after one of these.
    NeedBody,
    /// The message was only looked through: what is brought next is its beginning again.
    BodyAnew,
    /// This is what came of it for a recipient.
    Done {
        /// [`crate::Recipient::number`].
        recipient: u16,
        /// What came of it.
        outcome: Outcome,
    },
    /// All outcomes of the letter are told: [`Client::deliver`] another, or [`Client::quit`].
    Idle,
    /// It is over: close the connection, when the output has been sent.
    HangUp,
}

/// What a reply will answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// The connection.
    Greeting,
    Hello,
    PlainHello,
    StartTls,
    ScramName,
    ScramProof,
    ScramEnd,
    Plain,
    LoginName,
    LoginPassword,
    LoginEnd,
    Mail,
    Recipient(usize),
    Data,
    /// The whole message.
    End,
    Reset,
    Quit,
}

impl Asked {
    /// RFC 5321 section 4.3.2: `3yz` where more is to be said, `2yz` elsewhere; a refusal anywhere.
    fn is_answered_by(self, reply: &Reply) -> bool {
        let wants_more = matches!(
            self,
            Asked::Data
                | Asked::ScramName
                | Asked::ScramProof
                | Asked::LoginName
                | Asked::LoginPassword
        );
        match reply.class() {
            2 => !wants_more,
            3 => wants_more,
            _ => true,
        }
    }
}

/// What the client is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Getting to know the peer.
    Opening,
    /// TLS begins.
    Handshake,
    /// What proves the password is computed.
    Proof,
    /// Nothing.
    Idle,
    /// The message is looked through, for what the peer does not take.
    Inspection,
    /// MAIL to DATA.
    Envelope,
    /// The message.
    Body,
    /// What the peer says of it.
    End,
    /// RSET or QUIT.
    Clearing,
    /// It is over.
    Closed,
}

/// The outgoing end of one connection.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    state: State,
    reader: Reader,
    output: Output,
    /// What was asked and not answered, and where in the output it ends.
    asked: VecDeque<(Asked, u64)>,
    actions: VecDeque<Action>,
    extensions: Extensions,
    is_secured: bool,
    /// By which we log in, where the password is not said.
    claim: Option<Claim>,
    transaction: Option<Transaction>,
    is_quitting: bool,
    /// [`Action::NeedBody`] was said and not answered.
    is_body_asked: bool,
    /// Why it is over.
    end: Option<Outcome>,
}

impl Client {
    /// A connection is made, or about to be. The first letter may be given at once.
    pub fn new(settings: Settings) -> Client {
        let is_secured = settings.tls == Tls::Implicit;
        Client {
            settings,
            state: State::Opening,
            reader: Reader::default(),
            output: Output::default(),
            asked: VecDeque::from([(Asked::Greeting, 0)]),
            actions: VecDeque::new(),
            extensions: Extensions::default(),
            is_secured,
            claim: None,
            transaction: None,
            is_quitting: false,
            is_body_asked: false,
            end: None,
        }
    }

    /// Sends a letter: at the beginning, or after [`Action::Idle`]. On a connection that is over it comes to nothing at once.
    pub fn deliver(&mut self, letter: Letter) {
        assert!(self.transaction.is_none() && !self.is_quitting, "one letter after the other");
        assert!(
            (1..=RECIPIENTS_MAX).contains(&letter.envelope.recipients.len()),
            "a letter has recipients, and not too many"
        );
        self.transaction = Some(Transaction::new(letter));
        self.actions.retain(|action| *action != Action::Idle);
        match self.state {
            State::Idle => self.begin_transaction(),
            State::Closed => self.tell_all(),
            _ => {}
        }
    }

    /// What is to be done next, besides sending.
    pub fn next_action(&mut self) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let wants_body = matches!(self.state, State::Inspection | State::Body);
        if wants_body && !self.is_body_asked && self.output.has_room() {
            self.is_body_asked = true;
            return Some(Action::NeedBody);
        }
        (self.state == State::Proof).then_some(Action::Compute)
    }

    /// How long to wait for what is waited for now (RFC 5321 section 4.5.3.2).
    pub fn patience(&self) -> Micros {
        Micros::from_secs(match self.stage() {
            Stage::Data => 2 * 60,
            Stage::Message => 3 * 60,
            Stage::MessageEnd => 10 * 60,
            // Nothing depends on it any more.
            Stage::Rest => 30,
            _ => 5 * 60,
        })
    }

    /// Ends the connection in good order: at once when nothing is on the way, or behind the letter that is.
    pub fn quit(&mut self) {
        self.is_quitting = true;
        if self.state == State::Idle {
            self.rest();
        }
    }

    /// Whether the peer sees to the reports that the sender wants (DSN). If not, whoever wants to hear of success is to hear from us that his letter went on to a server that
    /// will not tell (RFC 3461 section 5.2.2). Known when there are outcomes.
    pub fn passes_on_reports(&self) -> bool {
        self.extensions.dsn
    }

    fn reply_arrived(&mut self, heard: Heard) {
        if heard.reply.code == 421 {
            return self.fail(Cause::Refused(heard.reply), Outcome::Later);
        }
        match self.asked.front().copied() {
            Some((asked, end)) if end <= self.output.position() => {
                if !asked.is_answered_by(&heard.reply) {
                    return self.misbehaved(Misbehaviour::OutOfPlace(heard.reply.code));
                }
                self.asked.pop_front();
                self.answered(asked, heard);
            }
            _ if matches!(self.state, State::Body | State::End) && heard.reply.class() >= 4 => {
                self.refused_early(heard.reply);
            }
            _ => self.misbehaved(Misbehaviour::Early),
        }
    }

    fn answered(&mut self, asked: Asked, heard: Heard) {
        let (reply, extensions) = (heard.reply, heard.extensions);
        match asked {
            Asked::Greeting => self.greeting_arrived(reply),
            Asked::Hello => self.hello_answered(reply, extensions),
            Asked::PlainHello => self.plain_hello_answered(reply),
            Asked::StartTls => self.start_tls_answered(reply),
            Asked::ScramName | Asked::ScramProof | Asked::ScramEnd => {
                self.claim_answered(asked, reply)
            }
            Asked::Plain | Asked::LoginName | Asked::LoginPassword | Asked::LoginEnd => {
                self.login_answered(asked, reply);
            }
            Asked::Mail => self.mail_answered(reply),
            Asked::Recipient(index) => self.recipient_answered(index, reply),
            Asked::Data => self.data_answered(reply),
            Asked::End => self.message_answered(reply),
            Asked::Reset if reply.class() == 2 => self.rest(),
            Asked::Reset | Asked::Quit => self.fail(Cause::Lost(Lost::Closed), Outcome::Later),
        }
    }

    /// Says a line, to which there will be an answer.
    fn ask(&mut self, asked: Asked, line: &str) {
        self.output.line(line);
        self.asked.push_back((asked, self.output.end()));
    }

    /// Nothing is on the way.
    fn rest(&mut self) {
        if self.is_quitting {
            self.state = State::Clearing;
            return self.ask(Asked::Quit, "QUIT");
        }
        self.state = State::Idle;
        match self.transaction {
            Some(_) => self.begin_transaction(),
            None => self.actions.push_back(Action::Idle),
        }
    }

    fn misbehaved(&mut self, misbehaviour: Misbehaviour) {
        self.fail(Cause::Misbehaved(misbehaviour), Outcome::Later);
    }

    /// It is over, for this reason.
    fn fail(&mut self, cause: Cause, class: fn(Reason) -> Outcome) {
        if self.state == State::Closed {
            return;
        }
        self.end = Some(class(Reason { stage: self.stage(), cause }));
        self.close();
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.asked.clear();
        self.output.clear();
        self.tell_all();
        self.actions.push_back(Action::HangUp);
    }

    /// What the peer is to answer, or is in the middle of.
    fn stage(&self) -> Stage {
        match (self.state, self.asked.front().map(|(asked, _)| *asked)) {
            (State::Handshake, _) => Stage::Tls,
            (State::Proof, _) => Stage::Login,
            (State::Inspection, _) => Stage::Inspection,
            (State::Body, _) => Stage::Message,
            (_, None | Some(Asked::Reset | Asked::Quit)) => Stage::Rest,
            (_, Some(asked)) => match asked {
                Asked::Greeting => Stage::Greeting,
                Asked::Hello | Asked::PlainHello => Stage::Hello,
                Asked::StartTls => Stage::Tls,
                Asked::ScramName | Asked::ScramProof | Asked::ScramEnd => Stage::Login,
                Asked::Plain | Asked::LoginName | Asked::LoginPassword | Asked::LoginEnd => {
                    Stage::Login
                }
                Asked::Mail => Stage::Sender,
                Asked::Recipient(_) => Stage::Recipient,
                Asked::Data => Stage::Data,
                Asked::End | Asked::Reset | Asked::Quit => Stage::MessageEnd,
            },
        }
    }
}

impl Speaker for Client {
    fn output(&self) -> &[u8] {
        self.output.bytes()
    }

    fn sent(&mut self, count: usize) {
        self.output.taken(count);
    }

    fn arrived(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.state != State::Closed {
            if self.state == State::Handshake {
                // Nobody knows who has said this (RFC 3207 section 5).
                return self.misbehaved(Misbehaviour::Early);
            }
            match self.reader.arrived(&mut bytes) {
                Ok(Some(heard)) => self.reply_arrived(heard),
                Ok(None) => {}
                Err(misbehaviour) => self.misbehaved(misbehaviour),
            }
        }
    }

    /// Everything begins anew, but for the greeting.
    fn secured(&mut self) {
        self.begin_anew();
    }

    /// Outcomes follow, and [`Action::HangUp`].
    fn lost(&mut self, lost: Lost) {
        self.fail(Cause::Lost(lost), Outcome::Later);
    }
}
