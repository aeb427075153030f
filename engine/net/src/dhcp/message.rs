//! DHCP messages: writes our requests and parses the answers.

use core::net::Ipv4Addr;

use machine::{Ethernet, Micros};
use smoltcp::wire::{DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress, Ipv4Cidr};

use super::{DhcpRequestKind, NAME_SERVERS_MAX, NameServers, Request};

/// The port of DHCP servers.
pub(crate) const SERVER_PORT: u16 = 67;
/// The port of DHCP clients.
pub(crate) const CLIENT_PORT: u16 = 68;

/// The largest DHCP message that we accept (RFC 2132 §9.10), IP header included.
const MESSAGE_BYTES_MAX: u16 = 1_500;
/// The shortest message that we send. BOOTP relays and servers drop messages that are shorter than
/// a BOOTP message (RFC 951).
const MESSAGE_BYTES_MIN: usize = 300;
const OPTION_ROUTER: u8 = 3;
/// The options that we ask for: subnet mask, router, name servers, lease time, T1, T2.
const WANTED: &[u8] = &[1, 3, 6, 51, 58, 59];
/// The lease time of an infinite lease.
const FOR_EVER: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DhcpReplyKind {
    Offer,
    Acknowledgement,
    Refusal,
}

/// The parsed answer of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DhcpReply {
    pub(super) kind: DhcpReplyKind,
    pub(super) transaction: u32,
    pub(super) address: Ipv4Addr,
    pub(super) prefix_bits: u8,
    pub(super) router: Option<Ipv4Addr>,
    pub(super) name_servers: NameServers,
    pub(super) server: Ipv4Addr,
    pub(super) lease: Option<Micros>,
    pub(super) renew: Option<Micros>,
    pub(super) rebind: Option<Micros>,
}

/// Parses a message. `None` unless it is an answer to this client, which has the card `hardware`.
pub(super) fn parse(bytes: &[u8], hardware: Ethernet) -> Option<DhcpReply> {
    let packet = DhcpPacket::new_checked(bytes).ok()?;
    let repr = DhcpRepr::parse(&packet).ok()?;
    if repr.client_hardware_address != EthernetAddress(hardware.0) {
        return None;
    }
    let kind = match repr.message_type {
        DhcpMessageType::Offer => DhcpReplyKind::Offer,
        DhcpMessageType::Ack => DhcpReplyKind::Acknowledgement,
        DhcpMessageType::Nak => DhcpReplyKind::Refusal,
        _ => return None,
    };
    // Without a mask, the former address class determines the prefix length (RFC 1122 §3.2.2.9).
    let prefix_bits = match repr.subnet_mask {
        Some(mask) => Ipv4Cidr::from_netmask(repr.your_ip, mask).ok()?.prefix_len(),
        None => class_bits(repr.your_ip),
    };
    let mut name_servers = NameServers::new();
    for server in repr.dns_servers.iter().flatten().take(NAME_SERVERS_MAX) {
        assert!(
            name_servers.push(*server).is_ok(),
            "at most as many are taken as there is room for"
        );
    }
    let seconds = |count: u32| {
        if count == FOR_EVER { Micros(u64::MAX) } else { Micros::from_secs(u64::from(count)) }
    };
    Some(DhcpReply {
        kind,
        transaction: repr.transaction_id,
        address: repr.your_ip,
        prefix_bits,
        router: router(&packet),
        name_servers,
        server: repr.server_identifier?,
        lease: repr.lease_duration.map(seconds),
        renew: repr.renew_duration.map(seconds),
        rebind: repr.rebind_duration.map(seconds),
    })
}

/// The first router of the option. The crate smoltcp reads the option only if it lists exactly one
/// router.
fn router(packet: &DhcpPacket<&[u8]>) -> Option<Ipv4Addr> {
    let option = packet.options().find(|option| option.kind == OPTION_ROUTER)?;
    option.data.first_chunk().map(|octets| Ipv4Addr::from_octets(*octets))
}

fn class_bits(address: Ipv4Addr) -> u8 {
    let [first, ..] = address.octets();
    match first {
        0..=127 => 8,
        128..=191 => 16,
        _ => 24,
    }
}

impl Request {
    /// The length of the message in bytes.
    pub(crate) fn len(&self) -> usize {
        self.repr().buffer_len().max(MESSAGE_BYTES_MIN)
    }

    /// Writes the message into `bytes`, which is [`Request::len`] long and zeroed.
    pub(crate) fn emit(&self, bytes: &mut [u8]) {
        // `emit` fails only if the buffer is too short. It is long enough, since `len` has counted
        // all options.
        let written = self.repr().emit(&mut DhcpPacket::new_unchecked(bytes));
        debug_assert!(written.is_ok());
    }

    fn repr(&self) -> DhcpRepr<'static> {
        let hardware = EthernetAddress(self.hardware.0);
        let (message_type, requested_ip, server_identifier) = match self.kind {
            DhcpRequestKind::Discover => (DhcpMessageType::Discover, None, None),
            DhcpRequestKind::Request { address, server } => {
                (DhcpMessageType::Request, Some(address), Some(server))
            }
            DhcpRequestKind::Extend => (DhcpMessageType::Request, None, None),
            DhcpRequestKind::Decline { address, server } => {
                (DhcpMessageType::Decline, Some(address), Some(server))
            }
        };
        let declines = message_type == DhcpMessageType::Decline;
        DhcpRepr {
            message_type,
            transaction_id: self.transaction,
            secs: if declines { 0 } else { self.seconds },
            client_hardware_address: hardware,
            client_ip: self.source,
            your_ip: Ipv4Addr::UNSPECIFIED,
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: None,
            subnet_mask: None,
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            broadcast: false,
            requested_ip,
            client_identifier: Some(hardware),
            server_identifier,
            parameter_request_list: (!declines).then_some(WANTED),
            dns_servers: None,
            max_size: (!declines).then_some(MESSAGE_BYTES_MAX),
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        }
    }
}
