//! Explicit congestion notification (RFC 3168): its negotiation, the echo of marks, and the
//! reduction of the window.

use super::Conversation;
use crate::tcp::recovery::RecoveryPhase;
use crate::tcp::*;

#[test]
fn ecn_is_used_only_with_a_peer_that_agrees() {
    for (answer, agrees) in [("SE.", 1), ("S.", 0), ("SEW.", 0)] {
        let mut talk = Conversation::connecting();
        talk.we("SEW 0:0")
            .peer(&alloc::format!("{answer} 0:0 ack 1 mss 1000"))
            .we(". 1:1 ack 1 ect 0");
        talk.write(10).we(&alloc::format!("P. 1:11 ack 1 ect {agrees}"));
    }
}

#[test]
fn a_retransmitted_syn_does_not_propose_ecn() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0").wait(1000).we("S 0:0").peer("SE. 0:0 ack 1 mss 1000").we(". 1:1 ack 1");
    talk.write(10).we("P. 1:11 ack 1 ect 0");
    talk.peer("P. 1:11 ack 11 ce 1").we("E. 11:11 ack 11");
}

#[test]
fn a_peers_ecn_proposal_is_accepted() {
    for (flags, answer) in [
        (
            TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR),
            TcpFlags::SYN.with(TcpFlags::ACK).with(TcpFlags::ECE),
        ),
        (TcpFlags::SYN.with(TcpFlags::ECE), TcpFlags::SYN.with(TcpFlags::ACK)),
        (TcpFlags::SYN, TcpFlags::SYN.with(TcpFlags::ACK)),
    ] {
        let mut table = HalfOpenTable::new(1, 1460);
        let beginning = InitialNumbers { iss: SequenceNumber(1), timestamp_offset: 0 };
        let now = machine::Instant(1);
        let syn = SegmentRepr { flags, ..SegmentRepr::default() };
        table.syn_arrived(now, 1, &syn, beginning).unwrap();
        let result = table.output(now, |_, segment| {
            assert_eq!(segment.flags, answer);
            Ok(())
        });
        assert!(result.is_ok());
        let stamped = Options { timestamps: Some(Timestamps::default()), ..Options::default() };
        let syn = SegmentRepr { options: stamped, ..syn };
        assert_eq!(Cookies::new(&[1; 16], 1460).answer(now, &1u8, &syn, 0).flags, answer);
    }
}

#[test]
fn a_mark_is_echoed_until_the_peer_has_reduced_its_window() {
    let mut talk = Conversation::marking();
    talk.peer(". 1:1001 ack 1 ce 1").we("E. 1:1 ack 1001 ect 0");
    talk.peer(". 1001:2001 ack 1").peer(". 2001:3001 ack 1").we("E. 1:1 ack 3001");
    talk.write(10).we("PE. 1:11 ack 3001 ect 1");
    talk.peer("W. 3001:4001 ack 11").wait(40).we(". 11:11 ack 4001").silence();
    talk.peer("W. 4001:5001 ack 11 ce 1").we("E. 11:11 ack 5001");
}

#[test]
fn marks_on_empty_or_unacceptable_segments_are_not_echoed() {
    let mut talk = Conversation::marking();
    talk.peer(". 1:1 ack 1 ce 1").peer(". 900001:900011 ack 1 ce 1").we(". 1:1 ack 1").silence();
    let mut talk = Conversation::selective();
    talk.peer(". 1:1001 ack 1 ce 1").wait(40).we(". 1:1 ack 1001").silence();
}

#[test]
fn an_echo_lowers_the_window_once_a_round_trip() {
    let mut talk = Conversation::marking();
    talk.write(40_000);
    assert_eq!(talk.we_whatever(), 10);
    let mut reports = 0;
    for at in 1..=10 {
        talk.wait(1).peer(&alloc::format!("E. 1:1 ack {}", at * 1000 + 1));
        while let Some(segment) = talk.next_sent() {
            reports += u32::from(segment.flags.has(TcpFlags::CWR));
            assert!(
                segment.sequence.since(SequenceNumber(10_000)) > 10_000,
                "nothing is sent again"
            );
        }
    }
    assert_eq!(reports, 1);
    assert!(
        (6_000..=8_000).contains(&talk.tcb.congestion().window()),
        "{}",
        talk.tcb.congestion().window()
    );
    assert_eq!(talk.tcb.phase(), RecoveryPhase::Open);
    talk.peer("E. 1:1 ack 12001");
    assert_eq!(talk.tcb.phase(), RecoveryPhase::Repairing, "a later mark lowers the window again");
}

#[test]
fn a_repeated_echo_does_not_lower_the_window_again() {
    let mut talk = Conversation::marking();
    talk.write(9000).we_whatever();
    talk.wait(1).peer("E. 1:1 ack 9001");
    let window = talk.tcb.congestion().window();
    assert_eq!(window, 6300);
    talk.write(2000).we("W. 9001:10001 ack 1").we("P. 10001:11001 ack 1");
    talk.peer("E. 1:1 ack 9001");
    assert_eq!(talk.tcb.congestion().window(), window);
}

#[test]
fn retransmissions_probes_and_empty_segments_are_not_ect() {
    let mut talk = Conversation::marking();
    talk.write(2000).we(". 1:1001 ack 1 ect 1").we("P. 1001:2001 ack 1 ect 1");
    talk.wait(22).we("P. 1001:2001 ack 1 ect 0");
    talk.wait(210).we(". 1:1001 ack 1 ect 0");
    talk.peer(". 1:1 ack 2001 win 0").write(10).silence();
    talk.wait(420).we("P. 2001:2002 ack 1 ect 0".replace("P.", ".").as_str());
    talk.close().we_whatever();
}

#[test]
fn the_peer_is_told_of_a_window_reduced_by_a_loss() {
    let mut talk = Conversation::marking();
    talk.write(20_000).we_whatever();
    talk.wait(10)
        .peer(". 1:1 ack 1 1001-10001")
        .we(". 1:1001 ack 1 ect 0")
        .we("W. 10001:11001 ack 1 ect 1");
    talk.we(". 11001:12001 ack 1 ect 1");
}
