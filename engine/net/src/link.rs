//! The way out for everything that is not the fast path: finds the neighbour, writes Ethernet and IPv4 around a
//! payload, and puts the frame into the outbox, or among those that wait for ARP.

use core::net::Ipv4Addr;

use machine::{Card, Ethernet, Instant, Machine, Micros, Outgoing, TransmitError};
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress};

use crate::counters::Counters;
use crate::ethernet::{self, BROADCAST, ETHERNET_BYTES, TYPE_ARP, TYPE_IPV4};
use crate::interface::{Address, Interface, Meant};
use crate::ipv4::{self, IPV4_BYTES};
use crate::neighbours::{Neighbours, Told};
use crate::outbox::Outbox;

/// Bytes of frames that may wait for the end of the turn: some 800 SYN-ACKs.
const OUTBOX_BYTES: usize = 64 * 1024;
/// Bytes of an ARP packet for IPv4 over Ethernet.
const ARP_BYTES: usize = 28;
/// How often our address is defended against another machine that uses it (RFC 5227 §2.4).
const DEFEND_INTERVAL: Micros = Micros::from_secs(10);

/// Why a packet was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// We have no address yet, or no route to the destination.
    NoRoute,
    /// Longer than the link carries, and we send no fragments.
    TooLong,
    /// No room in the outbox: try again in a later turn.
    Full,
}

/// What an ARP packet meant beyond the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArpNews {
    Nothing,
    /// Another machine uses our address.
    Conflict,
}

pub(crate) struct Link {
    pub(crate) interface: Interface,
    pub(crate) neighbours: Neighbours,
    pub(crate) outbox: Outbox,
    pub(crate) counters: Counters,
    defended_at: Option<Instant>,
}

impl Link {
    pub(crate) fn new(card: &Card) -> Link {
        Link {
            interface: Interface { hardware: card.address, mtu: card.mtu, address: None },
            neighbours: Neighbours::new(ETHERNET_BYTES + usize::from(card.mtu)),
            outbox: Outbox::with_capacity(OUTBOX_BYTES.max(4 * (ETHERNET_BYTES + usize::from(card.mtu)))),
            counters: Counters::default(),
            defended_at: None,
        }
    }

    /// Takes an address, or gives it up, and tells the link of a new one (RFC 5227 §2.3).
    pub(crate) fn set_address(&mut self, now: Instant, address: Option<Address>) {
        let before = core::mem::replace(&mut self.interface.address, address);
        if before != address {
            self.neighbours.clear();
        }
        let Some(own) = address else { return };
        if before.map(|before| before.address) != Some(own.address) {
            self.announce();
        }
        if let Some(gateway) = own.gateway {
            self.neighbours.resolve(now, gateway, Some(gateway));
        }
    }

    /// Where packets to `destination` go, if that is known now. Asks for it when it is not.
    pub(crate) fn hardware_for(&mut self, now: Instant, destination: Ipv4Addr) -> Option<Ethernet> {
        let next_hop = self.interface.next_hop(destination)?;
        let known = self.neighbours.lookup(now, next_hop);
        if known.is_none() {
            self.neighbours.resolve(now, next_hop, self.gateway());
        }
        known
    }

    /// Where to send the answer to a frame that came from `source` at `came_from`: to whom the route names, or back
    /// where it came from as long as ARP knows no better.
    pub(crate) fn hardware_to_answer(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        came_from: Ethernet,
    ) -> Option<Ethernet> {
        let next_hop = self.interface.next_hop(source)?;
        Some(self.neighbours.lookup(now, next_hop).unwrap_or(came_from))
    }

