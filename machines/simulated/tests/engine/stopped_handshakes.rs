//! Clients that stop at any point of a TLS handshake: the server does not wait long, serves other
//! clients, and frees all resources.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use machine::Micros;
use rustls::ClientConfig;
use server::InUse;

use super::room::pages::site;
use super::room::tls_stream::{BOTH, TlsStream, client, client_of};
use super::room::{Room, Talk, usual_sizes};
use crate::CORES;

/// The number of clients that stop.
const CLIENTS: usize = 1_000;
/// The number of these clients that connect at the same time.
const CROWD: usize = 125;

/// The point at which a client stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    BeforeHello,
    InHeader,
    InHello,
    /// The server waits for Finished.
    AfterHello,
    InFinished,
    /// `…OnRequest`: in a handshake after STARTTLS.
    BeforeHelloOnRequest,
    InHelloOnRequest,
}

const STOPS: [Stop; 7] = [
    Stop::BeforeHello,
    Stop::InHeader,
    Stop::InHello,
    Stop::AfterHello,
    Stop::InFinished,
    Stop::BeforeHelloOnRequest,
    Stop::InHelloOnRequest,
];

/// A client that will stop.
struct Stopper {
    stop: Stop,
    tls_stream: TlsStream,
    unsaid: Vec<u8>,
    /// The client will queue no further data.
    has_stopped: bool,
}

impl Stopper {
    fn new(room: &mut Room, host: usize, stop: Stop, client: &Arc<ClientConfig>) -> Stopper {
        let port = if matches!(stop, Stop::BeforeHelloOnRequest | Stop::InHelloOnRequest) {
            25
        } else {
            443
        };
        let tls_stream = room.connect_tls_from(host, port, client);
        let mut stopper = Stopper { stop, tls_stream, unsaid: Vec::new(), has_stopped: false };
        match stop {
            Stop::BeforeHello => stopper.stop_after(|_| 0),
            Stop::InHeader => stopper.stop_after(|_| 3),
            Stop::InHello => stopper.stop_after(|length| length / 2),
            Stop::AfterHello => stopper.stop_after(|length| length),
            Stop::InFinished => stopper.flight(|length| length),
            Stop::BeforeHelloOnRequest | Stop::InHelloOnRequest => {
                stopper.unsaid.extend(b"STARTTLS\r\n")
            }
        }
        stopper
    }

    /// Queues a part of the records that TLS wants to send. `part`: from the length of all records
    /// to the length that is sent.
    fn flight(&mut self, part: fn(usize) -> usize) {
        let mut flight = Vec::new();
        while self.tls_stream.tls.wants_write() {
            self.tls_stream.tls.write_tls(&mut flight).expect("I/O in memory cannot fail");
        }
        flight.truncate(part(flight.len()));
        self.unsaid.append(&mut flight);
    }

    /// Like [`Stopper::flight`], and then stops.
    fn stop_after(&mut self, part: fn(usize) -> usize) {
        self.flight(part);
        self.has_stopped = true;
    }

    /// Whether the client has sent everything that it sends before it stops.
    fn has_sent_all(&self) -> bool {
        self.has_stopped && self.unsaid.is_empty()
    }

    fn goes_on(&mut self, room: &mut Room) {
        let sent = room.send_some(&self.tls_stream.talk, &self.unsaid);
        self.unsaid.drain(..sent);
        room.listen(&mut self.tls_stream.talk);
        if self.has_stopped {
            return;
        }
        let TlsStream { talk, tls, .. } = &mut self.tls_stream;
        if self.stop != Stop::InFinished {
            if String::from_utf8_lossy(&talk.heard).contains("220 2.0.0 Ready to start TLS\r\n") {
                let is_half = self.stop == Stop::InHelloOnRequest;
                self.stop_after(if is_half { |length| length / 2 } else { |_| 0 });
            }
            return;
        }
        let heard = std::mem::take(&mut talk.heard);
        let mut rest = heard.as_slice();
        while !rest.is_empty() {
            chance::seed(1);
            tls.read_tls(&mut rest).expect("I/O in memory cannot fail");
            tls.process_new_packets().expect("the server's TLS is right");
        }
        let is_old = tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_2);
        if !tls.is_handshaking()
            || is_old && tls.wants_write() && self.unsaid.is_empty() && !heard.is_empty()
        {
            self.stop_after(|length| length - 10);
        }
    }
}

