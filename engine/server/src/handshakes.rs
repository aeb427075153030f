//! TLS handshakes, at the start of a session or after STARTTLS. They wait in a separate queue, and
//! each turn does one step of one handshake.
//!
//! A step may need a signature, which cannot be split and takes from 0.1 ms to some milliseconds,
//! depending on the certificate's key (see `tls`). So handshakes pass a gate in order, and a step
//! runs after the turn's segments are sent. Established sessions wait for at most one step. The
//! memory of handshakes is bounded. Near the bound, stalled handshakes are ended (see `pressure`).
//! At the bound, new clients are refused without a handshake. The time for which a handshake waits
//! for its turn does not count against its deadline.
//!
//! Invariants:
//! - A client that has sent nothing costs as little as a connection without TLS.
//! - A session holds the gate, or waits at it, exactly while its handshake is [`Stage::Queued`].

use connections::{Channel, Handshakes, TurnGate};
use machine::{Micros, Security};
use sometimes::sometimes;
use tls::TlsEvent;

use crate::parts::Parts;
use crate::session::{Context, GREETING_PATIENCE, LOOK, Session, Stage, Talk, TlsHandshake};

/// The maximum time that does not count against a handshake. If a path silently drops long
/// segments, TCP notices only by timeouts. Together they take 15 times the first timeout, which is
/// three seconds if a SYN was lost (RFC 6298 section 5.7).
const NETWORK_PATIENCE: Micros = Micros::from_secs(50);

impl Session {
    /// Whether the session is in a handshake.
    pub(crate) fn is_in_handshake(&self) -> bool {
        matches!(self.talk, Talk::Handshake(_))
    }

    /// Whether records may be processed. The first bytes of a client begin its handshake. A client
    /// above the maximum number of handshakes is refused.
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

    /// Queues the handshake for a step, because a handshake record has arrived.
    pub(crate) fn handshake_is_due(&mut self, parts: &mut Parts) {
        let connection = self.caller.connection;
        let Talk::Handshake(handshake) = &mut self.talk else {
            unreachable!("only a handshake waits for a step")
        };
        if !parts.connections.has_room_for_handshake(connection) {
            handshake.stage = Stage::Room;
            return;
        }
        (handshake.stage, handshake.queued_at) = (Stage::Queued, parts.turn.now);
        parts.set_deadline(connection, None);
        parts.connections.enter(TurnGate::Handshake, connection.0);
    }

    /// Does a step of the handshake, if the handshake has its turn.
    pub(crate) fn handshake_resumed(&mut self, cx: &mut Context<'_>) {
        let parts = &mut *cx.parts;
        let frame = self.caller.connection.0;
        let Talk::Handshake(handshake) = &mut self.talk else {
            unreachable!("the caller has found a handshake in progress")
        };
        if !parts.connections.has_entered(TurnGate::Handshake, frame) {
            return;
        }
        (handshake.stage, handshake.looked_at) = (Stage::Bytes, parts.turn.now);
        handshake.ends_at = handshake.ends_at + parts.turn.now.since(handshake.queued_at);
        parts.set_deadline(
            self.caller.connection,
            Some(handshake.ends_at.since(parts.turn.now).min(LOOK)),
        );
        let event = parts.connections.step_in_handshake(parts.turn, self.caller.connection);
        parts.connections.leave(TurnGate::Handshake, frame);
        match event {
            Some(TlsEvent::Established(agreed)) => {
                if agreed.is_resumed {
                    sometimes!(TicketTaken);
                }
                parts.connections.tls_mut().outcomes_mut().was_established(&agreed);
                parts.connections.tls_mut().handshake_ended();
                self.speak_within(agreed.protocol, cx);
            }
            Some(TlsEvent::Failed(failure)) => {
                sometimes!(HandshakeFailed);
                parts.connections.tls_mut().outcomes_mut().has_failed(&failure);
                self.hears_no_more(parts);
            }
            _ => {}
        }
    }

    /// Begins the protocol within TLS. With implicit TLS the client is greeted, in the protocol
    /// that it has chosen. After STARTTLS it was greeted already, and the protocol starts again.
    fn speak_within(&mut self, choice: Option<&[u8]>, cx: &mut Context<'_>) {
        let caller = self.caller;
        let service = caller.service_entry();
        if service.security == Security::Implicit {
            self.talk = Talk::ToBeGreeted(service.protocol.chosen(choice));
            cx.parts.set_deadline(caller.connection, Some(GREETING_PATIENCE));
        } else {
            self.talk = Talk::secured(service.protocol, caller, cx);
        }
    }

    /// Begins the handshake that the client has asked for. All waiting plaintext is dropped, so no
    /// command that was injected before the handshake is obeyed after it.
    #[cold]
    #[inline(never)]
    pub(crate) fn handshake_begins(&mut self, parts: &mut Parts) {
        let connection = self.caller.connection;
        parts.connections.consumed(connection, parts.connections.net().waiting_bytes(connection));
        self.caller.channel = Channel::Tls;
        self.talk = Talk::Handshake(TlsHandshake::new(parts.turn.now));
        parts.set_deadline(connection, Some(LOOK));
        if self.has_heard_all() {
            parts.connections.reset(connection);
        }
    }

    /// Ends the input: the client has closed its side, or a record was invalid and an alert was
    /// sent.
    pub(crate) fn hears_no_more(&mut self, parts: &mut Parts) {
        if self.is_in_handshake() {
            parts.connections.tls_mut().handshake_ended();
            self.talk = Talk::Over;
            parts.connections.close(parts.turn.now, self.caller);
        } else {
            self.peer_is_done();
        }
    }

    /// Ends a handshake when its time is up. Time with unacknowledged bytes does not count.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_at_handshake(&mut self, parts: &mut Parts) {
        let connection = self.caller.connection;
        if let Talk::Handshake(handshake) = &mut self.talk {
            let span =
                parts.turn.now.since(core::mem::replace(&mut handshake.looked_at, parts.turn.now));
            if parts.connections.net().unacknowledged(connection) > 0
                && handshake.unacknowledged < NETWORK_PATIENCE
            {
                handshake.unacknowledged = handshake.unacknowledged + span;
                handshake.ends_at = handshake.ends_at + span;
            }
            if parts.turn.now < handshake.ends_at {
                return parts.set_deadline(
                    connection,
                    Some(handshake.ends_at.since(parts.turn.now).min(LOOK)),
                );
            }
        }
        self.break_handshake_off(|outcomes| &mut outcomes.late, parts);
    }

    /// Aborts a handshake that has no time or no resources left.
    #[cold]
    #[inline(never)]
    pub(crate) fn break_handshake_off(
        &mut self,
        count: fn(&mut Handshakes) -> &mut u64,
        parts: &mut Parts,
    ) {
        self.give_handshake_up(count, parts);
        parts.connections.reset(self.caller.connection);
    }

    /// Releases the TLS state of a connection that has ended, during or after a handshake.
    pub(crate) fn tls_ended(&mut self, parts: &mut Parts) {
        self.give_handshake_up(|outcomes| &mut outcomes.given_up, parts);
        parts.connections.tls_mut().end(self.caller.connection);
    }

    /// Gives up the handshake, if there is one, and counts it if it had begun.
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
