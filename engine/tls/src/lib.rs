//! TLS 1.3 and 1.2: one side of one connection, worked on where its records lie: the server's, or that of a client that brings mail.
//!
//! The handshake is rustls', and so are all secrets. Once a handshake is done rustls hands over the keys, and from then on a connection is two keys of ring's
//! and a few counters: records are opened in the buffer in which they arrived, and sealed in the buffer from which they are sent. So each byte
//! of plaintext is copied once on its way out and not at all on its way in, and an idle connection costs what [`Connection`] says.
//!
//! A [`Connection`] is offered bytes and lent buffers; it knows no TCB and no session, reads no clock and waits for nothing.
//!
//! Invariants:
//! - A connection owns no buffer. Of what arrived it takes whole records, and leaves everything else to be offered again; a record that was opened and whose
//!   plaintext was not taken lies opened in the stream.
//! - Whatever may cost an operation with a private key is announced ([`Event::Work`]) and done by [`Connection::work`], one record a call: whoever
//!   owns the connection says when.
//! - No plaintext is handed out before the handshake is done, nor after an error or the peer's `close_notify`.
//! - A nonce is used once: each direction counts its records, and its key ends before its limit.
//! - After a failure nothing is sent but the alert that says so.
//!
//! Deliberately absent: RSA key exchange, CBC, SHA-1, renegotiation, compression, early data, and everything before TLS 1.2. A message after the handshake that is
//! cut over several records is refused from clients: the only one there is has five bytes. Of servers' tickets nothing is kept, however they are cut.
//!
//! A step of a handshake cannot be cut: it is a call into a library. The longest, measured on a real core (one key exchange with X25519 and one signature), by the certificate's key:
//!
//! | ECDSA P-256 | Ed25519 | ECDSA P-384 | RSA of 2048 bits | RSA of 4096 bits |
//! |---|---|---|---|---|
//! | 0.1 ms | 0.1 ms | 0.5 ms | 0.65 ms | 22 ms |
//!
//! As a client we check no signature where nothing says whose it has to be, and some where it is published or authorities have to vouch for it, of 0.1 ms each (RSA of 4096 bits), as many as a chain has that fits into a message: making a key of X25519MLKEM768 is the longest step then, and opening what is answered, each under 0.2 ms.
//!
//! A client that exchanges keys by X25519MLKEM768 makes that 0.08 to 0.1 ms longer; a whole handshake with its connection then takes 2.34 million instructions in the image instead of 1.43.
//!
//! Randomness comes from the machine: ring asks the crate `getrandom`, which is ours. The time of day is what [`Clock`] was last told.
//!
//! Answers to: RFC 8446, draft-ietf-tls-ecdhe-mlkem, RFC 5246, RFC 5077 and RFC 8446 section 4.6.1 (tickets), RFC 5288, RFC 7905, RFC 7301 (ALPN), RFC 3207 and RFC 7435 (as a client), RFC 6698 and RFC 7672 (DANE), RFC 5280 section 6 (what authorities say of a server), RFC 6066 section 3 (SNI), RFC 6125 section 6.4.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod alert;
mod authorities;
mod certificate;
mod client;
mod clock;
mod connection;
mod dane;
mod failure;
mod handshake;
mod hybrid;
mod names;
mod protection;
mod record;
mod settings;
mod tickets;
mod traffic;

pub use alert::Alert;
pub use authorities::{AUTHORITIES_MAX, Authorities, NotAuthorities};
pub use certificate::{
    CHAIN_BYTES_MAX, Certificate, CertificateError, Day, Fingerprint, RSA_BITS_MAX,
};
pub use client::ClientSettings;
pub use clock::Clock;
pub use connection::{
    Agreed, CONNECTION_BYTES_MAX, Connection, Event, HANDSHAKE_BYTES_MAX, Progress, Sealed, Version,
};
pub use dane::Published;
pub use failure::{Failure, Fault, Reason};
pub use handshake::FLIGHT_BYTES_MAX;
pub use protection::{SEALED_OVERHEAD_MAX, Text};
pub use record::{PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX};
pub use settings::{Offer, Settings, SettingsError};
pub use tickets::{TICKET_PERIOD_SECONDS, TicketKeys};

#[cfg(test)]
mod tests;
