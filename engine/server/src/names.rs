//! Names: what sessions ask name servers, and couriers, who bring letters to others. The first core has the resolver (crate `dns`), which asks and remembers; those of other cores ask by
//! messages, and their answers come as messages.
//!
//! Invariants:
//! - Whoever has asked is told once, in a later call than that in which he asked: within [`dns::QUESTION_SPAN_MAX`], unless the machine stops meanwhile.
//! - Nothing is asked where no name server is known: of those that the configuration names; or, where it says nothing of the network, of those that the network names.
//! - What waits is bounded: so many questions for the servers, of which some are kept for couriers, so many askers of each, so many bytes of answers that are remembered.
//!   Each address and each network of clients has a share of the questions and of the askers
//!   (`dns::Client`). A question above the share is [`Unanswered::Busy`] at once.
//! - Ports and streams belong to questions that wait, and end with them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use connections::{Caller, Channel, Connections, Owner, Stir};
use dns::{Action, Answer, Client, Limits, OnBehalf, Question, Resolver, SERVERS_MAX, StreamId, Unanswered};
use machine::{CoreId, Instant, Turn};
use net::{ConnectionId, Net, Place};
use tasks::FrameId;

use crate::common::Common;
use crate::cores::Message;
use crate::engine::Engine;
use configuration::Network;

/// Each question binds a UDP port, and `net` has as many. Clients choose what is asked about them,
/// so some questions are kept for mail that leaves.
const LIMITS: Limits = Limits { questions: 128, of_clients: 96, askers: 128, cache_bytes: 1 << 20 };

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asker {
    /// None: somebody of this core.
    pub(crate) core: Option<CoreId>,
    pub(crate) who: Inquirer,
    /// Which of the core's questions this is.
    pub(crate) number: QuestionNumber,
    /// The client that the question is about; `None`: this machine itself asks it.
    pub(crate) client: Option<Client>,
}

impl OnBehalf for Asker {
    fn client(&self) -> Option<Client> {
        self.client
    }
}

/// Who on a core wants to know something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inquirer {
    /// The session of this frame.
    Session(FrameId),
    /// The courier of this frame.
    Courier(FrameId),
}

/// Names a question of a session's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QuestionNumber(u64);

/// What came of a question.
pub(crate) type Known = Result<Answer, Unanswered>;

/// What a core knows of names, and wants to.
pub(crate) struct Names {
    /// On the first core, until it stops.
    resolver: Option<Box<Resolver<Asker>>>,
    /// The servers that the configuration names. None: those that the network names.
    configured: Option<Vec<IpAddr>>,
    /// Whether what they say is authenticated is.
    is_trusted: bool,
    /// The servers that are asked.
    servers: Vec<IpAddr>,
    /// What was asked and is not looked at yet.
    asked: VecDeque<(Asker, Question)>,
    /// Streams to servers.
    streams: Vec<(StreamId, ConnectionId)>,
    /// Whether the resolver may have something to do.
    is_stirred: bool,
    /// When it has, whatever happens.
    deadline: Instant,
    numbered: u64,
    has_stopped: bool,
}

impl Names {
    /// `network`: what the configuration says of it. `key`: random.
    pub(crate) fn new(core: CoreId, network: Option<&Network>, key: [u8; 16]) -> Names {
        Names {
            resolver: (core == CoreId::FIRST).then(|| Box::new(Resolver::new(LIMITS, key))),
            configured: network.map(|network| network.dns.clone()),
            is_trusted: network.is_some_and(|network| network.dnssec),
            servers: Vec::new(),
            asked: VecDeque::new(),
            streams: Vec::new(),
            is_stirred: false,
            deadline: Instant::NEVER,
            numbered: 0,
            has_stopped: false,
        }
    }

    /// Whether there may be a server to be asked, and somebody who asks it.
    pub(crate) fn can_be_asked(&self) -> bool {
        !self.has_stopped && self.configured.as_ref().is_none_or(|servers| !servers.is_empty())
    }

