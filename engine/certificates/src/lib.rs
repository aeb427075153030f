//! TLS certificates that replace others while the machine serves. They are checked like those of
//! the configuration, stored in the log, and shown on all cores.
//!
//! An uploaded certificate is a message in an internal account, with its chain and its key, in the
//! PEM form in which it came. One core owns that account. Only this core replaces certificates, one
//! at a time:
//!
//! ```text
//!   session, on any core ── the PEM ──▸ owner: check it ─▸ commit the message ─▸ all cores show it
//!                        ◂── the error, or the new list ◂─────────────────────────────────┤
//!                                                            remove superseded messages ◂─┘
//! ```
//!
//! **The rule.** The new certificate replaces every other one for the names that both have. It is
//! placed before the first certificate with a common name. A certificate is removed if the new one
//! covers all of its names. Without a common name the new one is placed last. So a certificate with
//! a name of the first one becomes the first, which is the default for unknown names. After a
//! restart the same is repeated: starting from the certificates of the configuration, the stored
//! messages are applied in order. But if the validity of a configured certificate began after a
//! message was stored, the configured one is newer and stays.
//!
//! Invariants:
//! - A client is told that a certificate is shown only after it is durable and all cores show it.
//! - A message is removed only after its replacement is durable, so after a power cut the old or
//!   the new one exists.
//! - Lists of certificates have versions, and a core never returns to an older one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod asking;
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
