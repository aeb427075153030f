//! A core's connections: network, TLS, deadlines and readiness as one.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::take;
use core::net::SocketAddr;

use machine::{BLOCK_BYTES, Instant, Micros, Piece, Turn, UnixTime};
use net::{ConnectionId, Net, Unsent};
use tasks::{DelayQueue, FrameId, GateId, Gates, Passage, ResumeQueue};
use tls::{Event, Text};

use crate::caller::{Caller, Channel};
use crate::owner::{Owner, OwnerTable};
use crate::tls_table::{TlsTable, room_for_plaintext};

/// How long a connection may take to end once its session is over. A client that reads slowly needs
/// some of it.
const LINGER: Micros = Micros::from_secs(180);

/// How long the peer of a connection that we have opened may take to end it, once we have said all.
const PARTING: Micros = Micros::from_secs(30);

/// What is computed for a connection, a step a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnGate {
    /// A step of a TLS handshake.
    Handshake,
    /// The check of a signature under a message.
    Verification,
}

impl TurnGate {
    const COUNT: usize = 2;

    const fn id(self) -> GateId {
        GateId(self as u32)
    }
}

/// What is wanted of a record at the front of what has arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Its plaintext.
    Next,
    /// More than the plaintext that lies there.
    More,
    /// A step in the handshake.
    Step,
}

/// Bytes that have arrived by a connection and were not taken yet. They lie in the core's scratch
/// buffer: [`Connections::put_back`] returns it.
pub struct Waiting {
    connection: ConnectionId,
    scratch: Vec<u8>,
    length: usize,
}

impl Waiting {
    /// The bytes, to be worked on where they lie.
    pub fn bytes(&mut self) -> &mut [u8] {
        let Some(bytes) = self.scratch.get_mut(..self.length) else {
            unreachable!("more bytes than were copied")
        };
        bytes
    }
}

/// From how many connections on clients are sent away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Limits {
    /// Above these callers are sent away.
    crowd: usize,
    /// Above these, addresses that have very many lose some.
    tight: usize,
}

/// All connections of a core.
pub struct Connections {
    net: Net,
    tls: TlsTable,
    owners: OwnerTable,
    /// Those that we have opened and by which all was said, and how long each may last. The first
    /// one ends first.
    closing: VecDeque<(Instant, ConnectionId)>,
    /// Deadlines of sessions.
    deadlines: DelayQueue,
    /// Sessions that go on in the resume phase.
    ready: ResumeQueue,
    gates: Gates,
    /// The connection of the session that acts, once it was reset by us.
    reset: Option<ConnectionId>,
    limits: Limits,
    /// Whether so little memory is left in the machine that connections have to end.
    is_low_on_memory: bool,
    /// Where bytes are worked on that came in several segments.
    scratch: Vec<u8>,
}

impl Connections {
    /// Bytes of memory for each connection, whatever it is used for.
    pub const SLOT_BYTES: usize = Net::IDLE_CONNECTION_BYTES
        + TlsTable::SLOT_BYTES
        + DelayQueue::SLOT_BYTES
        + ResumeQueue::SLOT_BYTES
        + Gates::SLOT_BYTES;

    /// `connections`: how many `net` has room for. `unread_bytes_max`: what a session leaves at the
    /// most while it waits for more.
    pub fn new(
        net: Net,
        tls: TlsTable,
        connections: usize,
        unread_bytes_max: usize,
        now: Instant,
    ) -> Connections {
        Connections {
            net,
            tls,
            owners: OwnerTable::default(),
            closing: VecDeque::new(),
            deadlines: DelayQueue::with_capacity(connections, now),
            ready: ResumeQueue::with_capacity(connections),
            gates: Gates::new(TurnGate::COUNT, connections),
            reset: None,
            limits: Limits {
                crowd: connections - connections / 16,
                tight: connections - connections / 8,
            },
            is_low_on_memory: false,
            // What a session leaves, and two records.
            scratch: vec![0; unread_bytes_max + 2 * tls::RECORD_BYTES_MAX],
        }
    }

    /// The network, to be looked at.
    #[inline]
    pub fn net(&self) -> &Net {
        &self.net
    }

