//! What a core has for TLS: certificates and keys, how other hosts are called, and the TLS of each
//! connection that speaks it.
//!
//! A session on TLS stands in the same table as any other, and knows nothing of it. What arrives is
//! opened where it lies: in the received frame, or, when a record came in several, in the core's
//! scratch buffer, and what the session leaves goes back to where it waited. What is said is sealed
//! into the block that segments point into. So no plaintext is copied on its way in but what waits,
//! and each byte once on its way out.
//!
//! Invariants:
//! - A connection in the clear pays nothing for this but a look at [`Channel`].
//! - The table's slot of a connection is empty before its client's first byte, or ours, and after
//!   its session's end, or its owner's.
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
    Authorities, Certificate, ClientSettings, Clock, Connection, FLIGHT_BYTES_MAX, Offer,
    Published, SEALED_OVERHEAD_MAX, Sealed, Settings, Text, TicketKeys,
};

use crate::outcomes::Handshakes;

/// The least plaintext for which a record is begun at the end of a block that has been begun.
const RECORD_BYTES_LEAST: usize = 256;

/// Of so many connections, one may be in a handshake.
const CONNECTIONS_PER_HANDSHAKE: usize = 32;
/// And so many in any case.
const HANDSHAKES_MIN: usize = 32;

/// What a host that we call has to prove to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Identity {
    /// Nothing.
    Anybody,
    /// The one of which one of these is published, and which takes this domain's mail.
    Published(Vec<Published>, String),
    /// The one of its name, or of its address, by what authorities say.
    Vouched,
}

/// All that a core has for TLS.
pub struct TlsTable {
    /// What each service offers; nothing where there is no certificate.
    settings: Vec<Option<Settings>>,
    certificates: Vec<Certificate>,
    browser_authorities: Authorities,
    /// Whether these authorities vouch for each certificate.
    is_publicly_trusted: bool,
    clock: Clock,
    tickets: TicketKeys,
    /// In the slot of each connection.
    connections: Vec<Option<Box<Connection>>>,
    handshakes: usize,
    handshakes_max: usize,
    /// How other hosts are called that may be anybody, and those who have to be the one of their
    /// name.
    for_anybody: Option<ClientSettings>,
    for_vouched: Option<ClientSettings>,
    /// Handshakes with them. There are no more than couriers.
    calls: usize,
    /// How those ended that are over.
    outcomes: Handshakes,
    /// What TLS itself has to say, on its way to the connection.
    out: Box<[u8]>,
}

impl TlsTable {
    /// Bytes of memory for each connection, whether it is one of TLS or not.
    pub const SLOT_BYTES: usize = size_of::<Option<Box<Connection>>>();

    /// How many handshakes there may be at a time.
    pub fn handshakes_max(connections: usize) -> usize {
        (connections / CONNECTIONS_PER_HANDSHAKE).max(HANDSHAKES_MIN)
    }

