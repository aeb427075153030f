//! The TLS state of a core: certificates and keys, settings for outgoing connections, and the state
//! of each connection that uses TLS.
//!
//! A session with TLS is in the same table as any other, and does not know of TLS. Records are
//! decrypted in place: in the received frame, or in the core's scratch buffer if a record came in
//! several segments. Bytes that the session leaves unread are put back. Output is encrypted into
//! the block from which the network sends segments. So input is copied only if it has to wait: for
//! the rest of its record, or for the session. Each byte of output is copied once.
//!
//! Invariants:
//! - For a plaintext connection, this table costs only a check of [`Channel`].
//! - The slot of a connection is empty before the first byte of TLS on it. It is empty again after
//!   the end of its session or owner.
//!
//! [`Channel`]: crate::Channel

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use machine::{BLOCK_BYTES, Instant, Protocol, SERVICES, Security, ServiceEntry, UnixTime};
use net::{ConnectionId, Net, Service};
use sometimes::{buggify, sometimes};
use tls::{
    Authorities, Certificate, ClientSettings, Clock, Connection, ENCRYPTION_OVERHEAD_MAX,
    Encrypted, FLIGHT_BYTES_MAX, Offer, Published, SplitPlaintext, TicketKeys, TlsSettings,
};

use crate::outcomes::Handshakes;

/// The most bytes of a message of TLS itself, sent before a record or instead of the record: a
/// KeyUpdate (RFC 8446 §4.6.3), or an alert.
const OWN_MESSAGE_BYTES_MAX: usize = 5;

/// The least plaintext, in bytes, for which a new record begins at the end of a block in use.
const RECORD_BYTES_LEAST: usize = 256;

/// At most one in this many connections may be in a handshake.
const CONNECTIONS_PER_HANDSHAKE: usize = 32;
/// The number of handshakes that are always allowed, however few connections are possible.
const HANDSHAKES_MIN: usize = 32;

/// The identity that a host must prove when we connect to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerIdentity {
    /// No identity: any certificate is accepted.
    Unchecked,
    /// A certificate that matches one of these TLSA records. The string is the recipient domain.
    Published(Vec<Published>, String),
    /// Its name, or its address, proved by certificate authorities.
    Authorities,
}

/// The TLS state of a core.
pub struct TlsTable {
    /// The settings of each service. `None` without a certificate.
    settings: Vec<Option<TlsSettings>>,
    certificates: Vec<Certificate>,
    browser_authorities: Authorities,
    /// Whether `browser_authorities` vouch for every certificate.
    is_publicly_trusted: bool,
    clock: Clock,
    tickets: TicketKeys,
    /// The TLS state of each connection, by its slot.
    connections: Vec<Option<Box<Connection>>>,
    handshakes: usize,
    handshakes_max: usize,
    /// Settings for outgoing connections that accept any identity.
    for_any_certificate: Option<ClientSettings>,
    /// Settings for outgoing connections to hosts that authorities must vouch for.
    for_vouched: Option<ClientSettings>,
    /// Handshakes of outgoing connections. There are at most as many as delivery attempts.
    calls: usize,
    /// Counters of how handshakes have ended.
    outcomes: Handshakes,
    /// The buffer for the output of TLS itself, until the connection queues it.
    out: Box<[u8]>,
}

impl TlsTable {
    /// Bytes of memory for each connection, with or without TLS.
    pub const SLOT_BYTES: usize = size_of::<Option<Box<Connection>>>();

    /// The most handshakes at a time.
    pub fn handshakes_max(connections: usize) -> usize {
        (connections / CONNECTIONS_PER_HANDSHAKE).max(HANDSHAKES_MIN)
    }

    /// Makes the TLS state. `certificates`: the default one first. If there are none, the machine
    /// has no TLS. `secret`: shared by all cores of the machine, and known only to them. The first
    /// list of authorities verifies other hosts. The second list has the authorities that browsers
    /// trust.
    pub fn new(
        certificates: &[Certificate],
        [authorities, browser_authorities]: [Authorities; 2],
        secret: &[u8; 32],
        connections: usize,
    ) -> TlsTable {
        let (clock, tickets) = (Clock::default(), TicketKeys::new(secret));
        TlsTable {
            settings: settings(certificates, &clock, &tickets),
            certificates: certificates.to_vec(),
            browser_authorities,
            is_publicly_trusted: false,
            connections: (0..connections).map(|_| None).collect(),
            handshakes: 0,
            for_any_certificate: ClientSettings::for_any_certificate(&clock).ok(),
            for_vouched: ClientSettings::for_vouched(authorities, &clock).ok(),
            calls: 0,
            outcomes: Handshakes::default(),
            handshakes_max: TlsTable::handshakes_max(connections),
            out: vec![0; FLIGHT_BYTES_MAX].into_boxed_slice(),
            clock,
            tickets,
        }
    }

