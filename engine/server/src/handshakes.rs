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

use crate::parts::Parts;
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
    pub(crate) fn may_hear_records(&mut self, parts: &mut Parts) -> bool {
        let Talk::Handshake(handshake) = &self.talk else { return true };
        let connection = self.caller.connection;
        if !parts.connections.tls().has_begun(connection)
            && !parts.connections.tls_mut().begin(connection, self.caller.service)
        {
            parts.connections.tls_mut().outcomes_mut().turned_away += 1;
            parts.connections.reset(connection);
            return false;
        }
        handshake.stage != Stage::Queued
    }

    /// A record of the handshake is there.
    pub(crate) fn handshake_is_due(&mut self, parts: &mut Parts) {
        let connection = self.caller.connection;
        let Talk::Handshake(handshake) = &mut self.talk else { unreachable!("only a handshake has such records") };
        if !parts.connections.has_room_for_handshake(connection) {
            handshake.stage = Stage::Room;
            return;
        }
        (handshake.stage, handshake.queued_at) = (Stage::Queued, parts.turn.now);
        parts.connections.set_deadline(parts.turn.now, connection, None);
        parts.connections.enter(TurnGate::Handshake, connection.0);
    }

    /// Its turn has come for a step.
    pub(crate) fn handshake_resumed(&mut self, cx: &mut Context<'_>) {
        let parts = &mut *cx.parts;
        let frame = self.caller.connection.0;
        let Talk::Handshake(handshake) = &mut self.talk else { unreachable!("it is in a handshake") };
        if !parts.connections.has_entered(TurnGate::Handshake, frame) {
            return;
        }
        (handshake.stage, handshake.looked_at) = (Stage::Bytes, parts.turn.now);
        handshake.ends_at = handshake.ends_at + parts.turn.now.since(handshake.queued_at);
        parts.connections.set_deadline(
            parts.turn.now,
            self.caller.connection,
            Some(handshake.ends_at.since(parts.turn.now).min(LOOK)),
        );
        let event = parts.connections.step_in_handshake(parts.turn, self.caller.connection);
        parts.connections.leave(TurnGate::Handshake, frame);
        match event {
            Some(Event::Established(agreed)) => {
                if agreed.is_resumed {
                    sometimes!(TicketTaken);
                }
                parts.connections.tls_mut().outcomes_mut().was_established(&agreed);
                parts.connections.tls_mut().handshake_ended();
                self.speak_within(agreed.protocol, cx);
            }
            Some(Event::Failed(failure)) => {
                sometimes!(HandshakeFailed);
                parts.connections.tls_mut().outcomes_mut().has_failed(&failure);
                self.hears_no_more(parts);
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
            cx.parts.connections.set_deadline(cx.parts.turn.now, caller.connection, Some(GREETING_PATIENCE));
        } else {
            self.talk = Talk::secured(service.protocol, caller, cx);
        }
    }

    /// The client has asked for TLS, and was told to begin. Of what he has said in the clear nothing is left: no word that was said before the handshake is obeyed
    /// after it, whoever has put it there.
    #[cold]
    #[inline(never)]
    pub(crate) fn handshake_begins(&mut self, parts: &mut Parts) {
        let connection = self.caller.connection;
        parts.connections.consumed(connection, parts.connections.net().waiting_bytes(connection));
        self.caller.channel = Channel::Tls;
        self.talk = Talk::Handshake(Handshake::new(parts.turn.now));
        parts.connections.set_deadline(parts.turn.now, connection, Some(LOOK));
        if self.has_heard_all() {
            parts.connections.reset(connection);
        }
    }

    /// Nothing that can be read will come any more: the client has said so, or a record was none, and it was told.
    pub(crate) fn hears_no_more(&mut self, parts: &mut Parts) {
        if self.is_in_handshake() {
            parts.connections.tls_mut().handshake_ended();
            self.talk = Talk::Over;
            parts.connections.close(parts.turn.now, self.caller);
        } else {
            self.peer_is_done();
        }
    }

    /// Ends a handshake that has used up its time.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_at_handshake(&mut self, parts: &mut Parts) {
        let connection = self.caller.connection;
        if let Talk::Handshake(handshake) = &mut self.talk {
            let span = parts.turn.now.since(core::mem::replace(&mut handshake.looked_at, parts.turn.now));
            if parts.connections.net().unacknowledged(connection) > 0 && handshake.unacknowledged < NETWORK_PATIENCE {
                handshake.unacknowledged = handshake.unacknowledged + span;
                handshake.ends_at = handshake.ends_at + span;
            }
            if parts.turn.now < handshake.ends_at {
                return parts.connections.set_deadline(
                    parts.turn.now,
                    connection,
                    Some(handshake.ends_at.since(parts.turn.now).min(LOOK)),
                );
            }
        }
        self.break_handshake_off(|outcomes| &mut outcomes.late, parts);
    }

    /// We break a handshake off: it has had its time, or there is none for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn break_handshake_off(&mut self, count: fn(&mut Handshakes) -> &mut u64, parts: &mut Parts) {
        self.give_handshake_up(count, parts);
        parts.connections.reset(self.caller.connection);
    }

    /// The connection is gone in the middle of a handshake, or after it.
    pub(crate) fn tls_ended(&mut self, parts: &mut Parts) {
        self.give_handshake_up(|outcomes| &mut outcomes.given_up, parts);
        parts.connections.tls_mut().end(self.caller.connection);
    }

    /// A handshake will never be done, if it is one; this counts it if it had begun.
    fn give_handshake_up(&mut self, count: fn(&mut Handshakes) -> &mut u64, parts: &mut Parts) {
        let Talk::Handshake(handshake) = &self.talk else { return };
        if handshake.stage == Stage::Queued {
            parts.connections.leave(TurnGate::Handshake, self.caller.connection.0);
        }
        if parts.connections.tls().has_begun(self.caller.connection) {
            parts.connections.tls_mut().handshake_ended();
            *count(parts.connections.tls_mut().outcomes_mut()) += 1;
        }
        self.talk = Talk::Over;
    }
}
