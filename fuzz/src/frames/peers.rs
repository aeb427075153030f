//! The peers on the wire: a few hosts, each with a few ports. They remember the last segment of the
//! network.
//!
//! The byte of a stream is a function of its sequence number, for all peers. So overlapping
//! segments never contradict each other.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::action::{Kind, Off, PeerFrame, Port, Quoted, TcpFields};
use super::{PORT, US, US_IPV6};
use crate::network::check::{self, Segment};
use crate::network::hardware;
use crate::network::packets::{self, Tcp};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
/// The bit of a peer's number that means IPv6.
const HIGH: u8 = 128;
const SYN: u8 = 2;
const ACK: u8 = 16;
/// The first port of peers.
const FIRST_PORT: u16 = 4_000;

/// The byte of a stream at this sequence number.
pub(super) fn byte_at(sequence: u32) -> u8 {
    sequence.wrapping_mul(2_654_435_761).to_be_bytes()[0]
}

/// A peer and its port.
pub(super) type Name = (Ipv4Addr, u16);

/// The numbers of a connection that a peer knows.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The sequence number that the network expects next from the peer.
    expected: u32,
    /// The sequence number after the network's last byte.
    next: u32,
    /// The sequence number of the peer's first byte: the last SYN-ACK acknowledged up to it.
    stream_begins: u32,
    our_port: u16,
}

#[derive(Default)]
pub(super) struct Peers {
    known: BTreeMap<Name, Known>,
    /// The network's last DHCP transaction.
    transaction: [u8; 4],
    /// The network uses IPv6. Packets are IPv6 if the highest bit of their peer or protocol is set.
    pub(super) uses_ipv6: bool,
    /// A peer may have sent bytes that do not match their sequence numbers.
    pub(super) sent_free_bytes: bool,
}

/// The address of a peer: one of five on the link, one of two behind the gateway, or the broadcast
/// address.
fn address(peer: u8) -> Ipv4Addr {
    match peer % 8 {
        low @ 0..5 => Ipv4Addr::new(10, 0, 0, 3 + low),
        5 => Ipv4Addr::new(192, 0, 2, 1),
        6 => Ipv4Addr::new(198, 51, 100, 7),
        _ => Ipv4Addr::BROADCAST,
    }
}

fn port(port: u8) -> u16 {
    FIRST_PORT + u16::from(port % 3)
}

impl Peers {
    /// Records the numbers in a frame that the network has sent. Returns the TCP segment in it.
    pub(super) fn record(&mut self, frame: &[u8]) -> Option<Segment> {
        let udp_to_server =
            [frame.get(23), frame.get(36), frame.get(37)] == [Some(&17), Some(&0), Some(&67)];
        if let (true, Some(&[a, b, c, d])) = (udp_to_server, frame.get(46..50)) {
            self.transaction = [a, b, c, d];
        }
        let segment = check::frame(frame)?;
        self.learn(&segment);
        Some(segment)
    }

    fn learn(&mut self, segment: &Segment) {
        let known = self.known.entry(segment.to).or_default();
        if segment.flags & ACK != 0 {
            known.expected = segment.acknowledgment;
        }
        let length = segment.payload_bytes
            + u32::from(segment.flags & SYN != 0)
            + u32::from(segment.flags & 1 != 0);
        known.next = segment.sequence.wrapping_add(length);
        known.our_port = segment.from_port;
        if segment.flags & (SYN | ACK) == SYN | ACK {
            known.stream_begins = segment.acknowledgment;
        }
    }

    /// The sequence number of the peer's first byte on a connection that was just accepted.
    pub(super) fn stream_begins(&self, name: Name) -> Option<u32> {
        self.known.get(&name).map(|known| known.stream_begins)
    }