    /// Whether an answer is authenticated that the servers say is (RFC 4035 section 3.2.3): as good as they and the way to them are.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// A session or a delivery attempt of this core asks a question for this machine itself.
    pub(crate) fn ask(&mut self, who: Inquirer, question: Question) -> QuestionNumber {
        self.ask_for(None, who, question)
    }

    /// A session asks a question about its client. Clients share the questions that may wait.
    pub(crate) fn ask_about(&mut self, caller: Caller, question: Question) -> QuestionNumber {
        self.ask_for(Some(Client::at(caller.address)), Inquirer::Session(caller.connection.0), question)
    }

    fn ask_for(&mut self, client: Option<Client>, who: Inquirer, question: Question) -> QuestionNumber {
        self.numbered += 1;
        let number = QuestionNumber(self.numbered);
        self.asked.push_back((Asker { core: None, who, number, client }, question));
        number
    }

    /// Somebody of another core asks.
    pub(crate) fn asked_from(&mut self, core: CoreId, asker: Asker, question: Question) {
        self.asked.push_back((Asker { core: Some(core), ..asker }, question));
    }

    /// Whether there is something to do at once.
    #[inline]
    pub(crate) fn is_stirred(&self) -> bool {
        self.is_stirred || !self.asked.is_empty()
    }

    /// When there is, whatever happens.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Instant {
        self.deadline
    }

    /// Questions that wait for servers.
    pub(crate) fn under_way(&self) -> usize {
        self.resolver.as_ref().map_or(0, |resolver| resolver.waiting())
    }

    /// Nobody wants to know anything any more.
    pub(crate) fn stop(&mut self, connections: &mut Connections) {
        self.has_stopped = true;
        self.resolver = None;
        self.asked.clear();
        self.streams.drain(..).for_each(|(_, connection)| connections.hang_up(connection));
        (self.is_stirred, self.deadline) = (false, Instant::NEVER);
    }

    /// The resolver asks the servers that there are now.
    fn look_at_servers(&mut self, net: &Net, now: Instant) {
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

    /// Does what the resolver wants done. What is to be told is handed to `tell`.
    fn act(&mut self, connections: &mut Connections, now: Instant, mut tell: impl FnMut(Asker, Known)) {
        while let Some(action) = self.resolver.as_mut().and_then(|resolver| resolver.next_action()) {
            match action {
                Action::Send { port, to, bytes } => {
                    // What is not sent is asked again.
                    connections.send_datagram(now, port, to, &bytes);
                }
                Action::Release { port } => connections.release(port),
                Action::Connect { stream, to } => match connections.connect(now, to, Owner::Resolver) {
                    Ok(connection) => self.streams.push((stream, connection)),
                    Err(_) => self.stream_failed(stream, now),
                },
                Action::Write { stream, bytes } => {
                    let connection = self.streams.iter().find(|(own, _)| *own == stream).map(|(_, own)| *own);
                    let is_cut = |own| connections.send_by(now, own, Channel::Plain, &bytes) < bytes.len();
                    if connection.is_some_and(is_cut) {
                        self.stream_failed(stream, now);
                    }
                }
                Action::HangUp { stream } => {
                    if let Some(connection) = self.take_stream(stream) {
                        connections.hang_up(connection);
                    }
                }
                Action::Tell { asker, answer } => tell(asker, answer),
            }
        }
    }

    fn stream_failed(&mut self, stream: StreamId, now: Instant) {
        if let Some(resolver) = &mut self.resolver {
            resolver.stream_closed(stream, now);
        }
    }
}

