//! TLS 1.3 and 1.2: one side of one connection, processed in place. The side is a server, or a
//! client such as the one that delivers mail.
//!
//! rustls does the handshake and derives all secrets. After the handshake it hands over the keys.
//! From then on a connection is two keys of the crate `ring` and a few counters. Records are
//! decrypted in the buffer in which they arrived, and encrypted in the buffer from which they are
//! sent. So each byte of plaintext is copied once when it is sent. A received byte is moved only if
//! the session needs the plaintext of several records at once. [`CONNECTION_BYTES_MAX`] is the
//! memory of an idle connection.
//!
//! Each call of a [`Connection`] gets received bytes and an output buffer. A connection does not
//! depend on TCP or sessions, reads no clock and never waits.
//!
//! Invariants:
//! - A connection owns no buffer. It processes whole records, and the caller offers all other bytes
//!   again. Plaintext that the session did not take stays decrypted in the stream.
//! - [`TlsEvent::Work`] announces work that may need an operation with a private key.
//!   [`Connection::work`] does this work, one record a call. The owner of the connection decides
//!   when it calls [`Connection::work`].
//! - The session gets no plaintext before the handshake is complete, after an error, or after the
//!   peer's `close_notify`.
//! - A nonce is used only once: each direction counts its records, and stops using its key before
//!   the limit of the key.
//! - After a failure the connection writes only the alert.
//!
//! Deliberately absent: RSA key exchange, CBC, SHA-1, renegotiation, compression, early data, and
//! everything before TLS 1.2. A post-handshake message of a client must not be split over several
//! records: the only such message, a key update, has five bytes. Tickets of servers are skipped,
//! whether they are split or not.
//!
//! A step of a handshake is a call into a library and cannot be split. The longest step is one key
//! exchange with X25519 and one signature. This table has the time of this step on a real core, by
//! the key of the certificate:
//!
//! | ECDSA P-256 | Ed25519 | ECDSA P-384 | RSA of 2048 bits | RSA of 4096 bits |
//! |---|---|---|---|---|
//! | 0.1 ms | 0.1 ms | 0.5 ms | 0.65 ms | 22 ms |
//!
//! As a client without a policy we verify no signature. With a policy (DANE or authorities) we
//! verify the signatures of the chain that the server sends in one message. Each takes 0.1 ms (RSA
//! of 4096 bits). The longest step of a client is making a key of X25519MLKEM768, or processing the
//! answer, each under 0.2 ms.
//!
//! With a client that uses X25519MLKEM768, the server's step is 0.08 to 0.1 ms longer. With such a
//! client, a whole handshake with its connection takes 2.34 million instructions in the image,
//! instead of 1.43 million.
//!
//! Random numbers come from the machine: ring calls the crate `getrandom`, and the machine provides
//! the source of that crate. The time of day is the last value set in [`Clock`].
//!
//! Implements: RFC 8446, draft-ietf-tls-ecdhe-mlkem, RFC 5246, RFC 5077 and RFC 8446 section 4.6.1
//! (tickets), RFC 5288, RFC 7905, RFC 7301 (ALPN), RFC 3207 and RFC 7435 (as a client), RFC 6698
//! and RFC 7672 (DANE), RFC 5280 section 6 (certificate authorities), RFC 6066 section 3 (SNI), RFC
//! 6125 section 6.4.
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
mod hello;
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
    CONNECTION_BYTES_MAX, Connection, Encrypted, HANDSHAKE_BYTES_MAX, NegotiatedParameters,
    Progress, TlsEvent, TlsVersion,
};
pub use dane::Published;
pub use failure::{CertificateFault, Failure, FailureCategory};
pub use handshake::FLIGHT_BYTES_MAX;
pub use protection::{ENCRYPTION_OVERHEAD_MAX, SplitPlaintext};
pub use record::{PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX};
pub use settings::{Offer, SettingsError, TlsSettings};
pub use tickets::{TICKET_PERIOD_SECONDS, TicketKeys};

#[cfg(test)]
mod tests;
