//! A connection that this machine has opened, to deliver mail or to query a server, in plaintext or
//! over TLS. It passes bytes between our client protocol and the network.
//!
//! Invariants:
//! - After TLS has begun, the client protocol gets only decrypted bytes. Bytes that are no TLS
//!   records end the connection.
//! - Each handshake step waits for its turn at the gate that the handshakes of sessions also use.
//! - A handshake ends within [`HANDSHAKE_PATIENCE`], whatever the host sends in that time.

use alloc::string::String;
use core::net::SocketAddr;

use machine::{Instant, Micros, Turn};
use net::ConnectionId;
use relay::{Lost, Speaker};
use tls::{CertificateFault, TlsEvent};

use crate::caller::Channel;
use crate::connections::{Connections, RecordAction};
use crate::owner::Owner;
use crate::tls_table::ServerIdentity;
use crate::turn_gates::TurnGate;

/// The longest time for a whole handshake.
const HANDSHAKE_PATIENCE: Micros = Micros::from_secs(120);

/// An event of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportEvent {
    /// The connection is established.
    Made,
    /// The connection has buffer space again.
    Room,
    /// Received bytes wait in the connection.
    Bytes,
    /// The next step of the handshake may run.
    Turn,
    /// The connection has ended, or its time limit has passed.
    Over,
}

/// A connection that this machine has opened.
pub struct ClientTransport {
    connection: ConnectionId,
    security: TransportSecurity,
    /// The identity that the host must prove in TLS.
    identity: ServerIdentity,
    /// The host's name, or its address if the certificate must prove the address. The handshake
    /// sends the name.
    called: Option<String>,
    /// The fault in the host's certificate.
    fault: Option<CertificateFault>,
}

/// The protection of the bytes on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TransportSecurity {
    /// In plaintext.
    Plaintext,
    /// A handshake is in progress. The values are the event that the handshake waits for, and its
    /// time limit.
    Handshake(HandshakeWait, Instant),
    /// In TLS records.
    Tls,
}

/// The event that a handshake waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandshakeWait {
    /// Bytes from the host.
    Bytes,
    /// Its turn at the gate.
    Turn,
    /// Buffer space for its next message.
    Room,
}

impl ClientTransport {
    /// Connects to a host, for `owner`. `called`: the host's name, or its address if the
    /// certificate must prove the address. Returns `None` if no connection is available.
    pub fn to(
        address: SocketAddr,
        identity: ServerIdentity,
        called: Option<String>,
        owner: Owner,
        (turn, connections): (Turn, &mut Connections),
    ) -> Option<ClientTransport> {
        let connection = connections.connect(turn.now, address, owner).ok()?;
        Some(ClientTransport {
            connection,
            security: TransportSecurity::Plaintext,
            identity,
            called,
            fault: None,
        })
    }

    /// The connection.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The time limit of a handshake, if one is in progress.
    pub fn handshake_until(&self) -> Option<Instant> {
        if let TransportSecurity::Handshake(_, until) = self.security { Some(until) } else { None }
    }

    /// Whether TLS is established.
    pub fn is_encrypted(&self) -> bool {
        self.security == TransportSecurity::Tls
    }

    /// The fault in the host's certificate, if that was the reason to reject it.
    pub fn fault(&self) -> Option<CertificateFault> {
        self.fault
    }

    /// Sends the output of `speaker`, as far as there is space.
    pub fn say(&mut self, speaker: &mut impl Speaker, turn: Turn, connections: &mut Connections) {
        if let TransportSecurity::Handshake(HandshakeWait::Room, _) = self.security {
            self.hear(speaker, turn, connections);
        }
        let output = speaker.output();
        if output.is_empty() {
            return;
        }
        let sent = match self.security {
            TransportSecurity::Plaintext => {
                connections.send_by(turn.now, self.connection, Channel::Plain, output)
            }
            TransportSecurity::Tls => {
                connections.send_by(turn.now, self.connection, Channel::Tls, output)
            }
            TransportSecurity::Handshake(..) => 0,
        };
        speaker.sent(sent);
    }

    /// Passes bytes that have arrived to `speaker`.
    pub fn hear(&mut self, speaker: &mut impl Speaker, turn: Turn, connections: &mut Connections) {
        loop {
            let mut waiting = connections.take_waiting(self.connection);
            let done = match self.security {
                TransportSecurity::Plaintext => {
                    let bytes = waiting.bytes();
                    speaker.arrived(bytes);
                    bytes.len()
                }
                TransportSecurity::Handshake(HandshakeWait::Turn, _) => 0,
                TransportSecurity::Handshake(..) | TransportSecurity::Tls => {
                    self.records_arrived(waiting.bytes(), speaker, turn, connections)
                }
            };
            if !connections.put_back(waiting, done) {
                break;
            }
        }
        self.look_whether_reset(speaker, connections);
    }

