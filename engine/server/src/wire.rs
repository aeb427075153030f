//! A connection that this machine has opened, to bring mail or to ask something, in the clear or over TLS: bytes between whoever speaks by it and the network.
//!
//! Invariants:
//! - Nothing that arrived in the clear is heard once TLS is spoken.
//! - A step of a handshake is gone when its turn has come, at the gate at which sessions wait for theirs.
//! - A handshake has an end within [`HANDSHAKE_PATIENCE`], whatever the host says meanwhile.

use alloc::string::String;
use core::net::SocketAddr;

use machine::{BLOCK_BYTES, Instant, Micros, Turn};
use net::ConnectionId;
use relay::{Lost, Speaker};
use tls::{Event, Fault};

use crate::common::{Common, HANDSHAKES};
use crate::secure::{Identity, Opening};

/// How long a whole handshake may take.
const HANDSHAKE_PATIENCE: Micros = Micros::from_secs(120);

/// What has happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stir {
    /// It is made, or has room again.
    Room,
    Bytes,
    /// It is the turn of its handshake.
    Turn,
    /// It is over, or that has lasted too long.
    Over,
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) connection: ConnectionId,
    secrecy: Secrecy,
    /// Who the host has to prove to be when TLS is spoken, and as whom it is called.
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
    /// Calls a host. `None`: there is no connection to be had.
    pub(crate) fn to(
        address: SocketAddr,
        identity: Identity,
        called: Option<String>,
        common: &mut Common,
    ) -> Option<Wire> {
        let connection = common.net.connect(common.turn.now, address).ok()?;
        Some(Wire { connection, secrecy: Secrecy::Clear, identity, called, fault: None })
    }

    /// Until when a handshake may last, if there is one.
    pub(crate) fn handshake_until(&self) -> Option<Instant> {
        if let Secrecy::Handshake(_, until) = self.secrecy { Some(until) } else { None }
    }

    /// Whether TLS is spoken.
    pub(crate) fn is_sealed(&self) -> bool {
        self.secrecy == Secrecy::Sealed
    }

    /// What was wrong with what the host has shown, if that was why it was refused.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Says what there is to say, as far as there is room.
    pub(crate) fn say(&mut self, speaker: &mut impl Speaker, common: &mut Common) {
        if let Secrecy::Handshake(Awaited::Room, _) = self.secrecy {
            self.hear(speaker, common);
        }
        let Common { net, secure, turn: Turn { now, .. }, .. } = common;
        let output = speaker.output();
        if output.is_empty() {
            return;
        }
        let sent = match self.secrecy {
            Secrecy::Clear => net.send(*now, self.connection, output),
            Secrecy::Sealed => secure.send(*now, self.connection, output.into(), net),
            Secrecy::Handshake(..) => 0,
        };
        speaker.sent(sent);
    }

    /// Hears what has arrived.
    pub(crate) fn hear(&mut self, speaker: &mut impl Speaker, common: &mut Common) {
        let connection = self.connection;
        common.work_on_waiting(connection, |bytes, common| match self.secrecy {
            Secrecy::Clear => {
                speaker.arrived(bytes);
                bytes.len()
            }
            Secrecy::Handshake(Awaited::Turn, _) => 0,
            Secrecy::Handshake(..) | Secrecy::Sealed => self.records_arrived(bytes, speaker, common),
        });
        self.look_whether_broken(speaker, common);
    }

    /// Looks at records, and answers how many bytes of them are done with.
    fn records_arrived(&mut self, bytes: &mut [u8], speaker: &mut impl Speaker, common: &mut Common) -> usize {
        let mut done = 0;
        loop {
            let (count, event) = common.open(self.connection, bytes.get_mut(done..).unwrap_or_default(), Opening::Next);
            done += count;
            match event {
                Event::Plaintext(length) => {
                    speaker.arrived(bytes.get(done..done + length).unwrap_or_default());
                    done += common.secure.of_mut(self.connection).map_or(length, |tls| tls.taken(length));
                }
                Event::Nothing if common.broken.is_none() => {}
                Event::Nothing | Event::Bytes | Event::Established(_) => return done,
                Event::Work => {
                    self.step_is_due(common);
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

    /// TLS may begin: the host has said so, or it is what is spoken at its port. The first word is ours.
    pub(crate) fn begin_handshake(&mut self, speaker: &mut impl Speaker, common: &mut Common) {
        if !common.secure.call(self.connection, self.called.as_deref(), &self.identity) {
            return speaker.lost(Lost::Tls);
        }
        self.secrecy = Secrecy::Handshake(Awaited::Bytes, common.turn.now + HANDSHAKE_PATIENCE);
        self.hear(speaker, common);
    }

    /// The handshake can go a step, when its turn has come.
    fn step_is_due(&mut self, common: &mut Common) {
        let Secrecy::Handshake(awaited, _) = &mut self.secrecy else { return };
        if common.net.send_room(self.connection) < BLOCK_BYTES {
            *awaited = Awaited::Room;
            return common.net.want_room(common.turn.now, self.connection);
        }
        *awaited = Awaited::Turn;
        common.enter(HANDSHAKES, self.connection.0);
    }

    /// Its turn has come.
    pub(crate) fn step(&mut self, speaker: &mut impl Speaker, common: &mut Common) {
        let Secrecy::Handshake(awaited, _) = &mut self.secrecy else { return };
        *awaited = Awaited::Bytes;
        let event = common.step_in_handshake(self.connection);
        common.leave(HANDSHAKES, self.connection.0);
        match event {
            Some(Event::Established(_)) => {
                self.secrecy = Secrecy::Sealed;
                common.secure.call_ended();
                speaker.secured();
            }
            Some(Event::Failed(failure)) => {
                self.fault = failure.fault();
                speaker.lost(self.lost_in_handshake());
            }
            _ => {}
        }
        self.look_whether_broken(speaker, common);
        self.hear(speaker, common);
    }

    fn lost_in_handshake(&self) -> Lost {
        match (self.fault, &self.identity) {
            (None, _) => Lost::Tls,
            (Some(_), Identity::Vouched) => Lost::Unvouched,
            (Some(_), _) => Lost::Unproven,
        }
    }

    /// There was no room for what TLS had to say: the connection is gone.
    fn look_whether_broken(&self, speaker: &mut impl Speaker, common: &mut Common) {
        if common.broken.take_if(|broken| *broken == self.connection).is_some() {
            speaker.lost(Lost::Tls);
        }
    }

    /// Nothing more will be said by this connection; what was, is sent.
    pub(crate) fn close(&mut self, common: &mut Common) {
        common.secure.close(common.turn.now, self.connection, &mut common.net);
        common.net.close(self.connection);
        self.forget_secrets(common);
    }

    /// Ends the connection at once.
    pub(crate) fn end(&mut self, common: &mut Common) {
        common.net.abort(self.connection);
        self.forget_secrets(common);
    }

    fn forget_secrets(&mut self, common: &mut Common) {
        if let Secrecy::Handshake(awaited, _) = self.secrecy {
            common.secure.call_ended();
            if awaited == Awaited::Turn {
                common.leave(HANDSHAKES, self.connection.0);
            }
        }
        self.secrecy = Secrecy::Clear;
        common.secure.end(self.connection);
    }
}
