//! What happens to a connection goes to its owner, and what comes of what was asked to the session
//! that has asked.
//!
//! Invariant: a session is told by the frame of its connection, whose generation says whether it is
//! still the same. One that has gone is told nothing.

use core::net::IpAddr;

use certificates::Replaced;
use connections::{Caller, Channel, Owner, Stir};
use machine::{SERVICES, Security};
use net::{ConnectionId, Event, Service};
use resolver::{Known, QuestionNumber};
use shards::Reply;
use store::{AccountId, Outcome};
use tasks::{Entry, FrameId};
use webmail::told::{Answer, Told};

use crate::common::Common;
use crate::engine::Engine;

use super::{Context, PeerHalf, Session};

impl Engine {
    /// Hands the events to the sessions that they concern. The bytes of `Data` lie in `frame`.
    pub(crate) fn handle_events(&mut self, frame: &mut [u8]) {
        let mut handled = 0;
        while let Some(event) = self.buffers.events.get(handled) {
            handled += 1;
            match *event {
                Event::Accepted { connection, service, peer } => self.session_begins(connection, service, peer.ip()),
                Event::Data { connection, ref bytes } => {
                    let bytes = frame.get_mut(bytes.clone()).unwrap_or_default();
                    self.session_bytes_arrived(connection, bytes);
                }
                Event::Connected { connection } => self.connection_stirred(connection, Stir::Made),
                Event::Buffered { connection } => self.connection_stirred(connection, Stir::Bytes),
                Event::SendRoom { connection } => self.connection_stirred(connection, Stir::Room),
                Event::PeerClosed { connection } => match self.common.connections.owner(connection) {
                    Owner::Session => self.session_peer_closed(connection.0),
                    owner => self.owner_stirred(owner, connection, Stir::Over),
                },
                Event::Closed { connection, .. } => match self.common.connections.owner(connection) {
                    Owner::Session => {
                        self.session_ends(connection.0);
                        self.common.connections.is_over(connection);
                    }
                    owner => self.owner_stirred(owner, connection, Stir::Over),
                },
                Event::Datagram { port, peer, ref bytes } => {
                    let Common { names, connections, turn, .. } = &mut self.common;
                    names.datagram_arrived(turn.now, (port, peer), connections.net().datagram(frame, bytes));
                }
                Event::AddressChanged { address } => self.announce_address(address),
                Event::Ipv6AddressesChanged => self.announce_ipv6_addresses(),
                Event::AddressTaken { address } => {
                    self.common.console.print(format_args!("net: {address} is not used: another machine has it"));
                }
            }
        }
        self.buffers.events.clear();
    }

    /// There is more to hear by a connection, or more room.
    fn connection_stirred(&mut self, connection: ConnectionId, stir: Stir) {
        match self.common.connections.owner(connection) {
            Owner::Session => self.session_goes_on(connection.0),
            owner => self.owner_stirred(owner, connection, stir),
        }
    }

    /// Something has happened to a connection that we have opened.
    #[cold]
    fn owner_stirred(&mut self, owner: Owner, connection: ConnectionId, stir: Stir) {
        match owner {
            Owner::Resolver => {
                let Common { names, connections, turn, .. } = &mut self.common;
                names.stream_stirred(turn.now, connection, stir, connections);
            }
            Owner::Outbound(frame) => self.let_outbound(|outbound, cx| outbound.stirred(frame, stir, cx)),
            Owner::Filter(frame) => self.tell(frame, |session, cx| session.filter_stirred(stir, cx)),
            Owner::Session => {}
        }
    }

    /// Bytes lie in the frame, for a connection that no session has.
    #[cold]
    pub(crate) fn bytes_without_session(&mut self, connection: ConnectionId, bytes: &[u8]) {
        match self.common.connections.owner(connection) {
            Owner::Resolver => self.common.names.bytes_arrived(self.common.turn.now, connection, bytes),
            owner @ (Owner::Outbound(_) | Owner::Filter(_)) => {
                self.common.connections.keep(connection, bytes);
                self.owner_stirred(owner, connection, Stir::Bytes);
            }
            Owner::Session => {}
        }
    }

    pub(crate) fn session_begins(&mut self, connection: ConnectionId, number: Service, peer: IpAddr) {
        let Some(service) = SERVICES.get(usize::from(number.0)) else { return };
        let channel = match service.security {
            Security::None | Security::OnRequest => Channel::Plain,
            Security::Implicit => Channel::Tls,
        };
        let caller = Caller { connection, address: peer, service: number, channel };
        let mut cx = self.session_context();
        let mut session = Session::begin(service, caller, &mut cx);
        session.ask(&mut cx);
        if let Some(place) = self.sessions.get_mut(connection.index()) {
            assert!(place.is_none(), "a connection's slot is taken again only after its session ended");
            *place = Some(session);
        }
        self.end_broken_session();
    }