    /// The bytes of a frame. `None` if the packet would be too long.
    pub(super) fn frame(&mut self, frame: &PeerFrame) -> Option<Vec<u8>> {
        let (peer, packet) = match frame {
            PeerFrame::Tcp(fields) => (fields.peer, self.segment(fields)),
            PeerFrame::Udp { peer, from_port, to_port, bytes } => {
                let to_port = match to_port {
                    Port::Bound => 53,
                    Port::DhcpClient => 68,
                    Port::Any(port) => *port,
                };
                (
                    *peer,
                    packets::ipv4(
                        address(*peer),
                        US,
                        17,
                        0,
                        &packets::udp((address(*peer), *from_port), (US, to_port), bytes),
                    ),
                )
            }
            PeerFrame::Icmp { peer, kind, code, rest, quoted }
                if self.uses_ipv6 && peer & HIGH != 0 =>
            {
                let message =
                    [&[*kind, *code, 0, 0], &rest[..], &self.quoted(*peer, quoted)].concat();
                return Some(ipv6_frame(*peer, *code, 58, &message));
            }
            PeerFrame::Ipv4 { peer, protocol, to, bytes } if self.uses_ipv6 && peer & HIGH != 0 => {
                self.sent_free_bytes = true;
                return Some(ipv6_frame(*peer, *to, *protocol, bytes));
            }
            PeerFrame::Icmp { peer, kind, code, rest, quoted } => {
                let message = packets::icmp(*kind, *code, *rest, &self.quoted(*peer, quoted));
                (*peer, packets::ipv4(address(*peer), US, 1, 0, &message))
            }
            PeerFrame::Arp { peer, operation, target, hardware: last } => {
                return Some(arp(*peer, *operation, *target, *last));
            }
            PeerFrame::Dhcp { kind, flags, lease, options } => {
                (0, self.dhcp(*kind, *flags, *lease, options))
            }
            PeerFrame::Fragment { peer, protocol, field, bytes } => {
                self.sent_free_bytes = true;
                (*peer, packets::ipv4(address(*peer), US, *protocol, *field, bytes))
            }
            PeerFrame::Ipv4 { peer, protocol, to, bytes } => {
                self.sent_free_bytes = true;
                let to = if *to == 0 { US } else { Ipv4Addr::new(10, 0, 0, *to) };
                (*peer, packets::ipv4(address(*peer), to, *protocol, 0, bytes))
            }
            PeerFrame::Ethernet { to, kind, bytes } => {
                self.sent_free_bytes = true;
                return Some(packets::ethernet(hardware(3), hardware(*to), *kind, bytes));
            }
            PeerFrame::Raw(bytes) => {
                self.sent_free_bytes = true;
                return Some(bytes.clone());
            }
        };
        let broadcast = machine::Ethernet([0xff; 6]);
        let to = if matches!(frame, PeerFrame::Dhcp { flags, .. } if flags & 1 == 1) {
            broadcast
        } else {
            hardware(2)
        };
        (packet.len() <= 1_500)
            .then(|| packets::ethernet(hardware(3 + peer % 8), to, IPV4, &packet))
    }

    fn segment(&self, fields: &TcpFields) -> Vec<u8> {
        let from = (address(fields.peer), port(fields.port));
        let known = self.known.get(&from).copied().unwrap_or_default();
        let to_port = match known.our_port {
            _ if fields.to_closed_port => 26,
            0 => PORT,
            port => port,
        };
        let flags = fields.kind.flags();
        let is_syn = flags & SYN != 0;
        let sequence = known.expected.wrapping_add_signed(fields.sequence.by());
        let payload: Vec<u8> = (0..u32::from(fields.payload_bytes % 1_400))
            .map(|at| byte_at(sequence.wrapping_add(at).wrapping_add(u32::from(is_syn))))
            .collect();
        let tcp = Tcp {
            from,
            to: (US, to_port),
            sequence,
            acknowledgment: known.next.wrapping_add_signed(fields.acknowledgment.by()),
            flags,
            window: fields.window,
            options: &fields.options,
            payload: &payload,
        };
        packets::ipv4(from.0, US, 6, 0, &tcp.bytes())
    }

    /// A message of a DHCP server (RFC 2131 §2). It answers the network's last request, or has
    /// another transaction id.
    fn dhcp(&self, kind: u8, flags: u8, lease: u32, options: &[u8]) -> Vec<u8> {
        let server = Ipv4Addr::new(10, 0, 0, 1);
        let mut message = vec![2, 1, 6, 0];
        message.extend_from_slice(&if flags & 2 == 0 { self.transaction } else { [0; 4] });
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(&US.octets());
        message.extend_from_slice(&server.octets());
        message.extend_from_slice(&[0; 4]);
        message.extend_from_slice(&hardware(2).0);
        message.resize(236, 0);
        message.extend_from_slice(&[0x63, 0x82, 0x53, 0x63, 53, 1, kind % 9]);
        message.extend_from_slice(&[[54, 4].as_slice(), &server.octets()].concat());
        message.extend_from_slice(&[[51, 4].as_slice(), &lease.to_be_bytes()].concat());
        if flags & 4 == 0 {
            message.extend_from_slice(&[1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 0, 1]);
        }
        message.extend_from_slice(&options[..options.len().min(300)]);
        message.push(255);
        let to = if flags & 1 == 1 { Ipv4Addr::BROADCAST } else { US };
        packets::ipv4(server, to, 17, 0, &packets::udp((server, 67), (to, 68), &message))
    }