    /// `certificates`: the default one first; without any there is no TLS. `secret`: known to all
    /// cores of the machine, and to nothing outside it. The first authorities are believed about
    /// the names of other hosts. Browsers trust the second.
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
            for_anybody: ClientSettings::for_anybody(&clock).ok(),
            for_vouched: ClientSettings::for_vouched(authorities, &clock).ok(),
            calls: 0,
            outcomes: Handshakes::default(),
            handshakes_max: TlsTable::handshakes_max(connections),
            out: vec![0; FLIGHT_BYTES_MAX].into_boxed_slice(),
            clock,
            tickets,
        }
    }

    /// Shows these certificates to new connections. Open ones stay, and tickets stay good: they
    /// were given over TLS to clients that were shown a certificate.
    pub fn show(&mut self, certificates: Vec<Certificate>) {
        if self.is_there() {
            self.settings = settings(&certificates, &self.clock, &self.tickets);
            self.certificates = certificates;
        }
    }

    /// Finds out whether browsers trust the certificates. Returns whether that has changed.
    pub fn judge_certificates(&mut self, now: UnixTime) -> bool {
        let is_believed = |certificate| self.browser_authorities.believe(certificate, now);
        let is_publicly_trusted = self.is_there() && self.certificates.iter().all(is_believed);
        core::mem::replace(&mut self.is_publicly_trusted, is_publicly_trusted)
            != is_publicly_trusted
    }

    /// Whether browsers trust each of the certificates.
    pub fn is_publicly_trusted(&self) -> bool {
        self.is_publicly_trusted
    }

    /// Whether the machine speaks TLS.
    pub fn is_there(&self) -> bool {
        !self.certificates.is_empty()
    }

    /// The certificates, the one for everybody else first.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Whether there is TLS for the service.
    pub fn serves(&self, service: Service) -> bool {
        self.settings.get(usize::from(service.0)).is_some_and(Option::is_some)
    }

    /// Whether one of the certificates is for the host of this name.
    pub fn is_named(&self, host: &str) -> bool {
        self.certificates.iter().any(|certificate| certificate.is_for(host))
    }

    /// Handshakes that have begun and not ended, whoever has called whom.
    pub fn handshakes(&self) -> usize {
        self.handshakes + self.calls
    }

    /// Connections that TLS is spoken on, or is about to be.
    pub fn connections(&self) -> usize {
        self.connections.iter().flatten().count()
    }

    /// Whether another handshake could begin.
    pub fn may_begin(&self) -> bool {
        self.handshakes < self.handshakes_max && !buggify!(NoHandshake)
    }

    /// Whether handshakes run short.
    pub fn is_busy(&self) -> bool {
        self.handshakes * 8 >= self.handshakes_max * 7
    }

    /// A client of the service has said its first word. False: there are too many handshakes, and
    /// this one does not begin.
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

    /// A host that we have called is to speak TLS with us: the first step of the handshake is due.
    /// False: it cannot begin. `host`: its name, or its address where that has to be proved.
    pub fn call(
        &mut self,
        connection: ConnectionId,
        host: Option<&str>,
        identity: &Identity,
    ) -> bool {
        let client = match identity {
            Identity::Anybody => self.for_anybody.clone(),
            Identity::Published(published, domain) => {
                ClientSettings::for_published(published.clone(), domain, &self.clock).ok()
            }
            Identity::Vouched => self.for_vouched.clone(),
        };
        let begun = client.and_then(|client| Connection::connect(&client, host).ok());
        let place = self.place(connection);
        assert!(place.is_none(), "a connection's slot is taken again only after its courier ended");
        *place = begun.map(Box::new);
        let has_begun = place.is_some();
        self.calls += usize::from(has_begun);
        has_begun
    }

    /// A handshake with a host that we have called is done, or will never be.
    pub fn call_ended(&mut self) {
        self.calls -= 1;
    }

    /// Whether the client has said anything yet.
    pub fn has_begun(&self, connection: ConnectionId) -> bool {
        self.of(connection).is_some()
    }

    /// A handshake that had begun is done, or will never be.
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

    /// Encrypts as much of `text` as there is room for, in as few records as that takes. Says how
    /// much that was.
    pub fn send(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        text: Text<'_>,
        net: &mut Net,
    ) -> usize {
        let Some(tls) = self.of_mut(connection) else { return 0 };
        let mut taken = 0;
        while taken < text.len() {
            let rest = text.behind(taken);
            let least = SEALED_OVERHEAD_MAX + rest.len().min(RECORD_BYTES_LEAST);
            let mut sealed = Sealed { taken: 0, written: 0 };
            net.send_with(now, connection, least, |room| {
                sealed = tls.seal(rest, room);
                sealed.written
            });
            if sealed.written == 0 {
                break;
            }
            taken += sealed.taken;
        }
        taken
    }

    /// Tells the peer that nothing more will be said, if there is room to.
    pub fn close(&mut self, now: Instant, connection: ConnectionId, net: &mut Net) {
        if let Some(tls) = self.of_mut(connection) {
            net.send_with(now, connection, SEALED_OVERHEAD_MAX + 2, |room| tls.close(room));
        }
    }

    /// How handshakes have ended.
    pub fn outcomes(&self) -> &Handshakes {
        &self.outcomes
    }

    /// The same, to be counted.
    pub fn outcomes_mut(&mut self) -> &mut Handshakes {
        &mut self.outcomes
    }

    /// What a step in the connection's handshake is worked with, if TLS is spoken.
    #[inline]
    pub(crate) fn at_work(
        &mut self,
        connection: ConnectionId,
    ) -> Option<(&mut Connection, &mut [u8], &Clock)> {
        let TlsTable { connections, out, clock, .. } = self;
        let tls = connections.get_mut(connection.index()).and_then(Option::as_mut)?;
        Some((tls, out, clock))
    }

    /// How many of the bytes that wait for the connection's session were opened.
    #[inline]
    pub fn held(&self, connection: ConnectionId) -> usize {
        self.of(connection).map_or(0, Connection::held)
    }

    /// The connection's TLS, to be looked at.
    #[inline]
    pub fn of(&self, connection: ConnectionId) -> Option<&Connection> {
        self.connections.get(connection.index())?.as_deref()
    }

    /// The connection's TLS, if it is spoken.
    pub fn of_mut(&mut self, connection: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(connection.index())?.as_deref_mut()
    }
}

/// What each service offers with these certificates.
fn settings(
    certificates: &[Certificate],
    clock: &Clock,
    tickets: &TicketKeys,
) -> Vec<Option<Settings>> {
    let offer = |service: &ServiceEntry| {
        // Known large senders of mail break on tickets.
        let tickets = (service.protocol != Protocol::Smtp).then_some(tickets);
        let offer = Offer { name: service.name, protocols: service.alpn, tickets };
        let is_offered = service.security != Security::None && !certificates.is_empty();
        is_offered.then(|| Settings::new(certificates.to_vec(), clock, &offer).ok()).flatten()
    };
    SERVICES.iter().map(offer).collect()
}

/// How much plaintext surely fits where so many bytes do. Each block takes a record at the least,
/// one may end what was begun, and one begin what follows.
pub(crate) fn room_for_plaintext(room: usize) -> usize {
    room.saturating_sub((room / BLOCK_BYTES + 3) * SEALED_OVERHEAD_MAX)
}
