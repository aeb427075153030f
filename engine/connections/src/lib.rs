//! Connections: what lies between the network and whatever speaks by it.
//!
//! A connection is TCP, TLS where that is spoken, a deadline, and an owner, which is told what
//! happens to it. All of them are one type, [`Connections`], so that their states agree.
//!
//! Invariants:
//! - What we open has an [`Owner`] from its first segment to its last; what we accept belongs to
//!   the session in its slot.
//! - A session's connection that is reset by us is named by [`Connections::take_reset`] before
//!   anything else happens: no event says so.
//! - What was opened and not taken lies at the stream's front as it was opened: it is put back
//!   before the next look.
//! - A frame waits at one [`TurnGate`] at most.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod announcements;
mod caller;
mod connections;
mod link;
mod outcomes;
mod owner;
mod tls_table;
mod wire;

pub use announcements::{announce_address, announce_ipv6_addresses, announce_share};
pub use caller::{Caller, Channel};
pub use connections::{Connections, Opening, TurnGate, Waiting};
pub use outcomes::Handshakes;
pub use owner::Owner;
pub use tls_table::{Identity, TlsTable};
pub use wire::{Stir, Wire};
