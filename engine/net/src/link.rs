//! The send path for all packets except the segments of connections. It finds the hardware address
//! of the next hop, writes the Ethernet and IP headers, and puts the frame into the outbox. If the
//! hardware address is unknown, the frame waits in [`Held`] until [`crate::arp`] or [`crate::ndp`]
//! has resolved it.

use core::net::Ipv4Addr;

use machine::{Card, Ethernet, Instant, Machine, OutgoingFrame, TransmitError};

use crate::change_tracked::ChangeTracked;
use crate::config::Ipv6Addressing;
use crate::counters::{Counter, Counters};
use crate::ethernet::{self, BROADCAST, ETHERNET_BYTES, TYPE_IPV4, TYPE_IPV6};
use crate::flow::{Flow, SynSender};
use crate::held::Held;
use crate::interface::{Addressee, Interface, Ipv4Interface};
use crate::ip::{Ip, Local};
use crate::ipv4::{self, IPV4_BYTES};
use crate::ipv6::{self, IPV6_BYTES};
use crate::ndp::Ndp;
use crate::neighbours::Neighbours;
use crate::outbox::Outbox;
use crate::random::Random;
use crate::tcp::Options;
use crate::template::{TCP_BYTES, Template};

/// Bytes of the outbox: room for some 800 SYN-ACKs.
const OUTBOX_BYTES: usize = 64 * 1024;
/// Bytes of headers before the payload of a segment over IPv6.
pub(crate) const HEADERS_IPV6: u16 = (IPV6_BYTES + TCP_BYTES) as u16;
/// The MSS over IPv6 of a peer that announces none (RFC 9293 §3.7.1).
const MSS_DEFAULT_IPV6: u16 = ipv6::MTU_MIN - HEADERS_IPV6;
/// Why a packet was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// We have no address yet, or no route to the destination.
    NoRoute,
    /// The packet is longer than the link's MTU, and we send no fragments.
    TooLong,
    /// The outbox has no room: try again in a later turn.
    Full,
}

pub(crate) struct Link {
    pub(crate) interface: Interface,
    pub(crate) neighbours: ChangeTracked<Neighbours>,
    pub(crate) ndp: ChangeTracked<Ndp>,
    pub(crate) outbox: Outbox,
    pub(crate) counters: Counters,
    pub(crate) defended_at: Option<Instant>,
    /// Whether this core acts for the machine.
    is_first: bool,
}

impl Link {
    /// `key`: the source of values that outsiders must not guess. `is_first`: whether this core
    /// acts for the machine.
    pub(crate) fn new(
        card: &Card,
        addressing: &Ipv6Addressing,
        is_first: bool,
        key: Random,
    ) -> Link {
        Link {
            interface: Interface { hardware: card.address, mtu: card.mtu, address: None },
            neighbours: ChangeTracked::new(Neighbours::new(ETHERNET_BYTES + usize::from(card.mtu))),
            ndp: ChangeTracked::new(Ndp::new(card, addressing, key)),
            outbox: Outbox::with_capacity(
                OUTBOX_BYTES.max(4 * (ETHERNET_BYTES + usize::from(card.mtu))),
            ),
            counters: Counters::new(),
            defended_at: None,
            is_first,
        }
    }

    /// Sets or removes our address. The first core also announces a new address on the link (RFC
    /// 5227 §2.3).
    pub(crate) fn set_address(&mut self, now: Instant, address: Option<Ipv4Interface>) {
        let before = core::mem::replace(&mut self.interface.address, address);
        if before != address {
            self.neighbours.clear();
        }
        let Some(own) = address.filter(|_| self.is_first) else { return };
        if before.map(|before| before.address) != Some(own.address) {
            self.announce();
        }
        if let Some(gateway) = own.gateway {
            self.neighbours.resolve(now, gateway, Some(gateway));
        }
    }

