//! The line to a host that takes mail: a wire (`crate::wire`), in the clear at first, and over TLS once the host has offered that. What is said and heard is the same.
//!
//! ```text
//!   STARTTLS ── 220 ──▸ handshake: its turn, the host's word, its turn … ──▸ sealed ── EHLO …
//!                          └─ it fails: the same host once more, in the clear
//! ```
//! Nobody vouches for most hosts, and what they show is not looked at (`tls::ClientSettings::for_anybody`): that keeps what is said from who listens, and not from who stands in between. So a host of this kind with which no handshake can be
//! done is spoken with in the clear at once (RFC 7435 section 3): a letter that waited for days would be none the safer, since who can spoil a handshake can take away the offer.
//!
//! Where its domain demands more (`demand`), nothing is sent to a host that does not show what is published, or speaks no TLS. So it is with a smarthost (`smarthosts`) of which whoever runs the machine has said that TLS is spoken, or that we
//! log in: what it takes for less is a letter, and a password.
//!
//! Invariants:
//! - Of what was said in the clear nothing is left when TLS is spoken; what comes behind the host's 220 and before its handshake is its own fault (`relay::Client`).
//! - A host is called in the clear only where nothing is demanded, for what happened to its TLS, once, and only while it has not the whole of a letter: so nobody gets one twice by that.
//!
//! Answers to: RFC 3207 section 4, RFC 7435, RFC 7672.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;

use configuration::SmarthostLogin;
use connections::{Connections, Identity, Owner, Wire};
use dns::Name;
use machine::{Instant, Micros};
use net::ConnectionId;
use relay::route::{Hop, Unroutable};
use relay::sts::Policy;
use relay::tally::{Rule, Shortfall};
use relay::{Cause, Client, Letter, Login, Lost, Outcome, Reason, Settings, Speaker, Stage as Talk, Tls};
use tasks::FrameId;
use tls::Fault;

use super::context::Context;
use super::demand::Demand;
use super::stages::Reporter;

/// Where mail comes from other hosts.
const PORT: u16 = 25;

/// How long a host may take to accept a connection.
pub(super) const CALL_PATIENCE: Micros = Micros::from_secs(30);

/// How long a connection may last: a peer who says a word now and then would keep it for ever.
pub(super) const CONVERSATION: Micros = Micros::from_secs(2 * 3600);

/// A host that takes mail.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// None where it is known by its address alone.
    pub(super) name: Option<Name>,
    pub(super) address: SocketAddr,
    pub(super) tls: Tls,
    pub(super) identity: Identity,
    pub(super) login: Option<SmarthostLogin>,
    /// Under what it is counted whether TLS was had; none: it is not, or was already.
    pub(super) rule: Option<Rule>,
}

/// Why a host is not to be called.
#[derive(Clone, Debug)]
pub(super) struct Barred {
    pub(super) why: Unroutable,
    /// As what that counts, if it is for what TLS would be.
    pub(super) counts_as: Option<(Rule, Shortfall)>,
}

impl Barred {
    pub(super) fn by(why: Unroutable) -> Barred {
        Barred { why, counts_as: None }
    }
}

impl Host {
    /// `domain`: whose mail it takes. `policy`: what that wants enforced where it demands nothing else. Errors: it is not to be called, or nobody knows what is demanded there.
    pub(super) fn of(hop: Hop, domain: &str, demand: Demand, policy: Option<&Policy>) -> Result<Host, Barred> {
        let is_allowed = |policy: &Policy| hop.host.as_ref().is_some_and(|host| policy.allows(host));
        let barred = |why, rule, shortfall| Err(Barred { why, counts_as: Some((rule, shortfall)) });
        let (tls, identity, rule) = match demand {
            Demand::Nothing => match policy.map(is_allowed) {
                None => (Tls::IfOffered, Identity::Anybody, Rule::None),
                Some(true) => (Tls::Required, Identity::Vouched, Rule::Sts),
                Some(false) => return barred(Unroutable::Forbidden, Rule::Sts, Shortfall::Failed),
            },
            Demand::Tls(published) if published.is_empty() => (Tls::Required, Identity::Anybody, Rule::Tlsa),
            Demand::Tls(published) => (Tls::Required, Identity::Published(published, domain.to_string()), Rule::Tlsa),
            Demand::Unknown(why) => return barred(Unroutable::Unknown(why), Rule::Tlsa, Shortfall::DnssecInvalid),
        };
        let address = SocketAddr::new(hop.address, PORT);
        Ok(Host { name: hop.host, address, tls, identity, login: None, rule: Some(rule) })
    }

    /// Whether TLS with it proves what there is to prove.
    fn proven(&self) -> Result<(), Shortfall> {
        let is_of_no_use = self.rule == Some(Rule::Tlsa) && self.identity == Identity::Anybody;
        if is_of_no_use { Err(Shortfall::TlsaInvalid) } else { Ok(()) }
    }

    /// What it has to prove to be called, and what it is told that it is called.
    fn called(&self) -> Option<String> {
        match (&self.name, &self.identity) {
            (Some(name), _) => Some(name.as_str().to_string()),
            (None, Identity::Vouched) => Some(self.address.ip().to_string()),
            (None, _) => None,
        }
    }
}

/// A connection to a host that takes mail.
pub(super) struct Line {
    host: Host,
    wire: Wire,
    pub(super) client: Client,
    /// What came of TLS. None: the host was never asked to speak it, or has not said that it does.
    secured: Option<Result<(), Shortfall>>,
    is_open: bool,
    /// When it was called.
    pub(super) since: Instant,
    /// The letters that were begun on it.
    pub(super) letters: u32,
    /// It waits for another letter (`keeping`).
    pub(super) is_kept: bool,
    /// The client wants more of the letter.
    pub(super) wants_body: bool,
    /// All of the letter was given to the client.
    pub(super) is_body_over: bool,
    /// What came of it so far.
    pub(super) came: Vec<(u8, Outcome)>,
}