/// Requests the page, and checks that it arrives.
fn expect_page(room: &mut Room, tls_stream: &mut TlsStream) {
    room.complete_handshake(tls_stream);
    assert!(
        !room.has_hung_up(&mut tls_stream.talk),
        "the client is refused: {:?}",
        tls_stream.complaint
    );
    room.send_tls(tls_stream, b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n");
    assert_eq!(room.line_tls(tls_stream), "HTTP/1.1 200 OK");
    room.until_tls(tls_stream, "the page has arrived", |tls_stream| {
        tls_stream.heard.ends_with(b"Index")
    });
    tls_stream.heard.clear();
}

/// Checks that a new client is served, or is refused at once and served when it tries again.
fn expect_newcomer_served(room: &mut Room, client: &Arc<ClientConfig>) {
    for _ in 0..20 {
        let mut tls_stream = room.connect_tls(443, client);
        room.until("the client is served or refused", |room| {
            room.exchange(&mut tls_stream);
            let has_answered = room.hosts[0].has_answered(tls_stream.talk.connection);
            !tls_stream.tls.is_handshaking()
                || has_answered && room.has_hung_up(&mut tls_stream.talk)
        });
        if !tls_stream.tls.is_handshaking() {
            expect_page(room, &mut tls_stream);
            return room.close_tls(tls_stream);
        }
        room.abort(&tls_stream.talk);
        room.pass(Micros::from_millis(500));
    }
    panic!("no client is served any more");
}

#[test]
fn vanished_handshakes_do_not_block_others() {
    // The most handshakes that the server allows. Each core does one handshake step a turn, so this
    // must be more than the number of cores.
    const VANISHING: usize = 24;
    for (seed, has_answered) in [(2, false), (3, true)] {
        let (mut room, trust) = Room::with_tls(seed, site(1000), usual_sizes());
        let browser = Arc::new(client(&trust, &["http/1.1"]));
        let mut crowd: Vec<TlsStream> =
            (0..VANISHING).map(|_| room.connect_tls(443, &browser)).collect();
        room.pass(Micros::from_secs(1));
        for tls_stream in &mut crowd {
            let mut hello = Vec::new();
            tls_stream.tls.write_tls(&mut hello).expect("I/O in memory cannot fail");
            assert_eq!(room.send_some(&tls_stream.talk, &hello), hello.len());
        }
        room.until("all handshakes have begun", |room| {
            room.engines.in_use().handshakes == VANISHING
        });
        if has_answered {
            room.step();
        }
        crowd.iter().for_each(|tls_stream| room.abort(&tls_stream.talk));
        room.until("the server holds nothing for the stopped clients", |room| {
            room.engines.in_use() == InUse::default()
        });
        let outcomes = room.engines.handshakes();
        assert_eq!((outcomes.given_up, outcomes.established), (VANISHING as u64, 0), "{outcomes}");
        let mut tls_stream = room.connect_tls(443, &browser);
        expect_page(&mut room, &mut tls_stream);
        room.finish_tls(tls_stream);
    }
}

#[test]
fn a_thousand_stopped_handshakes_leave_nothing_behind() {
    let (mut room, trust) = Room::with_tls(1, site(1000), usual_sizes());
    let browser = Arc::new(client(&trust, &["http/1.1"]));
    let clients =
        BOTH.iter().map(|version| Arc::new(client_of(&trust, &[], &[version]))).collect::<Vec<_>>();
    let mut established = room.connect_tls(443, &browser);
    expect_page(&mut room, &mut established);
    room.pass(Micros::from_secs(1));
    let before = room.engines.in_use();
    assert_eq!((before.handshakes, before.tls_connections, before.blocks), (0, 1, 0));
    let host = room.add_host();
    room.hosts[host].buffer_bytes = 4096;
    let mut counts = [0; STOPS.len()];
    for first in (0..CLIENTS).step_by(CROWD) {
        let mut crowd: Vec<Stopper> = Vec::new();
        for number in first..first + CROWD {
            let stop = STOPS[number % STOPS.len()];
            crowd.push(Stopper::new(&mut room, host, stop, &clients[number / STOPS.len() % 2]));
            room.pass(Micros::from_millis(1));
        }
        for _ in 0..30 {
            crowd.iter_mut().for_each(|stopper| stopper.goes_on(&mut room));
            room.pass(Micros::from_millis(5));
        }
        expect_page(&mut room, &mut established);
        expect_newcomer_served(&mut room, &browser);
        // The server waits 10 seconds for a client that sends nothing, and 10 more after STARTTLS.
        room.pass(Micros::from_secs(12));
        for stopper in &mut crowd {
            let place = STOPS
                .iter()
                .position(|stop| *stop == stopper.stop)
                .expect("the list has every point");
            counts[place] += usize::from(stopper.has_sent_all());
            if stopper.has_sent_all() {
                assert!(
                    room.has_hung_up(&mut stopper.tls_stream.talk),
                    "{:?} is waited for",
                    stopper.stop
                );
            }
            room.abort(&stopper.tls_stream.talk);
        }
        let forget: Vec<Talk> = crowd.into_iter().map(|stopper| stopper.tls_stream.talk).collect();
        room.until("the server holds nothing for the stopped clients", |room| {
            room.engines.in_use() == before
        });
        forget.iter().for_each(|talk| room.hosts[host].forget(talk.connection));
        expect_page(&mut room, &mut established);
        room.until("and nothing of this", |room| room.engines.in_use() == before);
    }
    // Some clients of a crowd are refused before they reach the point where they stop.
    assert!(
        counts.iter().all(|count| *count >= CLIENTS / STOPS.len() / 4),
        "{counts:?} of {STOPS:?}"
    );
    let outcomes = room.engines.handshakes();
    let stopped = outcomes.late + outcomes.turned_away + outcomes.given_up;
    assert!(outcomes.late > 0 && stopped as usize >= CLIENTS / 2, "{outcomes} with {CORES} cores");
    assert_eq!((outcomes.broken, outcomes.no_common_ground), (0, 0));
    room.close_tls(established);
    room.until("nothing is left", |room| room.engines.in_use() == InUse::default());
}