    /// Our address with this number. `None` if we have lost it.
    pub(crate) fn own_address(&self, local: Local) -> Option<Ip> {
        if local.is_ipv4() {
            self.interface.address.map(|own| own.address.into())
        } else {
            self.ndp.own_address(local)
        }
    }

    /// Our source address for packets to `destination`.
    pub(crate) fn source_for(&self, now: Instant, destination: Ip) -> Option<(Local, Ip)> {
        if destination.is_ipv4() {
            self.own_address(Local::IPV4).map(|own| (Local::IPV4, own))
        } else {
            self.ndp.source_for(now, destination.to_v6()).map(|(local, own)| (local, own.into()))
        }
    }

    /// Whether `address` names a single host other than this machine.
    pub(crate) fn is_other_host(&self, address: Ip) -> bool {
        match address.to_v4() {
            Some(address) => self.interface.addressee(address) == Addressee::Others,
            None => {
                self.ndp.addressee(address.to_v6()).0 == Addressee::Others
                    && ipv6::is_unicast(address.to_v6())
            }
        }
    }

    /// Whether there is a route to `destination`: a neighbour as its next hop.
    pub(crate) fn has_route_to(&self, destination: Ip) -> bool {
        match destination.to_v4() {
            Some(destination) => self.interface.next_hop(destination).is_some(),
            None => self.ndp.has_route_to(destination.to_v6()),
        }
    }

    /// The hardware address of the next hop to `destination`. If it is unknown, starts to resolve
    /// it and returns `None`.
    pub(crate) fn hardware_for(&mut self, now: Instant, destination: Ip) -> Option<Ethernet> {
        let known = self.hardware_if_known(now, destination);
        if known.is_none() {
            match destination.to_v4() {
                Some(destination) => {
                    let next_hop = self.interface.next_hop(destination)?;
                    let gateway = self.gateway();
                    self.neighbours.resolve(now, next_hop, gateway);
                }
                None => self.ndp.resolve(now, destination.to_v6()),
            }
        }
        known
    }

    fn hardware_if_known(&mut self, now: Instant, destination: Ip) -> Option<Ethernet> {
        match destination.to_v4() {
            Some(destination) => self.neighbours.lookup(now, self.interface.next_hop(destination)?),
            None => self.ndp.lookup(now, destination.to_v6()),
        }
    }

    /// The hardware address for the answer to a frame that came from `source`, through the hardware
    /// address `came_from`. The route to `source` decides. While the next hop of this route is
    /// unresolved, the answer is sent back to `came_from`.
    ///
    /// Returns `None` if there is no route, or if `came_from` is needed and is no unicast address:
    /// the answer would be sent to a group. Also, a template that is addressed to [`BROADCAST`]
    /// would count as unresolved.
    pub(crate) fn hardware_to_answer(
        &mut self,
        now: Instant,
        source: Ip,
        came_from: Ethernet,
    ) -> Option<Ethernet> {
        let known = match source.to_v4() {
            Some(source) => self.neighbours.lookup(now, self.interface.next_hop(source)?),
            None if !self.ndp.has_route_to(source.to_v6()) => return None,
            None => self.ndp.lookup(now, source.to_v6()),
        };
        known.or(Some(came_from).filter(|card| ethernet::is_unicast(*card)))
    }

    /// Resolves the next hop to `destination` again, because packets seem to get lost. Returns the
    /// address to use until then.
    pub(crate) fn reconfirm_route(&mut self, now: Instant, destination: Ip) -> Option<Ethernet> {
        let known = self.hardware_if_known(now, destination);
        match destination.to_v4() {
            Some(destination) => {
                self.neighbours.reconfirm(now, self.interface.next_hop(destination)?)
            }
            None => self.ndp.reconfirm(now, destination.to_v6()),
        }
        known
    }

