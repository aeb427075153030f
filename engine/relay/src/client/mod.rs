//! The SMTP client: the outgoing end of one connection, for several messages one after the other.
//!
//! The bytes to send are in [`Speaker::output`] until the caller has sent them ([`Speaker::sent`]).
//! Everything else that the caller must do is an [`Action`] of [`SmtpClient::next_action`]. The
//! order of the conversation:
//!
//! ```text
//!   greeting ── EHLO ─┬─ STARTTLS ── handshake ── EHLO ─┬─ AUTH ─┬─▸ idle
//!                └ HELO ─────────────────────────────────────────┘
//!   idle ── MAIL, RCPT…, DATA ── message ── . ──▸ idle
//!           all at once, if the peer can    └── RSET, if a transaction is open ──▸ idle
//! ```
//! If a peer accepts only ASCII, the client reads the whole message before MAIL, to see whether it
//! is ASCII. It does so even if the envelope declares the message as ASCII.
//!
//! Invariants:
//! - Each recipient of a message has exactly one outcome, whatever the peer sends.
//! - A reply counts only for a command that was sent. A reply that arrives while its command is
//!   still in [`Speaker::output`] ends the connection.
//! - After an invalid reply, the client trusts nothing more from the peer. The caller tries the
//!   open recipients again, on another connection.
//! - Nothing that the peer sent in plaintext is used under TLS. No byte may follow the reply to
//!   STARTTLS, and the client asks for the extensions again (RFC 3207 section 4.2).
//! - A password is sent only under TLS, or where the settings exclude TLS. If the peer offers
//!   SCRAM, the client sends a proof instead of the password, and the peer has to prove that it
//!   also knows the password.
//! - Memory is bounded: the output by [`RECIPIENTS_MAX`] commands and [`BODY_ROOM_BYTES`] of a
//!   message, and the reader as in `reply`.
//!
//! `421` ends the connection at any time (RFC 5321 section 3.8). A `4yz` or `5yz` during the
//! message is the peer's early answer to the message, and the rest of the message is not sent.
//!
//! Implements: RFC 5321 sections 3.1, 3.3, 3.8, 4.1.4, 4.3 and 4.5.3.2; the rest as in `lib.rs`.

mod opening;
mod output;
mod transaction;

use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt;

use machine::Micros;
use sasl::ClientExchange;

use crate::extensions::ServerExtensions;
use crate::outcome::{Cause, DeliveryFailure, DeliveryOutcome, Lost, Misbehaviour, Stage};
use crate::outgoing_message::OutgoingMessage;
use crate::reply::{Reply, ReplyReader, ReplyWithExtensions};
use crate::speaker::Speaker;
use output::OutputBuffer;
use transaction::ClientTransaction;

pub use output::BODY_ROOM_BYTES;

/// The most recipients of a message: what every server has to accept (RFC 5321 section 4.5.3.1.8).
pub const RECIPIENTS_MAX: usize = 100;

/// The settings of a conversation with a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SmtpClientSettings {
    /// Our name in EHLO: a domain, or an address literal.
    pub hello: String,
    /// Whether TLS is used.
    pub tls: TlsMode,
    /// The account to log in with.
    pub login: Option<ClientLogin>,
}

/// Whether TLS is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsMode {
    /// TLS is not used.
    Never,
    /// TLS is used if the peer offers it. If TLS fails ([`Lost::Tls`]), another connection without
    /// TLS may succeed.
    IfOffered,
    /// If TLS cannot be used, no message and no password is sent.
    Required,
    /// TLS begins before the greeting.
    Implicit,
}

/// The account to log in with.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientLogin {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
    /// An unpredictable text that was never sent before. The client's proof of the password uses
    /// it.
    pub nonce: String,
}

impl fmt::Debug for ClientLogin {
    /// Omits the password, so that no log holds it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// An action that the caller must take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Begin TLS, as the client, when all of [`Speaker::output`] has been sent. Then call
    /// [`Speaker::secured`].
    StartTls,
    /// Call [`SmtpClient::compute`], which computes a part of the password's proof. Repeated until
    /// the proof is done.
    Compute,
    /// Give more of the message: [`SmtpClient::body`] or [`SmtpClient::body_ended`]. Repeated when
    /// there is buffer space again.
    NeedBody,
    /// The message was only inspected: give it again from its beginning.
    BodyAnew,
    /// The outcome for a recipient.
    Done {
        /// The recipient's [`crate::OutgoingRecipient::number`].
        recipient: u16,
        /// The outcome.
        outcome: DeliveryOutcome,
    },
    /// All outcomes of the message are known: [`SmtpClient::deliver`] another, or
    /// [`SmtpClient::quit`].
    Idle,
    /// The conversation is over: close the connection when the output has been sent.
    HangUp,
}

/// A command that the peer answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SentCommand {
    /// No command: the peer greets when the connection is made.
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
    /// The end of the message.
    End,
    Reset,
    Quit,
}

