//! Broken input: nothing panics, nothing grows, and honest peers are still served.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec::Vec;

use machine::{Checksum, Micros, Offloads};
use proptest::prelude::*;
use smoltcp::wire::*;

use super::machine_in_memory::CARD;
use super::messages::*;
use super::world::{World, limits};
use crate::Addressing;
use crate::checksum::Sum;
use crate::ip::Ip;

/// One valid frame of every kind.
fn good_frames() -> Vec<Vec<u8>> {
    let syn = Tcp {
        from: (PEER, 4000),
        to: (US, 25),
        control: TcpControl::Syn,
        sequence: 1_000,
        acknowledgment: None,
        window: 1_000,
        mss: Some(1460),
        payload: Vec::new(),
    };
    let data = Tcp {
        control: TcpControl::Psh,
        acknowledgment: Some(5),
        payload: b"data".to_vec(),
        ..syn.clone()
    };
    let quoted = Ipv4Repr {
        src_addr: US,
        dst_addr: PEER,
        next_header: IpProtocol::Tcp,
        payload_len: 20,
        hop_limit: 64,
    };
    let error = icmp(&Icmpv4Repr::DstUnreachable {
        reason: Icmpv4DstUnreachable::FragRequired,
        header: quoted,
        data: &[0, 25, 15, 160, 0, 0, 0, 0],
    });
    let ping = icmp(&Icmpv4Repr::EchoRequest { ident: 1, seq_no: 1, data: b"ping" });
    let mut fragment = ipv4(PEER, US, IpProtocol::Udp, &[0; 64]);
    let mut view = Ipv4Packet::new_unchecked(&mut fragment);
    view.set_more_frags(true);
    view.fill_checksum();
    std::vec![
        arp(ArpOperation::Request, (PEER, PEER_CARD), (US, CARD)),
        syn.frame(PEER_CARD),
        data.frame(PEER_CARD),
        to_us(PEER, IpProtocol::Icmp, &ping),
        to_us(PEER, IpProtocol::Icmp, &error),
        to_us(PEER, IpProtocol::Udp, &udp((PEER, 67), (US, 68), &[1; 300])),
        to_us(PEER, IpProtocol::Udp, &udp((PEER, 4000), (US, 53), b"question")),
        ethernet(PEER_CARD, CARD, EthernetProtocol::Ipv4, &fragment),
    ]
}

/// One valid IPv6 frame of every kind, for a world with the address `own`.
fn good_frames_of_ipv6(own: Ipv6Addr) -> Vec<Vec<u8>> {
    use super::messages_ipv6::*;
    let to = |protocol, payload: &[u8]| frame(PEER_CARD, &ipv6(NEAR, own, protocol, 64, payload));
    let tcp = Tcp {
        from: (super::messages::PEER, 4000),
        to: (US, 25),
        control: TcpControl::Syn,
        sequence: 1_000,
        acknowledgment: None,
        window: 1_000,
        mss: Some(1440),
        payload: Vec::new(),
    };
    let header = Ipv6Repr {
        src_addr: own,
        dst_addr: NEAR,
        next_header: IpProtocol::Tcp,
        payload_len: 20,
        hop_limit: 64,
    };
    let error = icmp(
        NEAR,
        own,
        &Icmpv6Repr::PktTooBig { mtu: 1300, header, data: &[0, 25, 15, 160, 0, 0, 0, 0] },
    );
    let datagram = udp((NEAR, 4000), (own, 53), &[7; 64]);
    let headers = [
        &[60u8, 0, 5, 2, 0, 0, 1, 0][..],
        &[43, 0, 1, 4, 0, 0, 0, 0],
        &[17, 0, 0, 0, 0, 0, 0, 0],
        &datagram,
    ]
    .concat();
    let servers = std::vec![(NEAR, 100)];
    let group = solicited_node(own);
    std::vec![
        to(6, &tcp.packet()),
        to(58, &error),
        to(58, &echo(NEAR, own, b"ping")),
        to(17, &datagram),
        to(0, &headers),
        fragment(NEAR, own, 17, &datagram, 0..32, 9),
        fragment(NEAR, own, 17, &datagram, 32..72, 9),
        solicitation(PEER_CARD, NEAR, group, own),
        solicitation(PEER_CARD, UNSPECIFIED, group, own),
        advertisement(
            PEER_CARD,
            NEAR,
            own,
            NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE
        ),
        Advertisement { name_servers: servers, mtu: Some(1400), ..Advertisement::new() }.frame(),
        frame(
            PEER_CARD,
            &ipv6(
                PEER,
                ALL_NODES,
                58,
                1,
                &sealed(PEER, ALL_NODES, [&[130][..], &[0; 27]].concat())
            )
        ),
    ]
}

