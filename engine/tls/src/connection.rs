//! One connection: a handshake, then traffic, then nothing.
//!
//! ```text
//!   bytes arrived ──▸ receive ──▸ Work ──▸ work ──▸ … ──▸ Established
//!                             ──▸ Plaintext(n): there, in the buffer ──▸ the session takes k of them ──▸ taken(k)
//!                                                                    ──▸ it needs more than there are ──▸ more
//!   the session sends ──▸ seal ──▸ a record, in the buffer that goes out
//! ```

use alloc::boxed::Box;
use core::mem::replace;

use crate::client::ClientSettings;
use crate::failure::Failure;
use crate::handshake::{Handshake, Stepped};
use crate::protection::Text;
use crate::settings::Settings;
use crate::traffic::Traffic;

/// Bytes of memory that a connection takes at most once its handshake is done.
pub const CONNECTION_BYTES_MAX: usize = 2 * 1024;

/// Bytes of memory that a connection takes at most before that.
pub const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;

/// A connection: 16 bytes, and what they point to.
pub struct Connection {
    expect: Expect,
}

const _: () = assert!(size_of::<Connection>() <= 16);

/// What the connection waits for.
enum Expect {
    /// The rest of the handshake.
    Handshake(Box<Handshake>),
    /// Records.
    Traffic(Box<Traffic>),
    /// Nothing any more.
    Nothing,
}

/// What became of the bytes that were offered.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// So many bytes at the front of what was offered are done with.
    pub done: usize,
    /// So many bytes were written to the buffer and are to be sent now, before anything else is.
    pub written: usize,
    /// What has happened.
    pub event: Event,
}

impl Progress {
    pub(crate) fn nothing(event: Event) -> Progress {
        Progress { done: 0, written: 0, event }
    }
}

/// What has happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// There is no whole record: offer the bytes again, with more.
    Bytes,
    /// A record of the handshake is there: [`Connection::work`] is due, whenever its time has come.
    Work,
    /// Nothing to speak of: offer the rest.
    Nothing,
    /// The handshake is done.
    Established(Agreed),
    /// So many bytes of plaintext lie in the buffer behind those that are done with. Tell [`Connection::taken`] how many of them were taken; the
    /// others are to be offered again as they are now.
    Plaintext(usize),
    /// The peer will send no more.
    PeerClosed,
    /// The connection is over.
    Failed(Failure),
}

/// What was agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// The protocol that is spoken inside, of those of [`crate::Offer`]; `None` when the client has named none.
    pub protocol: Option<&'static [u8]>,
    /// Whether a ticket spared the key exchange's signature.
    pub is_resumed: bool,
    /// The version.
    pub version: Version,
}

/// A version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// What was sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// So many bytes of the plaintext were taken.
    pub taken: usize,
    /// So many bytes were written.
    pub written: usize,
}

impl Connection {
    /// A client has connected, or is about to speak TLS.
    ///
    /// Errors: the library has refused the settings.
    pub fn accept(settings: &Settings) -> Result<Connection, Failure> {
        Ok(Connection { expect: Expect::Handshake(Box::new(Handshake::new(settings)?)) })
    }

    /// We have connected to a server, and are about to speak TLS: the first word is ours, so [`Event::Work`] is due before anything has arrived.
    ///
    /// `host`: the name by which the server is called, for it to choose its certificate by.
    ///
    /// Errors: the library has refused the settings.
    pub fn connect(settings: &ClientSettings, host: Option<&str>) -> Result<Connection, Failure> {
        Ok(Connection {
            expect: Expect::Handshake(Box::new(Handshake::of_client(settings, host)?)),
        })
    }

    /// Looks at the first record of what has arrived and was not done with; opens it where it lies.
    ///
    /// `out`: [`crate::FLIGHT_BYTES_MAX`] bytes of room.
    pub fn receive(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        match &mut self.expect {
            Expect::Handshake(handshake) => Progress::nothing(handshake.look(bytes)),
            Expect::Traffic(traffic) => traffic.receive(bytes, out),
            Expect::Nothing => Progress { done: bytes.len(), written: 0, event: Event::Bytes },
        }
    }

    /// The session needs more than the plaintext that lies at the front: opens the next record too, and moves what lies before it up to it, so that both are one text.
    /// All is as for [`Connection::receive`]; `bytes` begins with that plaintext, and has room for it and two records.
    pub fn more(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.more(bytes, out),
            Expect::Handshake(_) | Expect::Nothing => Progress::nothing(Event::Bytes),
        }
    }

    /// Goes one step in the handshake: one record, and at most one operation with the private key. `bytes` and `out` are as for [`Connection::receive`].
    pub fn work(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        let Expect::Handshake(handshake) = &mut self.expect else {
            return Progress::nothing(Event::Nothing);
        };
        let progress = match handshake.step(bytes, out) {
            Stepped::On(progress) => progress,
            Stepped::Done { done, written } => Progress { done, written, event: self.establish() },
        };
        if let Event::Failed(_) = progress.event {
            self.expect = Expect::Nothing;
        }
        progress
    }

    fn establish(&mut self) -> Event {
        let Expect::Handshake(handshake) = replace(&mut self.expect, Expect::Nothing) else {
            return Event::Nothing;
        };
        match handshake.into_traffic() {
            Ok((traffic, agreed)) => {
                self.expect = Expect::Traffic(traffic);
                Event::Established(agreed)
            }
            Err(failure) => Event::Failed(failure),
        }
    }

    /// The first `count` bytes of [`Event::Plaintext`] were taken. Answers how many bytes of the stream, from the first of those on, are done with.
    pub fn taken(&mut self, count: usize) -> usize {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.taken(count),
            Expect::Handshake(_) | Expect::Nothing => 0,
        }
    }

    /// So many bytes at the stream's front were changed where they lie, and are to be offered again as they are now: plaintext that was not taken, or parts of a message of
    /// the handshake.
    pub fn held(&self) -> usize {
        match &self.expect {
            Expect::Handshake(handshake) => handshake.held(),
            Expect::Traffic(traffic) => traffic.held(),
            Expect::Nothing => 0,
        }
    }

    /// How many bytes of the stream there have to be before another look brings more than the last did: so a long record is looked at when it begins and when
    /// it is whole, and not with each of its segments.
    pub fn wanted(&self) -> usize {
        match &self.expect {
            Expect::Handshake(handshake) => handshake.wanted(),
            Expect::Traffic(traffic) => traffic.wanted(),
            Expect::Nothing => 0,
        }
    }

    /// Seals as much of `plaintext` as fits into one record that fits into `into`, which must have more than [`crate::SEALED_OVERHEAD_MAX`] bytes. Takes nothing before the
    /// handshake is done, nor once the connection is closed for sending.
    pub fn seal<'a>(&mut self, plaintext: impl Into<Text<'a>>, into: &mut [u8]) -> Sealed {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.seal(plaintext.into(), into),
            Expect::Handshake(_) | Expect::Nothing => Sealed { taken: 0, written: 0 },
        }
    }

    /// Says that nothing more will be sent, once, and answers how many bytes that took. What arrives is still opened.
    pub fn close(&mut self, into: &mut [u8]) -> usize {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.close(into),
            Expect::Handshake(_) | Expect::Nothing => 0,
        }
    }

    /// As if our key had sealed all records but so many.
    #[cfg(test)]
    pub(crate) fn leave(&mut self, left: u64) {
        if let Expect::Traffic(traffic) = &mut self.expect {
            traffic.leave(left);
        }
    }
}