    #[inline]
    pub(crate) fn net_mut(&mut self) -> &mut Net {
        &mut self.net
    }

    /// What the core has for TLS.
    #[inline]
    pub fn tls(&self) -> &TlsTable {
        &self.tls
    }

    /// The same, to be changed.
    #[inline]
    pub fn tls_mut(&mut self) -> &mut TlsTable {
        &mut self.tls
    }

    /// What is told of what happens to the connection.
    #[inline]
    pub fn owner(&self, connection: ConnectionId) -> Owner {
        self.owners.of(connection)
    }
}

/// Connections that this machine opens.
impl Connections {
    /// Calls a host, for `owner`.
    ///
    /// Errors: those of [`Net::connect`].
    pub fn connect(
        &mut self,
        now: Instant,
        to: SocketAddr,
        owner: Owner,
    ) -> Result<ConnectionId, Unsent> {
        let connection = self.net.connect(now, to)?;
        self.owners.set(connection, owner);
        Ok(connection)
    }

    /// The connection, which was opened by [`Connections::connect`], has another owner from now on.
    pub fn hand_over(&mut self, connection: ConnectionId, owner: Owner) {
        self.owners.set(connection, owner);
    }

    /// Nothing more is said or heard by the connection; what was said is sent. Its peer may take a
    /// while to end it.
    pub(crate) fn part(&mut self, now: Instant, connection: ConnectionId) {
        self.tls.close(now, connection, &mut self.net);
        self.net.close(connection);
        self.owners.remove(connection);
        self.closing.push_back((now + PARTING, connection));
    }

    /// Ends a connection that we have opened, at once.
    pub fn hang_up(&mut self, connection: ConnectionId) {
        self.net.abort(connection);
        self.owners.remove(connection);
    }

    /// How many that we have opened have an owner, or are closing.
    pub fn opened(&self) -> usize {
        self.owners.count() + self.closing.len()
    }

    /// Ends those that had until `now` to end by themselves.
    pub fn end_closing(&mut self, now: Instant) {
        while let Some((_, connection)) = self.closing.pop_front_if(|(until, _)| *until <= now) {
            self.net.abort(connection);
        }
    }

    /// The network has said that the connection is over.
    pub fn is_over(&mut self, connection: ConnectionId) {
        if !self.closing.is_empty() {
            self.closing.retain(|(_, closing)| *closing != connection);
        }
    }
}

/// What is said by connections.
impl Connections {
    /// Queues as much of `bytes` as there is room for, and says how much that was.
    #[inline]
    pub fn send(&mut self, now: Instant, caller: Caller, bytes: &[u8]) -> usize {
        self.send_by(now, caller.connection, caller.channel, bytes)
    }

    /// The same for a connection that has no session.
    #[inline]
    pub fn send_by(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        channel: Channel,
        bytes: &[u8],
    ) -> usize {
        match channel {
            Channel::Plain => self.net.send(now, connection, bytes),
            Channel::Tls => self.tls.send(now, connection, bytes.into(), &mut self.net),
        }
    }

    /// Queues a piece of memory that is shared until the peer has it, in the clear. Gives it back
    /// when there is no room for it.
    pub fn send_piece(&mut self, now: Instant, caller: Caller, piece: Piece) -> Result<(), Piece> {
        self.net.send_piece(now, caller.connection, piece)
    }

    /// Queues a whole reply. Half a reply would be taken for a whole one of another meaning: one
    /// that does not fit, which only happens to replies that cannot wait for room, ends the
    /// connection.
    pub fn say(&mut self, now: Instant, caller: Caller, bytes: &[u8]) {
        if self.send(now, caller, bytes) < bytes.len() {
            self.reset(caller.connection);
        }
    }

    /// Queues the first part of `text`, which is said as [`Connections::say`] does, and as much of
    /// the second as there is room for, sealed together. Says how much of the second that was.
    pub fn seal(&mut self, now: Instant, caller: Caller, text: Text<'_>) -> usize {
        let taken = self.tls.send(now, caller.connection, text, &mut self.net);
        if taken < text.first.len() {
            self.reset(caller.connection);
        }
        taken.saturating_sub(text.first.len())
    }

