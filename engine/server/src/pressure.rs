//! When something runs short: who holds of it and stands still has to go.
//!
//! Each limit of the machine is one that strangers could exhaust, by opening connections and doing
//! nothing with them. As long as there is enough for everybody, everybody has the time that the
//! RFCs give. Once there is not, a hand goes around the sessions, marks how far each has come, and
//! ends those that it finds where they were a while ago. It costs nothing before it is needed, and
//! a session that waits for us is never touched; but for one with a message for accounts of several
//! cores: it holds buffers of one while it waits for another's, and two such could wait for each
//! other for ever. Of places for messages that cannot happen: they are taken core by core (crate
//! `shards`).
//!
//! Connections are shared by addresses and networks (`crowding`). Before a new client has to be
//! sent away, those that have the most lose their idle ones, at once and whatever they say:
//! commands that lead to nothing keep no connection.

use inbound::Inbound;
use machine::{Instant, Micros};
use sometimes::sometimes;

use crate::common::Common;
use crate::crowding::{LOOK_INTERVAL, Mark, PATIENCE, Shedding};
use crate::engine::Engine;
use crate::session::{Context, Session, WaitsFor};

/// [`PATIENCE`] while there is next to nothing left, and sessions that do go on have to stop.
const PATIENCE_IN_NEED: Micros = Micros::from_secs(1);
/// Sessions that are ended in one turn while the machine's reserve of memory is touched.
const SHED_PER_TURN: usize = 64;
/// The time between two turns that end some, if nothing else brings one.
const SHED_INTERVAL: Micros = Micros::from_millis(10);
/// Sessions that are looked at in one turn.
const LOOKS_PER_TURN: usize = 256;

/// What there is not enough of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shortage {
    /// Buffers: held by who does not read, or does not finish what it writes.
    Buffers,
    /// The same, and there is next to nothing left.
    AllBuffers,
    /// A store's buffers, or its places: held by letters on their way into it.
    BodyBuffers,
    /// Records of SMTP transactions.
    Transactions,
    /// Handshakes of TLS.
    Handshakes,
    /// What clients make the core keep: held by those whose address or network has more than its
    /// share.
    Memory,
    /// Connections.
    Connections,
}

impl Engine {
    /// Looks at some sessions if anything runs short.
    pub(crate) fn relieve(&mut self) {
        if self.common.connections.is_low_on_memory() {
            return self.shed();
        }
        self.relief.shedding = Shedding::default();
        if !self.relief.runs_short {
            return;
        }
        let share = self.relief.crowding.share(&self.common, self.services.inbound.strangers());
        for _ in 0..LOOKS_PER_TURN.min(self.sessions.len()) {
            let slot = self.relief.next_slot(self.sessions.len());
            let Some(session) = self.sessions.get_mut(slot).and_then(Option::as_mut) else { continue };
            if share.is_some_and(|share| session.is_one_of_too_many(share, &mut self.services.with(&mut self.common))) {
                self.relief.crowding.thins(self.common.turn.now);
                let frame = session.caller.connection.0;
                self.tell(frame, |session, cx| session.has_to_go(Shortage::Connections, cx));
                continue;
            }
            let Some(shortage) = Shortage::made_worse_by(session, &self.common, &self.services.inbound) else {
                continue;
            };
            if shortage == Shortage::Connections && self.relief.crowding.makes_room(self.common.turn.now) {
                continue;
            }
            if session.stands_still(shortage, &self.common) {
                let frame = session.caller.connection.0;
                self.tell(frame, |session, cx| session.has_to_go(shortage, cx));
            }
        }
    }

    /// Ends some of the sessions that keep most, and lowers the mark when there are few of these.
    /// The machine says in the next turn whether that was enough.
    #[cold]
    fn shed(&mut self) {
        let mut ended = 0;
        for index in 0..self.sessions.len() {
            let Some(session) = self.sessions.get(index).and_then(Option::as_ref) else { continue };
            if self.relief.shedding.ends(session.http().map_or(0, |http| http.charge().bytes())) {
                sometimes!(SessionSentAway);
                let frame = session.caller.connection.0;
                self.tell(frame, |session, cx| cx.common.connections.reset(session.caller.connection));
                ended += 1;
            }
            if ended == SHED_PER_TURN {
                return;
            }
        }
        self.relief.shedding.goes_on();
    }

    /// Whether anything runs short.
    pub(crate) fn is_short(&self) -> bool {
        Shortage::is_any(&self.common, &self.services.inbound) || self.common.connections.is_tight()
    }

