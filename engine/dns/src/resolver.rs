//! Who is asked what, when, and who is told.
//!
//! - A question that is asked already is not asked twice: whoever else wants to know waits for the same answer. So nobody can have many guesses at one
//!   answer.
//! - Each attempt comes from a port, with an identifier and with letters' cases that nobody else knows (RFC 5452). A datagram that comes from the
//!   server's address to that port and isn't the answer means that somebody guesses; then the question is asked by a stream, where he can't.
//! - A server that is silent or refuses is followed by the next one, and who answered last is asked first.
//! - Clients share the questions that may wait, and the places of those that wait for the same
//!   answer (`share`). A question above a share is [`Unanswered::Busy`] at once. That says nothing
//!   of the name.
//!
//! Invariant: whoever has asked is told once: at once, or by [`Action::Tell`] within [`QUESTION_SPAN_MAX`] if time is told of.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::{IpAddr, SocketAddr};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher24;

use crate::cache::Cache;
use crate::message::{self, Reading, Sent};
use crate::open::{Attempt, Open, Way};
use crate::question::{Answer, Question, Unanswered};
use crate::share::{Client, OnBehalf, may_wait};

/// The port of name servers.
pub const SERVER_PORT: u16 = 53;
/// The most servers that are asked.
pub const SERVERS_MAX: usize = 4;
/// Nobody waits longer for an answer, whatever servers do.
pub const QUESTION_SPAN_MAX: Micros = Micros::from_secs(20);

/// How often each server is asked, and all together at least.
const ROUNDS: usize = 2;
const ATTEMPTS_MIN: usize = 3;
/// The first port that questions come from.
const FIRST_PORT: u16 = 1024;

/// How much there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Questions that wait at a time.
    pub questions: usize,
    /// Of these, the questions that clients cause.
    pub of_clients: usize,
    /// Askers of one question.
    pub askers: usize,
    /// Bytes of answers that are remembered.
    pub cache_bytes: usize,
}

/// A stream to a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamId(u64);

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action<A> {
    /// Take datagrams for this port from now on, and send one from it.
    Send {
        /// The port.
        port: u16,
        /// Where to.
        to: SocketAddr,
        /// What.
        bytes: Vec<u8>,
    },
    /// Take no more datagrams for this port.
    Release {
        /// The port.
        port: u16,
    },
    /// Open a stream; tell of it by [`Resolver::stream_opened`] and [`Resolver::stream_closed`].
    Connect {
        /// What it is called.
        stream: StreamId,
        /// Where to.
        to: SocketAddr,
    },
    /// Write this to a stream.
    Write {
        /// Which.
        stream: StreamId,
        /// What.
        bytes: Vec<u8>,
    },
    /// End a stream, whatever it does: nothing of it is wanted any more.
    HangUp {
        /// Which.
        stream: StreamId,
    },
    /// Tell who has asked.
    Tell {
        /// Whom.
        asker: A,
        /// What is known.
        answer: Result<Answer, Unanswered>,
    },
}

/// Looks up names. `A`: who asks.
pub struct Resolver<A> {
    limits: Limits,
    servers: heapless::Vec<IpAddr, SERVERS_MAX>,
    /// The server that is asked first.
    preferred: usize,
    open: Vec<Open<A>>,
    cache: Cache,
    actions: VecDeque<Action<A>>,
    hasher: SipHasher24,
    drawn: u64,
}

impl<A: OnBehalf> Resolver<A> {
    /// Knows nothing, and nobody to ask. `key` is random, so that nobody else knows what comes of it.
    pub fn new(limits: Limits, key: [u8; 16]) -> Resolver<A> {
        Resolver {
            limits,
            servers: heapless::Vec::new(),
            preferred: 0,
            open: Vec::with_capacity(limits.questions),
            cache: Cache::new(limits.cache_bytes),
            actions: VecDeque::new(),
            hasher: SipHasher24::new_with_key(&key),
            drawn: 0,
        }
    }

    /// Asks these servers from now on, at most [`SERVERS_MAX`]. Questions that wait are asked again there.
    pub fn set_servers(&mut self, servers: impl IntoIterator<Item = IpAddr>, now: Instant) {
        self.servers = servers.into_iter().take(SERVERS_MAX).collect();
        self.preferred = 0;
        for open in core::mem::take(&mut self.open) {
            self.give_up_attempt(&open);
            self.attempt(Open { failures: 0, ..open }, Unanswered::NoServer, now);
        }
    }

