//! One connection. It begins with a handshake, continues with traffic, and then is over.
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

/// The maximum number of bytes of memory that a connection takes after its handshake.
pub const CONNECTION_BYTES_MAX: usize = 2 * 1024;

/// The maximum number of bytes of memory that a connection takes during its handshake.
pub const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;

/// A connection. It has 16 bytes, which point to a heap allocation during the handshake and the
/// traffic.
pub struct Connection {
    expect: Expect,
}

const _: () = assert!(size_of::<Connection>() <= 16);

/// The input that the connection waits for.
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
    /// The number of bytes at the start of the offered bytes that are processed. Do not offer them
    /// again.
    pub done: usize,
    /// The number of bytes written to the output buffer. Send them before any other output.
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
    /// The offered bytes contain no whole record. Offer them again, with more.
    Bytes,
    /// A handshake record has arrived. Call [`Connection::work`] when the core has time for it.
    Work,
    /// No event happened. Offer the rest of the bytes.
    Nothing,
    /// The handshake is complete.
    Established(NegotiatedParameters),
    /// This number of bytes of plaintext is in the buffer, after the processed bytes. Report the
    /// number of plaintext bytes that the session took to [`Connection::taken`]. Offer the other
    /// bytes again, unchanged.
    Plaintext(usize),
    /// The peer has sent `close_notify`, and will send no more data.
    PeerClosed,
    /// The connection is over.
    Failed(Failure),
}

/// The result of the negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NegotiatedParameters {
    /// The application protocol, one of those in [`crate::Offer`]. `None` if the client has named
    /// none.
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
    /// The number of bytes of the plaintext that were encrypted.
    pub taken: usize,
    /// The number of bytes written to the output buffer.
    pub written: usize,
}

impl Connection {
    /// Makes the server side of a connection. The client has connected, or is about to start TLS.
    ///
    /// Errors: rustls refuses the settings.
    pub fn accept(settings: &TlsSettings) -> Result<Connection, Failure> {
        Ok(Connection { expect: Expect::Handshake(Box::new(Handshake::new(settings)?)) })
    }

    /// Makes the client side of a connection to a server. The client sends first, so
    /// [`TlsEvent::Work`] is due before any byte has arrived.
    ///
    /// `host`: the server name to send. The server selects its certificate by this name.
    ///
    /// Errors: rustls refuses the settings.
    pub fn connect(settings: &ClientSettings, host: Option<&str>) -> Result<Connection, Failure> {
        Ok(Connection {
            expect: Expect::Handshake(Box::new(Handshake::of_client(settings, host)?)),
        })
    }

    /// Processes the first record of `bytes`, and decrypts it in place.
    ///
    /// `out`: an output buffer of [`crate::FLIGHT_BYTES_MAX`] bytes.
    pub fn receive(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        match &mut self.expect {
            Expect::Handshake(handshake) => Progress::nothing(handshake.look(bytes)),
            Expect::Traffic(traffic) => traffic.receive(bytes, out),
            Expect::Nothing => Progress { done: bytes.len(), written: 0, event: TlsEvent::Bytes },
        }
    }

    /// Decrypts the next record, for a session that needs more plaintext than is at the start of
    /// `bytes`. Moves the earlier plaintext directly before the new plaintext. The rest is the same
    /// as in [`Connection::receive`]. `bytes` begins with the earlier plaintext, and has space for
    /// that plaintext and two records.
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

    /// Reports that the session took the first `count` bytes of [`TlsEvent::Plaintext`]. Returns
    /// the number of bytes at the start of the stream that are processed now.
    pub fn taken(&mut self, count: usize) -> usize {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.taken(count),
            Expect::Handshake(_) | Expect::Nothing => 0,
        }
    }

    /// The number of bytes at the start of the stream that must be offered again unchanged. They
    /// are plaintext that was not taken, or parts of a handshake message.
    pub fn held(&self) -> usize {
        match &self.expect {
            Expect::Handshake(handshake) => handshake.held(),
            Expect::Traffic(traffic) => traffic.held(),
            Expect::Nothing => 0,
        }
    }

    /// The number of bytes that the stream must have before another call can make progress. So the
    /// caller need not call for each TCP segment of a long record. It calls at the record's start
    /// and when the record is complete.
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
    /// arrive after this are still decrypted.
    pub fn close(&mut self, into: &mut [u8]) -> usize {
        match &mut self.expect {
            Expect::Traffic(traffic) => traffic.close(into),
            Expect::Handshake(_) | Expect::Nothing => 0,
        }
    }

    /// Makes the key behave as if it may encrypt only `left` more records.
    #[cfg(test)]
    pub(crate) fn set_records_left(&mut self, left: u64) {
        if let Expect::Traffic(traffic) = &mut self.expect {
            traffic.set_records_left(left);
        }
    }
}
