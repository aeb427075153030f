//! Connections: the layer between the network and the protocols.
//!
//! A connection is TCP, TLS if it is used, a deadline, and an owner, which gets its events. One
//! type, [`Connections`], holds all of them, so that their states agree.
//!
//! Invariants:
//! - A connection that we open has an [`Owner`] until the owner closes it. A connection that we
//!   accept belongs to the session in its slot.
//! - If we reset the connection of a session, no event reports that. So [`Connections::take_reset`]
//!   reports it before anything else happens.
//! - Decrypted bytes that the session did not take stay decrypted at the start of the stream. They
//!   are put back before the session reads again.
//! - A frame waits at one [`TurnGate`] at most.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod announcements;
mod caller;
mod client_transport;
mod connections;
pub mod crowding;
mod link;
mod outcomes;
mod owner;
mod tls_table;
mod turn_gates;

pub use announcements::{announce_address, announce_ipv6_addresses, announce_share};
pub use caller::{Caller, Channel};
pub use client_transport::{ClientTransport, TransportEvent};
pub use connections::{Connections, RecordAction, UnreadBytes};
pub use outcomes::Handshakes;
pub use owner::Owner;
pub use tls_table::{ServerIdentity, TlsTable};
pub use turn_gates::TurnGate;