impl Engine {
    /// What was asked is asked of the resolver, or of the first core; the resolver does what it has to, and tells.
    #[inline(never)]
    pub(crate) fn look_names_up(&mut self) {
        let Common { names, connections, turn: Turn { now, .. }, .. } = &mut self.common;
        let now = *now;
        let mut told = Vec::new();
        names.is_stirred = false;
        if !names.asked.is_empty() {
            names.look_at_servers(connections.net(), now);
        }
        if let Some(resolver) = &mut names.resolver {
            for (asker, question) in names.asked.drain(..) {
                let known = resolver.ask(question, asker, now);
                told.extend(known.map(|known| (asker, known)));
            }
            resolver.time_passed(now);
        }
        names.act(connections, now, |asker, known| told.push((asker, known)));
        names.deadline = names.resolver.as_ref().map_or(Instant::NEVER, |resolver| resolver.next_deadline());
        for (asker, question) in core::mem::take(&mut self.common.names.asked) {
            self.tell_core(CoreId::FIRST, Message::NameAsked(Box::new((asker, question))));
        }
        for (asker, known) in told {
            match asker.core {
                Some(core) => self.tell_core(core, Message::NameKnown(asker.who, asker.number, Box::new(known))),
                None => self.name_known(asker.who, asker.number, known),
            }
        }
    }

    /// This came of a question of this core's.
    pub(crate) fn name_known(&mut self, who: Inquirer, number: QuestionNumber, known: Known) {
        match who {
            Inquirer::Session(frame) => self.session_name_known(frame, number, known),
            Inquirer::Courier(frame) => self.courier_name_known(frame, number, known),
        }
    }

    /// A datagram came for a port that was bound for a question. Its bytes lie at `place`, in `frame` or elsewhere.
    #[cold]
    pub(crate) fn name_datagram_arrived(&mut self, (port, peer): (u16, SocketAddr), place: &Place, frame: &[u8]) {
        let Common { names, connections, turn: Turn { now, .. }, .. } = &mut self.common;
        if let Some(resolver) = &mut names.resolver {
            resolver.datagram_arrived(port, peer, connections.net().datagram(frame, place), *now);
            names.is_stirred = true;
        }
    }

    /// Something has happened to a connection to a name server.
    #[cold]
    pub(crate) fn name_stream_stirred(&mut self, connection: ConnectionId, stir: Stir) {
        match stir {
            Stir::Made => self.name_stream_opened(connection),
            Stir::Bytes => self.name_bytes_wait(connection),
            Stir::Over => self.name_stream_ended(connection),
            Stir::Room | Stir::Turn => {}
        }
    }

    fn name_stream_opened(&mut self, connection: ConnectionId) {
        let names = &mut self.common.names;
        if let (Some(stream), Some(resolver)) = (names.stream_of(connection), &mut names.resolver) {
            resolver.stream_opened(stream);
            names.is_stirred = true;
        }
    }

    /// Bytes have come by a connection that no session has.
    #[cold]
    pub(crate) fn name_bytes_arrived(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let Common { names, turn: Turn { now, .. }, .. } = &mut self.common;
        if let (Some(stream), Some(resolver)) = (names.stream_of(connection), &mut names.resolver) {
            resolver.stream_arrived(stream, bytes, *now);
            names.is_stirred = true;
        }
    }

    /// The same, and they wait in the connection.
    fn name_bytes_wait(&mut self, connection: ConnectionId) {
        loop {
            let count = self.common.connections.copy_waiting(connection, self.scratch.as_mut_slice());
            if count == 0 {
                return;
            }
            self.common.connections.consumed(connection, count);
            let Common { names, turn: Turn { now, .. }, .. } = &mut self.common;
            if let (Some(stream), Some(resolver)) = (names.stream_of(connection), &mut names.resolver) {
                resolver.stream_arrived(stream, self.scratch.get(..count).unwrap_or_default(), *now);
                names.is_stirred = true;
            }
        }
    }

    /// A server says no more by this connection.
    fn name_stream_ended(&mut self, connection: ConnectionId) {
        let Common { names, turn: Turn { now, .. }, .. } = &mut self.common;
        if let Some(stream) = names.stream_of(connection) {
            names.stream_failed(stream, *now);
            names.is_stirred = true;
        }
    }
}
