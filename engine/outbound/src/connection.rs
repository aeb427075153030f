//! The connection to a host that accepts mail. It begins in plaintext, and changes to TLS if the
//! host offers STARTTLS. The SMTP client works the same way with and without TLS. After a message,
//! the connection may be kept for the next message to the same destination.
//!
//! ```text
//!   STARTTLS ── 220 ──▸ handshake, in steps behind a gate ──▸ encrypted ── EHLO …
//!                          └─ failure: the same host once more, in plaintext
//! ```
//! Most hosts need not prove their name (`host`). If the handshake with such a host fails, this
//! server calls the host again at once, in plaintext (RFC 7435 section 3). To let the message wait
//! for days would not make it safer: an attacker that can break a handshake can also remove the
//! offer of TLS.
//!
//! Invariants:
//! - When TLS begins, no plaintext bytes are left. Bytes that the host sends between its 220 reply
//!   and its handshake are a fault of the host (`relay::SmtpClient`).
//! - A host is called again in plaintext at most once, and only if TLS has failed and no policy
//!   demands TLS. A host that has the whole message is not called again, so no recipient gets the
//!   message twice.
//! - While the connection is kept for another message, the client has no message, and the attempt
//!   has taken the outcomes of the earlier message.
//! - The connection carries at most [`MESSAGES_MAX`] messages. It is not kept for another message
//!   once it is older than [`KEPT_LONGEST`].
//! - A wait for the peer is no longer than RFC 5321 section 4.5.3.2 requires. All waits together
//!   are no longer than [`CONVERSATION`].
//!
//! Implements: RFC 3207 section 4, RFC 7435.

use alloc::string::ToString;
use alloc::vec::Vec;

use configuration::SmarthostLogin;
use connections::{ClientTransport, Connections, Owner};
use dns::Name;
use machine::{Instant, Micros};
use net::ConnectionId;
use relay::tally::{Rule, Shortfall};
use relay::{
    Action, Cause, ClientLogin, DeliveryFailure, DeliveryOutcome, Lost, OutgoingMessage,
    SmtpClient, SmtpClientSettings, Speaker, Stage as SmtpStage, TlsMode,
};
use store::Refusal;
use tls::CertificateFault;

use super::attempt_context::AttemptCx;
use super::context::OutboundContext;
use super::host::MailHost;
use super::reader::EntryReader;
use super::stages::Reporter;

/// The longest time that a host may take to accept a connection.
pub(super) const CALL_PATIENCE: Micros = Micros::from_secs(30);

/// The longest time that a connection may last. Without this limit, a peer could keep the
/// connection forever by sending something now and then.
const CONVERSATION: Micros = Micros::from_secs(2 * 3600);

/// The most messages on one connection.
const MESSAGES_MAX: u32 = 100;

/// A connection that is older than this is not kept for another message.
const KEPT_LONGEST: Micros = Micros::from_secs(300);

/// The longest time that a connection may wait for its next message.
pub(super) const KEPT_PATIENCE: Micros = Micros::from_secs(30);

/// The reply code that closes a connection (RFC 5321 section 3.8).
const CLOSING: u16 = 421;

/// The outcomes of a message for its recipients, each with the recipient's bit.
pub(super) type Outcomes = Vec<(u8, DeliveryOutcome)>;

/// A connection to a host that accepts mail.
pub(super) struct OutboundConnection {
    host: MailHost,
    transport: ClientTransport,
    client: SmtpClient,
    usage: ConnectionUse,
    /// The TLS result. `None`: the host was never asked to speak TLS, or has not offered it.
    secured: Option<Result<(), Shortfall>>,
    /// The time at which the host was called.
    since: Instant,
    /// The number of messages that were begun on the connection.
    messages: u32,
    body: BodyProgress,
    /// The outcomes of the message so far.
    outcomes: Outcomes,
}

/// The result of a step of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConversationStep {
    /// The conversation waits for the peer, for buffer space, or for a part of the message.
    Waits,
    /// The step has computed as much as one attempt may in a turn.
    Computes,
    /// The outcomes for all recipients are known.
    MessageOver,
    /// The conversation is over: the connection must be ended.
    HangUp,
}

/// The present use of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConnectionUse {
    /// The host is called, and has not accepted the connection.
    Calling,
    /// A message is being sent.
    Message,
    /// The connection waits for another message.
    Kept,
}

/// The client's progress with the body of the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyProgress {
    /// The client wants no bytes now.
    Idle,
    /// The client wants more bytes.
    Wanted,
    /// The client has the whole message.
    Over,
}

/// Whether the client has got a part of the message, or gets the part later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodySupply {
    Something,
    Later,
}

