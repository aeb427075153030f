//! The server of a core: its parts, the services that use the parts, and the sessions that use
//! both. This file dispatches events to them.

mod requests;
mod services;

use channel::Class;
use compute::DoneJob;
use connections::{Owner, TransportEvent, TurnGate, announce_address, announce_ipv6_addresses};
use machine::Entropy;
use net::{ConnectionId, Event, Events};
use resolver::AddressedAnswer;
use store::{AccountId, Outcome};
use tasks::{Continuation, FrameId, Subsystem};

use crate::links::Message;
use crate::parts::Parts;
use crate::session::{Context, Session, Sessions};

pub(crate) use services::{Services, Webmail};

/// The parts, services and sessions of a core.
pub(crate) struct Server {
    pub(crate) parts: Parts,
    pub(crate) services: Services,
    pub(crate) sessions: Sessions,
}

impl Server {
    /// Calls `act` with the sessions and their context.
    #[inline]
    pub(crate) fn let_sessions<R>(
        &mut self,
        act: impl FnOnce(&mut Sessions, &mut Context<'_>) -> R,
    ) -> R {
        let Server { parts, services, sessions } = self;
        act(sessions, &mut services.with(parts))
    }

    /// Calls `news` on the session of `frame`.
    pub(crate) fn tell(
        &mut self,
        frame: FrameId,
        news: impl FnOnce(&mut Session, &mut Context<'_>),
    ) {
        self.let_sessions(|sessions, cx| sessions.tell(frame, cx, news));
    }

    /// Dispatches events. The bytes of `Data` are in `frame`.
    pub(crate) fn handle_events(&mut self, events: &mut Events, frame: &mut [u8]) {
        let mut handled = 0;
        while let Some(event) = events.get(handled) {
            handled += 1;
            match *event {
                Event::Accepted { connection, service, peer } => {
                    self.let_sessions(|sessions, cx| {
                        sessions.begins(connection, service, peer.ip(), cx)
                    })
                }
                Event::Data { connection, ref bytes } => {
                    let Some(bytes) = frame.get_mut(bytes.clone()) else {
                        unreachable!("the bytes are in the frame")
                    };
                    if !self
                        .let_sessions(|sessions, cx| sessions.bytes_arrived(connection, bytes, cx))
                    {
                        self.bytes_without_session(connection, bytes);
                    }
                }
                Event::Connected { connection } => {
                    self.connection_event(connection, TransportEvent::Made)
                }
                Event::Buffered { connection } => {
                    self.connection_event(connection, TransportEvent::Bytes)
                }
                Event::SendRoom { connection } => {
                    self.connection_event(connection, TransportEvent::Room)
                }
                Event::PeerClosed { connection } => {
                    match self.parts.connections.owner(connection) {
                        Owner::Session => {
                            self.tell(connection.0, |session, _| session.peer_is_done())
                        }
                        owner => self.owner_event(owner, connection, TransportEvent::Over),
                    }
                }
                Event::Closed { connection, .. } => {
                    match self.parts.connections.owner(connection) {
                        Owner::Session => {
                            self.let_sessions(|sessions, cx| sessions.ends(connection.0, cx));
                            self.parts.connections.connection_ended(connection);
                        }
                        owner => self.owner_event(owner, connection, TransportEvent::Over),
                    }
                }
                Event::Datagram { port, peer, ref bytes } => {
                    let Parts { connections, turn, .. } = &mut self.parts;
                    let datagram = connections.net().datagram(frame, bytes);
                    self.services.names.datagram_arrived(turn.now, (port, peer), datagram);
                }
                Event::AddressChanged { address } => {
                    announce_address(address, &mut self.parts.console)
                }
                Event::Ipv6AddressesChanged => {
                    announce_ipv6_addresses(self.parts.connections.net(), &mut self.parts.console);
                }
                Event::AddressTaken { address } => {
                    self.parts
                        .console
                        .print(format_args!("net: {address} is not used: another machine has it"));
                }
            }
        }
        events.clear();
    }

    /// Reports more bytes or more buffer space to the owner of the connection.
    fn connection_event(&mut self, connection: ConnectionId, event: TransportEvent) {
        match self.parts.connections.owner(connection) {
            Owner::Session => self.let_sessions(|sessions, cx| sessions.goes_on(connection.0, cx)),
            owner => self.owner_event(owner, connection, event),
        }
    }

    /// Passes on an event of a connection that we have opened.
    #[cold]
    fn owner_event(&mut self, owner: Owner, connection: ConnectionId, event: TransportEvent) {
        match owner {
            Owner::Resolver => {
                let Parts { connections, turn, .. } = &mut self.parts;
                self.services.names.stream_event(turn.now, connection, event, connections);
            }
            Owner::Outbound(frame) => {
                self.let_outbound(|outbound, cx| outbound.transport_event(frame, event, cx))
            }
            Owner::Filter(frame) => self.tell(frame, |session, cx| session.filter_event(event, cx)),
            Owner::Session => unreachable!("the caller handles sessions"),
        }
    }

    /// Passes on bytes in the frame for a connection without a session.
    #[cold]
    fn bytes_without_session(&mut self, connection: ConnectionId, bytes: &[u8]) {
        match self.parts.connections.owner(connection) {
            Owner::Resolver => {
                self.services.names.bytes_arrived(self.parts.turn.now, connection, bytes)
            }
            owner @ (Owner::Outbound(_) | Owner::Filter(_)) => {
                self.parts.connections.keep(connection, bytes);
                self.owner_event(owner, connection, TransportEvent::Bytes);
            }
            // We have reset the connection in this turn, so its session has ended.
            Owner::Session => {}
        }
    }

    /// Passes the outcome of a store request to the session or service of this frame.
    pub(crate) fn woken(
        &mut self,
        continuation: Continuation,
        outcome: Outcome,
        entropy: &mut dyn Entropy,
    ) {
        let Continuation { frame, entry } = continuation;
        match Subsystem::of(entry) {
            Some(Subsystem::Inbound | Subsystem::Pop3) => {
                self.let_sessions(|sessions, cx| sessions.woken(frame, entry, outcome, cx))
            }
            Some(Subsystem::Certificates) => {
                self.let_certificates(|certificates, cx| certificates.woken(entry, outcome, cx));
            }
            Some(Subsystem::Webmail) => self.handler_woken(frame, outcome, entropy),
            Some(Subsystem::Submission) => {
                self.let_submission(|submission, cx| submission.woken(frame, outcome, cx))
            }
            Some(Subsystem::Outbound) => {
                self.let_outbound(|outbound, cx| outbound.woken(frame, entry, outcome, cx))
            }
            // Notes for an account have no frame that waits for them.
            Some(Subsystem::Shards) => self.parts.store.forget(outcome),
            Some(Subsystem::Accounts | Subsystem::Auth) | None => {
                unreachable!("no frame waits for the store at {entry:?}")
            }
        }
    }

    /// Whether a handshake, a verification or a job waits to be computed.
    #[inline]
    pub(crate) fn has_to_compute(&self) -> bool {
        let Parts { connections, compute, .. } = &self.parts;
        connections.owner_of(TurnGate::Handshake).is_some()
            || connections.owner_of(TurnGate::Verification).is_some()
            || !compute.is_idle()
    }

    /// Does a step of a handshake, if a handshake waits. Returns whether one did.
    pub(crate) fn step_handshake(&mut self) -> bool {
        let owner = self.parts.connections.owner_of(TurnGate::Handshake);
        if let Some(frame) = owner {
            let connection = ConnectionId(frame);
            match self.parts.connections.owner(connection) {
                owner @ Owner::Outbound(_) => {
                    self.owner_event(owner, connection, TransportEvent::Turn)
                }
                _ => self.tell(frame, Session::resumed),
            }
        }
        owner.is_some()
    }

    /// Verifies a signature of another server, if one waits. Returns whether one did.
    pub(crate) fn verify_signature(&mut self) -> bool {
        let owner = self.parts.connections.owner_of(TurnGate::Verification);
        if let Some(frame) = owner {
            self.tell(frame, Session::resumed);
        }
        owner.is_some()
    }

    /// Resumes the frames of completed jobs.
    pub(crate) fn jobs_done(&mut self, entropy: &mut dyn Entropy) {
        while let Some(DoneJob { continuation: Continuation { frame, entry }, number }) =
            self.parts.compute.next_done()
        {
            match Subsystem::of(entry) {
                Some(Subsystem::Accounts) => continue,
                // A session abandons its job before it ends.
                Some(Subsystem::Auth | Subsystem::Inbound) => {
                    self.tell(frame, Session::resumed);
                    continue;
                }
                Some(Subsystem::Webmail) => self.handler_signed(frame, entropy),
                Some(Subsystem::Outbound) => {
                    self.let_outbound(|outbound, cx| outbound.signature_made(frame, cx))
                }
                _ => unreachable!("{entry:?} waits for no job"),
            }
            // If the frame has ended, it has not taken its result.
            self.parts.compute.take_result(number);
        }
    }

    /// Ends the sessions of this core that have logged in with an earlier password of the account.
    pub(crate) fn end_sessions_of(&mut self, account: AccountId) {
        self.let_sessions(|sessions, cx| sessions.end_those_of(account, cx));
    }

    /// Sends DNS queries, and passes on the answers.
    fn look_names_up(&mut self) {
        let Server { services, parts, .. } = self;
        services.names.work(parts.turn.now, &mut parts.connections);
        while let Some((core, message)) = services.names.next_message() {
            parts.links.tell(core, Class::Answer, Message::Name(message));
        }
        self.tell_names();
    }

    /// Passes DNS answers to the frames that have asked.
    pub(crate) fn tell_names(&mut self) {
        while let Some(AddressedAnswer { at, number, known }) = self.services.names.next_answer() {
            match Subsystem::of(at.entry) {
                Some(Subsystem::Inbound) => {
                    self.tell(at.frame, |session, cx| session.name_known(number, known, cx))
                }
                Some(Subsystem::Outbound) => self
                    .let_outbound(|outbound, cx| outbound.name_known(at.frame, number, known, cx)),
                _ => unreachable!("{:?} asks about no name", at.entry),
            }
        }
    }
}
