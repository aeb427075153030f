//! A connection that this machine has opened, to deliver mail or to ask something, in the clear or
//! over TLS: bytes between a client of ours and the network.
//!
//! Invariants:
//! - Nothing that arrived in the clear is heard once TLS is spoken.
//! - A step of a handshake is made when its turn has come, at the gate at which sessions wait for
//!   theirs.
//! - A handshake has an end within [`HANDSHAKE_PATIENCE`], whatever the host says meanwhile.

use alloc::string::String;
use core::net::SocketAddr;

use machine::{Instant, Micros, Turn};
use net::ConnectionId;
use relay::{Lost, Speaker};
use tls::{Event, Fault};

use crate::caller::Channel;
use crate::connections::{Connections, Opening, TurnGate};
use crate::owner::Owner;
use crate::tls_table::Identity;

/// How long a whole handshake may take.
const HANDSHAKE_PATIENCE: Micros = Micros::from_secs(120);

/// What has happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stir {
    /// It is made.
    Made,
    /// It has room again.
    Room,
    /// Bytes wait in it.
    Bytes,
    /// It is the turn of its handshake.
    Turn,
    /// It is over, or that has lasted too long.
    Over,
}

/// A connection.
pub struct Wire {
    connection: ConnectionId,
    secrecy: Secrecy,
    /// What the host has to prove to be when TLS is spoken, and the name by which it is called.
    identity: Identity,
    called: Option<String>,
    /// What was wrong with what the host has shown.
    fault: Option<Fault>,
}

/// How what is said travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Secrecy {
    /// As it is.
    Clear,
    /// TLS is about to be spoken: what the handshake waits for, and until when it may.
    Handshake(Awaited, Instant),
    /// In records of TLS.
    Sealed,
}

/// What a handshake waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    /// The host.
    Bytes,
    /// Its turn.
    Turn,
    /// Room for what it will say.
    Room,
}

impl Wire {
    /// Calls a host, for `owner`. `called`: its name, or its address where that has to be proved.
    /// `None`: there is no connection to be had.
    pub fn to(
        address: SocketAddr,
        identity: Identity,
        called: Option<String>,
        owner: Owner,
        (turn, connections): (Turn, &mut Connections),
    ) -> Option<Wire> {
        let connection = connections.connect(turn.now, address, owner).ok()?;
        Some(Wire { connection, secrecy: Secrecy::Clear, identity, called, fault: None })
    }

    /// The connection.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Until when a handshake may last, if there is one.
    pub fn handshake_until(&self) -> Option<Instant> {
        if let Secrecy::Handshake(_, until) = self.secrecy { Some(until) } else { None }
    }

    /// Whether TLS is spoken.
    pub fn is_sealed(&self) -> bool {
        self.secrecy == Secrecy::Sealed
    }

    /// What was wrong with what the host has shown, if that was why it was refused.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Says what there is to say, as far as there is room.
    pub fn say(&mut self, speaker: &mut impl Speaker, turn: Turn, connections: &mut Connections) {
        if let Secrecy::Handshake(Awaited::Room, _) = self.secrecy {
            self.hear(speaker, turn, connections);
        }
        let output = speaker.output();
        if output.is_empty() {
            return;
        }
        let sent = match self.secrecy {
            Secrecy::Clear => {
                connections.send_by(turn.now, self.connection, Channel::Plain, output)
            }
            Secrecy::Sealed => connections.send_by(turn.now, self.connection, Channel::Tls, output),
            Secrecy::Handshake(..) => 0,
        };
        speaker.sent(sent);
    }

    /// Hears what has arrived.
    pub fn hear(&mut self, speaker: &mut impl Speaker, turn: Turn, connections: &mut Connections) {
        loop {
            let mut waiting = connections.take_waiting(self.connection);
            let done = match self.secrecy {
                Secrecy::Clear => {
                    let bytes = waiting.bytes();
                    speaker.arrived(bytes);
                    bytes.len()
                }
                Secrecy::Handshake(Awaited::Turn, _) => 0,
                Secrecy::Handshake(..) | Secrecy::Sealed => {
                    self.records_arrived(waiting.bytes(), speaker, turn, connections)
                }
            };
            if !connections.put_back(waiting, done) {
                break;
            }
        }
        self.look_whether_reset(speaker, connections);
    }

    /// Looks at records, and answers how many bytes of them are done with.
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
            let (count, event) = connections.open(turn, self.connection, rest, Opening::Next);
            done += count;
            match event {
                Event::Plaintext(length) => {
                    speaker.arrived(bytes.get(done..done + length).unwrap_or_default());
                    done += connections
                        .tls_mut()
                        .of_mut(self.connection)
                        .map_or(length, |tls| tls.taken(length));
                }
                Event::Nothing if !connections.is_reset() => {}
                Event::Nothing | Event::Bytes | Event::Established(_) => return done,
                Event::Work => {
                    self.step_is_due(turn, connections);
                    return done;
                }
                Event::PeerClosed => {
                    speaker.lost(Lost::Closed);
                    return bytes.len();
                }
                Event::Failed(_) => {
                    speaker.lost(Lost::Tls);
                    return bytes.len();
                }
            }
        }
    }

    /// TLS may begin: the host has said so, or its port speaks nothing else. The first word is
    /// ours.
    pub fn begin_handshake(
        &mut self,
        speaker: &mut impl Speaker,
        turn: Turn,
        connections: &mut Connections,
    ) {
        if !connections.tls_mut().call(self.connection, self.called.as_deref(), &self.identity) {
            return speaker.lost(Lost::Tls);
        }
        self.secrecy = Secrecy::Handshake(Awaited::Bytes, turn.now + HANDSHAKE_PATIENCE);
        self.hear(speaker, turn, connections);
    }

    /// The handshake can go a step, when its turn has come.
    fn step_is_due(&mut self, turn: Turn, connections: &mut Connections) {
        let Secrecy::Handshake(awaited, _) = &mut self.secrecy else { return };
        if !connections.has_room_for_handshake(self.connection) {
            *awaited = Awaited::Room;
            return connections.want_room(turn.now, self.connection);
        }
        *awaited = Awaited::Turn;
        connections.enter(TurnGate::Handshake, self.connection.0);
    }

    /// Its turn has come.
    pub fn step(&mut self, speaker: &mut impl Speaker, turn: Turn, connections: &mut Connections) {
        let Secrecy::Handshake(awaited, _) = &mut self.secrecy else { return };
        *awaited = Awaited::Bytes;
        let event = connections.step_in_handshake(turn, self.connection);
        connections.leave(TurnGate::Handshake, self.connection.0);
        match event {
            Some(Event::Established(_)) => {
                self.secrecy = Secrecy::Sealed;
                connections.tls_mut().call_ended();
                speaker.secured();
            }
            Some(Event::Failed(failure)) => {
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
            (Some(_), Identity::Vouched) => Lost::Unvouched,
            (Some(_), _) => Lost::Unproven,
        }
    }

    /// There was no room for what TLS had to say: the connection is gone.
    fn look_whether_reset(&self, speaker: &mut impl Speaker, connections: &mut Connections) {
        if connections.take_reset_of(self.connection) {
            speaker.lost(Lost::Tls);
        }
    }

    /// Nothing more will be said by this connection; what was, is sent.
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
        if let Secrecy::Handshake(awaited, _) = self.secrecy {
            connections.tls_mut().call_ended();
            if awaited == Awaited::Turn {
                connections.leave(TurnGate::Handshake, self.connection.0);
            }
        }
        self.secrecy = Secrecy::Clear;
        connections.tls_mut().end(self.connection);
    }
}
