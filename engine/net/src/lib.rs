//! The network stack: Ethernet, ARP, Neighbor Discovery, IPv4, IPv6, ICMP, UDP, DHCP and TCP. Each
//! core runs one [`Net`].
//!
//! One chain of calls parses a received frame in place and turns it into [`Event`]s. The bytes of a
//! connection stay in the frame. Replies are sent at the end of the turn: [`Net::output`] lets each
//! connection with something to send build its segments, and passes these to the card without a
//! copy. Each connection stores a prebuilt header for its segments.
//!
//! ```text
//!   frame_arrived ─ ethernet ─┬─ arp ── link, neighbours
//!                             ├─ ipv4 ─ reassembly ─┬─ icmp, icmpv6 ── ndp
//!                             └─ ipv6 ─ extensions ─┤
//!                                                   ├─ udp ── dhcp, Event::Datagram
//!                                                   └─ tcp ── flow ─┬─ tcp::Tcb ── Event::{…}
//!                                                                   ├─ tcp::HalfOpenTable
//!                                                                   └─ tcp::TimeWaitTable
//!   output ─ dhcp, arp, ndp ─ outbox ─ SYN-ACKs ─ connections with output ─ template ─ transmit
//! ```
//!
//! Invariants:
//! - Every table has its full size at construction. Network input can fill a table but never grow
//!   it.
//! - No packet causes a panic, and no packet for another host is answered.
//! - A connection is in the flow table from its handshake until the end of TIME-WAIT. It is there
//!   in exactly one of three forms: as a half-open connection, a TCB, or a TIME-WAIT entry.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod arp;
mod change_tracked;
mod checksum;
mod config;
mod connections;
mod cores;
mod counters;
mod dhcp;
mod ethernet;
mod event;
mod flow;
mod held;
mod icmp;
mod icmpv6;
mod interface;
mod ip;
mod ipv4;
mod ipv6;
mod link;
mod ndp;
mod neighbours;
mod net;
mod outbox;
mod parcels;
mod random;
mod rate;
mod reassembly;
mod received;
pub mod tcp;
mod template;
#[cfg(test)]
mod tests;
mod udp;

pub use config::{
    Addressing, CORES_MAX, Config, Cores, IPV6_FIXED_MAX, Ipv6Address, Ipv6Addressing, Limits,
    Service,
};
pub use cores::{Arrived, NetMessage, Route};
pub use counters::{Counter, Counters};
pub use event::{ConnectionId, DatagramPlace, EVENTS_MAX, Event, Events};
pub use interface::Ipv4Interface;
pub use link::Unsent;
pub use net::{Net, OutputProgress};
pub use parcels::{Parcel, Sending, Through};
