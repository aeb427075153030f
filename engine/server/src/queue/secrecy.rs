//! The line to a host that takes mail: in the clear at first, and over TLS once the host has offered that. What is said and heard is the same.
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
//! - A step of a handshake is gone when its turn has come, at the gate at which sessions wait for theirs.
//! - A handshake has an end within [`HANDSHAKE_PATIENCE`], whatever the host says meanwhile.
//! - A host is called in the clear only where nothing is demanded, for what happened to its TLS, once, and only while it has not the whole of a letter: so nobody gets one twice by that.
//!
//! Answers to: RFC 3207 section 4, RFC 7435, RFC 7672.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;

use dns::{Name, Unanswered};
use machine::{BLOCK_BYTES, Instant, Micros};
use net::ConnectionId;
use relay::route::Hop;
use relay::{Cause, Client, Letter, Login, Lost, Outcome, Reason, Settings, Stage as Talk, Tls};
use tls::{Event, Failure};

use crate::common::{Common, HANDSHAKES};
use crate::configuration::SmarthostLogin;
use crate::secure::{Identity, Opening};

use super::courier::Reporter;
use super::demand::Demand;

/// Where mail comes from other hosts.
const PORT: u16 = 25;

/// How long a host may take to accept a connection.
pub(super) const CALL_PATIENCE: Micros = Micros::from_secs(30);

/// How long a connection may last: a peer who says a word now and then would keep it for ever.
pub(super) const CONVERSATION: Micros = Micros::from_secs(2 * 3600);

/// How long a whole handshake may take.
const HANDSHAKE_PATIENCE: Micros = Micros::from_secs(120);

/// A host that takes mail.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// None where it is known by its address alone.
    pub(super) name: Option<Name>,
    pub(super) address: SocketAddr,
    pub(super) tls: Tls,
    pub(super) identity: Identity,
    pub(super) login: Option<SmarthostLogin>,
}

impl Host {
    /// Errors: nobody knows what is demanded there, so it is not to be called.
    pub(super) fn of(hop: Hop, demand: Demand) -> Result<Host, Unanswered> {
        let (tls, identity) = match demand {
            Demand::Nothing => (Tls::IfOffered, Identity::Anybody),
            Demand::Tls(published) if published.is_empty() => (Tls::Required, Identity::Anybody),
            Demand::Tls(published) => (Tls::Required, Identity::Published(published)),
            Demand::Unknown(unanswered) => return Err(unanswered),
        };
        let address = SocketAddr::new(hop.address, PORT);
        Ok(Host { name: hop.host, address, tls, identity, login: None })
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
    connection: ConnectionId,
    pub(super) client: Client,
    secrecy: Secrecy,
    /// Whether the host has ever been asked to speak TLS, and said that it does.
    is_tls_begun: bool,
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

/// How what is said travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Secrecy {
    /// As it is.
    Clear,
    /// TLS is about to be spoken: what the handshake waits for, and until when it may.
    Handshake(Awaited, Instant),
    /// In records of TLS.
    Sealed,
}

/// What a handshake waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    /// The host.
    Bytes,
    /// Its turn.
    Turn,
    /// Room for what it will say.
    Room,
}