    /// The headers for segments to `caller`, which has sent a SYN. `None` if there is no route to
    /// it.
    pub(crate) fn template_for(&mut self, now: Instant, caller: &SynSender) -> Option<Template> {
        let own = self.own_address(caller.flow.local)?;
        let hardware = self.hardware_to_answer(now, caller.flow.peer, caller.came_from)?;
        Some(self.template(hardware, own, &caller.flow))
    }

    /// The headers for segments of `flow` from our address `own` through the neighbour at
    /// `hardware`.
    pub(crate) fn template(&self, hardware: Ethernet, own: Ip, flow: &Flow) -> Template {
        Template::new(self.interface.hardware, hardware, own, flow, self.ndp.hop_limit())
    }

    /// Adapts the MSS in the `options` of a SYN, ours or the peer's, to IPv6. TCP computes with the
    /// headers of IPv4. The header of IPv6 is longer, but the default MSS is larger (RFC 9293
    /// §3.7.1).
    pub(crate) fn adapt_options(&self, local: Local, options: &mut Options) {
        if !local.is_ipv4() {
            options.mss = Some(options.mss.unwrap_or(MSS_DEFAULT_IPV6).min(self.mss_ipv6()));
        }
    }

    /// The MSS over IPv6 on this link.
    pub(crate) fn mss_ipv6(&self) -> u16 {
        self.ndp.mtu().saturating_sub(HEADERS_IPV6)
    }

    /// Sends an IP packet with a payload that `write` fills in.
    ///
    /// Errors: [`Unsent`]. A packet that waits for its neighbour counts as sent.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        packet: &Packet,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Unsent> {
        let destination = packet.destination.to_v4();
        let (header_bytes, mtu) = if destination.is_some() {
            (IPV4_BYTES, self.interface.mtu)
        } else {
            (IPV6_BYTES, self.ndp.mtu())
        };
        let total = header_bytes + packet.payload_bytes;
        if total > usize::from(mtu) {
            return Err(Unsent::TooLong);
        }
        let hardware = match packet.hardware {
            Some(hardware) => Some(hardware),
            None => self.resolve_route(now, packet.destination)?,
        };
        let Some(frame) = self.outbox.reserve(ETHERNET_BYTES + total) else {
            self.counters.count(Counter::DroppedOut);
            return Err(Unsent::Full);
        };
        let kind = if destination.is_some() { TYPE_IPV4 } else { TYPE_IPV6 };
        let header = ethernet::EthernetHeader {
            destination: hardware.unwrap_or(BROADCAST),
            source: self.interface.hardware,
            kind,
        };
        let Some((ethernet, rest)) = frame.split_first_chunk_mut() else {
            unreachable!("the reserved buffer is too short")
        };
        *ethernet = header.bytes();
        let Some((ip, payload)) = rest.split_at_mut_checked(header_bytes) else {
            unreachable!("the reserved buffer is too short")
        };
        match (packet.source.to_v4(), destination) {
            (Some(source), Some(destination)) => {
                ip.copy_from_slice(&ipv4::header(
                    source,
                    destination,
                    packet.protocol,
                    packet.payload_bytes,
                ));
            }
            _ => ip.copy_from_slice(&ipv6::header(
                packet.source.to_v6(),
                packet.destination.to_v6(),
                packet.protocol,
                packet.hop_limit.unwrap_or(self.ndp.hop_limit()),
                packet.payload_bytes,
            )),
        }
        payload.fill(0);
        write(payload);
        if hardware.is_none() {
            self.hold_last(packet.destination);
        }
        Ok(())
    }

    /// The hardware address of the next hop to `destination`. `None` while that address is being
    /// resolved.
    fn resolve_route(&mut self, now: Instant, destination: Ip) -> Result<Option<Ethernet>, Unsent> {
        match destination.to_v4() {
            Some(destination) if self.interface.addressee(destination) == Addressee::Group => {
                return Ok(Some(BROADCAST));
            }
            None if destination.to_v6().is_multicast() => {
                return Ok(Some(ethernet::of_group(destination.to_v6())));
            }
            _ => {}
        }
        if self.has_route_to(destination) {
            return Ok(self.hardware_for(now, destination));
        }
        self.counters.count(Counter::DroppedNoRoute);
        Err(Unsent::NoRoute)
    }

    /// Removes the most recently written frame from the outbox, and keeps it until its neighbour is
    /// resolved.
    fn hold_last(&mut self, destination: Ip) {
        let frame = self.outbox.take_back();
        hold(&self.interface, &mut self.neighbours, &mut self.ndp, destination, frame);
    }

    /// Keeps a frame until the next hop to `destination` is resolved.
    pub(crate) fn hold(&mut self, destination: Ip, frame: &[u8]) {
        hold(&self.interface, &mut self.neighbours, &mut self.ndp, destination, frame);
    }

    /// Sends the frames in the outbox. Returns false if the card's ring is full.
    pub(crate) fn output(&mut self, machine: &mut impl Machine) -> bool {
        while let Some(frame) = self.outbox.front() {
            let outgoing =
                OutgoingFrame { head: frame, payload: &[], checksum: None, segment_bytes: None };
            match machine.transmit(&outgoing) {
                Ok(()) => {
                    self.counters.count(Counter::FramesOut);
                    self.counters.add(Counter::BytesOut, frame.len() as u64);
                }
                Err(TransmitError::Full) => return false,
                Err(TransmitError::Malformed) => self.counters.count(Counter::DroppedOut),
            }
            self.outbox.pop();
        }
        true
    }

    pub(crate) fn gateway(&self) -> Option<Ipv4Addr> {
        self.interface.address.and_then(|own| own.gateway)
    }
}

