//! Tests of tickets: they resume sessions, and are invalid in other services and later periods.

use alloc::vec;

use machine::UnixTime;

use super::world::{BOTH, PLAIN, TODAY, TestServer, pems_p256, provider, seed, ticket_keys};
use crate::{Certificate, Clock, Offer, TICKET_PERIOD_SECONDS, TicketKeys, TlsEvent, TlsSettings};

fn server(version: &'static rustls::SupportedProtocolVersion, offer: &Offer<'_>) -> TestServer {
    let mut server = TestServer::with(&[pems_p256("mail.test")], offer, provider(), &[version]);
    server.client.enable_early_data = true;
    server
}

/// Connects again. Returns whether the session was resumed, and asserts that both sides agree on
/// this.
fn is_resumed(server: &TestServer) -> bool {
    let mut connection = server.connect("mail.test");
    assert!(connection.client.early_data().is_none(), "no ticket allows early data");
    connection.established();
    connection.client_says(b"ping");
    connection.server_says(b"pong", 512);
    connection.settle(usize::MAX).unwrap();
    assert_eq!(connection.plaintext, b"ping");
    assert_eq!(connection.client_received().0, b"pong");
    let [TlsEvent::Established(agreed)] = connection.events.as_slice() else {
        panic!("{:?}", connection.events)
    };
    let of_client = connection.client.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    assert_eq!(of_client, agreed.is_resumed);
    of_client
}

/// The settings of another core or service, for the same certificate.
fn settings(server: &TestServer, clock: &Clock, offer: &Offer<'_>) -> TlsSettings {
    let certificates = server.settings.config.cert_resolver.clone();
    let mut settings = TlsSettings::new(vec![any_certificate()], clock, offer).unwrap();
    let mut config = (*settings.config).clone();
    config.cert_resolver = certificates;
    settings.config = config.into();
    settings
}

fn any_certificate() -> Certificate {
    let pems = pems_p256("any.test");
    Certificate::parse(pems.certificate.as_bytes(), pems.key.as_bytes()).unwrap()
}

#[test]
fn a_ticket_resumes_a_session_until_its_key_expires() {
    seed(20);
    for version in BOTH {
        let keys = ticket_keys();
        let server = server(version, &Offer { tickets: Some(&keys), ..PLAIN });
        let start = TODAY / TICKET_PERIOD_SECONDS * TICKET_PERIOD_SECONDS;
        let at = |seconds| server.clock.set(UnixTime::from_seconds(start + seconds));
        at(TICKET_PERIOD_SECONDS - 1);
        assert!(!is_resumed(&server));
        assert!(is_resumed(&server));
        // The server tells the client a lifetime of one period.
        at(2 * TICKET_PERIOD_SECONDS - 2);
        assert!(is_resumed(&server), "the ticket is valid in the next period too");
    }
}

#[test]
fn an_old_ticket_is_invalid() {
    use rustls::server::ProducesTickets;
    seed(21);
    let clock = Clock::default();
    let tickets = ticket_keys().of_service("https", &clock);
    let at = |period: u64| clock.set(UnixTime::from_seconds(period * TICKET_PERIOD_SECONDS + 5));
    at(1000);
    let ticket = tickets.encrypt(b"secret").unwrap();
    for (period, opens) in [
        (1000, true),
        (1001, true),
        (1002, false),
        (5000, false),
        (999, true),
        (998, false),
        (0, false),
    ] {
        at(period);
        assert_eq!(tickets.decrypt(&ticket).is_some(), opens, "in period {period}");
    }
    at(1000);
    for place in 0..ticket.len() {
        let mut changed = ticket.clone();
        changed[place] ^= 1;
        assert_eq!(tickets.decrypt(&changed), None, "changed at {place}");
        assert_eq!(tickets.decrypt(&ticket[..place]), None, "cut at {place}");
    }
    assert_eq!(tickets.decrypt(&ticket).unwrap(), b"secret");
    assert_ne!(ticket, tickets.encrypt(b"secret").unwrap(), "each ticket has its own nonce");
}

#[test]
fn tickets_work_across_cores_but_not_services() {
    seed(22);
    for version in BOTH {
        let keys = ticket_keys();
        let offer = Offer { tickets: Some(&keys), ..PLAIN };
        let mut server = server(version, &offer);
        assert!(!is_resumed(&server));
        let clock = Clock::default();
        clock.set(UnixTime::from_seconds(TODAY + 1));
        server.settings =
            settings(&server, &clock, &Offer { tickets: Some(&ticket_keys()), ..PLAIN });
        assert!(is_resumed(&server), "a ticket is valid at another core");
        server.settings = settings(&server, &clock, &Offer { name: "pop3s", ..offer });
        assert!(!is_resumed(&server), "a ticket is invalid at another service");
        let others = TicketKeys::new(&[8; 32]);
        server.settings = settings(&server, &clock, &Offer { tickets: Some(&others), ..PLAIN });
        assert!(
            !is_resumed(&server),
            "a ticket is invalid after a restart, and at another machine"
        );
    }
}

#[test]
fn no_tickets_are_used_when_they_are_off() {
    seed(23);
    for version in BOTH {
        let server = server(version, &PLAIN);
        assert!(!is_resumed(&server));
        assert!(!is_resumed(&server));
    }
}
