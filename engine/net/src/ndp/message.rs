//! Neighbor Discovery messages: parses received ones and writes ours.

use core::net::Ipv6Addr;

use machine::{Ethernet, Micros};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::time::Duration;
use smoltcp::wire::{
    EthernetAddress, Icmpv6Packet, Icmpv6Repr, NdiscNeighborFlags, NdiscOption, NdiscOptionRepr,
    NdiscPrefixInfoFlags, NdiscRepr,
};

use crate::ethernet;

use super::cache::AdvertisedNeighbour;

/// The types of the messages (RFC 4861 §4).
pub(super) const ROUTER_ADVERTISEMENT: u8 = 134;
pub(super) const NEIGHBOUR_SOLICITATION: u8 = 135;
pub(super) const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
pub(super) const REDIRECT: u8 = 137;

/// The hop limit of all Neighbor Discovery messages. A forwarded packet has a lower hop limit,
/// because the router has decremented it.
pub(super) const HOP_LIMIT: u8 = 255;

/// The number of bytes before the options, by the type of the message.
const ROUTER_ADVERTISEMENT_BYTES: usize = 16;
const NEIGHBOUR_BYTES: usize = 24;
/// The unit of option lengths, in bytes: the length of the shortest option.
const OPTION_BYTES: usize = 8;
const OPTION_NONCE: u8 = 14;
const OPTION_NAME_SERVERS: u8 = 25;

/// Bytes of a nonce in an option of one unit (RFC 3971 §5.3.2).
const NONCE_BYTES: usize = 6;

/// A message with its options.
pub(super) struct NdpMessage<'a> {
    pub(super) kind: u8,
    bytes: &'a [u8],
    options: &'a [u8],
}

/// The parameters in a router advertisement.
pub(super) struct RouterParameters {
    pub(super) hop_limit: Option<u8>,
    pub(super) lifetime: Micros,
    pub(super) reachable: Option<Micros>,
    pub(super) retransmit: Option<Micros>,
}

/// A prefix in a router advertisement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AdvertisedPrefix {
    pub(super) prefix: Ipv6Addr,
    pub(super) bits: u8,
    pub(super) is_on_link: bool,
    pub(super) is_for_addresses: bool,
    pub(super) valid: Micros,
    pub(super) preferred: Micros,
}

impl<'a> NdpMessage<'a> {
    /// Parses a message with a correct checksum. `None` for another type, or if it is malformed.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<NdpMessage<'a>> {
        let [kind, code, ..] = *bytes.first_chunk::<4>()?;
        let fixed = match kind {
            ROUTER_ADVERTISEMENT => ROUTER_ADVERTISEMENT_BYTES,
            NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT => NEIGHBOUR_BYTES,
            _ => return None,
        };
        let options = bytes.get(fixed..)?;
        // `split_option` refuses a truncated option, and an option of length zero, which would
        // cause an endless loop. Both make the message malformed.
        let mut rest = options;
        while let Some((_, following)) = split_option(rest) {
            rest = following;
        }
        (code == 0 && rest.is_empty()).then_some(NdpMessage { kind, bytes, options })
    }

    /// The address that the message is about.
    pub(super) fn target(&self) -> Ipv6Addr {
        self.packet().target_addr()
    }

    /// Whether the sender of an advertisement is a router.
    pub(super) fn is_from_router(&self) -> bool {
        self.packet().neighbor_flags().contains(NdiscNeighborFlags::ROUTER)
    }

    /// The target of an advertisement, and the claim about it.
    pub(super) fn claim(&self) -> (Ipv6Addr, AdvertisedNeighbour) {
        let flags = self.packet().neighbor_flags();
        let claim = AdvertisedNeighbour {
            hardware: self.target_hardware(),
            solicited: flags.contains(NdiscNeighborFlags::SOLICITED),
            overrides: flags.contains(NdiscNeighborFlags::OVERRIDE),
        };
        (self.target(), claim)
    }

    pub(super) fn router_parameters(&self) -> RouterParameters {
        let packet = self.packet();
        let micros = |span: Duration| Micros(span.total_micros());
        let nonzero = |span: Duration| Some(micros(span)).filter(|span| span.0 != 0);
        RouterParameters {
            hop_limit: Some(packet.current_hop_limit()).filter(|limit| *limit != 0),
            lifetime: micros(packet.router_lifetime()),
            reachable: nonzero(packet.reachable_time()),
            retransmit: nonzero(packet.retrans_time()),
        }
    }

    /// The source link-layer address option.
    pub(super) fn source_hardware(&self) -> Option<Ethernet> {
        self.reprs().find_map(|option| match option {
            NdiscOptionRepr::SourceLinkLayerAddr(address) => card(address.as_bytes()),
            _ => None,
        })
    }

    /// The target link-layer address option.
    pub(super) fn target_hardware(&self) -> Option<Ethernet> {
        self.reprs().find_map(|option| match option {
            NdiscOptionRepr::TargetLinkLayerAddr(address) => card(address.as_bytes()),
            _ => None,
        })
    }

    pub(super) fn mtu(&self) -> Option<u32> {
        self.reprs().find_map(
            |option| if let NdiscOptionRepr::Mtu(mtu) = option { Some(mtu) } else { None },
        )
    }

    pub(super) fn prefixes(&self) -> impl Iterator<Item = AdvertisedPrefix> {
        self.reprs().filter_map(|option| match option {
            NdiscOptionRepr::PrefixInformation(about) if about.prefix_len <= 128 => {
                Some(AdvertisedPrefix {
                    prefix: about.prefix,
                    bits: about.prefix_len,
                    is_on_link: about.flags.contains(NdiscPrefixInfoFlags::ON_LINK),
                    is_for_addresses: about.flags.contains(NdiscPrefixInfoFlags::ADDRCONF),
                    valid: Micros(about.valid_lifetime.total_micros()),
                    preferred: Micros(about.preferred_lifetime.total_micros()),
                })
            }
            _ => None,
        })
    }

    /// The nonce, if it is as long as our nonces.
    pub(super) fn nonce(&self) -> Option<u64> {
        let nonce = self.options_of(OPTION_NONCE).next()?;
        let [a, b, c, d, e, f] = <[u8; NONCE_BYTES]>::try_from(nonce).ok()?;
        Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// The name servers with their lifetimes (RFC 8106 §5.1).
    pub(super) fn name_servers(&self) -> impl Iterator<Item = (Ipv6Addr, Micros)> {
        self.options_of(OPTION_NAME_SERVERS).flat_map(|body| {
            let (lifetime, addresses) = match body.split_first_chunk::<6>() {
                Some(([_, _, a, b, c, d], addresses)) => {
                    (u32::from_be_bytes([*a, *b, *c, *d]), addresses)
                }
                None => (0, &[] as &[u8]),
            };
            let (addresses, _) = addresses.as_chunks::<16>();
            let lifetime = Micros::from_secs(lifetime.into());
            addresses.iter().map(move |address| (Ipv6Addr::from_octets(*address), lifetime))
        })
    }

    fn packet(&self) -> Icmpv6Packet<&'a [u8]> {
        Icmpv6Packet::new_unchecked(self.bytes)
    }

    /// The options that smoltcp parses.
    fn reprs(&self) -> impl Iterator<Item = NdiscOptionRepr<'a>> {
        core::iter::successors(split_option(self.options), |(_, rest)| split_option(rest))
            .filter_map(|(option, _)| {
                NdiscOptionRepr::parse(&NdiscOption::new_checked(option).ok()?).ok()
            })
    }

    /// The bodies of the options of a kind, without type and length.
    fn options_of(&self, kind: u8) -> impl Iterator<Item = &'a [u8]> {
        core::iter::successors(split_option(self.options), |(_, rest)| split_option(rest))
            .filter_map(move |(option, _)| {
                option.split_first_chunk::<2>().filter(|([found, _], _)| *found == kind)
            })
            .map(|(_, body)| body)
    }
}

