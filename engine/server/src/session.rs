//! Sessions: one for each connection, told of what happens to it.
//!
//! Bytes go to a session where they lie in the received frame. What it does not take, because it waits for the store
//! or for the rest of a line, is kept by the connection and offered again whenever anything has happened to the session:
//! a session needs no buffer, and there is one place where it goes on.

use core::net::IpAddr;

use net::{ConnectionId, Service};
use store::Outcome;
use tasks::FrameId;

use crate::common::{Common, Point};
use crate::engine::Engine;
use crate::services::{Protocol, SERVICES};
use crate::{pop3_service, smtp_service};

/// One connection's session.
pub(crate) struct Session {
    pub(crate) connection: ConnectionId,
    pub(crate) peer: IpAddr,
    pub(crate) talk: Talk,
    pub(crate) peer_half: PeerHalf,
}

/// What is spoken on it.
pub(crate) enum Talk {
    Smtp(smtp_service::Conversation),
    Pop3(pop3_service::Conversation),
}

/// Whether the peer may still send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PeerHalf {
    Open,
    /// It has sent its last byte, which the session may not have taken yet.
    Closed,
}

impl Session {
    fn bytes_arrived(&mut self, bytes: &[u8], common: &mut Common) -> usize {
        match &mut self.talk {
            Talk::Smtp(talk) => {
                talk.with(self.connection, self.peer, common, |session, hands| session.bytes_arrived(bytes, hands))
            }
            Talk::Pop3(talk) => {
                talk.with(self.connection, self.peer, common, |session, hands| session.bytes_arrived(bytes, hands))
            }
        }
    }

    fn woken(&mut self, point: Point, outcome: Outcome, common: &mut Common) {
        match &mut self.talk {
            Talk::Smtp(talk) => talk.woken(self.connection, self.peer, point, outcome, common),
            Talk::Pop3(talk) => talk.woken(self.connection, self.peer, point, outcome, common),
        }
    }

    /// Something may have made room: a session that waited for it goes on.
    fn room(&mut self, common: &mut Common) {
        match &mut self.talk {
            Talk::Smtp(_) => {}
            Talk::Pop3(talk) => talk.room(self.connection, self.peer, common),
        }
    }

    fn deadline_expired(&mut self, common: &mut Common) {
        match &mut self.talk {
            Talk::Smtp(talk) => {
                talk.with(self.connection, self.peer, common, |session, hands| session.deadline_expired(hands))
            }
            Talk::Pop3(talk) => talk.deadline_expired(self.connection, self.peer, common),
        }
    }

    fn stopping(&mut self, common: &mut Common) {
        match &mut self.talk {
            Talk::Smtp(talk) => talk.with(self.connection, self.peer, common, |session, hands| session.stopping(hands)),
            Talk::Pop3(talk) => talk.with(self.connection, self.peer, common, |session, hands| session.stopping(hands)),
        }
    }

    /// Whether nothing but bytes can make the session go on.
    fn waits_for_bytes(&self) -> bool {
        match &self.talk {
            Talk::Smtp(talk) => talk.session.waits_for() == smtp::WaitsFor::Bytes,
            Talk::Pop3(talk) => talk.session.waits_for() == pop3::WaitsFor::Bytes,
        }
    }

    /// A session that found too little room is told when there is more.
    fn ask_for_room(&self, common: &mut Common) {
        let waits = match &self.talk {
            Talk::Smtp(talk) => talk.session.waits_for() == smtp::WaitsFor::SendRoom,
            Talk::Pop3(talk) => talk.session.waits_for() == pop3::WaitsFor::SendRoom,
        };
        if waits {
            common.net.want_room(common.now, self.connection);
        }
    }

    /// The peer will send no more, and the session has taken all it sent.
    fn peer_closed(&mut self, common: &mut Common) {
        match &mut self.talk {
            Talk::Smtp(talk) => {
                talk.with(self.connection, self.peer, common, |session, hands| session.peer_closed(hands))
            }
            Talk::Pop3(talk) => {
                talk.with(self.connection, self.peer, common, |session, hands| session.peer_closed(hands))
            }
        }
    }