    /// How many bytes [`Connections::send`] would take now.
    pub fn send_room(&self, caller: Caller) -> usize {
        plaintext(caller, self.net.send_room(caller.connection))
    }

    /// The same, but so that no more than `limit` bytes wait for the client to take them.
    pub fn send_room_within(&self, caller: Caller, limit: usize) -> usize {
        plaintext(caller, self.net.send_room_within(caller.connection, limit))
    }

    /// Whether there is room for what a step in a handshake has to say.
    pub fn has_room_for_handshake(&self, connection: ConnectionId) -> bool {
        self.net.send_room(connection) >= BLOCK_BYTES
    }

    /// The owner is told when there is room for more.
    pub fn want_room(&mut self, now: Instant, connection: ConnectionId) {
        self.net.want_room(now, connection);
    }

    /// Ends a session's connection once everything queued is sent, or when that takes too long.
    pub fn close(&mut self, now: Instant, caller: Caller) {
        if caller.channel == Channel::Tls {
            self.tls.close(now, caller.connection, &mut self.net);
        }
        self.net.close(caller.connection);
        self.set_deadline(now, caller.connection, Some(LINGER));
    }

    /// Resets the connection of the session that acts: it is over, and the session with it.
    pub fn reset(&mut self, connection: ConnectionId) {
        self.net.abort(connection);
        self.reset = Some(connection);
    }

    /// Whether the connection of the session that acts was reset.
    #[inline]
    pub fn is_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// The connection that was reset: no event says that it is over.
    #[inline]
    pub fn take_reset(&mut self) -> Option<ConnectionId> {
        self.reset.take()
    }

    /// The same, if it is this one.
    pub(crate) fn take_reset_of(&mut self, connection: ConnectionId) -> bool {
        self.reset.take_if(|reset| *reset == connection).is_some()
    }
}

fn plaintext(caller: Caller, room: usize) -> usize {
    if caller.channel == Channel::Tls { room_for_plaintext(room) } else { room }
}

/// What arrives by connections.
impl Connections {
    /// Bytes of an event that were not taken: they wait in the connection.
    #[inline]
    pub fn keep(&mut self, connection: ConnectionId, bytes: &[u8]) {
        self.net.keep(connection, bytes);
    }

    /// Copies the first bytes that wait in the connection, and says how many that are.
    #[inline]
    pub fn copy_waiting(&self, connection: ConnectionId, into: &mut [u8]) -> usize {
        self.net.copy_waiting(connection, into)
    }

    /// So many of the bytes that wait are done with.
    #[inline]
    pub fn consumed(&mut self, connection: ConnectionId, count: usize) {
        self.net.consumed(connection, count);
    }

    /// Lends the first bytes that wait in the connection.
    pub fn take_waiting(&mut self, connection: ConnectionId) -> Waiting {
        let mut scratch = take(&mut self.scratch);
        let length = self.net.copy_waiting(connection, &mut scratch);
        Waiting { connection, scratch, length }
    }

    /// Takes them back. `done`: so many are done with. Says whether to go on with those behind
    /// them.
    pub fn put_back(&mut self, mut waiting: Waiting, done: usize) -> bool {
        let is_to_go_on = !self.is_reset() && {
            let connection = waiting.connection;
            self.net.consumed(connection, done);
            let opened = self.tls.held(connection);
            self.net
                .put_back(connection, waiting.bytes().get(done..done + opened).unwrap_or_default());
            done > 0 && waiting.length == waiting.scratch.len()
        };
        self.scratch = waiting.scratch;
        is_to_go_on
    }

    /// Works on the front of what has arrived, sends what TLS has to say to it, and says how many
    /// bytes are done with.
    pub fn open(
        &mut self,
        turn: Turn,
        connection: ConnectionId,
        bytes: &mut [u8],
        opening: Opening,
    ) -> (usize, Event) {
        let Some((tls, out, clock)) = self.tls.at_work(connection) else {
            return (bytes.len(), Event::Bytes);
        };
        let progress = match opening {
            Opening::Next => tls.receive(bytes, out),
            Opening::More => tls.more(bytes, out),
            Opening::Step => {
                clock.set(UnixTime::from_seconds(turn.wall.seconds()));
                tls.work(bytes, out)
            }
        };
        let Some(words) = out.get(..progress.written) else {
            unreachable!("more bytes written than there is room for")
        };
        // Without room for it the peer will miss it, and give up.
        if !words.is_empty() && self.net.send(turn.now, connection, words) < words.len() {
            self.reset(connection);
        }
        (progress.done, progress.event)
    }

