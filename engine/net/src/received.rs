//! A received packet, with the fields of its IP header.

use crate::ethernet;
use crate::interface::Addressee;
use crate::ip::{Ip, Local};

/// A received packet of either family, with its link and IP header fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPacket<'a> {
    pub(crate) ethernet: ethernet::EthernetHeader,
    pub(crate) source: Ip,
    pub(crate) destination: Ip,
    /// Our address that the packet was sent to. It is valid only if `addressee` is
    /// [`Addressee::Us`].
    pub(crate) local: Local,
    pub(crate) addressee: Addressee,
    pub(crate) hop_limit: u8,
    /// Whether a router has marked congestion: both ECN bits are set (RFC 3168 §5).
    pub(crate) is_marked: bool,
    pub(crate) protocol: u8,
    /// The offset in `packet` of the field that names the protocol.
    pub(crate) named_at: u16,
    /// The received IP packet from its IP header on. If the datagram was fragmented, this is one
    /// fragment, even after reassembly.
    pub(crate) packet: &'a [u8],
    /// Whether `packet` has the beginning of its datagram: it is no fragment, or the first one. No
    /// ICMP error is sent about any other packet.
    pub(crate) begins_datagram: bool,
    pub(crate) payload: &'a [u8],
    /// Whether the transport checksum is known to be correct.
    pub(crate) verified: bool,
}
