//! Tickets: what they save, and where they are invalid.

use alloc::vec;

use machine::UnixTime;

use super::world::{BOTH, House, PLAIN, TODAY, pems_p256, provider, seed, ticket_keys};
use crate::{Certificate, Clock, Event, Offer, Settings, TICKET_PERIOD_SECONDS, TicketKeys};

fn house(version: &'static rustls::SupportedProtocolVersion, offer: &Offer<'_>) -> House {
    let mut house = House::with(&[pems_p256("mail.test")], offer, provider(), &[version]);
    house.client.enable_early_data = true;
    house
}

/// Connects once more. Returns whether the session was resumed, which both sides must agree on.
fn is_resumed(house: &House) -> bool {
    let mut wire = house.connect("mail.test");
    assert!(wire.client.early_data().is_none(), "no ticket allows early data");
    wire.established();
    wire.client_says(b"ping");
    wire.server_says(b"pong", 512);
    wire.settle(usize::MAX).unwrap();
    assert_eq!(wire.heard, b"ping");
    assert_eq!(wire.client_heard().0, b"pong");
    let [Event::Established(agreed)] = wire.events.as_slice() else { panic!("{:?}", wire.events) };
    let of_client = wire.client.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    assert_eq!(of_client, agreed.is_resumed);
    of_client
}

/// Other settings for the same certificate, as another core or service has them.
fn settings(house: &House, clock: &Clock, offer: &Offer<'_>) -> Settings {
    let certificates = house.settings.config.cert_resolver.clone();
    let mut settings = Settings::new(vec![any_certificate()], clock, offer).unwrap();
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
        let house = house(version, &Offer { tickets: Some(&keys), ..PLAIN });
        let start = TODAY / TICKET_PERIOD_SECONDS * TICKET_PERIOD_SECONDS;
        let at = |seconds| house.clock.set(UnixTime::from_seconds(start + seconds));
        at(TICKET_PERIOD_SECONDS - 1);
        assert!(!is_resumed(&house));
        assert!(is_resumed(&house));
        // The lifetime that the client is told is one period.
        at(2 * TICKET_PERIOD_SECONDS - 2);
        assert!(is_resumed(&house), "in the next period too");
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
    assert_ne!(ticket, tickets.encrypt(b"secret").unwrap(), "no nonce twice");
}

#[test]
fn tickets_work_across_cores_but_not_services() {
    seed(22);
    for version in BOTH {
        let keys = ticket_keys();
        let offer = Offer { tickets: Some(&keys), ..PLAIN };
        let mut house = house(version, &offer);
        assert!(!is_resumed(&house));
        let clock = Clock::default();
        clock.set(UnixTime::from_seconds(TODAY + 1));
        house.settings =
            settings(&house, &clock, &Offer { tickets: Some(&ticket_keys()), ..PLAIN });
        assert!(is_resumed(&house), "another core");
        house.settings = settings(&house, &clock, &Offer { name: "pop3s", ..offer });
        assert!(!is_resumed(&house), "another service");
        let others = TicketKeys::new(&[8; 32]);
        house.settings = settings(&house, &clock, &Offer { tickets: Some(&others), ..PLAIN });
        assert!(!is_resumed(&house), "another machine, or this one after a restart");
    }
}

#[test]
fn no_tickets_are_used_when_they_are_off() {
    seed(23);
    for version in BOTH {
        let house = house(version, &PLAIN);
        assert!(!is_resumed(&house));
        assert!(!is_resumed(&house));
    }
}