    /// A segment of a handshake: the SYN, or the acknowledgment that ends it.
    pub(super) fn handshake(&self, peer: u8, low: u8, kind: Kind) -> Vec<u8> {
        let segment = self.segment(&TcpFields {
            peer,
            port: low,
            to_closed_port: false,
            kind,
            sequence: Off::Not,
            acknowledgment: Off::Not,
            window: 8_000,
            payload_bytes: 0,
            // Window scaling by 7, and SACK permitted.
            options: if kind.flags() == SYN { vec![3, 3, 7, 4, 2, 1] } else { Vec::new() },
        });
        packets::ethernet(hardware(3 + peer % 8), hardware(2), IPV4, &segment)
    }

    /// The bytes that an ICMP message quotes.
    fn quoted(&self, peer: u8, quoted: &Quoted) -> Vec<u8> {
        match quoted {
            Quoted::Bytes(bytes) => bytes.iter().copied().take(1_000).collect(),
            Quoted::Segment { port: low, off } => {
                let to = (address(peer), port(*low));
                let known = self.known.get(&to).copied().unwrap_or_default();
                let sequence = known.next.wrapping_add_signed(i32::from(*off));
                let segment = [
                    &known.our_port.to_be_bytes()[..],
                    &to.1.to_be_bytes(),
                    &sequence.to_be_bytes(),
                ];
                packets::ipv4(US, to.0, 6, 0, &segment.concat())
            }
        }
    }
}

/// An IPv6 packet in its frame, from a peer to an address of ours or to a multicast group. If the
/// protocol has a checksum, the checksum is correct.
fn ipv6_frame(peer: u8, to: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(1_400)];
    let from = match peer % 4 {
        0 => Ipv6Addr::UNSPECIFIED,
        1 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
        low => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(low) + 1),
    };
    let to = match to % 4 {
        0 => US_IPV6,
        1 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        2 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 2),
        _ => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2),
    };
    let packet = packets::ipv6(from, to, protocol, payload);
    packets::ethernet(hardware(3 + peer % 8), hardware(2), IPV6, &packet)
}

fn arp(peer: u8, operation: u8, target: u8, last: u8) -> Vec<u8> {
    let target = if target == 0 { US } else { address(target) };
    let sender = (hardware(last), address(peer));
    let packet = packets::arp(u16::from(operation % 4), sender, (hardware(2), target));
    packets::ethernet(hardware(last), machine::Ethernet([0xff; 6]), ARP, &packet)
}

/// A peer that has sent no frames before, and follows the RFCs.
pub(super) struct CorrectPeer {
    name: Name,
    sequence: u32,
}

impl CorrectPeer {
    pub(super) fn new() -> CorrectPeer {
        CorrectPeer { name: (Ipv4Addr::new(10, 0, 0, 99), 5_000), sequence: 1_000 }
    }

    pub(super) fn syn(&self) -> Vec<u8> {
        self.frame(SYN, 0, &[2, 4, 5, 180], &[])
    }

    pub(super) fn is_answer(&self, segment: &Segment) -> bool {
        segment.to == self.name && segment.flags & (SYN | ACK) == SYN | ACK
    }

    /// The last segment of the handshake, with the first bytes of data.
    pub(super) fn request(&mut self, answer: &Segment) -> Vec<u8> {
        self.sequence = answer.acknowledgment;
        let payload: Vec<u8> = (0..100).map(|at| byte_at(self.sequence.wrapping_add(at))).collect();
        self.frame(ACK, answer.sequence.wrapping_add(1), &[], &payload)
    }

    fn frame(&self, flags: u8, acknowledgment: u32, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let (from, to, sequence) = (self.name, (US, PORT), self.sequence);
        let tcp =
            Tcp { from, to, sequence, acknowledgment, flags, window: 8_000, options, payload };
        packets::ethernet(
            hardware(99),
            hardware(2),
            IPV4,
            &packets::ipv4(from.0, US, 6, 0, &tcp.bytes()),
        )
    }
}
