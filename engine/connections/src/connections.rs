//! A core's connections: network, TLS, deadlines and readiness as one.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::take;
use core::net::SocketAddr;

use machine::{BLOCK_BYTES, Instant, Micros, Piece, Turn, UnixTime};
use net::{ConnectionId, Net, Unsent};
use tasks::{DelayQueue, FrameId, ResumeQueue};
use tls::{SplitPlaintext, TlsEvent};

use crate::caller::{Caller, Channel};
use crate::owner::{Owner, OwnerTable};
use crate::tls_table::{TlsTable, room_for_plaintext};
use crate::turn_gates::{TurnGate, TurnGates};

/// The longest time that a connection may take to end after its session has ended. A slow client
/// needs some of this time to read the last output.
const LINGER: Micros = Micros::from_secs(180);

/// The longest time that a peer may take to end a connection that we have opened, after our last
/// byte.
const PARTING: Micros = Micros::from_secs(30);

/// The way to process the record at the start of the received bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RecordAction {
    /// Decrypt the record.
    Next,
    /// Decrypt another record, although some plaintext is waiting already.
    More,
    /// Do a step of the handshake.
    Step,
}

/// Received bytes that the session has not taken yet, in the core's scratch buffer.
/// [`Connections::put_back`] returns it.
pub struct UnreadBytes {
    connection: ConnectionId,
    scratch: Vec<u8>,
    length: usize,
}

impl UnreadBytes {
    /// The bytes, which may be changed in place.
    pub fn bytes(&mut self) -> &mut [u8] {
        let Some(bytes) = self.scratch.get_mut(..self.length) else {
            unreachable!("more bytes than were copied")
        };
        bytes
    }
}

/// The numbers of connections above which clients are refused or evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Limits {
    /// Above this number new clients are refused.
    crowd: usize,
    /// Above this number, addresses with very many connections lose some.
    tight: usize,
}

/// All connections of a core.
pub struct Connections {
    net: Net,
    tls: TlsTable,
    owners: OwnerTable,
    /// Connections that we have opened and closed, with their time limits. The first one ends
    /// first.
    closing: VecDeque<(Instant, ConnectionId)>,
    /// Deadlines of sessions.
    deadlines: DelayQueue,
    /// Sessions that continue in the resume phase.
    ready: ResumeQueue,
    gates: TurnGates,
    /// The connection of the running session, if we have reset it.
    reset: Option<ConnectionId>,
    limits: Limits,
    /// Whether the machine's memory reserve is in use, so that connections must end.
    is_low_on_memory: bool,
    /// The buffer for bytes that came in several segments.
    scratch: Vec<u8>,
}

impl Connections {
    /// Bytes of memory for each connection, whatever its use.
    pub const SLOT_BYTES: usize = Net::IDLE_CONNECTION_BYTES
        + TlsTable::SLOT_BYTES
        + DelayQueue::SLOT_BYTES
        + ResumeQueue::SLOT_BYTES
        + TurnGates::SLOT_BYTES;

    /// `connections`: the capacity of `net`. `unread_bytes_max`: the most bytes that a waiting
    /// session leaves unread.
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
            gates: TurnGates::new(connections),
            reset: None,
            limits: Limits {
                crowd: connections - connections / 16,
                tight: connections - connections / 8,
            },
            is_low_on_memory: false,
            // The most bytes that a session leaves unread, and two records.
            scratch: vec![0; unread_bytes_max + 2 * tls::RECORD_BYTES_MAX],
        }
    }

    /// The network, read-only.
    #[inline]
    pub fn net(&self) -> &Net {
        &self.net
    }

    #[inline]
    pub(crate) fn net_mut(&mut self) -> &mut Net {
        &mut self.net
    }

    /// The TLS state of the core.
    #[inline]
    pub fn tls(&self) -> &TlsTable {
        &self.tls
    }

    /// The TLS state of the core, mutable.
    #[inline]
    pub fn tls_mut(&mut self) -> &mut TlsTable {
        &mut self.tls
    }

    /// The part of the engine that gets the events of the connection.
    #[inline]
    pub fn owner(&self, connection: ConnectionId) -> Owner {
        self.owners.of(connection)
    }
}

/// Connections that this machine opens.
impl Connections {
    /// Connects to a host, for `owner`.
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

    /// Gives the connection, which [`Connections::connect`] has opened, another owner.
    pub fn hand_over(&mut self, connection: ConnectionId, owner: Owner) {
        self.owners.set(connection, owner);
    }

    /// Closes the connection after its output is sent. Its peer gets some time to end it.
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

    /// The number of connections that we have opened and that have an owner or are closing.
    pub fn opened(&self) -> usize {
        self.owners.count() + self.closing.len()
    }

    /// Ends the closing connections with a time limit at `now` or earlier.
    pub fn end_closing(&mut self, now: Instant) {
        while let Some((_, connection)) = self.closing.pop_front_if(|(until, _)| *until <= now) {
            self.net.abort(connection);
        }
    }

