//! Sessions. Each connection of a client has one, which gets the events of the connection.
//!
//! A session gets bytes in place, in the received frame. Bytes that it does not take, because it
//! waits for the store or for the rest of a line, stay in the connection. The connection offers
//! these bytes again after every event of the session. So a session needs no buffer, and only one
//! place in the code continues it.
//!
//! Invariant: after every event, everything that the session waits for has been requested. So no
//! session waits for an event that never comes.

mod context;
mod handshake;
mod limit_state;
mod records;
mod table;
mod waits_for;

use certificates::Replaced;
use connections::crowding::ProgressMark;
use connections::{Caller, Channel, Connections, TransportEvent};
use inbound::SmtpConversation;
use machine::{Micros, Protocol, ServiceEntry};
use resolver::{Known, QuestionNumber};
use shards::Reply;
use sometimes::{buggify, sometimes};
use store::{AccountId, Outcome};
use tasks::EntryPoint;
use web::HttpConversation;
use webmail::handler_reply::HandlerReply;

use crate::parts::Parts;
use crate::sizes::SESSION_BYTES;

use limit_state::{LimitState, busy, too_many};

pub(crate) use context::Context;
pub(crate) use handshake::{LOOK, Stage, TlsHandshake};
pub(crate) use table::Sessions;
pub(crate) use waits_for::WaitsFor;

/// The longest greeting, in bytes. A session without space for a greeting waits.
const GREETING_BYTES_MAX: usize = 576;

const _: () = assert!(
    smtp::REPLY_BYTES_MAX <= GREETING_BYTES_MAX
        && pop3::REPLY_BYTES_MAX <= GREETING_BYTES_MAX
        && http::BUSY.len() <= GREETING_BYTES_MAX
        && http::h2::BUSY.len() <= GREETING_BYTES_MAX
        && GREETING_BYTES_MAX <= machine::BLOCK_BYTES
);

/// The longest wait of a session for space for its greeting. Clients wait for 5 minutes (RFC 5321
/// section 4.5.3.2.1).
pub(crate) const GREETING_PATIENCE: Micros = Micros::from_secs(120);

/// The longest time that a refused client may take to read the refusal.
const REFUSAL_LINGER: Micros = Micros::from_secs(10);

/// The session of one connection.
pub(crate) struct Session {
    pub(crate) caller: Caller,
    pub(crate) talk: Talk,
    peer_half: PeerHalf,
    limit: LimitState,
    /// The progress of the session, and the time at which load shedding first saw this progress.
    pub(crate) mark: Option<ProgressMark>,
}

const _: () = assert!(size_of::<Option<Session>>() == SESSION_BYTES, "SESSION_BYTES must be exact");

/// The protocol state of a session.
pub(crate) enum Talk {
    /// The TLS handshake is in progress. After it, the protocol begins, or begins again (STARTTLS).
    Handshake(TlsHandshake),
    /// The greeting delay, in which a client that sends too early is detected.
    Silence,
    /// The session waits for space for its greeting.
    ToBeGreeted(Protocol),
    Smtp(SmtpConversation),
    Pop3(pop3_server::Pop3Conversation),
    Http(HttpConversation),
    /// The session is over: the client was refused, or the TLS handshake has failed or ended.
    Over,
}

/// Whether the peer may still send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PeerHalf {
    Open,
    /// The peer has sent its last byte, which the session may not have taken yet.
    Closed,
}

impl Talk {
    /// The protocol after STARTTLS, without a greeting.
    pub(crate) fn secured(protocol: Protocol, caller: Caller, cx: &mut Context<'_>) -> Talk {
        match protocol {
            Protocol::Smtp | Protocol::Submission => {
                Talk::Smtp(SmtpConversation::secured(&mut cx.smtp(caller)))
            }
            Protocol::Pop3 => {
                Talk::Pop3(pop3_server::Pop3Conversation::secured(&mut cx.pop3(caller)))
            }
            Protocol::Http | Protocol::Http2 => {
                unreachable!("{protocol:?} has no command that starts TLS")
            }
        }
    }
}