    /// Uses these certificates for new connections. Open connections stay, and tickets stay valid:
    /// they were given over TLS to clients that had accepted a certificate.
    pub fn show(&mut self, certificates: Vec<Certificate>) {
        if self.has_certificates() {
            self.settings = settings(&certificates, &self.clock, &self.tickets);
            self.certificates = certificates;
        }
    }

    /// Checks whether browsers trust the certificates. Returns whether that has changed.
    pub fn judge_certificates(&mut self, now: UnixTime) -> bool {
        let is_trusted = |certificate| self.browser_authorities.trusts(certificate, now);
        let is_publicly_trusted =
            self.has_certificates() && self.certificates.iter().all(is_trusted);
        core::mem::replace(&mut self.is_publicly_trusted, is_publicly_trusted)
            != is_publicly_trusted
    }

    /// Whether browsers trust each of the certificates.
    pub fn is_publicly_trusted(&self) -> bool {
        self.is_publicly_trusted
    }

    /// Whether the machine has TLS.
    pub fn has_certificates(&self) -> bool {
        !self.certificates.is_empty()
    }

    /// The certificates, the default one first.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Whether there is TLS for the service.
    pub fn serves(&self, service: Service) -> bool {
        self.settings.get(usize::from(service.0)).is_some_and(Option::is_some)
    }

    /// Whether one of the certificates is for this host name.
    pub fn has_certificate_for(&self, host: &str) -> bool {
        self.certificates.iter().any(|certificate| certificate.is_for(host))
    }

    /// Handshakes in progress, in both directions.
    pub fn handshakes(&self) -> usize {
        self.handshakes + self.calls
    }

    /// Connections with TLS, including handshakes.
    pub fn connections(&self) -> usize {
        self.connections.iter().flatten().count()
    }

    /// Whether another handshake may begin.
    pub fn may_begin(&self) -> bool {
        self.handshakes < self.handshakes_max && !buggify!(NoHandshake)
    }

    /// Whether handshakes are near their limit.
    pub fn is_busy(&self) -> bool {
        self.handshakes * 8 >= self.handshakes_max * 7
    }

    /// A client of the service has sent its first byte. Returns false, and begins no handshake, if
    /// there are too many.
    pub fn begin(&mut self, connection: ConnectionId, service: Service) -> bool {
        let settings = self.settings.get(usize::from(service.0)).and_then(Option::as_ref);
        let Some(settings) = settings.filter(|_| self.may_begin()) else {
            sometimes!(HandshakesFull);
            return false;
        };
        let Some(place) = self.connections.get_mut(connection.index()) else {
            unreachable!("a connection above the last one")
        };
        assert!(place.is_none(), "a connection's slot is taken again only after its session ended");
        *place = Connection::accept(settings).ok().map(Box::new);
        let has_begun = place.is_some();
        self.handshakes += usize::from(has_begun);
        has_begun
    }

    /// Begins TLS with a host that we have connected to: the first step of the handshake is due.
    /// Returns false if it cannot begin. `host`: its name, or its address if the certificate must
    /// prove the address.
    pub fn call(
        &mut self,
        connection: ConnectionId,
        host: Option<&str>,
        identity: &ServerIdentity,
    ) -> bool {
        let client = match identity {
            ServerIdentity::Unchecked => self.for_any_certificate.clone(),
            ServerIdentity::Published(published, domain) => {
                ClientSettings::for_published(published.clone(), domain, &self.clock).ok()
            }
            ServerIdentity::Authorities => self.for_vouched.clone(),
        };
        let begun = client.and_then(|client| Connection::connect(&client, host).ok());
        let place = self.place(connection);
        assert!(
            place.is_none(),
            "a connection's slot is taken again only after its owner released it"
        );
        *place = begun.map(Box::new);
        let has_begun = place.is_some();
        self.calls += usize::from(has_begun);
        has_begun
    }