    /// The network has reported that the connection is over.
    pub fn connection_ended(&mut self, connection: ConnectionId) {
        if !self.closing.is_empty() {
            self.closing.retain(|(_, closing)| *closing != connection);
        }
    }
}

/// Output.
impl Connections {
    /// Queues as much of `bytes` as there is space for. Returns the number of bytes queued.
    #[inline]
    pub fn send(&mut self, now: Instant, caller: Caller, bytes: &[u8]) -> usize {
        self.send_by(now, caller.connection, caller.channel, bytes)
    }

    /// Queues as much of `bytes` as there is space for, on a connection that has no session.
    /// Returns the number of bytes queued.
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

    /// Queues a shared piece of memory, as plaintext. Returns it if there is no space.
    pub fn send_piece(&mut self, now: Instant, caller: Caller, piece: Piece) -> Result<(), Piece> {
        self.net.send_piece(now, caller.connection, piece)
    }

    /// Queues a whole reply. A part of a reply could be read as another reply. So if the reply does
    /// not fit, the connection ends. Only replies that cannot wait for space are queued with this
    /// function.
    pub fn say(&mut self, now: Instant, caller: Caller, bytes: &[u8]) {
        if self.send(now, caller, bytes) < bytes.len() {
            self.reset(caller.connection);
        }
    }

    /// Queues `text.first` in the same way as [`Connections::say`], and as much of `text.second` as
    /// there is space for. Both are encrypted together. Returns the number of bytes of
    /// `text.second` that were queued.
    pub fn encrypt(&mut self, now: Instant, caller: Caller, text: SplitPlaintext<'_>) -> usize {
        let taken = self.tls.send(now, caller.connection, text, &mut self.net);
        if taken < text.first.len() {
            self.reset(caller.connection);
        }
        taken.saturating_sub(text.first.len())
    }

    /// The number of bytes that [`Connections::send`] would take now.
    pub fn send_room(&self, caller: Caller) -> usize {
        plaintext(caller, self.net.send_room(caller.connection))
    }

    /// The result of [`Connections::send_room`], limited so that at most `limit` bytes wait for the
    /// client.
    pub fn send_room_within(&self, caller: Caller, limit: usize) -> usize {
        plaintext(caller, self.net.send_room_within(caller.connection, limit))
    }

    /// Whether there is space for the output of a handshake step.
    pub fn has_room_for_handshake(&self, connection: ConnectionId) -> bool {
        self.net.send_room(connection) >= BLOCK_BYTES
    }

    /// Asks for an event when there is more space.
    pub fn want_room(&mut self, now: Instant, connection: ConnectionId) {
        self.net.want_room(now, connection);
    }

    /// Ends a session's connection after everything queued is sent, or after a time limit.
    pub fn close(&mut self, now: Instant, caller: Caller) {
        if caller.channel == Channel::Tls {
            self.tls.close(now, caller.connection, &mut self.net);
        }
        self.net.close(caller.connection);
        self.set_deadline(now, caller.connection, Some(LINGER));
    }

    /// Resets the connection of the running session, which ends the session too.
    pub fn reset(&mut self, connection: ConnectionId) {
        self.net.abort(connection);
        self.reset = Some(connection);
    }

    /// Whether the connection of the running session was reset.
    #[inline]
    pub fn is_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// Takes the connection that was reset. No event reports its end.
    #[inline]
    pub fn take_reset(&mut self) -> Option<ConnectionId> {
        self.reset.take()
    }

    /// Takes the connection that was reset, if it is `connection`. Otherwise returns false.
    pub(crate) fn take_reset_of(&mut self, connection: ConnectionId) -> bool {
        self.reset.take_if(|reset| *reset == connection).is_some()
    }
}

fn plaintext(caller: Caller, room: usize) -> usize {
    if caller.channel == Channel::Tls { room_for_plaintext(room) } else { room }
}

/// Input.
impl Connections {
    /// Keeps the bytes of an event that the session did not take.
    #[inline]
    pub fn keep(&mut self, connection: ConnectionId, bytes: &[u8]) {
        self.net.keep(connection, bytes);
    }

    /// Copies the first bytes that wait in the connection. Returns their number.
    #[inline]
    pub fn copy_waiting(&self, connection: ConnectionId, into: &mut [u8]) -> usize {
        self.net.copy_waiting(connection, into)
    }

    /// Drops the first `count` bytes that wait.
    #[inline]
    pub fn consumed(&mut self, connection: ConnectionId, count: usize) {
        self.net.consumed(connection, count);
    }

    /// Lends the first bytes that wait in the connection.
    pub fn take_waiting(&mut self, connection: ConnectionId) -> UnreadBytes {
        let mut scratch = take(&mut self.scratch);
        let length = self.net.copy_waiting(connection, &mut scratch);
        UnreadBytes { connection, scratch, length }
    }

