//! The resolver: questions of clients, datagrams of servers and of other hosts, events of TCP
//! streams, and the passage of time.
//!
//! Oracles:
//! - Any input: no panic. Each client gets one result, immediately or within the promised time.
//! - A port is bound once and released once. A stream is closed once. When no client waits, no port
//!   and no stream is left.
//! - Only records of the requested kind are returned.
//! - Of the clients that may wait for one question, at most half act for the same external host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use arbitrary::{Arbitrary, Unstructured};
use dns::{
    Answer, Limits, LookupClient, Name, OnBehalf, QUESTION_SPAN_MAX, Question, Record, RecordKind,
    Resolver, ResolverAction, SERVER_PORT, StreamId, Unanswered,
};
use machine::{Instant, Micros};

const LIMITS: Limits = Limits { questions: 6, of_clients: 4, askers: 4, cache_bytes: 16 * 1024 };
const NAMES: [&str; 6] =
    ["a.test", "mail.example.test", "_25._tcp.mail.test", "4.3.2.1.in-addr.arpa", "x\\.y.test", ""];
const KINDS: [RecordKind; 7] = [
    RecordKind::Ipv4,
    RecordKind::Ipv6,
    RecordKind::Exchanger,
    RecordKind::Text,
    RecordKind::Pointer,
    RecordKind::Tlsa,
    RecordKind::Service,
];
/// The most actions in one run.
const ACTIONS_MAX: usize = 64;

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    Ask {
        name: u8,
        kind: u8,
        /// The host that causes the question. Zero stands for this machine.
        host: u8,
    },
    /// The server replies to one of the questions, with arbitrary flags, counts and records.
    Reply {
        which: u8,
        flags: [u8; 2],
        counts: [u8; 3],
        body: &'a [u8],
    },
    /// The server replies over TCP, in segments of `segment_bytes` + 1 bytes.
    ReplyByStream {
        which: u8,
        segment_bytes: u8,
        flags: [u8; 2],
        counts: [u8; 3],
        body: &'a [u8],
    },
    /// A datagram of another host, or one of a server that does not answer the question.
    Datagram {
        which: u8,
        server: u8,
        bytes: &'a [u8],
    },
    StreamOpens {
        which: u8,
    },
    StreamEnds {
        which: u8,
    },
    TimePasses {
        tenths: u8,
    },
    Servers {
        count: u8,
    },
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut world = World::new();
    let mut source = Unstructured::new(data);
    for _ in 0..ACTIONS_MAX {
        if source.is_empty() {
            break;
        }
        let Ok(action) = Action::arbitrary(&mut source) else { break };
        world.perform(&action);
        world.carry_out_requests();
    }
    world.finish();
}

/// A client of the resolver: a unique number, and the host that causes the question.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Asker {
    number: u32,
    host: u8,
}

impl OnBehalf for Asker {
    fn client(&self) -> Option<LookupClient> {
        // Hosts of two networks.
        let address = Ipv4Addr::new(192, 0, self.host & 1, self.host);
        (self.host != 0).then(|| LookupClient::at(address.into()))
    }
}

struct World {
    resolver: Resolver<Asker>,
    now: Instant,
    /// For each bound port the destination and the bytes of the query.
    ports: BTreeMap<u16, (SocketAddr, Vec<u8>)>,
    /// The query that was written to each stream. It is empty before the write.
    streams: BTreeMap<StreamId, Vec<u8>>,
    /// The waiting clients by number: the question, its time, and the host that causes it.
    waiting: BTreeMap<u32, (Question, Instant, u8)>,
    /// The number of clients so far.
    asker_count: u32,
}

impl World {
    fn new() -> World {
        let mut resolver = Resolver::new(LIMITS, [3; 16]);
        resolver.set_servers([server(0), server(1)], Instant::START);
        let (ports, streams, waiting) = Default::default();
        World { resolver, now: Instant::START, ports, streams, waiting, asker_count: 0 }
    }

    fn perform(&mut self, action: &Action<'_>) {
        match *action {
            Action::Ask { name, kind, host } => self.ask(name, kind, host % 4),
            Action::Reply { which, flags, counts, body } => {
                let Some((&port, (from, sent))) = pick(&self.ports, which) else { return };
                let (from, bytes) = (*from, reply(sent, flags, counts, body));
                self.resolver.datagram_arrived(port, from, &bytes, self.now);
            }
            Action::ReplyByStream { which, segment_bytes, flags, counts, body } => {
                let Some((&stream, sent)) = pick(&self.streams, which) else { return };
                let Some(sent) = sent.get(2..) else { return };
                let message = reply(sent, flags, counts, body);
                let bytes = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
                for piece in bytes.chunks(usize::from(segment_bytes) + 1) {
                    self.resolver.stream_arrived(stream, piece, self.now);
                }
            }
            Action::Datagram { which, server: from, bytes } => {
                let port = pick(&self.ports, which).map_or(4_000, |(port, _)| *port);
                let from = SocketAddr::new(server(from % 3), SERVER_PORT);
                self.resolver.datagram_arrived(port, from, bytes, self.now);
            }
            Action::StreamOpens { which } => {
                if let Some((&stream, _)) = pick(&self.streams, which) {
                    self.resolver.stream_opened(stream);
                }
            }
            Action::StreamEnds { which } => {
                if let Some((&stream, _)) = pick(&self.streams, which) {
                    self.resolver.stream_closed(stream, self.now);
                }
            }
            Action::TimePasses { tenths } => {
                let until = self.now + Micros::from_millis(100 * u64::from(tenths));
                self.advance_to(until);
            }
            Action::Servers { count } => {
                self.resolver.set_servers((0..count % 6).map(server), self.now);
            }
        }
    }

