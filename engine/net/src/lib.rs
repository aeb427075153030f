//! From frames to ordered bytes and back: Ethernet, ARP and Neighbor Discovery, IPv4 and IPv6, ICMP, UDP, DHCP and TCP, one
//! [`Net`] a core.
//!
//! A frame goes up through one chain of calls and in place, and comes out as an [`Event`]: bytes of a connection lie in
//! the frame itself. Replies go down at the end of the turn: [`Net::output`] lets every connection that has something
//! to say build its segments from a header made when the connection was, and hands them to the card without a copy.
//!
//! ```text
//!   frame_arrived ─ ethernet ─┬─ arp ── link, neighbours
//!                             ├─ ipv4 ─ reassembly ─┬─ icmp, icmpv6 ── ndp
//!                             └─ ipv6 ─ extensions ─┤
//!                                                   ├─ udp ── dhcp, Event::Datagram
//!                                                   └─ tcp ── flow ─┬─ tcp::Tcb ── Event::{Accepted, Data, …}
//!                                                                   ├─ tcp::HalfOpenTable
//!                                                                   └─ tcp::TimeWaitTable
//!   output ─ dhcp, arp, ndp ─ outbox ─ SYN-ACKs ─ connections with something to send ─ template ─ Machine::transmit
//! ```
//!
//! Invariants:
//! - Everything is sized at construction; what comes from the network can fill a table and never grow one.
//! - Nothing in a packet panics, and nothing that is not for us is answered.
//! - A connection stands in the flow table from its handshake until TIME-WAIT is over, in exactly one of three forms.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod arp;
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
mod kept;
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
pub use event::{ConnectionId, EVENTS_MAX, Event, Events, Place};
pub use interface::Address;
pub use link::Unsent;
pub use net::{Net, Output};
pub use parcels::{Parcel, Sending, Through};