    /// Sends an IPv4 packet of `payload_bytes`, which `write` fills in. Without `hardware` the neighbour is looked up.
    ///
    /// `source`: our address, or unspecified for DHCP.
    pub(crate) fn send_ipv4(
        &mut self,
        now: Instant,
        packet: &Packet,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Unsent> {
        let total = IPV4_BYTES + packet.payload_bytes;
        if total > usize::from(self.interface.mtu) {
            return Err(Unsent::TooLong);
        }
        let hardware = match packet.hardware {
            Some(hardware) => Some(hardware),
            None if self.interface.meant(packet.destination) == Meant::Everybody => Some(BROADCAST),
            None if self.interface.next_hop(packet.destination).is_none() => {
                self.counters.dropped_no_route += 1;
                return Err(Unsent::NoRoute);
            }
            None => self.hardware_for(now, packet.destination),
        };
        let Some(frame) = self.outbox.reserve(ETHERNET_BYTES + total) else {
            self.counters.dropped_out += 1;
            return Err(Unsent::Full);
        };
        let header = ethernet::Header {
            destination: hardware.unwrap_or(BROADCAST),
            source: self.interface.hardware,
            kind: TYPE_IPV4,
        };
        let Some((ethernet, rest)) = frame.split_first_chunk_mut() else { return Err(Unsent::Full) };
        *ethernet = header.bytes();
        let Some((ip, payload)) = rest.split_first_chunk_mut() else { return Err(Unsent::Full) };
        *ip = ipv4::header(packet.source, packet.destination, packet.protocol, packet.payload_bytes);
        payload.fill(0);
        write(payload);
        if hardware.is_none() {
            self.hold_last(packet.destination);
        }
        Ok(())
    }

    /// Takes back the frame that was just written, to wait until ARP has an answer.
    fn hold_last(&mut self, destination: Ipv4Addr) {
        let Some(next_hop) = self.interface.next_hop(destination) else { return };
        if let Some(frame) = self.outbox.take_back() {
            self.neighbours.hold(next_hop, frame);
        }
    }

    /// An ARP packet came (RFC 826, RFC 5227).
    pub(crate) fn arp_arrived(&mut self, now: Instant, bytes: &[u8]) -> ArpNews {
        let parsed = ArpPacket::new_checked(bytes).and_then(|packet| ArpRepr::parse(&packet));
        let Ok(ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(hardware),
            source_protocol_addr: sender,
            target_protocol_addr: target,
            ..
        }) = parsed
        else {
            self.counters.dropped_malformed += 1;
            return ArpNews::Nothing;
        };
        let (hardware, Some(own)) = (Ethernet(hardware), self.interface.address) else { return ArpNews::Nothing };
        if hardware == self.interface.hardware {
            return ArpNews::Nothing;
        }
        if !ethernet::is_unicast(hardware) {
            self.counters.dropped_malformed += 1;
            return ArpNews::Nothing;
        }
        if sender == own.address {
            return self.conflict(now);
        }
        let asks_us = operation == ArpOperation::Request && target == own.address;
        // The gateway may lie outside of the network: clouds give addresses with a prefix of 32 bits.
        let is_near = own.is_on_link(sender) || own.gateway == Some(sender);
        let can_be_neighbour = is_near && ipv4::is_possible_source(sender);
        if can_be_neighbour && Some(sender) != own.broadcast() {
            let how = if asks_us { Told::ByAskingUs } else { Told::Otherwise };
            if self.neighbours.told(now, sender, hardware, how, self.gateway()) {
                self.release_held(sender, hardware);
            }
        }
        if asks_us {
            self.counters.arp_replies_out += 1;
            self.send_arp(ArpOperation::Reply, hardware, own.address, hardware, sender);
        }
        ArpNews::Nothing
    }

    /// Sends the ARP requests that are due.
    pub(crate) fn ask_neighbours(&mut self, now: Instant) {
        while let Some(question) = self.neighbours.next_question(now) {
            self.counters.arp_requests_out += 1;
            let to = question.hardware.unwrap_or(BROADCAST);
            self.send_arp(ArpOperation::Request, to, self.interface.own(), Ethernet([0; 6]), question.address);
        }
        self.counters.dropped_unresolved += core::mem::take(&mut self.neighbours.dropped);
    }

    /// Sends what waits in the outbox; false when the card has no room for more.
    pub(crate) fn output(&mut self, machine: &mut impl Machine) -> bool {
        while let Some(frame) = self.outbox.front() {
            let outgoing = Outgoing { head: frame, payload: &[], checksum: None, segment_bytes: None };
            match machine.transmit(&outgoing) {
                Ok(()) => {
                    self.counters.frames_out += 1;
                    self.counters.bytes_out += frame.len() as u64;
                }
                Err(TransmitError::Full) => return false,
                Err(TransmitError::Malformed) => self.counters.dropped_out += 1,
            }
            self.outbox.pop();
        }
        true
    }

    fn gateway(&self) -> Option<Ipv4Addr> {
        self.interface.address.and_then(|own| own.gateway)
    }

    fn release_held(&mut self, next_hop: Ipv4Addr, hardware: Ethernet) {
        while let Some(frame) = self.neighbours.take_held(next_hop) {
            match self.outbox.reserve(frame.len()) {
                Some(room) => {
                    room.copy_from_slice(&frame);
                    if let Some(destination) = room.first_chunk_mut() {
                        *destination = hardware.0;
                    }
                }
                None => self.counters.dropped_out += 1,
            }
            self.neighbours.put_back(frame);
        }
    }

    fn conflict(&mut self, now: Instant) -> ArpNews {
        self.counters.arp_conflicts += 1;
        if self.defended_at.is_none_or(|last| now.since(last) >= DEFEND_INTERVAL) {
            self.defended_at = Some(now);
            self.announce();
        }
        ArpNews::Conflict
    }

    fn announce(&mut self) {
        self.counters.arp_requests_out += 1;
        let own = self.interface.own();
        self.send_arp(ArpOperation::Request, BROADCAST, own, Ethernet([0; 6]), own);
    }

    fn send_arp(&mut self, operation: ArpOperation, to: Ethernet, from: Ipv4Addr, target: Ethernet, asked: Ipv4Addr) {
        let Some(frame) = self.outbox.reserve(ETHERNET_BYTES + ARP_BYTES) else {
            self.counters.dropped_out += 1;
            return;
        };
        let own = self.interface.hardware;
        let Some((ethernet, rest)) = frame.split_first_chunk_mut() else { return };
        *ethernet = ethernet::Header { destination: to, source: own, kind: TYPE_ARP }.bytes();
        let repr = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(own.0),
            source_protocol_addr: from,
            target_hardware_addr: EthernetAddress(target.0),
            target_protocol_addr: asked,
        };
        repr.emit(&mut ArpPacket::new_unchecked(rest));
    }
}

/// What [`Link::send_ipv4`] needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) protocol: u8,
    pub(crate) payload_bytes: usize,
    /// Where to send it; `None` to find out.
    pub(crate) hardware: Option<Ethernet>,
}