fn hold(
    interface: &Interface,
    neighbours: &mut Neighbours,
    ndp: &mut Ndp,
    destination: Ip,
    frame: &[u8],
) {
    match destination.to_v4() {
        Some(destination) => {
            if let Some(next_hop) = interface.next_hop(destination) {
                neighbours.held.hold(next_hop, frame);
            }
        }
        None => ndp.hold(destination.to_v6(), frame),
    }
}

/// Sends the frames that waited for `next_hop`, now resolved to `hardware`.
pub(crate) fn release_held<A: Copy + PartialEq>(
    held: &mut Held<A>,
    next_hop: A,
    hardware: Ethernet,
    outbox: &mut Outbox,
    counters: &mut Counters,
) {
    while let Some(frame) = held.take(next_hop) {
        match outbox.reserve(frame.len()) {
            Some(room) => {
                room.copy_from_slice(&frame);
                let Some(destination) = room.first_chunk_mut() else {
                    unreachable!("each frame starts with its header")
                };
                *destination = hardware.0;
            }
            None => counters.count(Counter::DroppedOut),
        }
        held.put_back(frame);
    }
}

/// The parameters of [`Link::send`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Our address, or unspecified while we have none.
    source: Ip,
    destination: Ip,
    protocol: u8,
    payload_bytes: usize,
    /// The next hop's hardware address; `None` to resolve it.
    hardware: Option<Ethernet>,
    /// The hop limit of an IPv6 packet; `None` for the default.
    hop_limit: Option<u8>,
}

impl Packet {
    pub(crate) fn new(source: Ip, destination: Ip, protocol: u8, payload_bytes: usize) -> Packet {
        Packet { source, destination, protocol, payload_bytes, hardware: None, hop_limit: None }
    }

    /// This packet, sent to the neighbour at `hardware`.
    pub(crate) fn by(self, hardware: Ethernet) -> Packet {
        Packet { hardware: Some(hardware), ..self }
    }

    /// This packet, with a hop limit that its receiver checks.
    pub(crate) fn with_hop_limit(self, hop_limit: u8) -> Packet {
        Packet { hop_limit: Some(hop_limit), ..self }
    }
}