impl OutboundConnection {
    /// Calls a host, for the attempt of `cx`. `None`: no connection can be made.
    pub(super) fn to(host: MailHost, cx: &mut AttemptCx<'_, '_>) -> Option<OutboundConnection> {
        let AttemptCx { frame, queue, parts, .. } = cx;
        let at = (parts.turn, &mut *parts.connections);
        let transport = ClientTransport::to(
            host.address,
            host.identity.clone(),
            host.called(),
            Owner::Outbound(*frame),
            at,
        )?;
        let login = host.login.clone().map(|SmarthostLogin { user, password }| ClientLogin {
            user,
            password,
            nonce: parts.logins.draw_nonce(),
        });
        let settings =
            SmtpClientSettings { hello: queue.config.hostname().to_string(), tls: host.tls, login };
        Some(OutboundConnection {
            host,
            transport,
            client: SmtpClient::new(settings),
            usage: ConnectionUse::Calling,
            secured: None,
            since: parts.turn.now,
            messages: 1,
            body: BodyProgress::Idle,
            outcomes: Outcomes::new(),
        })
    }

    /// The connection's identifier in the network stack.
    pub(super) fn connection(&self) -> ConnectionId {
        self.transport.connection()
    }

    /// The host's name, if it has one.
    pub(super) fn host(&self) -> Option<&Name> {
        self.host.name.as_ref()
    }

    /// The server that reports success to the sender: this server, or the peer.
    pub(super) fn reporter(&self) -> Reporter {
        if self.client.passes_on_reports() { Reporter::Host } else { Reporter::Us }
    }

    /// Gives the client a message to send. The host has accepted the connection.
    pub(super) fn opened(&mut self, message: OutgoingMessage, parts: &mut OutboundContext<'_>) {
        self.usage = ConnectionUse::Message;
        self.client.deliver(message);
        if self.host.tls == TlsMode::Implicit {
            self.begin_handshake(parts);
        }
    }

    /// Whether every byte of the message was sent, so that only the host's reply is missing.
    pub(super) fn is_sent(&self) -> bool {
        self.body == BodyProgress::Over && self.client.output().is_empty()
    }

    /// The end of the present wait for the host.
    fn deadline(&self, now: Instant) -> Instant {
        let patient =
            self.transport.handshake_until().unwrap_or_else(|| now + self.client.patience());
        patient.min(self.since + CONVERSATION)
    }

