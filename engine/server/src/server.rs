//! What a core serves with: its parts, the services that use them, and the sessions that use both.
//! What happens is brought from here to where it is waited for.

mod requests;
mod services;

use channel::Class;
use compute::DoneJob;
use connections::{Owner, Stir, TurnGate, announce_address, announce_ipv6_addresses};
use machine::Entropy;
use net::{ConnectionId, Event, Events};
use resolver::Told;
use store::{AccountId, Outcome};
use tasks::{Continuation, FrameId, Subsystem};

use crate::links::Message;
use crate::parts::Parts;
use crate::session::{Context, Session, Sessions};

pub(crate) use services::{Services, Webmail};

/// What a core serves with.
pub(crate) struct Server {
    pub(crate) parts: Parts,
    pub(crate) services: Services,
    pub(crate) sessions: Sessions,
}

impl Server {
    /// Lets sessions act.
    #[inline]
    pub(crate) fn let_sessions<R>(&mut self, act: impl FnOnce(&mut Sessions, &mut Context<'_>) -> R) -> R {
        let Server { parts, services, sessions } = self;
        act(sessions, &mut services.with(parts))
    }

    /// Tells the session of `frame` something.
    pub(crate) fn tell(&mut self, frame: FrameId, news: impl FnOnce(&mut Session, &mut Context<'_>)) {
        self.let_sessions(|sessions, cx| sessions.tell(frame, cx, news));
    }

    /// Hands the events to what they concern. The bytes of `Data` lie in `frame`.
    pub(crate) fn handle_events(&mut self, events: &mut Events, frame: &mut [u8]) {
        let mut handled = 0;
        while let Some(event) = events.get(handled) {
            handled += 1;
            match *event {
                Event::Accepted { connection, service, peer } => {
                    self.let_sessions(|sessions, cx| sessions.begins(connection, service, peer.ip(), cx))
                }
                Event::Data { connection, ref bytes } => {
                    let Some(bytes) = frame.get_mut(bytes.clone()) else { unreachable!("they lie in the frame") };
                    if !self.let_sessions(|sessions, cx| sessions.bytes_arrived(connection, bytes, cx)) {
                        self.bytes_without_session(connection, bytes);
                    }
                }
                Event::Connected { connection } => self.connection_stirred(connection, Stir::Made),
                Event::Buffered { connection } => self.connection_stirred(connection, Stir::Bytes),
                Event::SendRoom { connection } => self.connection_stirred(connection, Stir::Room),
                Event::PeerClosed { connection } => match self.parts.connections.owner(connection) {
                    Owner::Session => self.tell(connection.0, |session, _| session.peer_is_done()),
                    owner => self.owner_stirred(owner, connection, Stir::Over),
                },
                Event::Closed { connection, .. } => match self.parts.connections.owner(connection) {
                    Owner::Session => {
                        self.let_sessions(|sessions, cx| sessions.ends(connection.0, cx));
                        self.parts.connections.is_over(connection);
                    }
                    owner => self.owner_stirred(owner, connection, Stir::Over),
                },
                Event::Datagram { port, peer, ref bytes } => {
                    let Parts { connections, turn, .. } = &mut self.parts;
                    let datagram = connections.net().datagram(frame, bytes);
                    self.services.names.datagram_arrived(turn.now, (port, peer), datagram);
                }
                Event::AddressChanged { address } => announce_address(address, &mut self.parts.console),
                Event::Ipv6AddressesChanged => {
                    announce_ipv6_addresses(self.parts.connections.net(), &mut self.parts.console);
                }
                Event::AddressTaken { address } => {
                    self.parts.console.print(format_args!("net: {address} is not used: another machine has it"));
                }
            }
        }
        events.clear();
    }

    /// There is more to hear by a connection, or more room.
    fn connection_stirred(&mut self, connection: ConnectionId, stir: Stir) {
        match self.parts.connections.owner(connection) {
            Owner::Session => self.let_sessions(|sessions, cx| sessions.goes_on(connection.0, cx)),
            owner => self.owner_stirred(owner, connection, stir),
        }
    }

    /// Something has happened to a connection that we have opened.
    #[cold]
    fn owner_stirred(&mut self, owner: Owner, connection: ConnectionId, stir: Stir) {
        match owner {
            Owner::Resolver => {
                let Parts { connections, turn, .. } = &mut self.parts;
                self.services.names.stream_stirred(turn.now, connection, stir, connections);
            }
            Owner::Outbound(frame) => self.let_outbound(|outbound, cx| outbound.stirred(frame, stir, cx)),
            Owner::Filter(frame) => self.tell(frame, |session, cx| session.filter_stirred(stir, cx)),
            Owner::Session => unreachable!("a session is told by its own way"),
        }
    }

    /// Bytes lie in the frame, for a connection that no session has.
    #[cold]
    fn bytes_without_session(&mut self, connection: ConnectionId, bytes: &[u8]) {
        match self.parts.connections.owner(connection) {
            Owner::Resolver => self.services.names.bytes_arrived(self.parts.turn.now, connection, bytes),
            owner @ (Owner::Outbound(_) | Owner::Filter(_)) => {
                self.parts.connections.keep(connection, bytes);
                self.owner_stirred(owner, connection, Stir::Bytes);
            }
            // It was reset by us in this turn, and its session has ended.
            Owner::Session => {}
        }
    }

    /// What the frame of a session or a service waits for in the store has come, or is done.
    pub(crate) fn woken(&mut self, continuation: Continuation, outcome: Outcome, entropy: &mut dyn Entropy) {
        let Continuation { frame, entry } = continuation;
        match Subsystem::of(entry) {
            Some(Subsystem::Inbound | Subsystem::Pop3) => {
                self.let_sessions(|sessions, cx| sessions.woken(frame, entry, outcome, cx))
            }
            Some(Subsystem::Certificates) => {
                self.let_certificates(|certificates, cx| certificates.woken(entry, outcome, cx));
            }
            Some(Subsystem::Webmail) => self.clerk_woken(frame, outcome, entropy),
            Some(Subsystem::Submission) => self.let_submission(|submission, cx| submission.woken(frame, outcome, cx)),
            Some(Subsystem::Outbound) => self.let_outbound(|outbound, cx| outbound.woken(frame, entry, outcome, cx)),
            // What is noted for an account has nothing that waits for it.
            Some(Subsystem::Shards) => self.parts.store.forget(outcome),
            Some(Subsystem::Accounts | Subsystem::Auth) | None => {
                unreachable!("{entry:?} belongs to nothing that waits here")
            }
        }
    }

    /// Whether something waits for its turn at a gate.
    #[inline]
    pub(crate) fn has_to_compute(&self) -> bool {
        let Parts { connections, compute, .. } = &self.parts;
        connections.owner_of(TurnGate::Handshake).is_some()
            || connections.owner_of(TurnGate::Verification).is_some()
            || !compute.is_idle()
    }

    /// A handshake goes a step, if one waits.
    pub(crate) fn step_handshake(&mut self) -> bool {
        let owner = self.parts.connections.owner_of(TurnGate::Handshake);
        if let Some(frame) = owner {
            let connection = ConnectionId(frame);
            match self.parts.connections.owner(connection) {
                owner @ Owner::Outbound(_) => self.owner_stirred(owner, connection, Stir::Turn),
                _ => self.tell(frame, Session::resumed),
            }
        }
        owner.is_some()
    }

    /// A signature of another server is checked, if one waits.
    pub(crate) fn verify_signature(&mut self) -> bool {
        let owner = self.parts.connections.owner_of(TurnGate::Verification);
        if let Some(frame) = owner {
            self.tell(frame, Session::resumed);
        }
        owner.is_some()
    }

    /// What waits for jobs that are done goes on with their results.
    pub(crate) fn jobs_done(&mut self, entropy: &mut dyn Entropy) {
        while let Some(DoneJob { continuation: Continuation { frame, entry }, number }) = self.parts.compute.next_done()
        {
            match Subsystem::of(entry) {
                // A session abandons its job before it ends.
                Some(Subsystem::Auth | Subsystem::Inbound) => {
                    self.tell(frame, Session::resumed);
                    continue;
                }
                Some(Subsystem::Webmail) => self.clerk_signs(frame, entropy),
                Some(Subsystem::Outbound) => self.let_outbound(|outbound, cx| outbound.signature_made(frame, cx)),
                _ => unreachable!("{entry:?} waits for no job"),
            }
            // Only a frame that is gone has not taken it.
            self.parts.compute.take_result(number);
        }
    }

    /// Ends the sessions of this core that have logged in by a password that an account no longer
    /// has.
    pub(crate) fn end_sessions_of(&mut self, account: AccountId) {
        self.let_sessions(|sessions, cx| sessions.end_those_of(account, cx));
    }

    /// What was asked about names is asked on, and what is known is told.
    fn look_names_up(&mut self) {
        let Server { services, parts, .. } = self;
        services.names.work(parts.turn.now, &mut parts.connections);
        while let Some((core, message)) = services.names.next_message() {
            parts.links.tell(core, Class::Answer, Message::Name(message));
        }
        self.tell_names();
    }

    /// What has asked about names is told what is known of them.
    pub(crate) fn tell_names(&mut self) {
        while let Some(Told { at: Continuation { frame, entry }, number, known }) = self.services.names.next_told() {
            match Subsystem::of(entry) {
                Some(Subsystem::Inbound) => self.tell(frame, |session, cx| session.name_known(number, known, cx)),
                Some(Subsystem::Outbound) => {
                    self.let_outbound(|outbound, cx| outbound.name_known(frame, number, known, cx))
                }
                _ => unreachable!("{entry:?} asks about no name"),
            }
        }
    }
}
