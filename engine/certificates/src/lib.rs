//! TLS certificates that replace others while the machine serves. They are checked like the
//! certificates of the configuration, stored in the log, and shown by all cores. A core *shows* a
//! certificate from the time on when its TLS handshakes use it. The module [`clock`] has the clock
//! that decides whether they are valid.
//!
//! An uploaded certificate is a message in an internal account. The message has the certificate,
//! its chain and its key, in the uploaded PEM form. Only the core that owns this account replaces
//! certificates, one at a time:
//!
//! ```text
//!   session, on any core ── the PEM ──▸ owner: check it ─▸ commit the message ─▸ all cores show it
//!                        ◂── the error, or the new list ◂─────────────────────────────────┤
//!                                                            remove superseded messages ◂─┘
//! ```
//!
//! **The rule.** The new certificate replaces every other certificate for the names that both have.
//! The new certificate is placed before the first certificate that shares a name with it. If none
//! shares a name, the new certificate is placed last. A certificate is removed if the new one
//! covers all of its names. So if the new certificate shares a name with the first certificate, the
//! new one becomes the first. The first certificate is the default for unknown names.
//!
//! After a restart, the stored messages are applied in order to the certificates of the
//! configuration. But a configured certificate that became valid after a message was stored is
//! newer than that message, and stays.
//!
//! Invariants:
//! - A client is told that all cores show a certificate only after the certificate is durable and
//!   all cores show it.
//! - A message is removed only after its replacement is durable, so after a power cut the old or
//!   the new certificate exists.
//! - Lists of certificates have versions, and a core never returns to an older list.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod asking;
pub mod clock;
mod expiry;
mod keeping;
mod reading;
mod rollout;
mod shown;
mod state;
mod taking;

pub use asking::CERTIFICATE_PATH;
pub use asking::{CertificateAction, METHODS, UPLOAD_BYTES_MAX, reply_to, unknown};
pub use reading::ReadSoFar;
pub use shown::{CertificateUpload, ListVersion, Replaced, Shown, described};
pub use state::{ACCOUNT, CertificateContext, CertificateEvent, Certificates};