    fn ask(&mut self, name: u8, kind: u8, host: u8) {
        let [name, kind] = [name, kind].map(|number| usize::from(number) % NAMES.len());
        let name = Name::parse(NAMES[name]).expect("a name");
        let question = Question { name, kind: KINDS[kind] };
        self.asker_count += 1;
        let asker = Asker { number: self.asker_count, host };
        match self.resolver.ask(question.clone(), asker, self.now) {
            Some(answer) => check_kinds(&question, &answer),
            None => {
                self.waiting.insert(self.asker_count, (question.clone(), self.now, host));
                let of_host = self
                    .waiting
                    .values()
                    .filter(|(other, _, of)| *of == host && *other == question)
                    .count();
                assert!(host == 0 || of_host <= LIMITS.askers / 2, "one host takes all places");
            }
        }
    }

    /// Lets the time pass until `until`. The resolver runs at each of its deadlines.
    fn advance_to(&mut self, until: Instant) {
        while self.resolver.next_deadline() <= until {
            self.now = self.now.max(self.resolver.next_deadline());
            self.resolver.time_passed(self.now);
            self.carry_out_requests();
        }
        self.now = until;
    }

    /// Carries out the actions of the resolver.
    fn carry_out_requests(&mut self) {
        while let Some(action) = self.resolver.next_action() {
            match action {
                ResolverAction::Send { port, to, bytes } => {
                    assert!(self.ports.insert(port, (to, bytes)).is_none(), "a port is bound once");
                }
                ResolverAction::Release { port } => {
                    assert!(self.ports.remove(&port).is_some(), "only a bound port is released")
                }
                ResolverAction::Connect { stream, .. } => {
                    assert!(
                        self.streams.insert(stream, Vec::new()).is_none(),
                        "a stream is opened once"
                    );
                }
                ResolverAction::Write { stream, bytes } => {
                    assert!(
                        self.streams.insert(stream, bytes).is_some(),
                        "only an open stream is written to"
                    );
                }
                ResolverAction::HangUp { stream } => {
                    assert!(
                        self.streams.remove(&stream).is_some(),
                        "only an open stream is closed"
                    );
                }
                ResolverAction::Tell { asker, answer } => {
                    let (question, since, _) =
                        self.waiting.remove(&asker.number).expect("a client gets one result");
                    assert!(self.now.since(since) <= QUESTION_SPAN_MAX, "a client waited too long");
                    check_kinds(&question, &answer);
                }
            }
        }
    }

    fn finish(mut self) {
        self.carry_out_requests();
        self.advance_to(self.now + QUESTION_SPAN_MAX);
        assert!(self.waiting.is_empty(), "all clients have results");
        assert!(self.ports.is_empty() && self.streams.is_empty(), "ports and streams are released");
    }
}

fn check_kinds(question: &Question, answer: &Result<Answer, Unanswered>) {
    let Ok(answer) = answer else { return };
    let kinds: BTreeSet<bool> =
        answer.records.iter().map(|record| is_of(record, question.kind)).collect();
    assert!(!kinds.contains(&false), "{question:?} is answered by {answer:?}");
}

fn is_of(record: &Record, kind: RecordKind) -> bool {
    match record {
        Record::Address(IpAddr::V4(_)) => kind == RecordKind::Ipv4,
        Record::Address(IpAddr::V6(_)) => kind == RecordKind::Ipv6,
        Record::Exchanger { .. } => kind == RecordKind::Exchanger,
        Record::Text(_) => kind == RecordKind::Text,
        Record::Pointer(_) => kind == RecordKind::Pointer,
        Record::Tlsa { .. } => kind == RecordKind::Tlsa,
        Record::Service { .. } => kind == RecordKind::Service,
    }
}

/// A reply that repeats the question of `sent`. It has the reply flag and `flags`, the given counts
/// of records, and `body` after the question.
fn reply(
    sent: &[u8],
    flags: [u8; 2],
    [answers, authorities, others]: [u8; 3],
    body: &[u8],
) -> Vec<u8> {
    let Some((head, rest)) = sent.split_first_chunk::<12>() else { return Vec::new() };
    // A question ends with its name's root, its type and its class.
    let question = rest
        .iter()
        .position(|byte| *byte == 0)
        .map_or(rest, |root| rest.get(..root + 5).unwrap_or(rest));
    let head = [
        head[0],
        head[1],
        flags[0] | 0x80,
        flags[1],
        0,
        1,
        0,
        answers % 9,
        0,
        authorities % 3,
        0,
        others % 3,
    ];
    [&head[..], question, body].concat()
}

fn pick<K, V>(from: &BTreeMap<K, V>, which: u8) -> Option<(&K, &V)> {
    from.iter().nth(usize::from(which).checked_rem(from.len())?)
}

fn server(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, number).into()
}
