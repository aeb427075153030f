//! The sessions of a core. They get the events of connections and the results of their requests.
//!
//! Invariants:
//! - A session is in the slot of its connection, from the connection's first event to its last.
//! - A session is found by the frame of its connection. The generation in the frame shows whether
//!   the session is still the same. Events for an earlier session are dropped.
//! - After every event of a session, its connection offers the waiting bytes again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use connections::{Caller, Channel};
use machine::{SERVICES, Security};
use net::{ConnectionId, Service};
use shards::Reply;
use store::{AccountId, Outcome};
use tasks::{EntryPoint, FrameId};
use webmail::handler_reply::AddressedReply;

use super::{Context, Session};

/// Bytes that are read at once from a connection: more than the longest line of any protocol.
const SCRATCH_BYTES: usize = 8192;

/// The sessions of a core.
pub(crate) struct Sessions {
    /// The session of each connection, in the connection's slot.
    slots: Vec<Option<Session>>,
    /// The buffer for bytes that are read from a connection. Empty between two calls.
    scratch: Box<[u8; SCRATCH_BYTES]>,
}

impl Sessions {
    pub(crate) fn new(connections: usize) -> Sessions {
        Sessions {
            slots: (0..connections).map(|_| None).collect(),
            scratch: Box::new([0; SCRATCH_BYTES]),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn in_slot(&mut self, slot: usize) -> Option<&mut Session> {
        self.slots.get_mut(slot).and_then(Option::as_mut)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.slots.iter().flatten()
    }

    fn of(&mut self, frame: FrameId) -> Option<&mut Session> {
        self.in_slot(frame.index()).filter(|session| session.caller.connection.0 == frame)
    }

    /// Begins the session of a client that has connected to a service.
    pub(crate) fn begins(
        &mut self,
        connection: ConnectionId,
        number: Service,
        peer: IpAddr,
        cx: &mut Context<'_>,
    ) {
        let Some(service) = SERVICES.get(usize::from(number.0)) else {
            unreachable!("{number:?} has no listener")
        };
        let channel = match service.security {
            Security::None | Security::OnRequest => Channel::Plain,
            Security::Implicit => Channel::Tls,
        };
        let caller = Caller { connection, address: peer, service: number, channel };
        let mut session = Session::begin(service, caller, cx);
        session.ask(cx);
        let Some(place) = self.slots.get_mut(connection.index()) else {
            unreachable!("each connection has a slot")
        };
        assert!(place.is_none(), "a connection's slot is taken again only after its session ended");
        *place = Some(session);
        self.end_broken(cx);
    }

    /// Passes bytes of the arrived frame to the session. Returns false if there is no session.
    pub(crate) fn bytes_arrived(
        &mut self,
        connection: ConnectionId,
        bytes: &mut [u8],
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(session) = self.of(connection.0) else { return false };
        let taken = match session.caller.channel {
            Channel::Plain => session.text_arrived(bytes, cx),
            Channel::Tls => session.records_arrived(bytes, cx),
        };
        let Some(left) = bytes.get(taken..) else {
            unreachable!("a session takes at most all bytes")
        };
        cx.parts.connections.keep(connection, left);
        session.ask(cx);
        self.end_broken(cx);
        true
    }

    /// Lets the session of `frame` continue, because of more bytes or more buffer space.
    pub(crate) fn goes_on(&mut self, frame: FrameId, cx: &mut Context<'_>) {
        if self.of(frame).is_some_and(|session| session.is_within_record(cx.parts)) {
            return;
        }
        self.tell(frame, cx, |_, _| {});
    }

    pub(crate) fn woken(
        &mut self,
        frame: FrameId,
        entry: EntryPoint,
        outcome: Outcome,
        cx: &mut Context<'_>,
    ) {
        match self.of(frame) {
            Some(_) => self.tell(frame, cx, |session, cx| session.woken(entry, outcome, cx)),
            None if pop3_server::Pop3WaitPoint::of(entry)
                == Some(pop3_server::Pop3WaitPoint::Deleted) =>
            {
                cx.pop3.orphan_ended(frame, &mut cx.parts.store)
            }
            None => cx.parts.store.forget(outcome),
        }
    }

    /// Passes on the reply of the owner of an account. An unwanted reply is returned to the owner.
    pub(crate) fn replied(&mut self, frame: FrameId, reply: Reply, cx: &mut Context<'_>) {
        let mut reply = Some(reply);
        self.tell(frame, cx, |session, cx| session.replied(&mut reply, cx));
        if let Some(unwanted) = reply {
            cx.parts.store.give_back_reply(unwanted);
        }
    }

    /// Passes on a reply, or a part of a reply, of the webmail to a session's request.
    pub(crate) fn webmail_replied(&mut self, replied: AddressedReply, cx: &mut Context<'_>) {
        let AddressedReply { ticket, reply, answers } = replied;
        if let Some(form_bytes) = answers {
            cx.web.answered(form_bytes);
            if self.of(ticket.frame).is_none()
                && let Some(number) = reply.number()
            {
                cx.web.leave(ticket.frame, number);
            }
        }
        self.tell(ticket.frame, cx, |session, cx| session.webmail_replied(reply, cx));
    }

    /// Ends the session of a connection that is over.
    pub(crate) fn ends(&mut self, frame: FrameId, cx: &mut Context<'_>) {
        if self.of(frame).is_some()
            && let Some(session) = self.slots.get_mut(frame.index()).and_then(Option::take)
        {
            session.ended(cx);
        }
    }

    /// Calls `news` on the session of `frame`, and lets the session continue as far as possible.
    pub(crate) fn tell(
        &mut self,
        frame: FrameId,
        cx: &mut Context<'_>,
        news: impl FnOnce(&mut Session, &mut Context<'_>),
    ) {
        let Some(session) = self.slots.get_mut(frame.index()).and_then(Option::as_mut) else {
            return;
        };
        if session.caller.connection.0 != frame {
            return;
        }
        news(session, cx);
        session.go_on(cx, self.scratch.as_mut_slice());
        session.ask(cx);
        self.end_broken(cx);
    }

    /// Calls `news` on every session.
    pub(crate) fn tell_all(
        &mut self,
        cx: &mut Context<'_>,
        news: impl Fn(&mut Session, &mut Context<'_>),
    ) {
        for slot in 0..self.slots.len() {
            if let Some(session) = self.in_slot(slot) {
                let frame = session.caller.connection.0;
                self.tell(frame, cx, &news);
            }
        }
    }

    /// Ends the sessions of this core that have logged in with an earlier password of the account.
    pub(crate) fn end_those_of(&mut self, account: AccountId, cx: &mut Context<'_>) {
        for slot in 0..self.slots.len() {
            if let Some(session) = self.in_slot(slot).filter(|session| session.is_of(account)) {
                let frame = session.caller.connection.0;
                self.tell(frame, cx, |session, cx| session.password_changed(account, cx));
            }
        }
    }

    /// Ends the session of a connection that we have reset, since no event reports that.
    fn end_broken(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = cx.parts.connections.take_reset() {
            self.ends(connection.0, cx);
        }
    }
}