impl Session {
    /// Begins the session of a client. Greets or refuses it as soon as the output has space.
    fn begin(service: &ServiceEntry, caller: Caller, cx: &mut Context<'_>) -> Session {
        let limit = LimitState::arrives(caller, cx);
        if caller.channel == Channel::Tls {
            return Session::begin_with_handshake(caller, limit, cx);
        }
        let Parts { connections, logins, .. } = &*cx.parts;
        let delay = cx.inbound.greeting_delay(caller, connections.net(), logins.access());
        let delay = delay.filter(|_| limit != LimitState::Refused);
        let talk =
            if delay.is_some() { Talk::Silence } else { Talk::ToBeGreeted(service.protocol) };
        let mut session = Session { caller, talk, peer_half: PeerHalf::Open, limit, mark: None };
        session.greet(cx);
        if session.is_to_be_greeted() || delay.is_some() {
            cx.parts.set_deadline(caller.connection, delay.or(Some(GREETING_PATIENCE)));
        }
        session
    }

    /// Begins the session of a client of a service with implicit TLS. If the server is full, the
    /// client is refused before a handshake.
    fn begin_with_handshake(caller: Caller, limit: LimitState, cx: &mut Context<'_>) -> Session {
        if limit == LimitState::Refused || cx.parts.connections.is_crowded() {
            cx.parts.connections.tls_mut().outcomes_mut().turned_away += 1;
            cx.parts.connections.reset(caller.connection);
        } else {
            cx.parts.set_deadline(caller.connection, Some(LOOK));
        }
        Session {
            caller,
            talk: Talk::Handshake(TlsHandshake::new(cx.parts.turn.now)),
            peer_half: PeerHalf::Open,
            limit,
            mark: None,
        }
    }

    /// Greets or refuses a client that was not greeted yet, if the output has space.
    fn greet(&mut self, cx: &mut Context<'_>) {
        let Talk::ToBeGreeted(protocol) = self.talk else { return };
        let caller = self.caller;
        if cx.parts.connections.send_room(caller) < GREETING_BYTES_MAX {
            sometimes!(GreetingPutOff);
            return;
        }
        self.talk = match protocol {
            _ if cx.parts.connections.is_crowded() || buggify!(ServerFull) => {
                sometimes!(CallerSentAway);
                self.send_away(busy(protocol), cx)
            }
            _ if self.limit == LimitState::Refused => self.send_away(too_many(protocol), cx),
            Protocol::Smtp | Protocol::Submission => {
                Talk::Smtp(SmtpConversation::begin(&mut cx.smtp(caller)))
            }
            Protocol::Pop3 => {
                Talk::Pop3(pop3_server::Pop3Conversation::begin(&mut cx.pop3(caller)))
            }
            Protocol::Http => Talk::Http(HttpConversation::begin(&mut cx.http(caller))),
            Protocol::Http2 => Talk::Http(HttpConversation::begin_two(&mut cx.http(caller))),
        };
    }

    /// Refuses the client with `reply`.
    fn send_away(&self, reply: &[u8], cx: &mut Context<'_>) -> Talk {
        cx.parts.connections.say(cx.parts.turn.now, self.caller, reply);
        cx.parts.connections.close(cx.parts.turn.now, self.caller);
        cx.parts.set_deadline(self.caller.connection, Some(REFUSAL_LINGER));
        Talk::Over
    }

    /// Refuses a client that sent before its greeting. Spam programs do that (RFC 5321 section
    /// 3.1).
    fn has_spoken_first(&mut self, cx: &mut Context<'_>) {
        cx.parts.connections.say(cx.parts.turn.now, self.caller, smtp::SPOKE_FIRST);
        cx.parts.connections.close(cx.parts.turn.now, self.caller);
        self.talk = Talk::Over;
    }

    /// Whether the client waits for its greeting.
    pub(crate) fn is_to_be_greeted(&self) -> bool {
        matches!(self.talk, Talk::ToBeGreeted(_))
    }

    pub(crate) fn waits_for(&self) -> WaitsFor {
        match &self.talk {
            Talk::Handshake(handshake) => handshake.waits_for(),
            Talk::Silence => WaitsFor::Us,
            Talk::ToBeGreeted(_) => WaitsFor::SendRoom,
            Talk::Smtp(talk) => talk.waits_for().into(),
            Talk::Pop3(talk) => talk.waits_for().into(),
            Talk::Http(talk) => talk.waits_for().into(),
            Talk::Over => WaitsFor::Nothing,
        }
    }

