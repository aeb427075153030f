//! When something runs short: who holds of it and stands still has to go.
//!
//! Each limit of the machine is one that strangers could exhaust, by opening connections and doing nothing with them. As
//! long as there is enough for everybody, everybody has the time that the RFCs give him. Once there is not, a hand goes
//! around the sessions, marks how far each has come, and ends those that it finds where they were [`PATIENCE`] ago. It
//! costs nothing before it is needed, and a session that waits for us is never touched.

use machine::{Instant, Micros};

use crate::common::Common;
use crate::engine::Engine;
use crate::session::{Session, WaitsFor};

/// How long a session may stand still while there is not enough for all.
const PATIENCE: Micros = Micros::from_secs(10);
/// Sessions that are looked at in one turn.
const LOOKS_PER_TURN: usize = 256;
/// The time between two turns that look, if nothing else brings one.
const LOOK_INTERVAL: Micros = Micros::from_millis(100);

/// How far a session had come, and when that was seen first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes_moved: u32,
    since: Instant,
}

/// What there is not enough of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shortage {
    /// Buffers: held by who does not read, or does not finish what it writes.
    Buffers,
    /// Records of SMTP transactions.
    Transactions,
    /// Connections.
    Connections,
}

impl Engine {
    /// Looks at some sessions if anything runs short.
    pub(crate) fn relieve(&mut self) {
        let shortage = Shortage::of(&self.common);
        self.next_look = shortage.map(|_| self.common.now + LOOK_INTERVAL);
        let Some(shortage) = shortage else { return };
        for _ in 0..LOOKS_PER_TURN.min(self.sessions.len()) {
            self.hand = (self.hand + 1) % self.sessions.len();
            let Some(session) = self.sessions.get_mut(self.hand).and_then(Option::as_mut) else { continue };
            if shortage.is_felt_by(session, &self.common) && session.stands_still(&self.common) {
                let frame = session.caller.connection.0;
                self.tell(frame, |session, common| session.has_to_go(shortage, common));
            }
        }
    }
}

impl Shortage {
    fn of(common: &Common) -> Option<Shortage> {
        if common.net.pools().are_short() {
            Some(Shortage::Buffers)
        } else if common.transactions.is_empty() {
            Some(Shortage::Transactions)
        } else if common.is_crowded() {
            Some(Shortage::Connections)
        } else {
            None
        }
    }

    /// Whether the shortage would be less without the session.
    fn is_felt_by(self, session: &Session, common: &Common) -> bool {
        match self {
            Shortage::Buffers => common.net.borrows(session.caller.connection),
            Shortage::Transactions => session.has_transaction(),
            Shortage::Connections => !session.is_logged_in(),
        }
    }
}

impl Session {
    /// Whether nothing has moved since it was marked, and that is long ago. Marks it otherwise.
    fn stands_still(&mut self, common: &Common) -> bool {
        if matches!(self.waits_for(), WaitsFor::Us | WaitsFor::Turn) {
            self.mark = None;
            return false;
        }
        let bytes_moved = common.net.bytes_moved(self.caller.connection);
        match self.mark {
            Some(mark) if mark.bytes_moved == bytes_moved => common.now.since(mark.since) >= PATIENCE,
            _ => {
                self.mark = Some(Mark { bytes_moved, since: common.now });
                false
            }
        }
    }

    fn has_to_go(&mut self, shortage: Shortage, common: &mut Common) {
        // Who does not read would not hear a goodbye, and it would take a buffer more.
        match shortage {
            Shortage::Buffers => common.break_off(self.caller.connection),
            Shortage::Transactions | Shortage::Connections => self.deadline_expired(common),
        }
        self.mark = None;
    }
}
