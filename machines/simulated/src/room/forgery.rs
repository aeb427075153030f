//! Forged frames: the checksums are correct, and one header field is wrong.
//!
//! No honest peer would send such a frame, and a correct TCP ignores it: see `docs/faults.md`.

use chance::Dice;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket,
    TcpSeqNumber,
};

/// Turns a good frame into a forged one. The caller also delivers a copy of the good frame. `None`
/// if the frame is not a TCP segment.
pub(super) fn forge(frame: &mut [u8], dice: &mut Dice) -> Option<()> {
    let mut ethernet = EthernetFrame::new_checked(frame).ok()?;
    match ethernet.ethertype() {
        EthernetProtocol::Ipv4 => {
            forge_ipv4(Ipv4Packet::new_checked(ethernet.payload_mut()).ok()?, dice)
        }
        EthernetProtocol::Ipv6 => {
            forge_ipv6(Ipv6Packet::new_checked(ethernet.payload_mut()).ok()?, dice)
        }
        _ => None,
    }
}

fn forge_ipv4(mut ip: Ipv4Packet<&mut [u8]>, dice: &mut Dice) -> Option<()> {
    if ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let ends = (ip.src_addr().into(), ip.dst_addr().into());
    if dice.below(10) < 8 {
        return forge_tcp(ip.payload_mut(), ends, dice);
    }
    match dice.below(4) {
        0 => ip.set_hop_limit(0),
        1 => ip.set_next_header(IpProtocol::from(dice.roll() as u8 | 0x80)),
        2 => ip.set_frag_offset(8 * dice.below(180) as u16 + 8),
        _ => ip.set_more_frags(true),
    }
    ip.fill_checksum();
    Some(())
}

fn forge_ipv6(mut ip: Ipv6Packet<&mut [u8]>, dice: &mut Dice) -> Option<()> {
    if ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let ends = (ip.src_addr().into(), ip.dst_addr().into());
    if dice.below(10) < 8 {
        return forge_tcp(ip.payload_mut(), ends, dice);
    }
    match dice.below(2) {
        0 => ip.set_version(dice.below(6) as u8),
        _ => ip.set_next_header(IpProtocol::from(dice.roll() as u8 | 0x80)),
    }
    Some(())
}

fn forge_tcp(
    segment: &mut [u8],
    (source, destination): (IpAddress, IpAddress),
    dice: &mut Dice,
) -> Option<()> {
    let mut tcp = TcpPacket::new_checked(segment).ok()?;
    let other = TcpSeqNumber(tcp.seq_number().0.wrapping_add((dice.roll() as i32) | 0x0100_0000));
    match dice.below(8) {
        0 => tcp.set_seq_number(other),
        1 => {
            tcp.set_rst(true);
            tcp.set_seq_number(other);
        }
        2 => tcp.set_syn(true),
        3 => tcp.set_ack_number(TcpSeqNumber(
            tcp.ack_number().0.wrapping_add((dice.roll() as i32) | 0x0100_0000),
        )),
        4 => {
            tcp.set_urg(true);
            tcp.set_urgent_at(dice.roll() as u16);
        }
        5 => tcp.set_window_len(dice.below(3) as u16),
        6 => tcp.set_header_len(4 * dice.below(5) as u8),
        _ => {
            tcp.set_fin(true);
            tcp.set_seq_number(other);
        }
    }
    // A nonsensical data offset makes the payload unreadable. The checksum covers all bytes anyway.
    tcp.fill_checksum(&source, &destination);
    Some(())
}