impl SentCommand {
    /// Whether this reply may answer the command (RFC 5321 section 4.3.2): `3yz` if the client must
    /// send more, and `2yz` otherwise. A refusal may answer every command.
    fn is_answered_by(self, reply: &Reply) -> bool {
        let wants_more = matches!(
            self,
            SentCommand::Data
                | SentCommand::ScramName
                | SentCommand::ScramProof
                | SentCommand::LoginName
                | SentCommand::LoginPassword
        );
        match reply.class() {
            2 => !wants_more,
            3 => wants_more,
            _ => true,
        }
    }
}

/// The state of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Greeting, EHLO, STARTTLS and AUTH.
    Opening,
    /// The TLS handshake.
    Handshake,
    /// The password's proof is being computed.
    Proof,
    /// The client waits for a message.
    Idle,
    /// The message is being inspected for bytes that the peer does not accept.
    Inspection,
    /// The commands from MAIL to DATA.
    Envelope,
    /// The message is being sent.
    Body,
    /// The peer's answer to the message is awaited.
    End,
    /// RSET or QUIT.
    Clearing,
    /// The conversation is over.
    Closed,
}

/// The outgoing end of one connection.
#[derive(Debug)]
pub struct SmtpClient {
    settings: SmtpClientSettings,
    state: State,
    reader: ReplyReader,
    output: OutputBuffer,
    /// The commands without an answer, each with the position in the output at which it ends.
    asked: VecDeque<(SentCommand, u64)>,
    actions: VecDeque<Action>,
    extensions: ServerExtensions,
    is_secured: bool,
    /// The SCRAM login under way.
    scram: Option<ClientExchange>,
    transaction: Option<ClientTransaction>,
    is_quitting: bool,
    /// Whether [`Action::NeedBody`] was returned, and the caller has not given more of the message
    /// yet.
    is_body_asked: bool,
    /// Why the conversation is over.
    end: Option<DeliveryOutcome>,
}

impl SmtpClient {
    /// A client for a connection that is made or being made. The first message may be given at
    /// once.
    pub fn new(settings: SmtpClientSettings) -> SmtpClient {
        let is_secured = settings.tls == TlsMode::Implicit;
        SmtpClient {
            settings,
            state: State::Opening,
            reader: ReplyReader::default(),
            output: OutputBuffer::default(),
            asked: VecDeque::from([(SentCommand::Greeting, 0)]),
            actions: VecDeque::new(),
            extensions: ServerExtensions::default(),
            is_secured,
            scram: None,
            transaction: None,
            is_quitting: false,
            is_body_asked: false,
            end: None,
        }
    }

    /// Sends a message. The caller may call this once at the beginning, and after each
    /// [`Action::Idle`]. If the conversation is over, the outcomes of the message follow at once.
    pub fn deliver(&mut self, message: OutgoingMessage) {
        assert!(self.transaction.is_none() && !self.is_quitting, "one message at a time");
        assert!(
            (1..=RECIPIENTS_MAX).contains(&message.envelope.recipients.len()),
            "a message has recipients, and not too many"
        );
        self.transaction = Some(ClientTransaction::new(message));
        self.actions.retain(|action| *action != Action::Idle);
        match self.state {
            State::Idle => self.begin_transaction(),
            State::Closed => self.report_all(),
            _ => {}
        }
    }

    /// The next action of the caller, besides sending the output.
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

    /// The longest wait for the present answer (RFC 5321 section 4.5.3.2).
    pub fn patience(&self) -> Micros {
        Micros::from_secs(match self.stage() {
            Stage::Data => 2 * 60,
            Stage::Message => 3 * 60,
            Stage::MessageEnd => 10 * 60,
            // No outcome depends on the answer to RSET or QUIT.
            Stage::Rest => 30,
            _ => 5 * 60,
        })
    }

    /// Ends the connection with QUIT: at once if no message is being sent, or else after the
    /// message.
    pub fn quit(&mut self) {
        self.is_quitting = true;
        if self.state == State::Idle {
            self.rest();
        }
    }

    /// Whether the peer sends the reports that the sender wants (DSN). If not, this server reports
    /// that the message was relayed to a server that sends no reports (RFC 3461 section 5.2.2). The
    /// value is valid as soon as an outcome was returned.
    pub fn passes_on_reports(&self) -> bool {
        self.extensions.dsn
    }

    fn reply_arrived(&mut self, received: ReplyWithExtensions) {
        if received.reply.code == 421 {
            return self.fail(Cause::Refused(received.reply), DeliveryOutcome::Later);
        }
        match self.asked.front().copied() {
            Some((asked, end)) if end <= self.output.position() => {
                if !asked.is_answered_by(&received.reply) {
                    return self.misbehaved(Misbehaviour::OutOfPlace(received.reply.code));
                }
                self.asked.pop_front();
                self.answered(asked, received);
            }
            _ if matches!(self.state, State::Body | State::End) && received.reply.class() >= 4 => {
                self.refused_early(received.reply);
            }
            _ => self.misbehaved(Misbehaviour::Early),
        }
    }