fn worlds() -> [World; 2] {
    let mut world = World::new();
    world.net.bind(53);
    [world, World::with(Addressing::Dhcp, limits(), Offloads::default())]
}

/// A world with both families, and its valid frames.
fn world_of_ipv6() -> (World, Vec<Vec<u8>>) {
    let (mut world, _, own) = World::of_ipv6_at_work(Offloads::default());
    world.net.bind(53);
    (world, good_frames_of_ipv6(own))
}

/// Corrects the checksum of an ICMPv6 message that directly follows the IPv6 header.
fn mend_ipv6(frame: &mut [u8]) {
    if frame.len() < 58 || frame[20] != 58 {
        return;
    }
    let address =
        |at: usize| Ip::from(Ipv6Addr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap()));
    let (source, destination) = (address(22), address(38));
    let end = frame.len().min(54 + usize::from(u16::from_be_bytes([frame[18], frame[19]])));
    if let Some(message) = frame.get_mut(54..end).filter(|message| message.len() >= 4) {
        message[2..4].fill(0);
        crate::icmpv6::seal(source, destination, message);
    }
}

/// Corrects the IPv4 header's checksum, so that errors after it are reached.
fn mend(frame: &mut [u8]) {
    let header_bytes = usize::from(frame.get(14).map_or(0, |first| first & 15)) * 4;
    if header_bytes >= 20 && frame.len() >= 14 + header_bytes {
        frame[24..26].fill(0);
        let field = Sum::of(&frame[14..14 + header_bytes]).field();
        frame[24..26].copy_from_slice(&field);
    }
}

fn feed(world: &mut World, frame: &[u8]) {
    // The test keeps no received data, so TCP takes all of it as consumed.
    world.hears_as(frame, Checksum::Unknown);
    world.hears_as(frame, Checksum::Verified);
    world.says();
}

#[test]
fn every_frame_may_end_anywhere() {
    for mut world in worlds() {
        for frame in good_frames() {
            for length in 0..frame.len() {
                feed(&mut world, &frame[..length]);
                // The same bytes, with headers that declare the shorter length.
                let mut shorter = frame[..length].to_vec();
                if length >= 18 && shorter[12..14] == [8, 0] {
                    shorter[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes());
                    mend(&mut shorter);
                    feed(&mut world, &shorter);
                }
            }
        }
    }
}

#[test]
fn every_frame_of_ipv6_may_end_anywhere() {
    let (mut world, frames) = world_of_ipv6();
    for frame in frames {
        for length in 0..frame.len() {
            feed(&mut world, &frame[..length]);
            let mut shorter = frame[..length].to_vec();
            if length >= 54 {
                shorter[18..20].copy_from_slice(&((length - 54) as u16).to_be_bytes());
                feed(&mut world, &shorter);
                mend_ipv6(&mut shorter);
                feed(&mut world, &shorter);
            }
        }
    }
}