impl Line {
    /// Calls a host. `None`: there is no connection to be had.
    pub(super) fn to(host: Host, common: &mut Common) -> Option<Line> {
        let connection = common.net.connect(common.now, host.address).ok()?;
        let login = host.login.clone().map(|SmarthostLogin { user, password }| Login {
            user,
            password,
            nonce: common.logins.draw_nonce(),
        });
        let settings = Settings { hello: common.hostname.clone(), tls: host.tls, login };
        Some(Line {
            host,
            connection,
            client: Client::new(settings),
            secrecy: Secrecy::Clear,
            is_tls_begun: false,
            is_open: false,
            since: common.now,
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
        self.connection
    }

    /// The host has accepted the connection. This letter is for it.
    pub(super) fn opened(&mut self, letter: Letter, common: &mut Common) {
        self.is_open = true;
        self.client.deliver(letter);
        if self.host.tls == Tls::Implicit {
            self.begin_handshake(common);
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
        let patient = match self.secrecy {
            Secrecy::Handshake(_, until) => until,
            Secrecy::Clear | Secrecy::Sealed => now + self.client.patience(),
        };
        patient.min(self.since + CONVERSATION)
    }

    /// Says what there is to say, as far as there is room.
    pub(super) fn say(&mut self, common: &mut Common) {
        if let Secrecy::Handshake(Awaited::Room, _) = self.secrecy {
            self.hear(common);
        }
        let Common { net, secure, now, .. } = common;
        let output = self.client.output();
        if output.is_empty() {
            return;
        }
        let sent = match self.secrecy {
            Secrecy::Clear => net.send(*now, self.connection, output),
            Secrecy::Sealed => secure.send(*now, self.connection, output.into(), net),
            Secrecy::Handshake(..) => 0,
        };
        self.client.sent(sent);
    }

    /// Hears what has arrived.
    pub(super) fn hear(&mut self, common: &mut Common) {
        let connection = self.connection;
        common.work_on_waiting(connection, |bytes, common| match self.secrecy {
            Secrecy::Clear => {
                self.client.arrived(bytes);
                bytes.len()
            }
            Secrecy::Handshake(Awaited::Turn, _) => 0,
            Secrecy::Handshake(..) | Secrecy::Sealed => self.records_arrived(bytes, common),
        });
        self.look_whether_broken(common);
    }

    /// Looks at records, and answers how many bytes of them are done with.
    fn records_arrived(&mut self, bytes: &mut [u8], common: &mut Common) -> usize {
        let mut done = 0;
        loop {
            let (count, event) = common.open(self.connection, bytes.get_mut(done..).unwrap_or_default(), Opening::Next);
            done += count;
            match event {
                Event::Plaintext(length) => {
                    self.client.arrived(bytes.get(done..done + length).unwrap_or_default());
                    done += common.secure.of_mut(self.connection).map_or(length, |tls| tls.taken(length));
                }
                Event::Nothing if common.broken.is_none() => {}
                Event::Nothing | Event::Bytes | Event::Established(_) => return done,
                Event::Work => {
                    self.step_is_due(common);
                    return done;
                }
                Event::PeerClosed => {
                    self.client.lost(Lost::Closed);
                    return bytes.len();
                }
                Event::Failed(_) => {
                    self.client.lost(Lost::Tls);
                    return bytes.len();
                }
            }
        }
    }

    /// TLS may begin: the host has said so, or it is what is spoken at its port. The first word is ours.
    pub(super) fn begin_handshake(&mut self, common: &mut Common) {
        self.is_tls_begun = true;
        let called = self.host.called();
        if !common.secure.call(self.connection, called.as_deref(), &self.host.identity) {
            return self.client.lost(Lost::Tls);
        }
        self.secrecy = Secrecy::Handshake(Awaited::Bytes, common.now + HANDSHAKE_PATIENCE);
        self.hear(common);
    }

    /// The handshake can go a step, when its turn has come.
    fn step_is_due(&mut self, common: &mut Common) {
        let Secrecy::Handshake(awaited, _) = &mut self.secrecy else { return };
        if common.net.send_room(self.connection) < BLOCK_BYTES {
            *awaited = Awaited::Room;
            return common.net.want_room(common.now, self.connection);
        }
        *awaited = Awaited::Turn;
        common.enter(HANDSHAKES, self.connection.0);
    }

    /// Its turn has come.
    pub(super) fn step(&mut self, common: &mut Common) {
        let Secrecy::Handshake(awaited, _) = &mut self.secrecy else { return };
        *awaited = Awaited::Bytes;
        let event = common.step_in_handshake(self.connection);
        common.leave(HANDSHAKES, self.connection.0);
        match event {
            Some(Event::Established(_)) => {
                self.secrecy = Secrecy::Sealed;
                common.secure.call_ended();
                self.client.secured();
            }
            Some(Event::Failed(failure)) => self.client.lost(self.lost_by(&failure)),
            _ => {}
        }
        self.look_whether_broken(common);
        self.hear(common);
    }

    fn lost_by(&self, failure: &Failure) -> Lost {
        match (failure.fault(), &self.host.identity) {
            (None, _) => Lost::Tls,
            (Some(_), Identity::Vouched) => Lost::Unvouched,
            (Some(_), _) => Lost::Unproven,
        }
    }

    /// There was no room for what TLS had to say: the connection is gone.
    fn look_whether_broken(&mut self, common: &mut Common) {
        if common.broken.take_if(|broken| *broken == self.connection).is_some() {
            self.client.lost(Lost::Tls);
        }
    }

    /// Nothing more will be said by this connection; what was, is sent.
    pub(super) fn close(&mut self, common: &mut Common) {
        common.secure.close(common.now, self.connection, &mut common.net);
        common.net.close(self.connection);
        self.forget_secrets(common);
    }

    /// Ends the connection at once.
    pub(super) fn end(&mut self, common: &mut Common) {
        common.net.abort(self.connection);
        self.forget_secrets(common);
    }

    fn forget_secrets(&mut self, common: &mut Common) {
        if let Secrecy::Handshake(awaited, _) = self.secrecy {
            common.secure.call_ended();
            if awaited == Awaited::Turn {
                common.leave(HANDSHAKES, self.connection.0);
            }
        }
        self.secrecy = Secrecy::Clear;
        common.secure.end(self.connection);
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
        let is_tls = self.is_tls_begun && self.host.tls == Tls::IfOffered;
        if !is_tls || self.came.is_empty() || !self.came.iter().all(is_to_blame) {
            return None;
        }
        Some(Host { tls: Tls::Never, ..self.host.clone() })
    }
}