    /// When to look at sessions again, if nothing else brings a turn before.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        match () {
            () if self.common.connections.is_low_on_memory() => Some(self.common.turn.now + SHED_INTERVAL),
            () => self.relief.runs_short.then(|| self.common.turn.now + LOOK_INTERVAL),
        }
    }
}

impl Shortage {
    /// The worst first.
    const ALL: [Shortage; 7] = [
        Shortage::AllBuffers,
        Shortage::Buffers,
        Shortage::BodyBuffers,
        Shortage::Transactions,
        Shortage::Handshakes,
        Shortage::Memory,
        Shortage::Connections,
    ];

    fn is_any(common: &Common, inbound: &Inbound) -> bool {
        // Where all buffers are gone, buffers run short.
        Shortage::ALL.iter().skip(1).any(|shortage| shortage.is_there(common, inbound))
    }

    /// The worst shortage that would be less without the session.
    fn made_worse_by(session: &Session, common: &Common, inbound: &Inbound) -> Option<Shortage> {
        let mut all = Shortage::ALL.into_iter();
        all.find(|shortage| shortage.is_there(common, inbound) && shortage.is_felt_by(session, common))
    }

    fn is_there(self, common: &Common, inbound: &Inbound) -> bool {
        match self {
            Shortage::AllBuffers => common.connections.net().pools().are_down_to_one_in(64),
            Shortage::Buffers => common.connections.net().pools().are_down_to_one_in(8),
            Shortage::BodyBuffers => common.store.is_short_of_buffers(),
            Shortage::Transactions => inbound.is_without_transactions(),
            Shortage::Handshakes => common.connections.tls().is_busy(),
            Shortage::Memory => common.memory.is_short(),
            Shortage::Connections => common.connections.is_crowded(),
        }
    }

    fn patience(self) -> Micros {
        match self {
            // What a handshake waits for is a client's program, never a person.
            Shortage::AllBuffers | Shortage::Handshakes | Shortage::Memory => PATIENCE_IN_NEED,
            _ => PATIENCE,
        }
    }

    /// Whether the session holds of what there is not enough of.
    fn is_felt_by(self, session: &Session, common: &Common) -> bool {
        match self {
            Shortage::Buffers | Shortage::AllBuffers => common.connections.net().borrows(session.caller.connection),
            Shortage::BodyBuffers => session.holds_what_is_short(&common.store),
            Shortage::Transactions => session.has_transaction(),
            Shortage::Handshakes => {
                session.is_in_handshake() && common.connections.tls().has_begun(session.caller.connection)
            }
            Shortage::Memory => {
                session.http().is_some_and(|http| common.memory.is_above_share(http.charge(), session.caller.address))
            }
            Shortage::Connections => !session.is_logged_in(),
        }
    }
}

impl Session {
    /// Whether nothing has moved since it was marked, and that is as long ago as the patience in
    /// this shortage. Marks it otherwise. Where connections run short, nothing moves in an idle
    /// one, whatever its client says.
    fn stands_still(&mut self, shortage: Shortage, common: &Common) -> bool {
        let waits_for_us =
            matches!(self.waits_for(), WaitsFor::Us | WaitsFor::Turn) && !self.holds_and_waits(&common.store);
        if waits_for_us || self.is_to_be_greeted() {
            self.mark = None;
            return false;
        }
        let bytes_moved = match shortage {
            Shortage::Connections if self.is_idle(&common.connections) => 0,
            _ => common.connections.net().bytes_moved(self.caller.connection),
        };
        let now = Mark::of(bytes_moved, common.turn.now);
        match self.mark.and_then(|mark| mark.stands_since(now)) {
            Some(stood) => stood >= shortage.patience(),
            None => {
                self.mark = Some(now);
                false
            }
        }
    }

    fn has_to_go(&mut self, shortage: Shortage, cx: &mut Context<'_>) {
        sometimes!(SessionSentAway);
        // Who does not read would not hear a goodbye, and it would take a buffer more.
        match shortage {
            _ if self.is_in_handshake() => self.break_handshake_off(|outcomes| &mut outcomes.late, cx.common),
            Shortage::Buffers | Shortage::AllBuffers | Shortage::Handshakes => {
                cx.common.connections.reset(self.caller.connection);
            }
            Shortage::BodyBuffers if self.give_up_letter(&mut cx.common.store) => {}
            Shortage::BodyBuffers | Shortage::Transactions | Shortage::Memory | Shortage::Connections => {
                self.deadline_expired(cx)
            }
        }
        self.mark = None;
    }
}