    fn resumed(&mut self, common: &mut Common) {
        match &mut self.talk {
            Talk::Smtp(_) => {}
            Talk::Pop3(talk) => talk.resumed(self.connection, self.peer, common),
        }
    }

    /// The connection is gone: what the session held is given back.
    fn ended(mut self, common: &mut Common) {
        self.peer_closed(common);
        common.deadlines.cancel(self.connection.0);
        if let Talk::Pop3(talk) = &mut self.talk {
            talk.ended(self.connection, self.peer, common);
        }
    }
}

impl Engine {
    pub(crate) fn session_begins(&mut self, connection: ConnectionId, service: Service, peer: IpAddr) {
        let Some(service) = SERVICES.get(usize::from(service.0)) else { return };
        let talk = match service.protocol {
            Protocol::Smtp => Talk::Smtp(smtp_service::Conversation::begin(connection, peer, &mut self.common)),
            Protocol::Pop3 => Talk::Pop3(pop3_service::Conversation::begin(connection, peer, &mut self.common)),
        };
        if let Some(place) = self.sessions.get_mut(connection.index()) {
            assert!(place.is_none(), "a connection's slot is taken again only after its session ended");
            *place = Some(Session { connection, peer, talk, peer_half: PeerHalf::Open });
        }
    }

    /// Bytes lie in the frame that has just arrived.
    pub(crate) fn session_bytes_arrived(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let Some((session, common)) = self.session_of(connection.0) else { return };
        let taken = session.bytes_arrived(bytes, common);
        common.net.keep(connection, bytes.get(taken..).unwrap_or_default());
        session.ask_for_room(common);
    }

    /// Offers the session of `frame` what waits for it, as long as it takes something.
    pub(crate) fn session_goes_on(&mut self, frame: FrameId) {
        let Some(session) = self.sessions.get_mut(frame.index()).and_then(Option::as_mut) else { return };
        if session.connection.0 != frame {
            return;
        }
        let common = &mut self.common;
        session.room(common);
        loop {
            let waiting = common.net.copy_waiting(session.connection, self.scratch.as_mut_slice());
            let bytes = self.scratch.get(..waiting).unwrap_or_default();
            let taken = session.bytes_arrived(bytes, common);
            common.net.consumed(session.connection, taken);
            if taken == 0 {
                break;
            }
        }
        if session.peer_half == PeerHalf::Closed && session.waits_for_bytes() {
            session.peer_closed(common);
        }
        session.ask_for_room(common);
    }

    pub(crate) fn session_peer_closed(&mut self, frame: FrameId) {
        if let Some((session, _)) = self.session_of(frame) {
            session.peer_half = PeerHalf::Closed;
            self.session_goes_on(frame);
        }
    }

    pub(crate) fn session_woken(&mut self, frame: FrameId, point: Point, outcome: Outcome) {
        match self.session_of(frame) {
            Some((session, common)) => session.woken(point, outcome, common),
            None => self.common.forget(outcome),
        }
        self.session_goes_on(frame);
    }

    pub(crate) fn session_deadline_expired(&mut self, frame: FrameId) {
        if let Some((session, common)) = self.session_of(frame) {
            session.deadline_expired(common);
        }
        self.session_goes_on(frame);
    }

    pub(crate) fn session_resumed(&mut self, frame: FrameId) {
        if let Some((session, common)) = self.session_of(frame) {
            session.resumed(common);
        }
        self.session_goes_on(frame);
    }

    pub(crate) fn session_stopping(&mut self, index: usize) {
        if let Some(session) = self.sessions.get_mut(index).and_then(Option::as_mut) {
            session.stopping(&mut self.common);
        }
    }

    pub(crate) fn session_ends(&mut self, frame: FrameId) {
        if self.session_of(frame).is_none() {
            return;
        }
        if let Some(session) = self.sessions.get_mut(frame.index()).and_then(Option::take) {
            session.ended(&mut self.common);
        }
    }
}
