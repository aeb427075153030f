//! The resolver: sends questions to servers, and reports the answers to the askers.
//!
//! - The same question is sent only once at a time. Further askers wait for the same answer. So an
//!   attacker gets few guesses at an answer.
//! - Each attempt has a secret port and identifier, and a secret choice of upper and lower case in
//!   the name (RFC 5452). If a datagram from the server's address to that port is not the answer,
//!   an attacker may be guessing. In this case the question is sent on a stream, where guessing is
//!   not possible.
//! - If a server is silent or refuses, the next server is asked. A new question goes first to the
//!   server that answered last. If a server was silent since then, it goes to the next server of
//!   the list.
//! - Clients share the places for waiting questions, and the places for askers of one question
//!   (`share.rs`). A question beyond a client's share gets [`Unanswered::Busy`] at once. `Busy`
//!   says nothing about the name.
//!
//! Invariant: each asker gets exactly one result. It gets the result at once, or by
//! [`ResolverAction::Tell`] within [`QUESTION_SPAN_MAX`] if the caller keeps the deadlines of the
//! resolver.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::{IpAddr, SocketAddr};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher24;

use crate::cache::AnswerCache;
use crate::message::{self, OutgoingQuery, ReceivedReply};
use crate::open::{OpenQuestion, QueryAttempt, Transport};
use crate::question::{Answer, Question, Unanswered};
use crate::share::{LookupClient, OnBehalf, may_wait};

/// The port of name servers.
pub const SERVER_PORT: u16 = 53;
/// The most servers that are asked.
pub const SERVERS_MAX: usize = 4;
/// The longest time from a question to its result, whatever servers do.
pub const QUESTION_SPAN_MAX: Micros = Micros::from_secs(20);

/// The number of attempts at each server.
const ROUNDS: usize = 2;
/// The least number of attempts in total, even with one server.
const ATTEMPTS_MIN: usize = 3;
/// The lowest port from which questions are sent.
const FIRST_PORT: u16 = 1024;

/// The limits of a resolver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most questions that wait at a time.
    pub questions: usize,
    /// The most waiting questions that clients cause.
    pub of_clients: usize,
    /// The most askers of one question.
    pub askers: usize,
    /// The most bytes of cached answers.
    pub cache_bytes: usize,
}

/// A stream to a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamId(u64);

