//! ARP (RFC 826): answers requests for our address, resolves neighbours, and defends our address
//! (RFC 5227).

use core::net::Ipv4Addr;

use machine::{Ethernet, Instant, Micros};
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress};

use crate::counters::Counter;
use crate::ethernet::{self, BROADCAST, ETHERNET_BYTES, TYPE_ARP};
use crate::ipv4;
use crate::link::{Link, release_held};
use crate::neighbours::ArpOrigin;

/// Bytes of an ARP packet for IPv4 over Ethernet.
const ARP_BYTES: usize = 28;
/// The shortest time between two defences of our address against another machine (RFC 5227 §2.4).
const DEFEND_INTERVAL: Micros = Micros::from_secs(10);

/// The effect of an ARP packet outside of the neighbour cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArpOutcome {
    Nothing,
    /// A neighbour announces its hardware address without asking for ours.
    Neighbour {
        address: Ipv4Addr,
        hardware: Ethernet,
    },
    /// Another machine uses our address.
    Conflict,
}

impl Link {
    /// Handles a received ARP packet (RFC 826, RFC 5227).
    pub(crate) fn arp_arrived(&mut self, now: Instant, bytes: &[u8]) -> ArpOutcome {
        let parsed = ArpPacket::new_checked(bytes).and_then(|packet| ArpRepr::parse(&packet));
        let Ok(ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(hardware),
            source_protocol_addr: sender,
            target_protocol_addr: target,
            ..
        }) = parsed
        else {
            self.counters.count(Counter::DroppedMalformed);
            return ArpOutcome::Nothing;
        };
        let (hardware, Some(own)) = (Ethernet(hardware), self.interface.address) else {
            return ArpOutcome::Nothing;
        };
        if hardware == self.interface.hardware {
            return ArpOutcome::Nothing;
        }
        if !ethernet::is_unicast(hardware) {
            self.counters.count(Counter::DroppedMalformed);
            return ArpOutcome::Nothing;
        }
        if sender == own.address {
            return self.conflict(now);
        }
        let asks_us = operation == ArpOperation::Request && target == own.address;
        // The gateway may be outside of our network: clouds assign addresses with a prefix of 32
        // bits.
        let is_near = own.is_on_link(sender) || own.gateway == Some(sender);
        let can_be_neighbour =
            is_near && ipv4::is_possible_source(sender) && Some(sender) != own.broadcast();
        if can_be_neighbour {
            let how = if asks_us { ArpOrigin::RequestForUs } else { ArpOrigin::Other };
            self.neighbour_learned(now, sender, hardware, how);
        }
        if asks_us {
            self.counters.count(Counter::ArpRepliesOut);
            self.send_arp(ArpOperation::Reply, hardware, own.address, hardware, sender);
        } else if can_be_neighbour {
            return ArpOutcome::Neighbour { address: sender, hardware };
        }
        ArpOutcome::Nothing
    }

    /// Adopts a neighbour's hardware address from an ARP packet that another core has received.
    pub(crate) fn neighbour_heard(&mut self, now: Instant, address: Ipv4Addr, hardware: Ethernet) {
        self.neighbour_learned(now, address, hardware, ArpOrigin::Other);
    }

    fn neighbour_learned(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        hardware: Ethernet,
        how: ArpOrigin,
    ) {
        let gateway = self.gateway();
        if self.neighbours.learn(now, address, hardware, how, gateway) {
            release_held(
                &mut self.neighbours.held,
                address,
                hardware,
                &mut self.outbox,
                &mut self.counters,
            );
        }
    }

    /// Sends the ARP requests that are due.
    pub(crate) fn send_arp_requests(&mut self, now: Instant) {
        while let Some(request) = self.neighbours.next_request(now) {
            self.counters.count(Counter::ArpRequestsOut);
            let to = request.hardware.unwrap_or(BROADCAST);
            self.send_arp(
                ArpOperation::Request,
                to,
                self.interface.own(),
                Ethernet([0; 6]),
                request.address,
            );
        }
        self.counters
            .add(Counter::DroppedUnresolved, core::mem::take(&mut self.neighbours.held.dropped));
    }

    fn conflict(&mut self, now: Instant) -> ArpOutcome {
        self.counters.count(Counter::ArpConflicts);
        if self.defended_at.is_none_or(|last| now.since(last) >= DEFEND_INTERVAL) {
            self.defended_at = Some(now);
            self.announce();
        }
        ArpOutcome::Conflict
    }

    /// Announces our address on the link (RFC 5227 §2.3).
    pub(crate) fn announce(&mut self) {
        self.counters.count(Counter::ArpRequestsOut);
        let own = self.interface.own();
        self.send_arp(ArpOperation::Request, BROADCAST, own, Ethernet([0; 6]), own);
    }

    fn send_arp(
        &mut self,
        operation: ArpOperation,
        to: Ethernet,
        from: Ipv4Addr,
        target: Ethernet,
        address: Ipv4Addr,
    ) {
        let Some(frame) = self.outbox.reserve(ETHERNET_BYTES + ARP_BYTES) else {
            self.counters.count(Counter::DroppedOut);
            return;
        };
        let own = self.interface.hardware;
        let Some((ethernet, rest)) = frame.split_first_chunk_mut() else {
            unreachable!("the reserved buffer is too short")
        };
        *ethernet =
            ethernet::EthernetHeader { destination: to, source: own, kind: TYPE_ARP }.bytes();
        let repr = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(own.0),
            source_protocol_addr: from,
            target_hardware_addr: EthernetAddress(target.0),
            target_protocol_addr: address,
        };
        repr.emit(&mut ArpPacket::new_unchecked(rest));
    }
}