    /// Processes TLS records. Returns the number of bytes processed.
    fn records_arrived(
        &mut self,
        bytes: &mut [u8],
        speaker: &mut impl Speaker,
        turn: Turn,
        connections: &mut Connections,
    ) -> usize {
        let mut done = 0;
        loop {
            let rest = bytes.get_mut(done..).unwrap_or_default();
            let (count, event) = connections.open(turn, self.connection, rest, RecordAction::Next);
            done += count;
            match event {
                TlsEvent::Plaintext(length) => {
                    speaker.arrived(bytes.get(done..done + length).unwrap_or_default());
                    done += connections
                        .tls_mut()
                        .of_mut(self.connection)
                        .map_or(length, |tls| tls.taken(length));
                }
                TlsEvent::Nothing if !connections.is_reset() => {}
                TlsEvent::Nothing | TlsEvent::Bytes | TlsEvent::Established(_) => return done,
                TlsEvent::Work => {
                    self.step_is_due(turn, connections);
                    return done;
                }
                TlsEvent::PeerClosed => {
                    speaker.lost(Lost::Closed);
                    return bytes.len();
                }
                TlsEvent::Failed(_) => {
                    speaker.lost(Lost::Tls);
                    return bytes.len();
                }
            }
        }
    }

    /// Begins TLS: the host has agreed to it, or its port requires TLS from the first byte. The
    /// client sends first.
    pub fn begin_handshake(
        &mut self,
        speaker: &mut impl Speaker,
        turn: Turn,
        connections: &mut Connections,
    ) {
        if !connections.tls_mut().call(self.connection, self.called.as_deref(), &self.identity) {
            return speaker.lost(Lost::Tls);
        }
        self.security =
            TransportSecurity::Handshake(HandshakeWait::Bytes, turn.now + HANDSHAKE_PATIENCE);
        self.hear(speaker, turn, connections);
    }

    /// Moves the handshake on, since the next step has its input. The step first waits for buffer
    /// space, and then for its turn at the gate.
    fn step_is_due(&mut self, turn: Turn, connections: &mut Connections) {
        let TransportSecurity::Handshake(awaited, _) = &mut self.security else { return };
        if !connections.has_room_for_handshake(self.connection) {
            *awaited = HandshakeWait::Room;
            return connections.want_room(turn.now, self.connection);
        }
        *awaited = HandshakeWait::Turn;
        connections.enter(TurnGate::Handshake, self.connection.0);
    }

    /// Does one step of the handshake, which has its turn at the gate.
    pub fn step(&mut self, speaker: &mut impl Speaker, turn: Turn, connections: &mut Connections) {
        let TransportSecurity::Handshake(awaited, _) = &mut self.security else { return };
        *awaited = HandshakeWait::Bytes;
        let event = connections.step_in_handshake(turn, self.connection);
        connections.leave(TurnGate::Handshake, self.connection.0);
        match event {
            Some(TlsEvent::Established(_)) => {
                self.security = TransportSecurity::Tls;
                connections.tls_mut().call_ended();
                speaker.secured();
            }
            Some(TlsEvent::Failed(failure)) => {
                self.fault = failure.fault();
                speaker.lost(self.lost_in_handshake());
            }
            _ => {}
        }
        self.look_whether_reset(speaker, connections);
        self.hear(speaker, turn, connections);
    }

    fn lost_in_handshake(&self) -> Lost {
        match (self.fault, &self.identity) {
            (None, _) => Lost::Tls,
            (Some(_), ServerIdentity::Authorities) => Lost::Unvouched,
            (Some(_), _) => Lost::Unproven,
        }
    }

    /// Reports the loss of the connection to `speaker`, if the connection was reset because the
    /// output of TLS had no buffer space.
    fn look_whether_reset(&self, speaker: &mut impl Speaker, connections: &mut Connections) {
        if connections.take_reset_of(self.connection) {
            speaker.lost(Lost::Tls);
        }
    }

    /// Closes the connection after its output is sent.
    pub fn close(&mut self, turn: Turn, connections: &mut Connections) {
        connections.part(turn.now, self.connection);
        self.forget_secrets(connections);
    }

    /// Ends the connection at once.
    pub fn end(&mut self, connections: &mut Connections) {
        connections.hang_up(self.connection);
        self.forget_secrets(connections);
    }

    fn forget_secrets(&mut self, connections: &mut Connections) {
        if let TransportSecurity::Handshake(awaited, _) = self.security {
            connections.tls_mut().call_ended();
            if awaited == HandshakeWait::Turn {
                connections.leave(TurnGate::Handshake, self.connection.0);
            }
        }
        self.security = TransportSecurity::Plaintext;
        connections.tls_mut().end(self.connection);
    }
}