impl Line {
    /// Calls a host, for the attempt of this frame. `hello`: what we are called. `None`: there
    /// is no connection to be had.
    pub(super) fn to(host: Host, frame: FrameId, hello: &str, parts: &mut Context<'_>) -> Option<Line> {
        let at = (parts.turn, &mut *parts.connections);
        let wire = Wire::to(host.address, host.identity.clone(), host.called(), Owner::Outbound(frame), at)?;
        let login = host.login.clone().map(|SmarthostLogin { user, password }| Login {
            user,
            password,
            nonce: parts.logins.draw_nonce(),
        });
        let settings = Settings { hello: hello.to_string(), tls: host.tls, login };
        Some(Line {
            host,
            wire,
            client: Client::new(settings),
            secured: None,
            is_open: false,
            since: parts.turn.now,
            letters: 1,
            is_kept: false,
            wants_body: false,
            is_body_over: false,
            came: Vec::new(),
        })
    }

    /// The host's name, if it has one.
    pub(super) fn host(&self) -> Option<Name> {
        self.host.name.clone()
    }

    /// Who tells the sender what becomes of what the host has taken.
    pub(super) fn reporter(&self) -> Reporter {
        if self.client.passes_on_reports() { Reporter::Host } else { Reporter::Us }
    }

    pub(super) fn connection(&self) -> ConnectionId {
        self.wire.connection()
    }

    /// The host has accepted the connection. This letter is for it.
    pub(super) fn opened(&mut self, letter: Letter, parts: &mut Context<'_>) {
        self.is_open = true;
        self.client.deliver(letter);
        if self.host.tls == Tls::Implicit {
            self.begin_handshake(parts);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the peer has every byte of the letter, and has not said what becomes of it.
    pub(super) fn is_said(&self) -> bool {
        self.is_body_over && self.client.output().is_empty()
    }

    /// Until when the host is waited for now.
    pub(super) fn deadline(&self, now: Instant) -> Instant {
        let patient = self.wire.handshake_until().unwrap_or_else(|| now + self.client.patience());
        patient.min(self.since + CONVERSATION)
    }

    /// Says what there is to say, as far as there is room.
    pub(super) fn say(&mut self, parts: &mut Context<'_>) {
        self.wire.say(&mut self.client, parts.turn, parts.connections);
    }

    /// Hears what has arrived.
    pub(super) fn hear(&mut self, parts: &mut Context<'_>) {
        self.wire.hear(&mut self.client, parts.turn, parts.connections);
    }

    /// TLS may begin.
    pub(super) fn begin_handshake(&mut self, parts: &mut Context<'_>) {
        // Until it is done.
        self.secured = Some(Err(Shortfall::Failed));
        self.wire.begin_handshake(&mut self.client, parts.turn, parts.connections);
    }

    /// It is the turn of its handshake.
    pub(super) fn step(&mut self, parts: &mut Context<'_>) {
        self.wire.step(&mut self.client, parts.turn, parts.connections);
        if self.wire.is_sealed() {
            self.secured = Some(self.host.proven());
        } else if let Some(fault) = self.wire.fault() {
            self.secured = Some(Err(shortfall(fault)));
        }
    }

    /// Nothing more will be said by this connection; what was, is sent.
    pub(super) fn close(&mut self, parts: &mut Context<'_>) {
        self.wire.close(parts.turn, parts.connections);
    }

    /// Ends the connection at once.
    pub(super) fn end(&mut self, connections: &mut Connections) {
        self.wire.end(connections);
    }

    /// What the host has said of the letter's recipients, and its name, if it has one.
    pub(super) fn told(self) -> (Option<Name>, Vec<(u8, Outcome)>) {
        (self.host.name, self.came)
    }

    /// The host, if nothing but its TLS is to blame for that it has not got the letter.
    pub(super) fn to_be_called_in_the_clear(&self) -> Option<Host> {
        let is_to_blame = |(_, outcome): &(u8, Outcome)| match outcome {
            Outcome::Later(Reason { stage, cause: Cause::Lost(Lost::Tls) }) => *stage <= Talk::Message,
            Outcome::Later(Reason { stage, cause: Cause::Lost(_) | Cause::Misbehaved(_) }) => *stage <= Talk::Login,
            _ => false,
        };
        let is_tls = self.secured.is_some() && self.host.tls == Tls::IfOffered;
        if !is_tls || self.came.is_empty() || !self.came.iter().all(is_to_blame) {
            return None;
        }
        Some(Host { tls: Tls::Never, rule: None, ..self.host.clone() })
    }

    /// What came of TLS with the host, and under what that is counted: once a connection, with its first letter. None also where it ended before it came to that.
    pub(super) fn to_be_counted(&self) -> Option<(Rule, Result<(), Shortfall>)> {
        let rule = self.host.rule.filter(|_| self.letters == 1)?;
        let is_past = |(_, outcome): &(u8, Outcome)| match outcome {
            Outcome::Later(reason) | Outcome::Never(reason) => reason.stage >= Talk::Tls,
            Outcome::Delivered(_) => true,
        };
        let has_none = || self.came.iter().any(is_past).then_some(Err(Shortfall::NoStartTls));
        self.secured.or_else(has_none).map(|came| (rule, came))
    }
}

fn shortfall(fault: Fault) -> Shortfall {
    match fault {
        Fault::NotToday => Shortfall::Expired,
        Fault::OtherName => Shortfall::OtherName,
        Fault::NotProven => Shortfall::NotTrusted,
    }
}