    fn answered(&mut self, asked: SentCommand, received: ReplyWithExtensions) {
        let (reply, extensions) = (received.reply, received.extensions);
        match asked {
            SentCommand::Greeting => self.greeting_arrived(reply),
            SentCommand::Hello => self.hello_answered(reply, extensions),
            SentCommand::PlainHello => self.plain_hello_answered(reply),
            SentCommand::StartTls => self.start_tls_answered(reply),
            SentCommand::ScramName | SentCommand::ScramProof | SentCommand::ScramEnd => {
                self.scram_answered(asked, reply)
            }
            SentCommand::Plain
            | SentCommand::LoginName
            | SentCommand::LoginPassword
            | SentCommand::LoginEnd => {
                self.login_answered(asked, reply);
            }
            SentCommand::Mail => self.mail_answered(reply),
            SentCommand::Recipient(index) => self.recipient_answered(index, reply),
            SentCommand::Data => self.data_answered(reply),
            SentCommand::End => self.message_answered(reply),
            SentCommand::Reset if reply.class() == 2 => self.rest(),
            SentCommand::Reset | SentCommand::Quit => {
                self.fail(Cause::Lost(Lost::Closed), DeliveryOutcome::Later)
            }
        }
    }

    /// Sends a line that the peer will answer.
    fn ask(&mut self, asked: SentCommand, line: &str) {
        self.output.line(line);
        self.asked.push_back((asked, self.output.end()));
    }

    /// Continues when no command is under way: with QUIT, a message, or [`Action::Idle`].
    fn rest(&mut self) {
        if self.is_quitting {
            self.state = State::Clearing;
            return self.ask(SentCommand::Quit, "QUIT");
        }
        self.state = State::Idle;
        match self.transaction {
            Some(_) => self.begin_transaction(),
            None => self.actions.push_back(Action::Idle),
        }
    }

    fn misbehaved(&mut self, misbehaviour: Misbehaviour) {
        self.fail(Cause::Misbehaved(misbehaviour), DeliveryOutcome::Later);
    }

    /// Ends the conversation, for this reason.
    fn fail(&mut self, cause: Cause, class: fn(DeliveryFailure) -> DeliveryOutcome) {
        if self.state == State::Closed {
            return;
        }
        self.end = Some(class(DeliveryFailure { stage: self.stage(), cause }));
        self.close();
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.asked.clear();
        self.output.clear();
        self.report_all();
        self.actions.push_back(Action::HangUp);
    }

    /// The stage of the reply that is awaited or being read.
    fn stage(&self) -> Stage {
        match (self.state, self.asked.front().map(|(asked, _)| *asked)) {
            (State::Handshake, _) => Stage::Tls,
            (State::Proof, _) => Stage::Login,
            (State::Inspection, _) => Stage::Inspection,
            (State::Body, _) => Stage::Message,
            (_, None | Some(SentCommand::Reset | SentCommand::Quit)) => Stage::Rest,
            (_, Some(asked)) => match asked {
                SentCommand::Greeting => Stage::Greeting,
                SentCommand::Hello | SentCommand::PlainHello => Stage::Hello,
                SentCommand::StartTls => Stage::Tls,
                SentCommand::ScramName | SentCommand::ScramProof | SentCommand::ScramEnd => {
                    Stage::Login
                }
                SentCommand::Plain
                | SentCommand::LoginName
                | SentCommand::LoginPassword
                | SentCommand::LoginEnd => Stage::Login,
                SentCommand::Mail => Stage::Sender,
                SentCommand::Recipient(_) => Stage::Recipient,
                SentCommand::Data => Stage::Data,
                SentCommand::End | SentCommand::Reset | SentCommand::Quit => Stage::MessageEnd,
            },
        }
    }
}

impl Speaker for SmtpClient {
    fn output(&self) -> &[u8] {
        self.output.bytes()
    }

    fn sent(&mut self, count: usize) {
        self.output.remove_sent(count);
    }

    fn arrived(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.state != State::Closed {
            if self.state == State::Handshake {
                // The bytes may come from an attacker (RFC 3207 section 5).
                return self.misbehaved(Misbehaviour::Early);
            }
            match self.reader.arrived(&mut bytes) {
                Ok(Some(received)) => self.reply_arrived(received),
                Ok(None) => {}
                Err(misbehaviour) => self.misbehaved(misbehaviour),
            }
        }
    }

    /// After STARTTLS, begins the conversation again, without the greeting. After implicit TLS,
    /// does nothing: the greeting of the peer follows.
    fn secured(&mut self) {
        self.begin_anew();
    }

    /// Ends the conversation: the outcomes follow, and [`Action::HangUp`].
    fn lost(&mut self, lost: Lost) {
        self.fail(Cause::Lost(lost), DeliveryOutcome::Later);
    }
}
