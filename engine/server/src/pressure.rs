//! Load shedding: when a resource runs short, sessions that hold some of it and make no progress
//! are ended.
//!
//! External clients could exhaust each limit of the machine by opening connections and doing
//! nothing. While resources suffice, each session has the time that the RFCs give. When a resource
//! is short, a clock hand goes around the sessions. It marks the progress of each session, and ends
//! a session without progress since its mark. Without a shortage this costs nothing.
//!
//! A session that waits for the server is spared, with one exception: it has a message for accounts
//! of several cores. Such a session holds buffers of one core while it waits for buffers of
//! another, so two of them could wait for each other for ever. Places for messages cannot cause
//! this, because they are taken core by core (crate `shards`).
//!
//! Connections are divided among addresses and networks ([`Crowding`]). Before a new client must be
//! refused, the addresses with the most connections lose their idle connections at once. Commands
//! without effect, such as NOOP, do not make a connection busy.

use connections::crowding::{Crowding, LOOK_INTERVAL, PATIENCE, ProgressMark, Shedding};
use inbound::Inbound;
use machine::{Instant, Machine, Micros};
use sometimes::sometimes;

use crate::parts::Parts;
use crate::session::{Context, Session, Sessions, WaitsFor};

/// The patience while handshakes or memory are short: a session that holds some and makes no
/// progress for this time must end.
const PATIENCE_IN_NEED: Micros = Micros::from_secs(1);
/// The patience when almost no buffers are left. After two losses, a client has sent a segment
/// again within three seconds (RFC 6298 section 5).
const PATIENCE_FOR_LOSSES: Micros = Micros::from_secs(3);
/// Buffers are short when at most one in this many is left.
const BUFFERS_PARTS: usize = 8;
/// Buffers are almost gone when at most one in this many is left.
const ALL_BUFFERS_PARTS: usize = 64;
/// Sessions that are ended in one turn while the memory reserve is in use.
const SHED_PER_TURN: usize = 64;
/// The time between two turns that end sessions, if no event causes a turn.
const SHED_INTERVAL: Micros = Micros::from_millis(10);
/// Sessions that the clock hand passes in one turn.
const LOOKS_PER_TURN: usize = 256;

/// A resource that is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shortage {
    /// Buffers of clients that do not read, or do not complete a command or message.
    Buffers,
    /// Buffers, which are almost gone.
    AllBuffers,
    /// The buffers or places of a store. Messages use them while they are written into the store.
    BodyBuffers,
    /// Records of SMTP transactions.
    Transactions,
    /// TLS handshakes.
    Handshakes,
    /// Memory that clients make the core keep. It is held by clients above the share of their
    /// address or network.
    Memory,
    /// Connections.
    Connections,
}

/// Load shedding in this core.
#[derive(Default)]
pub(crate) struct LoadShedder {
    /// The clock hand: the slot of the session that was examined last.
    hand: usize,
    /// The addresses with too many connections.
    crowding: Crowding,
    /// The sessions that end next while the memory reserve is in use.
    shedding: Shedding,
    /// The next time at which to wake the other cores, while the memory reserve is in use.
    wake_others_at: Instant,
    /// Whether a resource was short at the end of the last turn.
    runs_short: bool,
}

