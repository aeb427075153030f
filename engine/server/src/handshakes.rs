//! Handshakes of TLS, as the first thing that a session does or once its client asks for it: they wait in a queue of their own, and one goes one step a turn.
//!
//! A step may cost a signature, which can't be cut and takes from 0.1 ms to some milliseconds, by the certificate's key (see `tls`). So whoever needs one
//! passes a gate, first come first served, and goes a step when the turn's segments have left: between two looks at the card established sessions wait for one at the most. What handshakes take of the memory is
//! bounded: beyond that those who come are sent away unheard, and those who stand still have to go (see `pressure`).
//! While a handshake waits for its turn its client's time stands still.
//!
//! Invariants:
//! - A client that has said nothing costs no more than any other connection.
//! - A session holds the gate, or waits at it, exactly while its handshake is [`Stage::Queued`].

use connections::{Channel, Handshakes, TurnGate};
use machine::{Micros, Security};
use sometimes::sometimes;
use tls::Event;

use crate::common::Common;
use crate::session::{Context, GREETING_PATIENCE, Handshake, LOOK, Session, Stage, Talk};

/// The most time that is not counted against a handshake. TCP notices a path that drops long
/// segments silently only by timeouts. They take 15 times the first one, which is three seconds if a SYN was lost (RFC 6298
/// section 5.7).
const NETWORK_PATIENCE: Micros = Micros::from_secs(50);

impl Session {
    /// Whether it is in a handshake.
    pub(crate) fn is_in_handshake(&self) -> bool {
        matches!(self.talk, Talk::Handshake(_))
    }

    /// Whether records may be looked at. The first bytes of a client begin its handshake; when there are too many, it is sent away.
    pub(crate) fn may_hear_records(&mut self, common: &mut Common) -> bool {
        let Talk::Handshake(handshake) = &self.talk else { return true };
        let connection = self.caller.connection;
        if !common.connections.tls().has_begun(connection)
            && !common.connections.tls_mut().begin(connection, self.caller.service)
        {
            common.connections.tls_mut().outcomes_mut().turned_away += 1;
            common.connections.reset(connection);
            return false;
        }
        handshake.stage != Stage::Queued
    }

    /// A record of the handshake is there.
    pub(crate) fn handshake_is_due(&mut self, common: &mut Common) {
        let connection = self.caller.connection;
        let Talk::Handshake(handshake) = &mut self.talk else { return };
        if !common.connections.has_room_for_handshake(connection) {
            handshake.stage = Stage::Room;
            return;
        }
        (handshake.stage, handshake.queued_at) = (Stage::Queued, common.turn.now);
        common.connections.set_deadline(common.turn.now, connection, None);
        common.connections.enter(TurnGate::Handshake, connection.0);
    }

    /// Its turn has come for a step.
    pub(crate) fn handshake_resumed(&mut self, cx: &mut Context<'_>) {
        let common = &mut *cx.common;
        let frame = self.caller.connection.0;
        let Talk::Handshake(handshake) = &mut self.talk else { return };
        if !common.connections.has_entered(TurnGate::Handshake, frame) {
            return;
        }
        (handshake.stage, handshake.looked_at) = (Stage::Bytes, common.turn.now);
        handshake.ends_at = handshake.ends_at + common.turn.now.since(handshake.queued_at);
        common.connections.set_deadline(
            common.turn.now,
            self.caller.connection,
            Some(handshake.ends_at.since(common.turn.now).min(LOOK)),
        );
        let event = common.connections.step_in_handshake(common.turn, self.caller.connection);
        common.connections.leave(TurnGate::Handshake, frame);
        match event {
            Some(Event::Established(agreed)) => {
                if agreed.is_resumed {
                    sometimes!(TicketTaken);
                }
                common.connections.tls_mut().outcomes_mut().was_established(&agreed);
                common.connections.tls_mut().handshake_ended();
                self.speak_within(agreed.protocol, cx);
            }
            Some(Event::Failed(failure)) => {
                sometimes!(HandshakeFailed);
                common.connections.tls_mut().outcomes_mut().has_failed(&failure);
                self.hears_no_more(common);
            }
            _ => {}
        }
    }

