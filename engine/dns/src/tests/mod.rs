//! Tests of the resolver, with simulated servers and a simulated clock.

mod asking;
mod interference;
mod knowing;
mod reading;
mod shares;
mod streams;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

use domain::base::iana::Rcode;
use domain::base::message_builder::{AnswerBuilder, MessageBuilder};
use domain::base::{Message, Serial, ToName, Ttl};
use domain::rdata::{A, Cname, Soa};
use machine::{Instant, Micros};

use crate::name::Labels;
use crate::{
    Answer, Knowledge, Limits, LookupClient, Name, OnBehalf, Question, Record, RecordKind,
    Resolver, ResolverAction, StreamId, Unanswered,
};

pub(super) const LIMITS: Limits =
    Limits { questions: 8, of_clients: 8, askers: 4, cache_bytes: 64 * 1024 };
pub(super) const FIRST: SocketAddr =
    SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1)), 53);
pub(super) const SECOND: SocketAddr =
    SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2)), 53);

/// The datagram of a question.
#[derive(Clone, Debug)]
pub(super) struct SentQuery {
    pub(super) port: u16,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

impl OnBehalf for u32 {
    /// Askers below 1,000 are this machine itself. Other numbers are the IPv4 addresses of clients.
    fn client(&self) -> Option<LookupClient> {
        (*self >= 1000).then(|| LookupClient::at(IpAddr::V4((*self).into())))
    }
}

/// A resolver, its clock, and the effects of its actions.
pub(super) struct ResolverHarness {
    pub(super) resolver: Resolver<u32>,
    pub(super) now: Instant,
    /// Ports that are bound.
    pub(super) ports: Vec<u16>,
    pub(super) streams: Vec<(StreamId, SocketAddr)>,
    pub(super) written: Vec<Vec<u8>>,
    pub(super) results: Vec<(u32, Result<Answer, Unanswered>)>,
    asked: Vec<SentQuery>,
}

impl ResolverHarness {
    pub(super) fn new(servers: &[SocketAddr]) -> ResolverHarness {
        ResolverHarness::with(LIMITS, servers)
    }

    pub(super) fn with(limits: Limits, servers: &[SocketAddr]) -> ResolverHarness {
        let mut resolver = Resolver::new(limits, [7; 16]);
        resolver.set_servers(servers.iter().map(SocketAddr::ip), Instant::START);
        let (ports, streams, written, results, asked) = Default::default();
        ResolverHarness { resolver, now: Instant::START, ports, streams, written, results, asked }
    }

    /// Carries out the resolver's actions.
    fn work(&mut self) {
        while let Some(action) = self.resolver.next_action() {
            match action {
                ResolverAction::Send { port, to, bytes } => {
                    assert!(!self.ports.contains(&port), "each attempt has another port");
                    self.ports.push(port);
                    self.asked.push(SentQuery { port, to, bytes });
                }
                ResolverAction::Release { port } => {
                    assert!(self.ports.contains(&port), "only a bound port is released");
                    self.ports.retain(|bound| *bound != port);
                }
                ResolverAction::Connect { stream, to } => self.streams.push((stream, to)),
                ResolverAction::Write { bytes, .. } => self.written.push(bytes),
                ResolverAction::HangUp { stream } => {
                    assert!(
                        self.streams.iter().any(|(open, _)| *open == stream),
                        "only an open stream is hung up"
                    );
                    self.streams.retain(|(open, _)| *open != stream);
                }
                ResolverAction::Tell { asker, answer } => self.results.push((asker, answer)),
            }
        }
        if self.resolver.next_deadline() == Instant::NEVER {
            assert!(
                self.ports.is_empty() && self.streams.is_empty(),
                "without questions no port or stream is in use"
            );
        }
    }

    pub(super) fn ask(
        &mut self,
        asker: u32,
        name: &str,
        kind: RecordKind,
    ) -> Option<Result<Answer, Unanswered>> {
        let answer = self.resolver.ask(question(name, kind), asker, self.now);
        self.work();
        answer
    }