    /// Bytes lie in the frame that has just arrived.
    pub(crate) fn session_bytes_arrived(&mut self, connection: ConnectionId, bytes: &mut [u8]) {
        let Some((session, mut cx)) = self.session_of(connection.0) else {
            return self.bytes_without_session(connection, bytes);
        };
        let taken = match session.caller.channel {
            Channel::Plain => session.text_arrived(bytes, &mut cx),
            Channel::Tls => session.records_arrived(bytes, &mut cx),
        };
        cx.common.connections.keep(connection, bytes.get(taken..).unwrap_or_default());
        session.ask(&mut cx);
        self.end_broken_session();
    }

    /// There is more for the session of `frame`, or more room.
    pub(crate) fn session_goes_on(&mut self, frame: FrameId) {
        if self.session_of(frame).is_some_and(|(session, cx)| session.is_within_record(cx.common)) {
            return;
        }
        self.tell(frame, |_, _| {});
    }

    pub(crate) fn session_peer_closed(&mut self, frame: FrameId) {
        self.tell(frame, |session, _| session.peer_half = PeerHalf::Closed);
    }

    pub(crate) fn session_woken(&mut self, frame: FrameId, entry: Entry, outcome: Outcome) {
        match self.session_of(frame) {
            Some(_) => self.tell(frame, |session, cx| session.woken(entry, outcome, cx)),
            None if pop3_server::Point::of(entry) == Some(pop3_server::Point::Deleted) => {
                self.services.pop3.orphan_ended(frame, &mut self.common.store)
            }
            None => self.common.store.forget(outcome),
        }
    }

    /// The owner of an account has replied to a question. What nothing waits for goes home.
    pub(crate) fn session_replied(&mut self, frame: FrameId, reply: Reply) {
        let mut reply = Some(reply);
        self.tell(frame, |session, cx| session.replied(&mut reply, cx));
        if let Some(unwanted) = reply {
            self.common.store.give_back_reply(unwanted);
        }
    }

    pub(crate) fn session_certificate_replaced(&mut self, frame: FrameId, replaced: Replaced) {
        self.tell(frame, |session, cx| session.certificate_replaced(replaced, cx));
    }

    /// A clerk has answered what the client asked for.
    pub(crate) fn session_visit_answered(&mut self, frame: FrameId, answer: Answer) {
        self.services.web.answered(answer.form_bytes);
        if self.session_of(frame).is_none()
            && let Some(number) = answer.told.number()
        {
            self.services.web.leave(number);
        }
        self.tell(frame, |session, cx| session.visit_answered(answer.told, cx));
    }

    /// There is more of a reply that stays open, or it is over.
    pub(crate) fn session_reply_goes_on(&mut self, frame: FrameId, told: Told) {
        self.tell(frame, |session, cx| session.visit_answered(told, cx));
    }

    /// This came of a question about a name.
    pub(crate) fn session_name_known(&mut self, frame: FrameId, number: QuestionNumber, known: Known) {
        self.tell(frame, |session, cx| session.name_known(number, known, cx));
    }

    pub(crate) fn session_deadline_expired(&mut self, frame: FrameId) {
        self.tell(frame, Session::deadline_expired);
    }

    pub(crate) fn session_resumed(&mut self, frame: FrameId) {
        self.tell(frame, Session::resumed);
    }

    pub(crate) fn session_ends(&mut self, frame: FrameId) {
        if self.session_of(frame).is_none() {
            return;
        }
        if let Some(session) = self.sessions.get_mut(frame.index()).and_then(Option::take) {
            session.ended(&mut self.session_context());
        }
    }

    fn session_context(&mut self) -> Context<'_> {
        self.services.with(&mut self.common)
    }

    /// Tells the session of `frame` something, and lets it go on from there as far as it comes.
    pub(crate) fn tell(&mut self, frame: FrameId, news: impl FnOnce(&mut Session, &mut Context<'_>)) {
        let Some(session) = self.sessions.get_mut(frame.index()).and_then(Option::as_mut) else { return };
        if session.caller.connection.0 != frame {
            return;
        }
        let cx = &mut self.services.with(&mut self.common);
        news(session, cx);
        session.go_on(cx, self.buffers.scratch.as_mut_slice());
        session.ask(cx);
        self.end_broken_session();
    }

    /// Tells every session the same.
    pub(crate) fn tell_all(&mut self, news: impl Fn(&mut Session, &mut Context<'_>)) {
        for index in 0..self.sessions.len() {
            let Some(session) = self.sessions.get(index).and_then(Option::as_ref) else { continue };
            let frame = session.caller.connection.0;
            self.tell(frame, &news);
        }
    }

    /// Ends the sessions of this core that have logged in by a password that an account no longer
    /// has.
    pub(crate) fn end_sessions_of(&mut self, account: AccountId) {
        for index in 0..self.sessions.len() {
            let session = self.sessions.get(index).and_then(Option::as_ref).filter(|session| session.is_of(account));
            if let Some(frame) = session.map(|session| session.caller.connection.0) {
                self.tell(frame, |session, cx| session.password_changed(account, cx));
            }
        }
    }

    /// Ends the session whose connection was reset by us: no event will say so.
    fn end_broken_session(&mut self) {
        if let Some(connection) = self.common.connections.take_reset() {
            self.session_ends(connection.0);
        }
    }
}