    /// Asks a question. `None`: the asker is told later.
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
        self.open.push(Open {
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
    fn clients(&self) -> impl Iterator<Item = Client> {
        self.open.iter().filter_map(|open| open.client)
    }

    /// Questions that wait.
    pub fn waiting(&self) -> usize {
        self.open.len()
    }

    /// What is to be done next.
    pub fn next_action(&mut self) -> Option<Action<A>> {
        self.actions.pop_front()
    }

    /// When [`Resolver::time_passed`] has something to do.
    pub fn next_deadline(&self) -> Instant {
        self.open.iter().map(Open::deadline).min().unwrap_or(Instant::NEVER)
    }

    /// Gives up those who were silent for too long.
    pub fn time_passed(&mut self, now: Instant) {
        while let Some(late) = self.open.iter().position(|open| open.deadline() <= now) {
            let open = self.take(late);
            self.preferred = (open.attempt.server + 1).checked_rem(self.servers.len()).unwrap_or(0);
            self.attempt_failed(open, Unanswered::Silence, now);
        }
    }

    /// A datagram has come for a port that [`Action::Send`] named.
    pub fn datagram_arrived(&mut self, port: u16, from: SocketAddr, bytes: &[u8], now: Instant) {
        let asked = |open: &Open<A>| {
            open.is_at_port(port) && self.address(open.attempt.server) == Some(from)
        };
        let Some(found) = self.open.iter().position(asked) else { return };
        let open = self.take(found);
        match message::read(bytes, &open.question, &open.attempt.sent, false) {
            Reading::Truncated | Reading::Foreign => self.ask_by_stream(open, now),
            reading => self.settle(open, reading, now),
        }
    }

    /// A stream is open.
    pub fn stream_opened(&mut self, stream: StreamId) {
        if let Some(open) = self.open.iter().find(|open| open.number == stream.0) {
            self.actions.push_back(Action::Write { stream, bytes: open.attempt.with_length() });
        }
    }

    /// Bytes have come by a stream.
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

    /// A stream has ended, or couldn't be opened.
    pub fn stream_closed(&mut self, stream: StreamId, now: Instant) {
        if let Some(found) = self.open.iter().position(|open| open.number == stream.0) {
            let open = self.take(found);
            self.attempt_failed(open, Unanswered::Silence, now);
        }
    }

    fn take(&mut self, at: usize) -> Open<A> {
        self.open.swap_remove(at)
    }

    fn address(&self, server: usize) -> Option<SocketAddr> {
        self.servers.get(server).map(|address| SocketAddr::new(*address, SERVER_PORT))
    }

    /// An attempt has come to an end: by an answer, or without one.
    fn settle(&mut self, open: Open<A>, reading: Reading, now: Instant) {
        match reading {
            Reading::Answer(answer, ttl) => {
                self.preferred = open.attempt.server;
                self.cache.remember(&open.question, &answer, ttl, now);
                self.give_up_attempt(&open);
                self.tell(open, Ok(answer));
            }
            Reading::Unanswered(why) => self.attempt_failed(open, why, now),
            Reading::Truncated | Reading::Foreign => {
                self.attempt_failed(open, Unanswered::Nonsense, now)
            }
        }
    }

    fn attempt_failed(&mut self, mut open: Open<A>, why: Unanswered, now: Instant) {
        self.give_up_attempt(&open);
        open.failures += 1;
        open.attempt.server += 1;
        self.attempt(open, why, now);
    }

    /// Asks anew, of the server that it names; or tells why not any more.
    fn attempt(&mut self, mut open: Open<A>, why: Unanswered, now: Instant) {
        let attempts_max = ATTEMPTS_MIN.max(ROUNDS * self.servers.len());
        let server = open.attempt.server.checked_rem(self.servers.len());
        let goes_on = open.failures < attempts_max && now < open.give_up_at;
        match server
            .filter(|_| goes_on)
            .and_then(|server| self.new_attempt(&open.question, server, now))
        {
            Some(attempt) => {
                open.attempt = attempt;
                // Bytes that still come by a former stream are nobody's.
                open.number = self.draw();
                self.open.push(open);
            }
            None => self.tell(open, Err(why)),
        }
    }

    fn ask_by_stream(&mut self, mut open: Open<A>, now: Instant) {
        self.give_up_attempt(&open);
        let Some(to) = self.address(open.attempt.server) else {
            return self.tell(open, Err(Unanswered::NoServer));
        };
        open.attempt = open.attempt.by_stream(now);
        self.actions.push_back(Action::Connect { stream: StreamId(open.number), to });
        self.open.push(open);
    }

    fn new_attempt(&mut self, question: &Question, server: usize, now: Instant) -> Option<Attempt> {
        let to = self.address(server)?;
        let identifier = self.draw() as u16;
        // A name has at most 255 letters.
        let cases = [(); 4].map(|()| self.draw());
        let mut bits =
            cases.iter().flat_map(|bits| (0..u64::BITS).map(move |bit| bits >> bit & 1 == 1));
        let sent = Sent::new(question, identifier, || bits.next().unwrap_or(false))?;
        let port = self.free_port();
        self.actions.push_back(Action::Send { port, to, bytes: sent.bytes.clone() });
        Some(Attempt::by_datagram(server, sent, port, now))
    }

    /// The port or the stream of an attempt isn't needed any more.
    fn give_up_attempt(&mut self, open: &Open<A>) {
        self.actions.push_back(match open.attempt.way {
            Way::Datagram { port } => Action::Release { port },
            Way::Stream { .. } => Action::HangUp { stream: StreamId(open.number) },
        });
    }

    fn tell(&mut self, open: Open<A>, answer: Result<Answer, Unanswered>) {
        let tell = |asker| Action::Tell { asker, answer: answer.clone() };
        self.actions.extend(open.askers.into_iter().map(tell));
    }

    /// A port from which nothing is asked now.
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

/// Whether one more may wait for `client`. `others`: the client of each that waits now. `most`: how
/// many may wait in all.
fn has_share(client: Option<Client>, others: impl Iterator<Item = Client>, most: usize) -> bool {
    client.is_none_or(|client| may_wait(client, others, most))
}