    /// The only question that was sent since the last call.
    pub(super) fn sent_query(&mut self) -> SentQuery {
        assert_eq!(self.asked.len(), 1);
        self.asked.remove(0)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.asked.is_empty()
    }

    pub(super) fn time_passes(&mut self, span: Micros) {
        self.now = self.now + span;
        self.resolver.time_passed(self.now);
        self.work();
    }

    pub(super) fn datagram_comes(&mut self, port: u16, from: SocketAddr, bytes: &[u8]) {
        self.resolver.datagram_arrived(port, from, bytes, self.now);
        self.work();
    }

    /// The server that was asked replies.
    pub(super) fn replies(&mut self, asked: &SentQuery, bytes: &[u8]) {
        self.datagram_comes(asked.port, asked.to, bytes);
    }

    pub(super) fn stream_opens(&mut self, stream: StreamId) -> Vec<u8> {
        self.resolver.stream_opened(stream);
        self.work();
        self.written.pop().unwrap()
    }

    pub(super) fn stream_brings(&mut self, stream: StreamId, bytes: &[u8]) {
        self.resolver.stream_arrived(stream, bytes, self.now);
        self.work();
    }

    pub(super) fn stream_ends(&mut self, stream: StreamId) {
        self.resolver.stream_closed(stream, self.now);
        self.work();
    }

    /// All results for askers since the last call.
    pub(super) fn results(&mut self) -> Vec<(u32, Result<Answer, Unanswered>)> {
        core::mem::take(&mut self.results)
    }
}

pub(super) fn question(name: &str, kind: RecordKind) -> Question {
    Question { name: Name::parse(name).unwrap(), kind }
}

pub(super) fn labels(name: &str) -> Labels {
    Labels::from_str(name).unwrap()
}

/// A reply to a question, with this code and the records of `build`.
pub(super) fn reply(
    asked: &[u8],
    code: Rcode,
    build: impl FnOnce(&mut AnswerBuilder<Vec<u8>>),
) -> Vec<u8> {
    let mut builder =
        MessageBuilder::new_vec().start_answer(Message::from_slice(asked).unwrap(), code).unwrap();
    build(&mut builder);
    builder.finish()
}

/// `name` has this address for five minutes.
pub(super) fn address(answer: &mut AnswerBuilder<Vec<u8>>, name: &str, last: u8) {
    answer.push((labels(name), Ttl::from_secs(300), A::from_octets(192, 0, 2, last))).unwrap();
}

pub(super) fn alias(answer: &mut AnswerBuilder<Vec<u8>>, name: &str, of: &str, ttl: u32) {
    answer.push((labels(name), Ttl::from_secs(ttl), Cname::new(labels(of)))).unwrap();
}

/// A reply without records, with an SOA record that states its lifetime.
pub(super) fn nothing(asked: &[u8], code: Rcode, ttl: u32, minimum: u32) -> Vec<u8> {
    let builder =
        MessageBuilder::new_vec().start_answer(Message::from_slice(asked).unwrap(), code).unwrap();
    let mut builder = builder.authority();
    let seconds = Ttl::from_secs;
    let (name, host) = (labels("example.test"), labels("ns.example.test"));
    let start = Soa::new(
        host.clone(),
        host,
        Serial(1),
        seconds(1),
        seconds(2),
        seconds(3),
        seconds(minimum),
    );
    builder.push((name, seconds(ttl), start)).unwrap();
    builder.finish()
}

pub(super) fn found(last: u8) -> Result<Answer, Unanswered> {
    let records = Vec::from([Record::Address(IpAddr::from([192, 0, 2, last]))]);
    Ok(Answer { records, exists: true, is_authenticated: false })
}

/// The name in a message, with its spelling.
pub(super) fn spelled(asked: &[u8]) -> String {
    Message::from_slice(asked).unwrap().sole_question().unwrap().qname().to_vec().to_string()
}

pub(super) fn just_before(span: Micros) -> Micros {
    Micros(span.0 - 1)
}
