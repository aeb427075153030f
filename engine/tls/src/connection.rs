//! One connection: a handshake, then traffic, then nothing.
//!
//! ```text
//!   bytes arrived ──▸ receive ──▸ Work ──▸ work ──▸ … ──▸ Established
//!                             ──▸ Plaintext(n), in the buffer
//!                                   ──▸ the session takes k of n bytes ──▸ taken(k)
//!                                   ──▸ the session needs more than n  ──▸ more
//!   the session sends ──▸ encrypt ──▸ an encrypted record in the output buffer
//! ```

use alloc::boxed::Box;
use core::mem::replace;

use crate::client::ClientSettings;
use crate::failure::Failure;
use crate::handshake::{Handshake, Stepped};
use crate::protection::SplitPlaintext;
use crate::settings::TlsSettings;
use crate::traffic::Traffic;

/// The most bytes of memory that a connection takes after its handshake.
pub const CONNECTION_BYTES_MAX: usize = 2 * 1024;

/// The most bytes of memory that a connection takes during its handshake.
pub const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;

/// A connection: 16 bytes, plus what they point to.
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
    /// Nothing: the connection is over.
    Nothing,
}

/// The result of offering bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// This many bytes at the start of the offered bytes are not needed any more.
    pub done: usize,
    /// This many bytes were written to the output buffer. Send them before anything else.
    pub written: usize,
    /// The event.
    pub event: TlsEvent,
}

impl Progress {
    pub(crate) fn nothing(event: TlsEvent) -> Progress {
        Progress { done: 0, written: 0, event }
    }
}

/// An event of a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum TlsEvent {
    /// There is no whole record. Offer the bytes again, with more.
    Bytes,
    /// A handshake record is there. Call [`Connection::work`] when there is time for it.
    Work,
    /// No event. Offer the rest.
    Nothing,
    /// The handshake is complete.
    Established(NegotiatedParameters),
    /// This many bytes of plaintext are in the buffer, after the bytes that are done. Tell
    /// [`Connection::taken`] how many of them were taken. Offer the others again, unchanged.
    Plaintext(usize),
    /// The peer will send no more.
    PeerClosed,
    /// The connection is over.
    Failed(Failure),
}

/// The result of the negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NegotiatedParameters {
    /// The application protocol, one of [`crate::Offer`]. `None` if the client has named none.
    pub protocol: Option<&'static [u8]>,
    /// Whether the session was resumed with a ticket, without a signature.
    pub is_resumed: bool,
    /// The TLS version.
    pub version: TlsVersion,
}

/// A TLS version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// The result of encrypting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encrypted {
    /// This many bytes of the plaintext were taken.
    pub taken: usize,
    /// This many bytes were written.
    pub written: usize,
}

impl Connection {
    /// A client has connected, or is about to start TLS.
    ///
    /// Errors: rustls refuses the settings.
    pub fn accept(settings: &TlsSettings) -> Result<Connection, Failure> {
        Ok(Connection { expect: Expect::Handshake(Box::new(Handshake::new(settings)?)) })
    }

    /// We have connected to a server, and are about to start TLS. The client sends first, so
    /// [`TlsEvent::Work`] is due before any byte has arrived.
    ///
    /// `host`: the server name to send, by which the server selects its certificate.
    ///
    /// Errors: rustls refuses the settings.
    pub fn connect(settings: &ClientSettings, host: Option<&str>) -> Result<Connection, Failure> {
        Ok(Connection {
            expect: Expect::Handshake(Box::new(Handshake::of_client(settings, host)?)),
        })
    }

    /// Looks at the first record among the bytes that are not done, and decrypts it in place.
    ///
    /// `out`: an output buffer of [`crate::FLIGHT_BYTES_MAX`] bytes.
    pub fn receive(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        match &mut self.expect {
            Expect::Handshake(handshake) => Progress::nothing(handshake.look(bytes)),
            Expect::Traffic(traffic) => traffic.receive(bytes, out),
            Expect::Nothing => Progress { done: bytes.len(), written: 0, event: TlsEvent::Bytes },
        }
    }