    /// A handshake of an outgoing connection has ended, by success or failure.
    pub fn call_ended(&mut self) {
        self.calls -= 1;
    }

    /// Whether the handshake has begun. A client begins it with its first byte.
    pub fn has_begun(&self, connection: ConnectionId) -> bool {
        self.of(connection).is_some()
    }

    /// A handshake of a client has ended, by success or failure.
    pub fn handshake_ended(&mut self) {
        self.handshakes -= 1;
    }

    /// The connection is gone.
    pub fn end(&mut self, connection: ConnectionId) {
        *self.place(connection) = None;
    }

    fn place(&mut self, connection: ConnectionId) -> &mut Option<Box<Connection>> {
        match self.connections.get_mut(connection.index()) {
            Some(place) => place,
            None => unreachable!("a connection above the last one"),
        }
    }

    /// Encrypts as much of `text` as there is space for, in as few records as possible. Returns the
    /// number of bytes taken.
    pub fn send(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        text: SplitPlaintext<'_>,
        net: &mut Net,
    ) -> usize {
        let Some(tls) = self.of_mut(connection) else { return 0 };
        let mut taken = 0;
        while taken < text.len() {
            let rest = text.behind(taken);
            let least = ENCRYPTION_OVERHEAD_MAX
                + rest.len().clamp(OWN_MESSAGE_BYTES_MAX, RECORD_BYTES_LEAST);
            let mut encrypted = Encrypted { taken: 0, written: 0 };
            net.send_with(now, connection, least, |room| {
                encrypted = tls.encrypt(rest, room);
                encrypted.written
            });
            if encrypted.written == 0 {
                break;
            }
            taken += encrypted.taken;
        }
        taken
    }

    /// Sends `close_notify`, if there is space for it.
    pub fn close(&mut self, now: Instant, connection: ConnectionId, net: &mut Net) {
        if let Some(tls) = self.of_mut(connection) {
            net.send_with(now, connection, ENCRYPTION_OVERHEAD_MAX + 2, |room| tls.close(room));
        }
    }

    /// The outcomes of handshakes.
    pub fn outcomes(&self) -> &Handshakes {
        &self.outcomes
    }

    /// The counters of how handshakes have ended, mutable.
    pub fn outcomes_mut(&mut self) -> &mut Handshakes {
        &mut self.outcomes
    }

    /// The TLS state of the connection, the output buffer and the clock, if the connection uses
    /// TLS.
    #[inline]
    pub(crate) fn at_work(
        &mut self,
        connection: ConnectionId,
    ) -> Option<(&mut Connection, &mut [u8], &Clock)> {
        let TlsTable { connections, out, clock, .. } = self;
        let tls = connections.get_mut(connection.index()).and_then(Option::as_mut)?;
        Some((tls, out, clock))
    }

    /// The number of decrypted bytes that wait for the connection's session.
    #[inline]
    pub fn held(&self, connection: ConnectionId) -> usize {
        self.of(connection).map_or(0, Connection::held)
    }

    /// The TLS state of the connection, read-only.
    #[inline]
    pub fn of(&self, connection: ConnectionId) -> Option<&Connection> {
        self.connections.get(connection.index())?.as_deref()
    }

    /// The TLS state of the connection, if it uses TLS.
    pub fn of_mut(&mut self, connection: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(connection.index())?.as_deref_mut()
    }
}

/// The settings of each service with these certificates.
fn settings(
    certificates: &[Certificate],
    clock: &Clock,
    tickets: &TicketKeys,
) -> Vec<Option<TlsSettings>> {
    let offer = |service: &ServiceEntry| {
        // Some large mail senders fail on tickets.
        let tickets = (service.protocol != Protocol::Smtp).then_some(tickets);
        let offer = Offer { name: service.name, protocols: service.alpn, tickets };
        let is_offered = service.security != Security::None && !certificates.is_empty();
        is_offered.then(|| TlsSettings::new(certificates.to_vec(), clock, &offer).ok()).flatten()
    };
    SERVICES.iter().map(offer).collect()
}

/// The number of bytes of plaintext that fit into `room` bytes in every case. Each block of output
/// takes at least one record. Two more records are possible: one at the end of earlier data, and
/// one at the start of later data.
pub(crate) fn room_for_plaintext(room: usize) -> usize {
    room.saturating_sub((room / BLOCK_BYTES + 3) * ENCRYPTION_OVERHEAD_MAX)
}