    /// The HTTP conversation, if the session has one. Its memory is charged to the client.
    pub(crate) fn http(&self) -> Option<&HttpConversation> {
        if let Talk::Http(talk) = &self.talk { Some(talk) } else { None }
    }

    /// The SMTP conversation, if the session has one.
    pub(crate) fn smtp(&self) -> Option<&SmtpConversation> {
        if let Talk::Smtp(talk) = &self.talk { Some(talk) } else { None }
    }

    /// Whether the client has logged in by SMTP or POP3.
    pub(crate) fn is_logged_in(&self) -> bool {
        match &self.talk {
            Talk::Smtp(talk) => talk.is_logged_in(),
            Talk::Pop3(talk) => talk.is_logged_in(),
            Talk::Http(_)
            | Talk::Handshake(_)
            | Talk::Silence
            | Talk::ToBeGreeted(_)
            | Talk::Over => false,
        }
    }

    /// Whether the session has no login, no transaction, no request and no unacknowledged refusal.
    /// Commands without effect, such as NOOP, do not make it busy.
    pub(crate) fn is_idle(&self, connections: &Connections) -> bool {
        match (self.waits_for(), &self.talk) {
            (WaitsFor::Nothing, _) => connections.net().unacknowledged(self.caller.connection) == 0,
            (WaitsFor::Bytes, Talk::Http(talk)) => talk.is_between_requests(),
            (WaitsFor::Bytes, _) => {
                !self.is_logged_in() && !self.smtp().is_some_and(|talk| talk.has_transaction())
            }
            _ => false,
        }
    }

    /// Whether the session is idle, and its client has too many connections: the client was
    /// refused, or the share of its address or network is larger than `share`.
    pub(crate) fn is_one_of_too_many(&self, share: u32, cx: &mut Context<'_>) -> bool {
        self.is_idle(&cx.parts.connections) && self.limit.is_one_of_too_many(share, self.caller, cx)
    }

