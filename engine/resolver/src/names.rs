//! The questions of sessions and delivery attempts to name servers. The first core has the resolver
//! (crate `dns`) with its cache. Other cores ask by messages, and get their answers as messages.
//!
//! Invariants:
//! - Each question is answered once, in a later call than the one that asks. The answer arrives
//!   within [`dns::QUESTION_SPAN_MAX`], unless the machine stops before that time.
//! - No question is sent if no name server is known. The configuration names the servers. If it has
//!   no network section, the network (DHCP, router advertisements) names them.
//! - Limits bound the questions to the servers, the askers of each question, and the bytes in the
//!   cache. Some questions are reserved for outgoing mail. Each client address and each client
//!   network has a share of the questions and of the askers (`dns::LookupClient`). A question above
//!   the share is answered with [`Unanswered::Busy`] at once.
//! - A port or a stream belongs to a waiting question, and ends with it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use configuration::Network;
use connections::{Channel, Connections, Owner, TransportEvent};
use dns::{
    Answer, Limits, LookupClient, OnBehalf, Question, Resolver, ResolverAction, SERVERS_MAX,
    StreamId, Unanswered,
};
use machine::{CoreId, Instant};
use net::{ConnectionId, Net};
use tasks::Continuation;

/// The limits of the resolver. Each question binds a UDP port, and `net` can bind that many.
/// Clients could use up all questions, so some are reserved for outgoing mail.
const LIMITS: Limits = Limits { questions: 128, of_clients: 96, askers: 128, cache_bytes: 1 << 20 };

/// The asker of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    /// The core that asks. `None`: this core.
    core: Option<CoreId>,
    /// The frame that asks, and the point at which it waits.
    at: Continuation,
    /// The number of the core's question.
    number: QuestionNumber,
    /// The client that the question is about. `None`: this machine asks for itself.
    client: Option<LookupClient>,
}

impl OnBehalf for Asker {
    fn client(&self) -> Option<LookupClient> {
        self.client
    }
}

/// The number of a question, unique on the core that asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuestionNumber(u64);

/// The result of a question.
pub type Known = Result<Answer, Unanswered>;

/// An answer on its way to its asker.
pub struct AddressedAnswer {
    /// The frame that has asked, and the point at which it waits.
    pub at: Continuation,
    /// The question.
    pub number: QuestionNumber,
    /// The answer.
    pub known: Known,
}

/// A message between cores about names.
pub enum NameMessage {
    /// To the first core: a question.
    Asked(Box<(Asker, Question)>),
    /// From the first core: the answer.
    Known(Box<AddressedAnswer>),
}

/// The lookups of a core at name servers.
pub struct NameLookups {
    /// The resolver. Only the first core has it, until it stops.
    resolver: Option<Box<Resolver<Asker>>>,
    /// The servers that the configuration names. `None`: the network names the servers.
    configured: Option<Vec<IpAddr>>,
    /// Whether an answer that the servers call authenticated is trusted.
    is_trusted: bool,
    /// The servers that are asked.
    servers: Vec<IpAddr>,
    /// The questions that were not passed on yet.
    asked: VecDeque<(Asker, Question)>,
    /// Streams to servers.
    streams: Vec<(StreamId, ConnectionId)>,
    /// Whether the resolver may have something to do.
    needs_run: bool,
    /// The next time at which there is work even without an event.
    deadline: Instant,
    numbered: u64,
    has_stopped: bool,
    /// Answers, and messages to other cores.
    answers: VecDeque<AddressedAnswer>,
    messages: VecDeque<(CoreId, NameMessage)>,
}

impl NameLookups {
    /// `network`: the configuration of the network. `key`: random.
    pub fn new(core: CoreId, network: Option<&Network>, key: [u8; 16]) -> NameLookups {
        NameLookups {
            resolver: (core == CoreId::FIRST).then(|| Box::new(Resolver::new(LIMITS, key))),
            configured: network.map(|network| network.dns.clone()),
            is_trusted: network.is_some_and(|network| network.dnssec),
            servers: Vec::new(),
            asked: VecDeque::new(),
            streams: Vec::new(),
            needs_run: false,
            deadline: Instant::NEVER,
            numbered: 0,
            has_stopped: false,
            answers: VecDeque::new(),
            messages: VecDeque::new(),
        }
    }

