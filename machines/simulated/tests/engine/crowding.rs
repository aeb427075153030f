//! Tests that addresses with more connections than their share do not lock out other clients.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use machine::Micros;
use server::Sizes;
use simulated::MemoryDisk;
use smoltcp::wire::Ipv4Address;

use super::room::tls_stream::{TlsStream, Trust, client};
use super::room::{CONFIGURATION, Room, Talk, usual_sizes};
use crate::CORES;

const SMALL: Sizes = Sizes {
    connections: 64,
    transactions: 4,
    blocks: 64,
    buffer_bytes: 1 << 20,
    index_bytes: 4 << 20,
};

/// A room with a /16 network, and `hosts` hosts in addition to the first.
fn room_with(seed: u64, hosts: usize, sizes: Sizes, more: &str) -> Room {
    let configuration = CONFIGURATION.replace("10.0.0.2/24", "10.0.0.2/16") + more;
    let mut room = Room::configured(seed, MemoryDisk::blank(16 << 20), sizes, &configuration);
    (0..hosts).for_each(|_| assert!(room.add_host() > 0));
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

/// The first line that each of `count` new connections receives.
fn first_lines(room: &mut Room, host: usize, port: u16, count: usize) -> Vec<(String, Talk)> {
    let connect = |room: &mut Room| {
        let mut talk = room.connect_from(host, port);
        (room.line(&mut talk), talk)
    };
    (0..count).map(|_| connect(room)).collect()
}

#[test]
fn other_services_limit_connections_of_an_address_too() {
    let too_many = "421 4.7.0 Too many connections from your IP address, try again later";
    let busy = "-ERR [SYS/TEMP] Too many connections, try again later";
    for (seed, (port, refusal)) in (0..).zip([(587, too_many), (110, busy), (25, too_many)]) {
        let (limit, most) = (3, 3 * usize::from(CORES));
        let mut room =
            room_with(seed, 1, usual_sizes(), &format!("[abuse]\nclient_connections = {limit}\n"));
        for _ in 0..2 {
            let heard = first_lines(&mut room, 0, port, most + 5);
            let refused = heard.iter().filter(|(line, _)| line == refusal).count();
            assert!(
                (5..=most + 5 - limit).contains(&refused),
                "{port}: {refused} of {}",
                heard.len()
            );
            let mut other = room.connect_from(1, port);
            assert_ne!(room.line(&mut other), refusal, "another address");
            heard.into_iter().for_each(|(_, talk)| room.close(&talk));
            room.close(&other);
            room.until_nothing_is_in_use();
        }
    }
}

#[test]
fn connections_of_exempt_addresses_are_not_counted() {
    let more = "unthrottled_from = [\"10.0.0.0/24\"]\n[abuse]\nclient_connections = 1\n";
    let mut room = room_with(10, 0, usual_sizes(), more);
    let heard = first_lines(&mut room, 0, 587, 10 * usize::from(CORES));
    assert!(heard.iter().all(|(line, _)| line.starts_with("220 ")));
    heard.into_iter().for_each(|(_, talk)| room.close(&talk));
    room.until_nothing_is_in_use();
}

#[test]
fn a_service_with_tls_refuses_before_the_handshake() {
    let configuration = format!("{CONFIGURATION}[abuse]\nclient_connections = 2\n");
    let certificates = vec![Trust::new("mail.barepost.test").certificate];
    let disk = MemoryDisk::blank(16 << 20);
    let mut room =
        Room::certified(11, disk, usual_sizes(), &configuration, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    let talks: Vec<Talk> = (0..2 * usize::from(CORES) + 6).map(|_| room.connect(443)).collect();
    room.pass(Micros::from_secs(1));
    let open = talks.iter().filter(|talk| room.hosts[talk.host].is_open(talk.connection)).count();
    assert!((2..=2 * usize::from(CORES)).contains(&open), "{open}");
    assert_eq!(room.engines.in_use().handshakes, 0);
}

/// Clients on port 587 that send NOOP every three seconds, and reconnect when the server closes the
/// connection.
struct Drippers {
    talks: Vec<Talk>,
    /// The number of connections that the server closed after it had greeted them.
    ended: usize,
}

impl Drippers {
    /// Opens `each` connections from each host.
    fn fill(room: &mut Room, hosts: &[usize], each: usize) -> Drippers {
        let mut talks = Vec::new();
        for _ in 0..each {
            talks.extend(hosts.iter().map(|host| room.connect_from(*host, 587)));
            room.pass(Micros::from_millis(50));
        }
        Drippers { talks, ended: 0 }
    }

    fn drip(&mut self, room: &mut Room) {
        let each = Micros(Micros::from_secs(3).0 / self.talks.len() as u64);
        for talk in &mut self.talks {
            if room.has_hung_up(talk) {
                // A connection without a greeting was refused at once.
                self.ended += usize::from(talk.heard.starts_with(b"220 "));
                room.abort(talk);
                *talk = room.connect_from(talk.host, 587);
            } else {
                room.try_to_send(talk, b"NOOP\r\n");
            }
            // The clients send one after the other, so that buffers do not run short.
            room.pass(each);
        }
    }
}

#[test]
fn the_address_with_most_connections_loses_idle_ones_to_others() {
    for seed in 20..23 {
        let mut room = room_with(seed, 2, SMALL, "");
        room.hosts[1].move_to(Ipv4Address::new(10, 0, 100, 8));
        room.hosts[2].move_to(Ipv4Address::new(10, 0, 200, 7));
        let all = SMALL.connections * usize::from(CORES);
        let mut honest: Vec<Talk> =
            first_lines(&mut room, 2, 587, 2).into_iter().map(|(_, talk)| talk).collect();
        let mut drippers = Drippers::fill(&mut room, &[1], all + 8);
        for port in [25, 587, 110, 25, 587, 110] {
            drippers.drip(&mut room);
            let before = room.machine.now;
            let mut talk = room.connect_from(2, port);
            let line = room.line(&mut talk);
            assert!(line.starts_with("220 ") || line.starts_with("+OK"), "{port}: {line}");
            let waited = room.machine.now.since(before);
            assert!(waited < Micros::from_secs(3), "{port}: {waited:?}");
            room.close(&talk);
        }
        assert!(drippers.ended > 0, "the server has closed connections to make space");
        for talk in &mut honest {
            assert_eq!(
                room.smtp(talk, "NOOP"),
                "250 2.0.0 OK",
                "an address with few connections loses none"
            );
        }
    }
}

#[test]
fn noop_does_not_protect_a_connection_when_all_have_few() {
    let mut room = room_with(30, 9 * usize::from(CORES), SMALL, "");
    let hosts: Vec<usize> = (1..=9 * usize::from(CORES)).collect();
    hosts.iter().for_each(|host| {
        room.hosts[*host].move_to(Ipv4Address::new(10, 0, *host as u8, 8));
    });
    let mut drippers = Drippers::fill(&mut room, &hosts, 8);
    assert!(room.engines.in_use().connections > 50 * usize::from(CORES));
    (0..6).for_each(|_| drippers.drip(&mut room));
    assert!(drippers.ended > 10 * usize::from(CORES), "{} were ended", drippers.ended);
}

#[test]
fn waiting_for_a_handshake_turn_does_not_use_up_client_time() {
    let (mut room, trust) = Room::with_tls(12, Site::default(), usual_sizes());
    let client = Arc::new(client(&trust, &["http/1.1"]));
    let mut crowd: Vec<TlsStream> = (0..60).map(|_| room.connect_tls(443, &client)).collect();
    let begun = room.machine.now;
    while crowd.iter().any(|tls_stream| tls_stream.tls.is_handshaking())
        || room.engines.in_use().handshakes > 0
    {
        crowd.iter_mut().for_each(|tls_stream| room.exchange(tls_stream));
        room.step();
        // Each turn takes as long as a turn that computes a hash.
        room.machine.now = room.machine.now + Micros::from_millis(300);
        assert!(room.machine.now.since(begun) < Micros::from_secs(60));
    }
    assert!(CORES > 1 || room.machine.now.since(begun) > Micros::from_secs(20));
    let lost = crowd
        .iter()
        .filter(|tls_stream| !room.hosts[0].is_open(tls_stream.talk.connection))
        .count();
    assert_eq!(lost, 0);
}
