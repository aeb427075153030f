//! Sends the messages that are due on the link: duplicate address detection, router and neighbour
//! solicitations, and listener reports.

use core::net::Ipv6Addr;

use machine::{Ethernet, Instant, Micros};

use crate::counters::Counter;
use crate::icmpv6;
use crate::ip::Ip;
use crate::ipv6::{self, PROTOCOL_ICMPV6};
use crate::link::{Link, Packet};

use super::cache::NeighbourAction;
use super::listening::{self, MldVersion, ReportReason};
use super::message::{self, OutgoingNdp};
use super::own::{AddressOrigin, Due};
use super::{SOLICITATION_INTERVAL_MAX, arrival};

impl Link {
    /// Performs the actions that are due, and sends their messages.
    pub(crate) fn ndp_output(&mut self, now: Instant) {
        if self.ndp.next_deadline() > now {
            return;
        }
        self.ndp.expire(now);
        let wait = self.ndp.parameters.retransmit;
        while let Some(due) = self.ndp.own.next_due(now, wait) {
            match due {
                Due::Solicit(own) => {
                    // The answer to our solicitation is sent to a group. Switches forward it only
                    // if they know that we listen to the group (RFC 4862 §5.4.2).
                    self.report(now, &[ipv6::solicited_node(own.address)], ReportReason::Joined);
                    let solicitation = OutgoingNdp::DetectDuplicate {
                        target: own.address,
                        nonce: own.nonce & arrival::NONCE_MASK,
                    };
                    let group = ipv6::solicited_node(own.address);
                    self.send_ndp(now, Ipv6Addr::UNSPECIFIED, group, None, &solicitation);
                }
                Due::Assigned(own) => {
                    self.ndp.assigned(now, own.origin);
                    // We have a source address now. The first report had none, and routers ignore
                    // such reports (RFC 3590 §4).
                    let groups = self.ndp.groups();
                    self.report(now, &groups, ReportReason::Joined);
                }
            }
        }
        self.solicit_routers(now);
        self.send_listener_reports(now);
        self.solicit_neighbours(now);
        self.ndp.update_next_due();
    }

    /// Sends a router solicitation if one is due. The wait doubles each time (RFC 7559).
    fn solicit_routers(&mut self, now: Instant) {
        let Some(own) = self.link_local().filter(|_| self.ndp.solicit_at <= now) else { return };
        let wait = self.ndp.solicit_wait;
        let tenth = wait.0 / 10;
        self.ndp.solicit_at = now + Micros(wait.0 - tenth + self.ndp.random.below(2 * tenth));
        self.ndp.solicit_wait = Micros(wait.0 * 2).min(SOLICITATION_INTERVAL_MAX);
        let solicitation = OutgoingNdp::SolicitRouters { own: self.interface.hardware };
        self.send_ndp(now, own, ipv6::ALL_ROUTERS, None, &solicitation);
    }

    fn solicit_neighbours(&mut self, now: Instant) {
        let wait = self.ndp.parameters.retransmit;
        while let Some(step) = self.ndp.cache.next_step(now, wait) {
            match step {
                NeighbourAction::Solicit { address, hardware } => {
                    let Some((_, source)) = self.ndp.source_for(now, address) else { continue };
                    let solicitation =
                        OutgoingNdp::Solicit { target: address, own: self.interface.hardware };
                    let to =
                        if hardware.is_some() { address } else { ipv6::solicited_node(address) };
                    self.send_ndp(now, source, to, hardware, &solicitation);
                }
                NeighbourAction::Unreachable { address } => {
                    self.ndp.routers.unreachable_router(address)
                }
            }
        }
        self.counters
            .add(Counter::DroppedUnresolved, core::mem::take(&mut self.ndp.cache.held.dropped));
    }

    fn send_listener_reports(&mut self, now: Instant) {
        let groups = match self.ndp.listening.take_due(now) {
            None => return,
            Some(MldVersion::Two) => {
                let groups = self.ndp.groups();
                return self.report(now, &groups, ReportReason::Queried);
            }
            Some(MldVersion::One) => self.ndp.groups(),
        };
        for group in groups {
            let message = listening::report_version_1(group);
            self.send_report(now, group, message.len(), |bytes| bytes.copy_from_slice(&message));
        }
    }

    /// Reports the groups that we listen to.
    fn report(&mut self, now: Instant, groups: &[Ipv6Addr], why: ReportReason) {
        let length = listening::report_bytes(groups.len());
        self.send_report(now, listening::ALL_LISTENERS_ROUTERS, length, |bytes| {
            listening::write_report(groups, why, bytes);
        });
    }

    /// Sends an MLD message, preceded by its hop-by-hop options.
    fn send_report(
        &mut self,
        now: Instant,
        to: Ipv6Addr,
        length: usize,
        write: impl FnOnce(&mut [u8]),
    ) {
        let (source, to) = (Ip::v6(self.link_local().unwrap_or(Ipv6Addr::UNSPECIFIED)), Ip::v6(to));
        let length = listening::ROUTER_ALERT.len() + length;
        let packet = Packet::new(source, to, listening::PROTOCOL_OPTIONS, length)
            .with_hop_limit(listening::HOP_LIMIT);
        let sent = self.send(now, &packet, |bytes| {
            let Some((options, message)) = bytes.split_first_chunk_mut() else {
                unreachable!("the reserved buffer is too short")
            };
            *options = listening::ROUTER_ALERT;
            write(message);
            icmpv6::seal(source, to, message);
        });
        self.counters.add(Counter::ListenerReportsOut, u64::from(sent.is_ok()));
    }

    /// Sends a Neighbor Discovery message to a neighbour or a group.
    pub(super) fn send_ndp(
        &mut self,
        now: Instant,
        source: Ipv6Addr,
        to: Ipv6Addr,
        hardware: Option<Ethernet>,
        message: &OutgoingNdp,
    ) {
        let (source, to) = (Ip::v6(source), Ip::v6(to));
        let mut packet = Packet::new(source, to, PROTOCOL_ICMPV6, message.len())
            .with_hop_limit(message::HOP_LIMIT);
        if let Some(hardware) = hardware {
            packet = packet.by(hardware);
        }
        let sent = self.send(now, &packet, |bytes| {
            message.emit(bytes);
            icmpv6::seal(source, to, bytes);
        });
        let counter = match message {
            OutgoingNdp::Advertise { .. } => Counter::NeighbourAdvertisementsOut,
            OutgoingNdp::Solicit { .. } | OutgoingNdp::DetectDuplicate { .. } => {
                Counter::NeighbourSolicitationsOut
            }
            OutgoingNdp::SolicitRouters { .. } => Counter::RouterSolicitationsOut,
        };
        self.counters.add(counter, u64::from(sent.is_ok()));
    }

    /// Our link-local address, once it is assigned.
    fn link_local(&self) -> Option<Ipv6Addr> {
        self.ndp
            .own
            .assigned()
            .find(|own| own.origin == AddressOrigin::LinkLocal)
            .map(|own| own.address)
    }
}