impl LoadShedder {
    /// Examines some sessions if a resource was short at the end of the last turn, and ends some.
    pub(crate) fn relieve(&mut self, sessions: &mut Sessions, cx: &mut Context<'_>) {
        if cx.parts.connections.is_low_on_memory() {
            return self.shed(sessions, cx);
        }
        self.shedding = Shedding::default();
        if !self.runs_short {
            return;
        }
        let now = cx.parts.turn.now;
        let count = || cx.inbound.rate_limits().share_max();
        let share = self.crowding.share(cx.parts.turn, &cx.parts.connections, count);
        for _ in 0..LOOKS_PER_TURN.min(sessions.slots()) {
            let slot = self.next_slot(sessions.slots());
            let Some(session) = sessions.in_slot(slot) else { continue };
            let frame = session.caller.connection.0;
            if share.is_some_and(|share| session.is_one_of_too_many(share, cx)) {
                self.crowding.thins(now);
                sessions
                    .tell(frame, cx, |session, cx| session.has_to_go(Shortage::Connections, cx));
                continue;
            }
            let Some(shortage) = Shortage::made_worse_by(session, cx.parts, cx.inbound) else {
                continue;
            };
            if shortage == Shortage::Connections && self.crowding.makes_room(now) {
                continue;
            }
            if session.stands_still(shortage, cx.parts) {
                sessions.tell(frame, cx, |session, cx| session.has_to_go(shortage, cx));
            }
        }
    }

    /// Ends some of the sessions that hold the most memory. If there are few of them, sessions that
    /// hold less memory end next. The machine reports in the next turn whether this was enough.
    #[cold]
    fn shed(&mut self, sessions: &mut Sessions, cx: &mut Context<'_>) {
        let mut ended = 0;
        for slot in 0..sessions.slots() {
            let Some(session) = sessions.in_slot(slot) else { continue };
            if self.shedding.ends(session.http().map_or(0, |http| http.charge().bytes())) {
                sometimes!(SessionSentAway);
                let frame = session.caller.connection.0;
                sessions.tell(frame, cx, |session, cx| {
                    cx.parts.connections.reset(session.caller.connection)
                });
                ended += 1;
            }
            if ended == SHED_PER_TURN {
                return;
            }
        }
        self.shedding.goes_on();
    }

    /// Wakes the other cores while the reserve is in use: they share the memory, and may sleep.
    pub(crate) fn wake_others(&mut self, parts: &Parts, machine: &mut impl Machine) {
        if parts.connections.is_low_on_memory() && parts.turn.now >= self.wake_others_at {
            self.wake_others_at = parts.turn.now + LOOK_INTERVAL;
            parts.links.others().for_each(|core| machine.wake(core));
        }
    }

    /// Checks for shortages, for the next turn.
    pub(crate) fn look_for_shortages(&mut self, parts: &Parts, inbound: &Inbound) {
        self.runs_short = Shortage::is_any(parts, inbound) || parts.connections.is_tight();
    }

    /// The time at which to examine sessions again, if no event causes an earlier turn.
    pub(crate) fn next_deadline(&self, parts: &Parts) -> Instant {
        let now = parts.turn.now;
        match () {
            () if parts.connections.is_low_on_memory() => now + SHED_INTERVAL,
            () if self.runs_short => now + LOOK_INTERVAL,
            () => Instant::NEVER,
        }
    }

    /// The slot to examine next, of `slots`.
    fn next_slot(&mut self, slots: usize) -> usize {
        self.hand = (self.hand + 1) % slots;
        self.hand
    }
}

impl Shortage {
    /// All shortages, the worst first.
    const ALL: [Shortage; 7] = [
        Shortage::AllBuffers,
        Shortage::Buffers,
        Shortage::BodyBuffers,
        Shortage::Transactions,
        Shortage::Handshakes,
        Shortage::Memory,
        Shortage::Connections,
    ];

    fn is_any(parts: &Parts, inbound: &Inbound) -> bool {
        // If buffers are almost gone, they are also short.
        Shortage::ALL.iter().skip(1).any(|shortage| shortage.is_there(parts, inbound))
    }

    /// The worst shortage among the resources that the session holds.
    fn made_worse_by(session: &Session, parts: &Parts, inbound: &Inbound) -> Option<Shortage> {
        let mut all = Shortage::ALL.into_iter();
        all.find(|shortage| {
            shortage.is_there(parts, inbound) && shortage.is_felt_by(session, parts)
        })
    }