    /// Whether there may be a server to ask.
    pub fn can_be_asked(&self) -> bool {
        !self.has_stopped && self.configured.as_ref().is_none_or(|servers| !servers.is_empty())
    }

    /// Whether an answer that the servers call authenticated is trusted (RFC 4035 section 3.2.3).
    /// Such an answer is only as trustworthy as the servers and the route to them.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Asks a question for this machine itself. The answer resumes the continuation `at`.
    pub fn ask(&mut self, at: Continuation, question: Question) -> QuestionNumber {
        self.ask_for(None, at, question)
    }

    /// Asks a question about a client, for a session. `client`: the address of the client. All
    /// clients share a limit of waiting questions.
    pub fn ask_about(
        &mut self,
        client: IpAddr,
        at: Continuation,
        question: Question,
    ) -> QuestionNumber {
        self.ask_for(Some(LookupClient::at(client)), at, question)
    }

    fn ask_for(
        &mut self,
        client: Option<LookupClient>,
        at: Continuation,
        question: Question,
    ) -> QuestionNumber {
        self.numbered += 1;
        let number = QuestionNumber(self.numbered);
        self.asked.push_back((Asker { core: None, at, number, client }, question));
        number
    }

    /// Takes a message from another core.
    pub fn message_arrived(&mut self, from: CoreId, message: NameMessage) {
        match message {
            NameMessage::Asked(asked) => {
                let (asker, question) = *asked;
                self.asked.push_back((Asker { core: Some(from), ..asker }, question));
            }
            NameMessage::Known(answer) => self.answers.push_back(*answer),
        }
    }

    /// Takes the next message to another core.
    pub fn next_message(&mut self) -> Option<(CoreId, NameMessage)> {
        self.messages.pop_front()
    }

    /// Takes the next answer to a question of this core.
    pub fn next_answer(&mut self) -> Option<AddressedAnswer> {
        self.answers.pop_front()
    }

    /// Whether [`NameLookups::work`] has something to do now.
    #[inline]
    pub fn needs_run(&self) -> bool {
        self.needs_run || !self.asked.is_empty()
    }

    /// The next time at which there is work even without an event.
    #[inline]
    pub fn next_deadline(&self) -> Instant {
        self.deadline
    }

    /// The number of questions that wait for servers.
    pub fn under_way(&self) -> usize {
        self.resolver.as_ref().map_or(0, |resolver| resolver.waiting())
    }

    /// Drops all waiting questions and answers none of them, since the machine stops.
    pub fn stop(&mut self, connections: &mut Connections) {
        self.has_stopped = true;
        self.resolver = None;
        self.asked.clear();
        self.streams.drain(..).for_each(|(_, connection)| connections.hang_up(connection));
        (self.needs_run, self.deadline) = (false, Instant::NEVER);
    }

    /// Gives the resolver the current servers.
    fn update_servers(&mut self, net: &Net, now: Instant) {
        let servers: Vec<IpAddr> = match &self.configured {
            Some(servers) => servers.clone(),
            None => net.name_servers().take(SERVERS_MAX).collect(),
        };
        if let Some(resolver) = &mut self.resolver
            && servers != self.servers
        {
            resolver.set_servers(servers.iter().copied(), now);
            self.servers = servers;
        }
    }

    fn stream_of(&self, connection: ConnectionId) -> Option<StreamId> {
        self.streams.iter().find(|(_, own)| *own == connection).map(|(stream, _)| *stream)
    }

    fn take_stream(&mut self, stream: StreamId) -> Option<ConnectionId> {
        let found = self.streams.iter().position(|(own, _)| *own == stream)?;
        Some(self.streams.swap_remove(found).1)
    }

    /// Passes questions to the resolver or to the first core, and lets the resolver work.
    #[inline(never)]
    pub fn work(&mut self, now: Instant, connections: &mut Connections) {
        self.needs_run = false;
        if !self.asked.is_empty() {
            self.update_servers(connections.net(), now);
        }
        for (asker, question) in core::mem::take(&mut self.asked) {
            match &mut self.resolver {
                Some(resolver) => {
                    if let Some(known) = resolver.ask(question, asker, now) {
                        self.answer(asker, known);
                    }
                }
                // The question may come from a core that does not know of the stop yet.
                None if self.has_stopped => {}
                None => self
                    .messages
                    .push_back((CoreId::FIRST, NameMessage::Asked(Box::new((asker, question))))),
            }
        }
        if let Some(resolver) = &mut self.resolver {
            resolver.time_passed(now);
        }
        self.act(connections, now);
        self.deadline =
            self.resolver.as_ref().map_or(Instant::NEVER, |resolver| resolver.next_deadline());
    }