    /// TLS is spoken now. Who came for that is greeted, in the protocol that he has chosen; who has asked for it on the way has been, and begins anew.
    fn speak_within(&mut self, choice: Option<&[u8]>, cx: &mut Context<'_>) {
        let caller = self.caller;
        let service = caller.service_entry();
        if service.security == Security::Implicit {
            self.talk = Talk::ToBeGreeted(service.protocol.chosen(choice));
            cx.common.connections.set_deadline(cx.common.turn.now, caller.connection, Some(GREETING_PATIENCE));
        } else {
            self.talk = Talk::secured(service.protocol, caller, cx);
        }
    }

    /// The client has asked for TLS, and was told to begin. Of what he has said in the clear nothing is left: no word that was said before the handshake is obeyed
    /// after it, whoever has put it there.
    #[cold]
    #[inline(never)]
    pub(crate) fn handshake_begins(&mut self, common: &mut Common) {
        let connection = self.caller.connection;
        common.connections.consumed(connection, common.connections.net().waiting_bytes(connection));
        self.caller.channel = Channel::Tls;
        self.talk = Talk::Handshake(Handshake::new(common.turn.now));
        common.connections.set_deadline(common.turn.now, connection, Some(LOOK));
        if self.has_heard_all() {
            common.connections.reset(connection);
        }
    }

    /// Nothing that can be read will come any more: the client has said so, or a record was none, and it was told.
    pub(crate) fn hears_no_more(&mut self, common: &mut Common) {
        if self.is_in_handshake() {
            common.connections.tls_mut().handshake_ended();
            self.talk = Talk::Over;
            common.connections.close(common.turn.now, self.caller);
        } else {
            self.peer_is_done();
        }
    }

    /// Ends a handshake that has used up its time.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_at_handshake(&mut self, common: &mut Common) {
        let connection = self.caller.connection;
        if let Talk::Handshake(handshake) = &mut self.talk {
            let span = common.turn.now.since(core::mem::replace(&mut handshake.looked_at, common.turn.now));
            if common.connections.net().unacknowledged(connection) > 0 && handshake.unacknowledged < NETWORK_PATIENCE {
                handshake.unacknowledged = handshake.unacknowledged + span;
                handshake.ends_at = handshake.ends_at + span;
            }
            if common.turn.now < handshake.ends_at {
                return common.connections.set_deadline(
                    common.turn.now,
                    connection,
                    Some(handshake.ends_at.since(common.turn.now).min(LOOK)),
                );
            }
        }
        self.break_handshake_off(|outcomes| &mut outcomes.late, common);
    }

    /// We break a handshake off: it has had its time, or there is none for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn break_handshake_off(&mut self, count: fn(&mut Handshakes) -> &mut u64, common: &mut Common) {
        self.give_handshake_up(count, common);
        common.connections.reset(self.caller.connection);
    }

    /// The connection is gone in the middle of a handshake, or after it.
    pub(crate) fn tls_ended(&mut self, common: &mut Common) {
        self.give_handshake_up(|outcomes| &mut outcomes.given_up, common);
        common.connections.tls_mut().end(self.caller.connection);
    }

    /// A handshake will never be done, if it is one; this counts it if it had begun.
    fn give_handshake_up(&mut self, count: fn(&mut Handshakes) -> &mut u64, common: &mut Common) {
        let Talk::Handshake(handshake) = &self.talk else { return };
        if handshake.stage == Stage::Queued {
            common.connections.leave(TurnGate::Handshake, self.caller.connection.0);
        }
        if common.connections.tls().has_begun(self.caller.connection) {
            common.connections.tls_mut().handshake_ended();
            *count(common.connections.tls_mut().outcomes_mut()) += 1;
        }
        self.talk = Talk::Over;
    }
}