    /// The session needs more plaintext than is at the start of `bytes`. Decrypts the next record
    /// too, and moves the earlier plaintext directly before its plaintext. The rest is as in
    /// [`Connection::receive`]. `bytes` begins with that plaintext, and has space for it and two
    /// records.
    pub fn more(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.more(bytes, out),
            Expect::Handshake(_) | Expect::Nothing => Progress::nothing(TlsEvent::Bytes),
        }
    }

    /// Does one step of the handshake: one record, and at most one operation with the private key.
    /// `bytes` and `out` are as in [`Connection::receive`].
    pub fn work(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        let Expect::Handshake(handshake) = &mut self.expect else {
            return Progress::nothing(TlsEvent::Nothing);
        };
        let progress = match handshake.step(bytes, out) {
            Stepped::On(progress) => progress,
            Stepped::Done { done, written } => Progress { done, written, event: self.establish() },
        };
        if let TlsEvent::Failed(_) = progress.event {
            self.expect = Expect::Nothing;
        }
        progress
    }

    fn establish(&mut self) -> TlsEvent {
        let Expect::Handshake(handshake) = replace(&mut self.expect, Expect::Nothing) else {
            return TlsEvent::Nothing;
        };
        match handshake.into_traffic() {
            Ok((traffic, agreed)) => {
                self.expect = Expect::Traffic(traffic);
                TlsEvent::Established(agreed)
            }
            Err(failure) => TlsEvent::Failed(failure),
        }
    }

    /// The session took the first `count` bytes of [`TlsEvent::Plaintext`]. Returns the number of
    /// bytes at the start of the stream that are done now.
    pub fn taken(&mut self, count: usize) -> usize {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.taken(count),
            Expect::Handshake(_) | Expect::Nothing => 0,
        }
    }

    /// The number of bytes at the start of the stream that were changed in place. Offer them again
    /// unchanged. They are plaintext that was not taken, or parts of a handshake message.
    pub fn held(&self) -> usize {
        match &self.expect {
            Expect::Handshake(handshake) => handshake.held(),
            Expect::Traffic(traffic) => traffic.held(),
            Expect::Nothing => 0,
        }
    }

    /// The number of bytes that the stream must have before another call can make progress. So a
    /// long record is examined when it begins and when it is complete, and not for each of its
    /// segments.
    pub fn wanted(&self) -> usize {
        match &self.expect {
            Expect::Handshake(handshake) => handshake.wanted(),
            Expect::Traffic(traffic) => traffic.wanted(),
            Expect::Nothing => 0,
        }
    }

    /// Encrypts as much of `plaintext` as fits into one record in `into`, which must have more than
    /// [`crate::ENCRYPTION_OVERHEAD_MAX`] bytes. Takes nothing before the handshake is complete, or
    /// after the connection is closed for sending.
    pub fn encrypt<'a>(
        &mut self,
        plaintext: impl Into<SplitPlaintext<'a>>,
        into: &mut [u8],
    ) -> Encrypted {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.encrypt(plaintext.into(), into),
            Expect::Handshake(_) | Expect::Nothing => Encrypted { taken: 0, written: 0 },
        }
    }

    /// Writes a `close_notify` alert, once. Returns the number of bytes written. Records that
    /// arrive are still decrypted.
    pub fn close(&mut self, into: &mut [u8]) -> usize {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.close(into),
            Expect::Handshake(_) | Expect::Nothing => 0,
        }
    }

    /// Pretends that our key may encrypt only `left` more records.
    #[cfg(test)]
    pub(crate) fn leave(&mut self, left: u64) {
        if let Expect::Traffic(traffic) = &mut self.expect {
            traffic.leave(left);
        }
    }
}