    fn answer(&mut self, asker: Asker, known: Known) {
        let answer = AddressedAnswer { at: asker.at, number: asker.number, known };
        match asker.core {
            Some(core) => self.messages.push_back((core, NameMessage::Known(Box::new(answer)))),
            None => self.answers.push_back(answer),
        }
    }

    /// Carries out the resolver's actions.
    fn act(&mut self, connections: &mut Connections, now: Instant) {
        while let Some(action) = self.resolver.as_mut().and_then(|resolver| resolver.next_action())
        {
            match action {
                // If a datagram cannot be sent, the resolver repeats it later.
                ResolverAction::Send { port, to, bytes } => {
                    connections.send_datagram(now, port, to, &bytes)
                }
                ResolverAction::Release { port } => connections.release(port),
                ResolverAction::Connect { stream, to } => {
                    match connections.connect(now, to, Owner::Resolver) {
                        Ok(connection) => self.streams.push((stream, connection)),
                        Err(_) => self.stream_failed(stream, now),
                    }
                }
                ResolverAction::Write { stream, bytes } => {
                    let connection =
                        self.streams.iter().find(|(own, _)| *own == stream).map(|(_, own)| *own);
                    let is_cut =
                        |own| connections.send_by(now, own, Channel::Plain, &bytes) < bytes.len();
                    if connection.is_some_and(is_cut) {
                        self.stream_failed(stream, now);
                    }
                }
                ResolverAction::HangUp { stream } => {
                    if let Some(connection) = self.take_stream(stream) {
                        connections.hang_up(connection);
                    }
                }
                ResolverAction::Tell { asker, answer } => self.answer(asker, answer),
            }
        }
    }

    fn stream_failed(&mut self, stream: StreamId, now: Instant) {
        if let Some(resolver) = &mut self.resolver {
            resolver.stream_closed(stream, now);
        }
    }

    /// Takes a datagram for a port that a question has bound.
    #[cold]
    pub fn datagram_arrived(
        &mut self,
        now: Instant,
        (port, peer): (u16, SocketAddr),
        bytes: &[u8],
    ) {
        if let Some(resolver) = &mut self.resolver {
            resolver.datagram_arrived(port, peer, bytes, now);
            self.needs_run = true;
        }
    }

    /// Processes an event of a connection to a name server.
    #[cold]
    pub fn stream_event(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        event: TransportEvent,
        connections: &mut Connections,
    ) {
        let Some(stream) = self.stream_of(connection) else { return };
        match (event, &mut self.resolver) {
            (TransportEvent::Made, Some(resolver)) => resolver.stream_opened(stream),
            (TransportEvent::Bytes, _) => return self.bytes_wait(now, connection, connections),
            (TransportEvent::Over, _) => self.stream_failed(stream, now),
            (TransportEvent::Made, None) | (TransportEvent::Room | TransportEvent::Turn, _) => {
                return;
            }
        }
        self.needs_run = true;
    }

    /// Takes bytes from a connection to a name server.
    #[cold]
    pub fn bytes_arrived(&mut self, now: Instant, connection: ConnectionId, bytes: &[u8]) {
        if let (Some(stream), Some(resolver)) = (self.stream_of(connection), &mut self.resolver) {
            resolver.stream_arrived(stream, bytes, now);
            self.needs_run = true;
        }
    }

    /// Takes the bytes that wait in a connection to a name server.
    fn bytes_wait(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        connections: &mut Connections,
    ) {
        loop {
            let mut waiting = connections.take_waiting(connection);
            let bytes = waiting.bytes();
            let count = bytes.len();
            if count > 0 {
                self.bytes_arrived(now, connection, bytes);
            }
            if !connections.put_back(waiting, count) {
                return;
            }
        }
    }
}