    /// Goes one step in the connection's handshake.
    pub fn step_in_handshake(&mut self, turn: Turn, connection: ConnectionId) -> Option<Event> {
        let mut happened = None;
        loop {
            let mut waiting = self.take_waiting(connection);
            let done = match happened {
                Some(_) => 0,
                None => {
                    let (done, event) = self.open(turn, connection, waiting.bytes(), Opening::Step);
                    happened = Some(event);
                    done
                }
            };
            if !self.put_back(waiting, done) {
                return happened;
            }
        }
    }
}

/// When sessions go on.
impl Connections {
    /// When the connection's session is told that its time is up, counted from now; `None`: never.
    pub fn set_deadline(&mut self, now: Instant, connection: ConnectionId, after: Option<Micros>) {
        match after {
            Some(after) => self.deadlines.set(connection.0, now + after),
            None => self.deadlines.cancel(connection.0),
        }
    }

    /// The next connection whose time is up.
    #[inline]
    pub fn next_due(&mut self, now: Instant) -> Option<ConnectionId> {
        self.deadlines.next_due(now).map(ConnectionId)
    }

    /// The session of this frame goes on in the resume phase of the next turn.
    #[inline]
    pub fn resume(&mut self, frame: FrameId) {
        self.ready.resume(frame);
    }

    /// Whether a session is to go on.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The resume phase begins.
    #[inline]
    pub fn begin_resuming(&mut self) {
        self.ready.begin_turn();
    }

    /// The next session that goes on in this turn.
    #[inline]
    pub fn next_ready(&mut self) -> Option<FrameId> {
        self.ready.next_ready()
    }

    /// `frame`, which waits at no gate, asks to pass this one: the phase that computes resumes it
    /// when its turn has come.
    pub fn enter(&mut self, gate: TurnGate, frame: FrameId) {
        let (Passage::Entered | Passage::Queued) = self.gates.enter(gate.id(), frame);
    }

    /// The frame whose turn it is.
    #[inline]
    pub fn owner_of(&self, gate: TurnGate) -> Option<FrameId> {
        self.gates.owner(gate.id())
    }

    /// Whether it is the turn of `frame`.
    pub fn has_entered(&self, gate: TurnGate, frame: FrameId) -> bool {
        self.owner_of(gate) == Some(frame)
    }

    /// `frame` has had its turn, or does not want it any more.
    pub fn leave(&mut self, gate: TurnGate, frame: FrameId) {
        if self.has_entered(gate, frame) {
            self.gates.leave(gate.id(), frame);
        } else {
            self.gates.abandon(frame);
        }
    }

    /// When there is something to do next, whatever happens.
    pub fn next_deadline(&self) -> Instant {
        Instant::or_never(self.net.next_deadline())
            .min(Instant::or_never(self.deadlines.next_deadline()))
            .min(self.closing.front().map_or(Instant::NEVER, |(until, _)| *until))
    }
}

/// How many connections there may be.
impl Connections {
    /// A turn begins. `is_low_on_memory`: the machine's reserve of memory is touched.
    pub fn begin_turn(&mut self, is_low_on_memory: bool) {
        self.is_low_on_memory = is_low_on_memory;
    }

    /// Whether the machine's reserve of memory is touched.
    pub fn is_low_on_memory(&self) -> bool {
        self.is_low_on_memory
    }

    /// Whether there are so many connections, or is so little memory, that a new caller is sent
    /// away.
    pub fn is_crowded(&self) -> bool {
        self.net.connection_count() > self.limits.crowd || self.is_low_on_memory
    }

    /// Whether addresses that have very many connections have to lose some, so that a new caller
    /// need not be sent away.
    pub fn is_tight(&self) -> bool {
        self.net.connection_count() > self.limits.tight
    }
}
