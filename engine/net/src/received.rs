//! A packet on its way up, as far as its IP header has told of it.

use crate::ethernet;
use crate::interface::Meant;
use crate::ip::{Ip, Local};

/// A packet that came, of either family, with what stood around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) ethernet: ethernet::Header,
    pub(crate) source: Ip,
    pub(crate) destination: Ip,
    /// The address of ours that it was sent to; without meaning unless it is `meant` for us.
    pub(crate) local: Local,
    pub(crate) meant: Meant,
    pub(crate) hop_limit: u8,
    /// Whether a router has marked it: both bits of explicit congestion notification are set (RFC 3168 §5).
    pub(crate) is_marked: bool,
    pub(crate) protocol: u8,
    /// Where in `packet` the protocol is named.
    pub(crate) named_at: u16,
    /// From the IP header on, as far as it was received in one piece.
    pub(crate) packet: &'a [u8],
    /// Whether `packet` is the datagram, or its beginning.
    pub(crate) begins_datagram: bool,
    pub(crate) payload: &'a [u8],
    /// Whether the transport checksum is known to be right.
    pub(crate) verified: bool,
}
