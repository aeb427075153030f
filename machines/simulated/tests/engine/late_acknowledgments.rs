//! Clients that delay acknowledgments, on long paths: the machine sends nothing again while nothing
//! is lost.

#![allow(clippy::expect_used, reason = "a test may fail")]

use std::collections::HashSet;

use machine::Micros;
use smoltcp::wire::{EthernetFrame, IpProtocol, Ipv4Packet, TcpPacket};

use super::room::{Room, Talk};

/// The number of commands that the client sends as soon as it has the previous reply.
const PROMPT: usize = 12;

/// The sequence number of a segment with data from the SMTP service.
fn data_sequence(frame: &[u8]) -> Option<i32> {
    let packet = Ipv4Packet::new_checked(EthernetFrame::new_checked(frame).ok()?.payload()).ok()?;
    let segment = match packet.next_header() {
        IpProtocol::Tcp => TcpPacket::new_checked(packet.payload()).ok()?,
        _ => return None,
    };
    (segment.src_port() == 25 && !segment.payload().is_empty()).then(|| segment.seq_number().0)
}

/// Forgets the frames seen so far. Returns how many of them had data, and how many of those
/// repeated an earlier one.
fn data_segments(room: &mut Room) -> (usize, usize) {
    let seen = room.seen.replace(Vec::new()).unwrap_or_default();
    let numbers: Vec<i32> = seen.iter().filter_map(|frame| data_sequence(frame)).collect();
    let different: HashSet<i32> = numbers.iter().copied().collect();
    (numbers.len(), numbers.len() - different.len())
}

/// An SMTP session that alternates between prompt commands and pauses. In a pause the client
/// acknowledges the last reply after its delay.
fn talk_with_pauses(room: &mut Room, talk: &mut Talk) {
    assert!(room.smtp_reply(talk).starts_with("220 "));
    assert!(room.smtp(talk, "EHLO client.test").starts_with("250 "));
    for prompt in [0, 1, PROMPT, 2, PROMPT] {
        for _ in 0..prompt {
            assert!(room.smtp(talk, "RSET").starts_with("250 "));
        }
        room.pass(Micros::from_secs(3));
    }
    assert!(room.smtp(talk, "QUIT").starts_with("221 "));
}

#[test]
fn a_late_ack_on_a_long_path_causes_no_retransmission() {
    for (seed, round_trip_ms) in (500..).zip([50, 100, 200, 300, 450, 600]) {
        let mut room = Room::new(seed);
        room.trip = Micros::from_millis(round_trip_ms / 2);
        for delay_ms in [40, 120, 195] {
            room.hosts[0].acknowledgment_delay = Some(Micros::from_millis(delay_ms));
            room.seen = Some(Vec::new());
            let mut talk = room.connect(25);
            talk_with_pauses(&mut room, &mut talk);
            room.part(talk);
            let (all, again) = data_segments(&mut room);
            assert!(all > 2 * PROMPT, "{all} segments");
            assert_eq!(again, 0, "of {all} segments: {round_trip_ms} ms and {delay_ms} ms");
        }
    }
}