#[test]
fn every_byte_of_ipv6_may_be_anything() {
    let (mut world, frames) = world_of_ipv6();
    for frame in frames {
        for at in 0..frame.len().min(150) {
            for value in [0, 1, 2, 0x3c, 0x2c, 0x3b, 0x45, 0x60, 0x7f, 0x80, 0xf0, 0xff] {
                let mut broken = frame.clone();
                broken[at] = value;
                feed(&mut world, &broken);
                mend_ipv6(&mut broken);
                feed(&mut world, &broken);
            }
        }
    }
    world.waits(Micros::from_secs(100_000));
}

#[test]
fn every_byte_of_a_frame_may_be_anything() {
    for mut world in worlds() {
        for frame in good_frames() {
            for at in 0..frame.len().min(100) {
                for value in [0, 1, 0x0f, 0x10, 0x45, 0x4f, 0x7f, 0x80, 0xf0, 0xff] {
                    let mut broken = frame.clone();
                    broken[at] = value;
                    feed(&mut world, &broken);
                    mend(&mut broken);
                    feed(&mut world, &broken);
                }
            }
        }
    }
}

#[test]
fn every_pair_of_bytes_may_have_extreme_values() {
    for mut world in worlds() {
        for frame in good_frames() {
            for at in 0..frame.len().min(100) - 1 {
                for value in [
                    0u16, 1, 7, 8, 19, 20, 21, 0x1fff, 0x2000, 0x3fff, 0x7fff, 0x8000, 0xfff8,
                    0xffff,
                ] {
                    let mut broken = frame.clone();
                    broken[at..at + 2].copy_from_slice(&value.to_be_bytes());
                    mend(&mut broken);
                    feed(&mut world, &broken);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_frames_do_no_harm(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..50)) {
        for mut world in worlds() {
            for noise in &frames {
                feed(&mut world, noise);
                for kind in [EthernetProtocol::Ipv4, EthernetProtocol::Arp, EthernetProtocol::Ipv6] {
                    feed(&mut world, &ethernet(PEER_CARD, CARD, kind, noise));
                }
                for protocol in [IpProtocol::Tcp, IpProtocol::Udp, IpProtocol::Icmp] {
                    feed(&mut world, &to_us(PEER, protocol, noise));
                }
            }
        }
    }

    #[test]
    fn random_ipv6_packets_do_no_harm(packets in proptest::collection::vec((any::<u8>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..200)), 1..50)) {
        let (mut world, _, own) = World::of_ipv6_at_work(Offloads::default());
        for (kind, chance, noise) in &packets {
            let protocols = [0, 6, 17, 43, 44, 58, 60, *kind];
            let protocol = protocols[usize::from(chance % 8)];
            let to = if chance & 64 == 0 { own } else { super::messages_ipv6::ALL_NODES };
            let hop_limit = if chance & 128 == 0 { 255 } else { *kind };
            let packet = super::messages_ipv6::ipv6(super::messages_ipv6::PEER, to, protocol, hop_limit, noise);
            let mut frame = super::messages_ipv6::frame(PEER_CARD, &packet);
            feed(&mut world, &frame);
            if frame.len() > 54 {
                frame[54] = 128 | (kind % 16);
            }
            mend_ipv6(&mut frame);
            feed(&mut world, &frame);
        }
        world.waits(Micros::from_secs(100));
    }

    #[test]
    fn mutations_do_no_harm_and_good_peers_are_still_served(
        mutations in proptest::collection::vec((0usize..8, proptest::collection::vec((0usize..100, any::<u8>()), 0..4)), 1..100)
    ) {
        let mut world = World::new();
        for (kind, changes) in mutations {
            let mut frame = good_frames().swap_remove(kind);
            for (at, value) in changes {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            mend(&mut frame);
            feed(&mut world, &frame);
        }
        world.waits(Micros::from_secs(3));
        let friend = Ipv4Addr::new(10, 0, 0, 9);
        world.hears(&to_us(friend, IpProtocol::Icmp, &icmp(&Icmpv4Repr::EchoRequest { ident: 1, seq_no: 1, data: b"?" })));
        prop_assert_eq!(world.says().len(), 1);
    }
}