    /// Sends the output for which there is buffer space, and carries out the client's actions.
    /// `reader` supplies the message.
    ///
    /// Errors: those of the store, when a part of the message is requested.
    pub(super) fn converse(
        &mut self,
        reader: &mut EntryReader,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<ConversationStep, Refusal> {
        loop {
            self.send_output(cx.parts);
            match self.client.next_action() {
                Some(Action::NeedBody) => self.body = BodyProgress::Wanted,
                Some(Action::BodyAnew) => {
                    self.body = BodyProgress::Idle;
                    reader.rewind();
                }
                Some(Action::Done { recipient, outcome }) => {
                    self.outcomes.push((recipient as u8, outcome))
                }
                Some(Action::Idle) => return Ok(ConversationStep::MessageOver),
                Some(Action::HangUp) => return Ok(ConversationStep::HangUp),
                Some(Action::StartTls) => self.begin_handshake(cx.parts),
                Some(Action::Compute) => {
                    self.client.compute();
                    return Ok(ConversationStep::Computes);
                }
                None if self.body == BodyProgress::Wanted => match self.give_body(reader, cx)? {
                    BodySupply::Something => {}
                    BodySupply::Later => break,
                },
                None => break,
            }
        }
        cx.queue.deadlines.set(cx.frame, self.deadline(cx.parts.turn.now));
        Ok(ConversationStep::Waits)
    }

    /// Gives the client the bytes that were read, or requests the next part.
    fn give_body(
        &mut self,
        reader: &mut EntryReader,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<BodySupply, Refusal> {
        if reader.octets().is_empty() {
            if reader.read_on(cx)? {
                return Ok(BodySupply::Later);
            }
            self.body = BodyProgress::Over;
            self.client.body_ended();
            return Ok(BodySupply::Something);
        }
        let taken = self.client.body(reader.octets());
        reader.used(taken);
        self.body = BodyProgress::Idle;
        Ok(BodySupply::Something)
    }

    /// Sends the client's output, as far as there is buffer space.
    fn send_output(&mut self, parts: &mut OutboundContext<'_>) {
        self.transport.say(&mut self.client, parts.turn, parts.connections);
    }

    /// Gives the client the bytes that have arrived from the host.
    pub(super) fn receive(&mut self, parts: &mut OutboundContext<'_>) {
        self.transport.hear(&mut self.client, parts.turn, parts.connections);
    }

    /// Begins the TLS handshake.
    fn begin_handshake(&mut self, parts: &mut OutboundContext<'_>) {
        // The TLS result is a failure until the handshake is complete.
        self.secured = Some(Err(Shortfall::Failed));
        self.transport.begin_handshake(&mut self.client, parts.turn, parts.connections);
    }

    /// Takes the next step of the handshake.
    pub(super) fn step(&mut self, parts: &mut OutboundContext<'_>) {
        self.transport.step(&mut self.client, parts.turn, parts.connections);
        if self.transport.is_encrypted() {
            self.secured = Some(self.host.proven());
        } else if let Some(fault) = self.transport.fault() {
            self.secured = Some(Err(shortfall(fault)));
        }
    }

    /// Whether the host has accepted the connection.
    pub(super) fn is_open(&self) -> bool {
        self.usage != ConnectionUse::Calling
    }

    /// Tells the client that the host sends nothing more, or that the message cannot be read. The
    /// client then reports the outcomes.
    pub(super) fn lost(&mut self, lost: Lost) {
        self.client.lost(lost);
    }

    /// Whether another message may use the connection.
    pub(super) fn may_be_kept(&self, now: Instant) -> bool {
        self.messages < MESSAGES_MAX && now.since(self.since) < KEPT_LONGEST
    }

    /// Whether the connection carries its first message.
    pub(super) fn has_first_message(&self) -> bool {
        self.messages == 1
    }

    /// Keeps the connection for another message, and returns the outcomes of its last message.
    pub(super) fn keep(&mut self) -> Outcomes {
        self.usage = ConnectionUse::Kept;
        self.take_outcomes()
    }

    /// Whether the connection waits for another message.
    pub(super) fn is_kept(&self) -> bool {
        self.usage == ConnectionUse::Kept
    }

    /// Sends this message on the kept connection.
    pub(super) fn reuse(&mut self, message: OutgoingMessage) {
        assert!(
            self.is_kept() && self.outcomes.is_empty(),
            "a connection carries one message at a time"
        );
        (self.usage, self.body) = (ConnectionUse::Message, BodyProgress::Idle);
        self.messages += 1;
        self.client.deliver(message);
    }

    /// Sends QUIT, and closes the connection when everything is sent.
    pub(super) fn say_goodbye(&mut self, parts: &mut OutboundContext<'_>) {
        self.client.quit();
        self.send_output(parts);
        self.transport.close(parts.turn, parts.connections);
    }

    /// Ends the connection at once.
    pub(super) fn end(&mut self, connections: &mut Connections) {
        self.transport.end(connections);
    }

    /// Takes the outcomes for the message's recipients.
    pub(super) fn take_outcomes(&mut self) -> Outcomes {
        core::mem::take(&mut self.outcomes)
    }

    /// Whether a reused connection ended before the host saw its last message, so that the message
    /// may be sent again.
    pub(super) fn ended_unused(&self) -> bool {
        let is_of_connection = |cause: &Cause| match cause {
            Cause::Lost(lost) => *lost != Lost::GivenUp,
            Cause::Refused(reply) => reply.code == CLOSING,
            _ => false,
        };
        let is_early = |stage: SmtpStage| stage < SmtpStage::Message || stage == SmtpStage::Rest;
        self.messages > 1
            && self.outcomes.iter().all(|(_, outcome)| match outcome {
                DeliveryOutcome::Later(reason) => {
                    is_early(reason.stage) && is_of_connection(&reason.cause)
                }
                _ => false,
            })
    }

    /// The host to call again in plaintext. `None` unless the message failed only because of TLS.
    pub(super) fn to_be_called_in_the_clear(&self) -> Option<MailHost> {
        let is_to_blame = |(_, outcome): &(u8, DeliveryOutcome)| match outcome {
            DeliveryOutcome::Later(DeliveryFailure { stage, cause: Cause::Lost(Lost::Tls) }) => {
                *stage <= SmtpStage::Message
            }
            DeliveryOutcome::Later(DeliveryFailure {
                stage,
                cause: Cause::Lost(_) | Cause::Misbehaved(_),
            }) => *stage <= SmtpStage::Login,
            _ => false,
        };
        let is_tls = self.secured.is_some() && self.host.tls == TlsMode::IfOffered;
        if !is_tls || self.outcomes.is_empty() || !self.outcomes.iter().all(is_to_blame) {
            return None;
        }
        Some(MailHost { tls: TlsMode::Never, rule: None, ..self.host.clone() })
    }

    /// The TLS result with the host, and the rule under which it is counted. A connection is
    /// counted once, with its first message. `None` also if the connection ended before the result
    /// was known.
    pub(super) fn to_be_counted(&self) -> Option<(Rule, Result<(), Shortfall>)> {
        let rule = self.host.rule.filter(|_| self.messages == 1)?;
        let is_past = |(_, outcome): &(u8, DeliveryOutcome)| match outcome {
            DeliveryOutcome::Later(reason) | DeliveryOutcome::Never(reason) => {
                reason.stage >= SmtpStage::Tls
            }
            DeliveryOutcome::Delivered(_) => true,
        };
        let has_none = || self.outcomes.iter().any(is_past).then_some(Err(Shortfall::NoStartTls));
        self.secured.or_else(has_none).map(|result| (rule, result))
    }
}

fn shortfall(fault: CertificateFault) -> Shortfall {
    match fault {
        CertificateFault::NotToday => Shortfall::Expired,
        CertificateFault::OtherName => Shortfall::OtherName,
        CertificateFault::NotProven => Shortfall::NotTrusted,
    }
}