/// An action for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResolverAction<A> {
    /// Begin to accept datagrams for this port, and send a datagram from it.
    Send {
        /// The port.
        port: u16,
        /// The address of the server.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// Accept no more datagrams for this port.
    Release {
        /// The port.
        port: u16,
    },
    /// Open a stream, and report the result by [`Resolver::stream_opened`] and
    /// [`Resolver::stream_closed`].
    Connect {
        /// The identifier of the stream.
        stream: StreamId,
        /// The address of the server.
        to: SocketAddr,
    },
    /// Write these bytes to a stream.
    Write {
        /// The stream.
        stream: StreamId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// End a stream at once.
    HangUp {
        /// The stream.
        stream: StreamId,
    },
    /// Report a result to an asker.
    Tell {
        /// The asker.
        asker: A,
        /// The result.
        answer: Result<Answer, Unanswered>,
    },
}

/// Looks up names. `A`: an asker.
pub struct Resolver<A> {
    limits: Limits,
    servers: heapless::Vec<IpAddr, SERVERS_MAX>,
    /// The server that is asked first.
    preferred: usize,
    open: Vec<OpenQuestion<A>>,
    cache: AnswerCache,
    actions: VecDeque<ResolverAction<A>>,
    hasher: SipHasher24,
    drawn: u64,
}

impl<A: OnBehalf> Resolver<A> {
    /// A resolver without cached answers and servers. `key` must be random and secret.
    pub fn new(limits: Limits, key: [u8; 16]) -> Resolver<A> {
        Resolver {
            limits,
            servers: heapless::Vec::new(),
            preferred: 0,
            open: Vec::with_capacity(limits.questions),
            cache: AnswerCache::new(limits.cache_bytes),
            actions: VecDeque::new(),
            hasher: SipHasher24::new_with_key(&key),
            drawn: 0,
        }
    }

    /// Sets the servers, at most [`SERVERS_MAX`]. Waiting questions are sent to the new servers.
    pub fn set_servers(&mut self, servers: impl IntoIterator<Item = IpAddr>, now: Instant) {
        self.servers = servers.into_iter().take(SERVERS_MAX).collect();
        self.preferred = 0;
        for open in core::mem::take(&mut self.open) {
            self.give_up_attempt(&open);
            self.attempt(OpenQuestion { failures: 0, ..open }, Unanswered::NoServer, now);
        }
    }

    /// Asks a question. `None`: the asker gets the result later.
    pub fn ask(
        &mut self,
        question: Question,
        asker: A,
        now: Instant,
    ) -> Option<Result<Answer, Unanswered>> {
        if let Some(answer) = self.cache.find(&question, now) {
            return Some(Ok(answer.clone()));
        }
        let Limits { questions, of_clients, askers, .. } = self.limits;
        let client = asker.client();
        if let Some(open) = self.open.iter_mut().find(|open| open.question == question) {
            let others = open.askers.iter().filter_map(OnBehalf::client);
            if open.askers.len() >= askers || !has_share(client, others, askers) {
                return Some(Err(Unanswered::Busy));
            }
            open.askers.push(asker);
            return None;
        }
        if self.servers.is_empty() {
            return Some(Err(Unanswered::NoServer));
        }
        if self.open.len() >= questions || !has_share(client, self.clients(), of_clients) {
            return Some(Err(Unanswered::Busy));
        }
        let Some(attempt) = self.new_attempt(&question, self.preferred, now) else {
            return Some(Err(Unanswered::Nonsense));
        };
        let number = self.draw();
        let give_up_at = now + QUESTION_SPAN_MAX;
        self.open.push(OpenQuestion {
            number,
            question,
            client,
            askers: Vec::from([asker]),
            attempt,
            failures: 0,
            give_up_at,
        });
        None
    }

    /// The client of each waiting question that a client has caused.
    fn clients(&self) -> impl Iterator<Item = LookupClient> {
        self.open.iter().filter_map(|open| open.client)
    }

    /// The number of waiting questions.
    pub fn waiting(&self) -> usize {
        self.open.len()
    }

    /// The next action.
    pub fn next_action(&mut self) -> Option<ResolverAction<A>> {
        self.actions.pop_front()
    }

    /// The time at which the caller must call [`Resolver::time_passed`].
    pub fn next_deadline(&self) -> Instant {
        self.open.iter().map(OpenQuestion::deadline).min().unwrap_or(Instant::NEVER)
    }

    /// Gives up attempts if their servers were silent for too long.
    pub fn time_passed(&mut self, now: Instant) {
        while let Some(late) = self.open.iter().position(|open| open.deadline() <= now) {
            let open = self.take(late);
            self.preferred = (open.attempt.server + 1).checked_rem(self.servers.len()).unwrap_or(0);
            self.attempt_failed(open, Unanswered::Silence, now);
        }
    }

    /// A datagram has arrived for a port that [`ResolverAction::Send`] named.
    pub fn datagram_arrived(&mut self, port: u16, from: SocketAddr, bytes: &[u8], now: Instant) {
        let is_addressed = |open: &OpenQuestion<A>| {
            open.is_at_port(port) && self.address(open.attempt.server) == Some(from)
        };
        let Some(found) = self.open.iter().position(is_addressed) else { return };
        let open = self.take(found);
        match message::read(bytes, &open.question, &open.attempt.sent, false) {
            ReceivedReply::Truncated | ReceivedReply::Foreign => self.ask_by_stream(open, now),
            reading => self.settle(open, reading, now),
        }
    }

    /// A stream is open.
    pub fn stream_opened(&mut self, stream: StreamId) {
        if let Some(open) = self.open.iter().find(|open| open.number == stream.0) {
            self.actions
                .push_back(ResolverAction::Write { stream, bytes: open.attempt.with_length() });
        }
    }

    /// Bytes have arrived on a stream.
    pub fn stream_arrived(&mut self, stream: StreamId, bytes: &[u8], now: Instant) {
        let Some(found) = self.open.iter().position(|open| open.number == stream.0) else { return };
        let mut open = self.take(found);
        open.stream_arrived(bytes);
        match open
            .stream_message()
            .map(|message| message::read(message, &open.question, &open.attempt.sent, true))
        {
            None => self.open.push(open),
            Some(reading) => self.settle(open, reading, now),
        }
    }

    /// A stream has ended, or could not be opened.
    pub fn stream_closed(&mut self, stream: StreamId, now: Instant) {
        if let Some(found) = self.open.iter().position(|open| open.number == stream.0) {
            let open = self.take(found);
            self.attempt_failed(open, Unanswered::Silence, now);
        }
    }

    fn take(&mut self, at: usize) -> OpenQuestion<A> {
        self.open.swap_remove(at)
    }

    fn address(&self, server: usize) -> Option<SocketAddr> {
        self.servers.get(server).map(|address| SocketAddr::new(*address, SERVER_PORT))
    }

    /// Handles the reply to an attempt: reports the answer, or makes the next attempt.
    fn settle(&mut self, open: OpenQuestion<A>, reading: ReceivedReply, now: Instant) {
        match reading {
            ReceivedReply::Answer(answer, ttl) => {
                self.preferred = open.attempt.server;
                self.cache.remember(&open.question, &answer, ttl, now);
                self.give_up_attempt(&open);
                self.tell(open, Ok(answer));
            }
            ReceivedReply::Unanswered(why) => self.attempt_failed(open, why, now),
            ReceivedReply::Truncated | ReceivedReply::Foreign => {
                self.attempt_failed(open, Unanswered::Nonsense, now)
            }
        }
    }

    fn attempt_failed(&mut self, mut open: OpenQuestion<A>, why: Unanswered, now: Instant) {
        self.give_up_attempt(&open);
        open.failures += 1;
        open.attempt.server += 1;
        self.attempt(open, why, now);
    }

    /// Makes the next attempt, at the server of `open`. If no attempt is left, reports `why` to the
    /// askers.
    fn attempt(&mut self, mut open: OpenQuestion<A>, why: Unanswered, now: Instant) {
        let attempts_max = ATTEMPTS_MIN.max(ROUNDS * self.servers.len());
        let server = open.attempt.server.checked_rem(self.servers.len());
        let goes_on = open.failures < attempts_max && now < open.give_up_at;
        match server
            .filter(|_| goes_on)
            .and_then(|server| self.new_attempt(&open.question, server, now))
        {
            Some(attempt) => {
                open.attempt = attempt;
                // The attempt gets a new number, so that late bytes of an earlier stream are
                // ignored.
                open.number = self.draw();
                self.open.push(open);
            }
            None => self.tell(open, Err(why)),
        }
    }

    /// Repeats a question on a stream to the same server.
    fn ask_by_stream(&mut self, mut open: OpenQuestion<A>, now: Instant) {
        self.give_up_attempt(&open);
        let Some(to) = self.address(open.attempt.server) else {
            return self.tell(open, Err(Unanswered::NoServer));
        };
        open.attempt = open.attempt.by_stream(now);
        self.actions.push_back(ResolverAction::Connect { stream: StreamId(open.number), to });
        self.open.push(open);
    }

    fn new_attempt(
        &mut self,
        question: &Question,
        server: usize,
        now: Instant,
    ) -> Option<QueryAttempt> {
        let to = self.address(server)?;
        let identifier = self.draw() as u16;
        // Four draws give 256 bits. They are enough, since a name has at most 255 bytes.
        let cases = [(); 4].map(|()| self.draw());
        let mut bits =
            cases.iter().flat_map(|bits| (0..u64::BITS).map(move |bit| bits >> bit & 1 == 1));
        let sent = OutgoingQuery::new(question, identifier, || bits.next().unwrap_or(false))?;
        let port = self.free_port();
        self.actions.push_back(ResolverAction::Send { port, to, bytes: sent.bytes.clone() });
        Some(QueryAttempt::by_datagram(server, sent, port, now))
    }

    /// Releases the port of an attempt, or closes its stream.
    fn give_up_attempt(&mut self, open: &OpenQuestion<A>) {
        self.actions.push_back(match open.attempt.transport {
            Transport::Datagram { port } => ResolverAction::Release { port },
            Transport::Stream { .. } => ResolverAction::HangUp { stream: StreamId(open.number) },
        });
    }

    /// Reports a result to all askers of a question.
    fn tell(&mut self, open: OpenQuestion<A>, answer: Result<Answer, Unanswered>) {
        let tell = |asker| ResolverAction::Tell { asker, answer: answer.clone() };
        self.actions.extend(open.askers.into_iter().map(tell));
    }

    /// A port that no question uses.
    fn free_port(&mut self) -> u16 {
        loop {
            let places = u64::from(u16::MAX - FIRST_PORT) + 1;
            let port = FIRST_PORT + (self.draw() % places) as u16;
            if !self.open.iter().any(|open| open.is_at_port(port)) {
                return port;
            }
        }
    }

    fn draw(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        let mut hasher = self.hasher;
        hasher.write_u64(self.drawn);
        hasher.finish()
    }
}

/// Whether one more question or asker of `client` may wait. `others`: the clients of all questions
/// or askers that wait now. `most`: the number of places.
fn has_share(
    client: Option<LookupClient>,
    others: impl Iterator<Item = LookupClient>,
    most: usize,
) -> bool {
    client.is_none_or(|client| may_wait(client, others, most))
}
