//! Checks that a frame follows the RFCs: its lengths and checksums. The sum (RFC 1071) is computed
//! here, without the code under test.

use std::net::Ipv4Addr;

/// The fields of a TCP segment in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) to: (Ipv4Addr, u16),
    pub(crate) from_port: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledgment: u32,
    pub(crate) flags: u8,
    pub(crate) payload_bytes: u32,
}

/// The sum of the bytes as 16-bit words, not folded.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from));
    words.sum()
}

/// The checksum field for a sum of the other words. It is zero if the sum included a correct
/// checksum.
pub(crate) fn field(mut sum: u32) -> [u8; 2] {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!sum as u16).to_be_bytes()
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) << 16 | u32::from(word(bytes, at + 2))
}

/// Checks a whole frame. Returns the TCP segment over IPv4 in it, if any.
pub(crate) fn frame(frame: &[u8]) -> Option<Segment> {
    assert!(frame.len() >= 14, "a frame has its header");
    let packet = &frame[14..];
    match word(frame, 12) {
        0x0806 => assert!(
            packet.len() >= 28 && packet[..6] == [0, 1, 8, 0, 6, 4],
            "an ARP packet is for IPv4"
        ),
        0x0800 => return ipv4(packet),
        0x86dd => ipv6(packet),
        other => panic!("a frame of type {other:04x}"),
    }
    None
}

fn ipv4(packet: &[u8]) -> Option<Segment> {
    assert!(packet.len() >= 20 && packet[0] >> 4 == 4, "an IPv4 packet has its header");
    let header_bytes = usize::from(packet[0] & 15) * 4;
    assert!(
        header_bytes >= 20 && usize::from(word(packet, 2)) == packet.len(),
        "the total length is the packet's length"
    );
    assert_eq!(field(sum(&packet[..header_bytes])), [0, 0], "the header's checksum is correct");
    let (fragment, payload) = (word(packet, 6), &packet[header_bytes..]);
    assert_eq!(fragment & 0x3fff, 0, "nothing is sent in fragments");
    let pseudo = sum(&packet[12..20]) + u32::from(packet[9]) + payload.len() as u32;
    transport(packet[9], payload, pseudo);
    (packet[9] == 6).then(|| {
        let header_bytes = usize::from(payload[12] >> 4) * 4;
        Segment {
            to: (Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]), word(payload, 2)),
            from_port: word(payload, 0),
            sequence: number(payload, 4),
            acknowledgment: number(payload, 8),
            flags: payload[13],
            payload_bytes: (payload.len() - header_bytes) as u32,
        }
    })
}

fn ipv6(packet: &[u8]) {
    assert!(packet.len() >= 40 && packet[0] >> 4 == 6, "an IPv6 packet has its header");
    assert_eq!(usize::from(word(packet, 4)), packet.len() - 40, "the payload length is correct");
    let (mut next, mut payload) = (packet[6], &packet[40..]);
    // Reports of multicast listeners have hop-by-hop options (RFC 8200 §4.3).
    while next == 0 {
        next = payload[0];
        payload = &payload[usize::from(payload[1]) * 8 + 8..];
    }
    let pseudo = sum(&packet[8..40]) + u32::from(next) + payload.len() as u32;
    transport(next, payload, pseudo);
}

fn transport(protocol: u8, payload: &[u8], pseudo: u32) {
    match protocol {
        1 => assert_eq!(field(sum(payload)), [0, 0], "the ICMP checksum is correct"),
        58 => assert_eq!(field(sum(payload) + pseudo), [0, 0], "the ICMPv6 checksum is correct"),
        6 => {
            let header_bytes = usize::from(payload[12] >> 4) * 4;
            assert!((20..=payload.len()).contains(&header_bytes), "a segment has its header");
            assert_eq!(field(sum(payload) + pseudo), [0, 0], "the TCP checksum is correct");
        }
        17 => {
            assert_eq!(usize::from(word(payload, 4)), payload.len(), "the UDP length is correct");
            let is_right = field(sum(payload) + pseudo) == [0, 0];
            assert!(is_right && word(payload, 6) != 0, "the UDP checksum is present and correct");
        }
        other => panic!("a packet of protocol {other}"),
    }
}