    fn is_there(self, parts: &Parts, inbound: &Inbound) -> bool {
        match self {
            Shortage::AllBuffers => {
                parts.connections.net().pools().are_down_to_one_in(ALL_BUFFERS_PARTS)
            }
            Shortage::Buffers => parts.connections.net().pools().are_down_to_one_in(BUFFERS_PARTS),
            Shortage::BodyBuffers => parts.store.is_short_of_buffers(),
            Shortage::Transactions => inbound.is_without_transactions(),
            Shortage::Handshakes => parts.connections.tls().is_busy(),
            Shortage::Memory => parts.memory.is_short(),
            Shortage::Connections => parts.connections.is_crowded(),
        }
    }

    fn patience(self) -> Micros {
        match self {
            // A handshake waits only for the client's program, never for its user.
            Shortage::Handshakes | Shortage::Memory => PATIENCE_IN_NEED,
            Shortage::AllBuffers => PATIENCE_FOR_LOSSES,
            _ => PATIENCE,
        }
    }

    /// Whether the session holds some of the resource.
    fn is_felt_by(self, session: &Session, parts: &Parts) -> bool {
        match self {
            Shortage::AllBuffers => {
                parts.connections.net().borrows_scarce(ALL_BUFFERS_PARTS, session.caller.connection)
            }
            Shortage::Buffers => {
                parts.connections.net().borrows_scarce(BUFFERS_PARTS, session.caller.connection)
            }
            Shortage::BodyBuffers => {
                session.smtp().is_some_and(|talk| talk.holds_scarce_space(&parts.store))
            }
            Shortage::Transactions => session.smtp().is_some_and(|talk| talk.has_transaction()),
            Shortage::Handshakes => {
                session.is_in_handshake()
                    && parts.connections.tls().has_begun(session.caller.connection)
            }
            Shortage::Memory => session.http().is_some_and(|http| {
                parts.memory.is_above_share(http.charge(), session.caller.address)
            }),
            Shortage::Connections => !session.is_logged_in(),
        }
    }
}

impl Session {
    /// Whether the session has made no progress for the patience of this shortage. Otherwise marks
    /// new progress. While connections are short, an idle session counts as without progress,
    /// whatever its client sends.
    fn stands_still(&mut self, shortage: Shortage, parts: &Parts) -> bool {
        let waits_for_us = matches!(self.waits_for(), WaitsFor::Us | WaitsFor::Turn)
            && !self.smtp().is_some_and(|talk| talk.holds_and_waits(&parts.store));
        if waits_for_us || self.is_to_be_greeted() {
            self.mark = None;
            return false;
        }
        let bytes_moved = match shortage {
            Shortage::Connections if self.is_idle(&parts.connections) => 0,
            _ => parts.connections.net().bytes_moved(self.caller.connection),
        };
        let now = ProgressMark::of(bytes_moved, parts.turn.now);
        match self.mark.and_then(|mark| mark.unchanged_for(now)) {
            Some(stood) => stood >= shortage.patience(),
            None => {
                self.mark = Some(now);
                false
            }
        }
    }

    fn has_to_go(&mut self, shortage: Shortage, cx: &mut Context<'_>) {
        sometimes!(SessionSentAway);
        // If buffers are short, the session ends without a reply: a reply would need a buffer, and
        // the client may not read it.
        match shortage {
            _ if self.is_in_handshake() => {
                self.break_handshake_off(|outcomes| &mut outcomes.late, cx.parts)
            }
            Shortage::Buffers | Shortage::AllBuffers | Shortage::Handshakes => {
                cx.parts.connections.reset(self.caller.connection);
            }
            Shortage::BodyBuffers
                if self.smtp().is_some_and(|talk| talk.give_up_message(&mut cx.parts.store)) => {}
            Shortage::BodyBuffers
            | Shortage::Transactions
            | Shortage::Memory
            | Shortage::Connections => self.deadline_expired(cx),
        }
        self.mark = None;
    }
}