/// The first option, and the bytes after it. `None` if the option is empty or truncated.
fn split_option(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [_, units, ..] = *bytes.first_chunk::<2>()?;
    let length = usize::from(units) * OPTION_BYTES;
    if units == 0 { None } else { bytes.split_at_checked(length) }
}

fn card(bytes: &[u8]) -> Option<Ethernet> {
    bytes
        .first_chunk()
        .map(|bytes| Ethernet(*bytes))
        .filter(|address| ethernet::is_unicast(*address))
}

/// A Neighbor Discovery message that we send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OutgoingNdp {
    /// A router solicitation.
    SolicitRouters { own: Ethernet },
    /// A neighbour solicitation; `own`: our hardware address, for the answer.
    Solicit { target: Ipv6Addr, own: Ethernet },
    /// A solicitation for duplicate address detection.
    DetectDuplicate { target: Ipv6Addr, nonce: u64 },
    /// A neighbour advertisement of our address.
    Advertise { target: Ipv6Addr, own: Ethernet, solicited: bool },
}

impl OutgoingNdp {
    fn repr(&self) -> NdiscRepr<'static> {
        let raw = |card: Ethernet| EthernetAddress(card.0).into();
        match *self {
            OutgoingNdp::SolicitRouters { own } => {
                NdiscRepr::RouterSolicit { lladdr: Some(raw(own)) }
            }
            OutgoingNdp::Solicit { target, own } => {
                NdiscRepr::NeighborSolicit { target_addr: target, lladdr: Some(raw(own)) }
            }
            OutgoingNdp::DetectDuplicate { target, .. } => {
                NdiscRepr::NeighborSolicit { target_addr: target, lladdr: None }
            }
            OutgoingNdp::Advertise { target, own, solicited } => {
                let solicited = if solicited {
                    NdiscNeighborFlags::SOLICITED
                } else {
                    NdiscNeighborFlags::empty()
                };
                let flags = NdiscNeighborFlags::OVERRIDE | solicited;
                NdiscRepr::NeighborAdvert { flags, target_addr: target, lladdr: Some(raw(own)) }
            }
        }
    }

    /// The length of the message in bytes.
    pub(super) fn len(&self) -> usize {
        let nonce =
            if matches!(self, OutgoingNdp::DetectDuplicate { .. }) { OPTION_BYTES } else { 0 };
        Icmpv6Repr::Ndisc(self.repr()).buffer_len() + nonce
    }

    /// Writes the message, without its checksum, into `bytes`, which is [`OutgoingNdp::len`] long
    /// and zeroed.
    pub(super) fn emit(&self, bytes: &mut [u8]) {
        let (repr, unspecified) = (Icmpv6Repr::Ndisc(self.repr()), Ipv6Addr::UNSPECIFIED);
        let (message, option) = bytes.split_at_mut(repr.buffer_len());
        let mut packet = Icmpv6Packet::new_unchecked(message);
        repr.emit(&unspecified, &unspecified, &mut packet, &ChecksumCapabilities::ignored());
        if let OutgoingNdp::DetectDuplicate { nonce, .. } = self {
            let Some(option) = option.first_chunk_mut::<OPTION_BYTES>() else {
                unreachable!("the reserved buffer is too short")
            };
            let [_, _, a, b, c, d, e, f] = nonce.to_be_bytes();
            *option = [OPTION_NONCE, 1, a, b, c, d, e, f];
        }
    }
}