    /// Passes received plaintext to the session. Returns the number of bytes that it took.
    pub(crate) fn text_arrived(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> usize {
        match &mut self.talk {
            Talk::Smtp(talk) => talk.with(&mut cx.smtp(self.caller), |session, host| {
                session.bytes_arrived(bytes, host)
            }),
            Talk::Pop3(talk) => talk.with(&mut cx.pop3(self.caller), |session, host| {
                session.bytes_arrived(bytes, host)
            }),
            Talk::Http(talk) => talk.with(&mut cx.http(self.caller), |session, host| {
                session.bytes_arrived(bytes, host)
            }),
            Talk::Silence if !bytes.is_empty() => {
                self.has_spoken_first(cx);
                bytes.len()
            }
            Talk::Handshake(_) | Talk::Silence | Talk::ToBeGreeted(_) => 0,
            Talk::Over => bytes.len(),
        }
    }

    fn woken(&mut self, entry: EntryPoint, outcome: Outcome, cx: &mut Context<'_>) {
        match &mut self.talk {
            Talk::Smtp(talk) => talk.woken(entry, outcome, &mut cx.smtp(self.caller)),
            Talk::Pop3(talk) => talk.woken(entry, outcome, &mut cx.pop3(self.caller)),
            Talk::Http(_)
            | Talk::Handshake(_)
            | Talk::Silence
            | Talk::ToBeGreeted(_)
            | Talk::Over => {
                cx.parts.store.forget(outcome);
            }
        }
    }

    /// Passes the session a reply of the owner of an account. An unwanted reply stays in `reply`.
    fn replied(&mut self, reply: &mut Option<Reply>, cx: &mut Context<'_>) {
        match &mut self.talk {
            Talk::Smtp(talk) => talk.replied(reply, &mut cx.smtp(self.caller)),
            Talk::Pop3(talk) => talk.replied(reply, &mut cx.pop3(self.caller)),
            Talk::Http(_)
            | Talk::Handshake(_)
            | Talk::Silence
            | Talk::ToBeGreeted(_)
            | Talk::Over => {}
        }
    }

    /// Replies to the client with the result of its certificate upload.
    pub(crate) fn certificate_replaced(&mut self, replaced: Replaced, cx: &mut Context<'_>) {
        let Talk::Http(talk) = &mut self.talk else { unreachable!("only HTTP sends certificates") };
        talk.replied(certificates::reply_to(replaced), &mut cx.http(self.caller));
    }

    /// Passes on a reply, or a part of a reply, of the webmail to the client's request.
    pub(crate) fn webmail_replied(&mut self, reply: HandlerReply, cx: &mut Context<'_>) {
        let Talk::Http(talk) = &mut self.talk else {
            unreachable!("only HTTP asks for the webmail")
        };
        talk.webmail_replied(reply, &mut cx.http(self.caller));
    }

    /// Passes the answer to a DNS query to the session.
    pub(crate) fn name_known(
        &mut self,
        number: QuestionNumber,
        known: Known,
        cx: &mut Context<'_>,
    ) {
        if let Talk::Smtp(talk) = &mut self.talk {
            talk.name_known(number, known, &mut cx.smtp(self.caller));
        }
    }

    /// Passes an event of the filter's connection to the session.
    pub(crate) fn filter_event(&mut self, event: TransportEvent, cx: &mut Context<'_>) {
        if let Talk::Smtp(talk) = &mut self.talk {
            talk.filter_event(event, &mut cx.smtp(self.caller));
        }
    }

    /// Ends the session, or its current wait: the client has sent or read nothing for too long.
    pub(crate) fn deadline_expired(&mut self, cx: &mut Context<'_>) {
        if self.waits_for() == WaitsFor::Nothing {
            return cx.parts.connections.reset(self.caller.connection);
        }
        match &mut self.talk {
            Talk::Smtp(talk) => talk.deadline_expired(&mut cx.smtp(self.caller)),
            Talk::Pop3(talk) => talk.deadline_expired(&mut cx.pop3(self.caller)),
            Talk::Http(talk) => talk.deadline_expired(&mut cx.http(self.caller)),
            Talk::Handshake(_) => self.look_at_handshake(cx.parts),
            Talk::Silence => {
                self.talk = Talk::ToBeGreeted(Protocol::Smtp);
                cx.parts.set_deadline(self.caller.connection, Some(GREETING_PATIENCE));
            }
            Talk::ToBeGreeted(_) => cx.parts.connections.reset(self.caller.connection),
            Talk::Over => unreachable!("a session that is over waits for nothing"),
        }
    }

    /// Ends the session soon, because the machine is about to stop.
    pub(crate) fn stopping(&mut self, cx: &mut Context<'_>) {
        match &mut self.talk {
            Talk::Smtp(talk) => talk.stopping(&mut cx.smtp(self.caller)),
            Talk::Pop3(talk) => {
                talk.with(&mut cx.pop3(self.caller), |session, host| session.stopping(host))
            }
            Talk::Http(talk) => {
                talk.with(&mut cx.http(self.caller), |session, host| session.stopping(host))
            }
            Talk::Handshake(_) => {
                self.break_handshake_off(|outcomes| &mut outcomes.turned_away, cx.parts)
            }
            Talk::Silence | Talk::ToBeGreeted(_) => {
                cx.parts.connections.reset(self.caller.connection)
            }
            Talk::Over => {}
        }
    }

    /// Ends the session if it logged in with an old password of the account.
    pub(crate) fn password_changed(&mut self, account: AccountId, cx: &mut Context<'_>) {
        match &mut self.talk {
            Talk::Smtp(talk) => talk.password_changed(account, &mut cx.smtp(self.caller)),
            Talk::Pop3(talk) => talk.password_changed(account, &mut cx.pop3(self.caller)),
            // Webmail sessions are stored in the account, and the password change removes them.
            Talk::Http(_)
            | Talk::Handshake(_)
            | Talk::Silence
            | Talk::ToBeGreeted(_)
            | Talk::Over => {}
        }
    }

    /// Whether the client has logged in to this account, or is about to.
    pub(crate) fn is_of(&self, account: AccountId) -> bool {
        match &self.talk {
            Talk::Smtp(talk) => talk.is_logged_in_as(account),
            Talk::Pop3(talk) => talk.is_logged_in_as(account),
            Talk::Http(_)
            | Talk::Handshake(_)
            | Talk::Silence
            | Talk::ToBeGreeted(_)
            | Talk::Over => false,
        }
    }

    /// Reports that the peer will send no more, and that the session has taken all bytes.
    fn peer_closed(&mut self, cx: &mut Context<'_>) {
        match &mut self.talk {
            Talk::Smtp(talk) => {
                talk.with(&mut cx.smtp(self.caller), |session, host| session.peer_closed(host))
            }
            Talk::Pop3(talk) => {
                talk.with(&mut cx.pop3(self.caller), |session, host| session.peer_closed(host))
            }
            Talk::Http(talk) => {
                talk.with(&mut cx.http(self.caller), |session, host| session.peer_closed(host))
            }
            Talk::Handshake(_) => cx.parts.connections.reset(self.caller.connection),
            Talk::Silence | Talk::ToBeGreeted(_) | Talk::Over => {}
        }
    }

    pub(crate) fn resumed(&mut self, cx: &mut Context<'_>) {
        match &mut self.talk {
            Talk::Pop3(talk) => talk.resumed(&mut cx.pop3(self.caller)),
            Talk::Handshake(_) => self.handshake_resumed(cx),
            Talk::Smtp(talk) => talk.resumed(&mut cx.smtp(self.caller)),
            Talk::Http(talk) => talk.resumed(&mut cx.http(self.caller)),
            Talk::Silence | Talk::ToBeGreeted(_) | Talk::Over => {}
        }
    }

    /// Notes that the client will send no more.
    pub(crate) fn peer_is_done(&mut self) {
        self.peer_half = PeerHalf::Closed;
    }

    /// Offers the waiting bytes to the session, as long as it takes some.
    fn go_on(&mut self, cx: &mut Context<'_>, scratch: &mut [u8]) {
        self.greet(cx);
        if let Talk::Pop3(talk) = &mut self.talk
            && talk.waits_for() == pop3::Pop3WaitsFor::SendRoom
        {
            talk.go_on(&mut cx.pop3(self.caller));
        }
        if self.caller.channel == Channel::Tls {
            return self.records_wait(cx);
        }
        loop {
            let waiting = cx.parts.connections.copy_waiting(self.caller.connection, scratch);
            let Some(text) = scratch.get(..waiting) else {
                unreachable!("the copied bytes fit into the scratch buffer")
            };
            let taken = self.text_arrived(text, cx);
            if taken == 0 {
                return;
            }
            cx.parts.connections.consumed(self.caller.connection, taken);
        }
    }

    /// Whether the client will send nothing after the bytes that wait.
    pub(crate) fn has_heard_all(&self) -> bool {
        self.peer_half == PeerHalf::Closed
    }

    /// Requests the event that the session waits for.
    fn ask(&mut self, cx: &mut Context<'_>) {
        match self.waits_for() {
            WaitsFor::Bytes if self.peer_half == PeerHalf::Closed => self.peer_closed(cx),
            WaitsFor::SendRoom => {
                cx.parts.connections.want_room(cx.parts.turn.now, self.caller.connection)
            }
            WaitsFor::Handshake => self.handshake_begins(cx.parts),
            WaitsFor::Turn => cx.parts.connections.resume(self.caller.connection.0),
            WaitsFor::Bytes | WaitsFor::Us | WaitsFor::Nothing => {}
        }
    }

    /// Releases the resources of the session when its connection has ended.
    fn ended(mut self, cx: &mut Context<'_>) {
        if self.caller.channel == Channel::Tls {
            self.tls_ended(cx.parts);
        }
        self.peer_closed(cx);
        match &mut self.talk {
            Talk::Pop3(talk) => talk.ended(&mut cx.pop3(self.caller)),
            Talk::Http(talk) => talk.ended(&mut cx.http(self.caller)),
            Talk::Smtp(_)
            | Talk::Handshake(_)
            | Talk::Silence
            | Talk::ToBeGreeted(_)
            | Talk::Over => {}
        }
        cx.parts.set_deadline(self.caller.connection, None);
        self.limit.leaves(self.caller, cx);
    }
}