    /// Takes back the bytes of [`Connections::take_waiting`], and drops the first `done`. Returns
    /// whether more received bytes can be processed now.
    pub fn put_back(&mut self, mut waiting: UnreadBytes, done: usize) -> bool {
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

    /// Processes the start of the received bytes, and sends the output of TLS. Returns the number
    /// of bytes processed.
    pub fn open(
        &mut self,
        turn: Turn,
        connection: ConnectionId,
        bytes: &mut [u8],
        opening: RecordAction,
    ) -> (usize, TlsEvent) {
        let Some((tls, out, clock)) = self.tls.at_work(connection) else {
            return (bytes.len(), TlsEvent::Bytes);
        };
        let progress = match opening {
            RecordAction::Next => tls.receive(bytes, out),
            RecordAction::More => tls.more(bytes, out),
            RecordAction::Step => {
                clock.set(UnixTime::from_seconds(turn.wall.seconds()));
                tls.work(bytes, out)
            }
        };
        let Some(output) = out.get(..progress.written) else {
            unreachable!("more bytes written than there is room for")
        };
        // If a part of this output is missing, the peer cannot continue the handshake.
        if !output.is_empty() && self.net.send(turn.now, connection, output) < output.len() {
            self.reset(connection);
        }
        (progress.done, progress.event)
    }

    /// Does one step of the connection's handshake.
    pub fn step_in_handshake(&mut self, turn: Turn, connection: ConnectionId) -> Option<TlsEvent> {
        let mut happened = None;
        loop {
            let mut waiting = self.take_waiting(connection);
            let done = match happened {
                Some(_) => 0,
                None => {
                    let (done, event) =
                        self.open(turn, connection, waiting.bytes(), RecordAction::Step);
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

/// Scheduling of sessions.
impl Connections {
    /// Sets the deadline of the connection's session, counted from now. `None`: no deadline.
    pub fn set_deadline(&mut self, now: Instant, connection: ConnectionId, after: Option<Micros>) {
        match after {
            Some(after) => self.deadlines.set(connection.0, now + after),
            None => self.deadlines.cancel(connection.0),
        }
    }

    /// The next connection with an expired deadline.
    #[inline]
    pub fn next_due(&mut self, now: Instant) -> Option<ConnectionId> {
        self.deadlines.next_due(now).map(ConnectionId)
    }

    /// The session of this frame continues in the next resume phase.
    #[inline]
    pub fn resume(&mut self, frame: FrameId) {
        self.ready.resume(frame);
    }

    /// Whether a session waits to continue.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Begins the resume phase.
    #[inline]
    pub fn begin_resuming(&mut self) {
        self.ready.begin_turn();
    }

    /// The next session that continues in this turn.
    #[inline]
    pub fn next_ready(&mut self) -> Option<FrameId> {
        self.ready.next_ready()
    }

    /// Lets `frame`, which waits at no gate, wait for its turn at `gate`. The compute phase resumes
    /// the frame when its turn has come.
    pub fn enter(&mut self, gate: TurnGate, frame: FrameId) {
        self.gates.enter(gate, frame);
    }

    /// The frame that has its turn at the gate.
    #[inline]
    pub fn owner_of(&self, gate: TurnGate) -> Option<FrameId> {
        self.gates.owner(gate)
    }

    /// Whether `frame` has its turn at the gate.
    pub fn has_entered(&self, gate: TurnGate, frame: FrameId) -> bool {
        self.owner_of(gate) == Some(frame)
    }

    /// Notes that `frame` has had its turn at the gate, or gives it up.
    pub fn leave(&mut self, gate: TurnGate, frame: FrameId) {
        self.gates.leave(gate, frame);
    }

    /// The next time at which the connections need a turn even without an event.
    pub fn next_deadline(&self) -> Instant {
        Instant::or_never(self.net.next_deadline())
            .min(Instant::or_never(self.deadlines.next_deadline()))
            .min(self.closing.front().map_or(Instant::NEVER, |(until, _)| *until))
    }
}

/// Limits on the number of connections.
impl Connections {
    /// Begins a turn. `is_low_on_memory`: the machine's memory reserve is in use.
    pub fn begin_turn(&mut self, is_low_on_memory: bool) {
        self.is_low_on_memory = is_low_on_memory;
    }

    /// Whether the machine's memory reserve is in use.
    pub fn is_low_on_memory(&self) -> bool {
        self.is_low_on_memory
    }

    /// Whether a new client must be refused: there are too many connections, or too little memory.
    pub fn is_crowded(&self) -> bool {
        self.net.connection_count() > self.limits.crowd || self.is_low_on_memory
    }

    /// Whether addresses with very many connections must lose some, to make space for new clients.
    pub fn is_tight(&self) -> bool {
        self.net.connection_count() > self.limits.tight
    }
}
