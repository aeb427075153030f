//! Timestamps (RFC 7323): their negotiation, the echo, and the segments that they reject.

use machine::{Instant, Micros};

use super::Conversation;
use crate::tcp::*;

#[test]
fn timestamps_are_proposed_and_sent_only_if_the_peer_does() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0 val 0 ecr 0");
    talk.wait(20).peer("S. 0:0 ack 1 mss 1000 val 77 ecr 0").we(". 1:1 ack 1 val 20 ecr 77");
    talk.write(1000)
        .we(". 1:989 ack 1 val 20 ecr 77")
        .we("P. 989:1001 ack 1 val 20 ecr 77")
        .silence();
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0 val 0 ecr 0").peer("S. 0:0 ack 1 mss 1000").we(". 1:1 ack 1 bare 1");
    talk.write(1000).we("P. 1:1001 ack 1 bare 1").silence();
}

#[test]
fn a_simultaneous_open_agrees_on_timestamps_and_full_mss() {
    let mut talk = Conversation::connecting();
    talk.we("SEW 0:0")
        .peer("S 0:0 mss 1400 wscale 0 val 5 ecr 0")
        .we("S. 0:0 ack 1 mss 1000 wscale 6 val 0 ecr 5");
    talk.peer("S. 0:0 ack 1 val 6 ecr 0");
    talk.write(2000).we(". 1:989 ack 1 val 0 ecr 6");
}

#[test]
fn the_echo_is_of_the_last_acked_or_longest_waiting_segment() {
    let mut talk = Conversation::stamped(100);
    talk.peer(". 1:501 ack 1 val 110 ecr 0").peer(". 501:1001 ack 1 val 120 ecr 0");
    talk.wait(40).we(". 1:1 ack 1001 val 40 ecr 110");
    // A segment beyond a gap does not change the echo.
    talk.peer(". 2001:3001 ack 1 val 130 ecr 0").we(". 1:1 ack 1001 val 40 ecr 110");
    talk.peer(". 1001:2001 ack 1 val 140 ecr 0").we(". 1:1 ack 3001 val 40 ecr 140").silence();
}

#[test]
fn an_older_segment_is_answered_and_dropped() {
    for recent in [100, 5, 0, 0x8000_0003] {
        let mut talk = Conversation::stamped(recent);
        let old = recent.wrapping_sub(1);
        talk.peer(&alloc::format!("P. 1:11 ack 1 val {old} ecr 0")).we(". 1:1 ack 1").silence();
        talk.peer(&alloc::format!("F. 1:1 ack 1 val {old} ecr 0")).we(". 1:1 ack 1").silence();
        assert_eq!((talk.given, talk.state().as_str()), (0, "Established"));
        talk.peer(&alloc::format!("P. 1:11 ack 1 val {recent} ecr 0"));
        assert_eq!(talk.given, 10);
    }
}

#[test]
fn a_timestamp_with_an_impossible_ack_is_not_learned() {
    let mut talk = Conversation::stamped(100);
    talk.peer("F. 1:1 ack 99999 val 200000 ecr 0").we(". 1:1 ack 1 val 0 ecr 100");
    talk.peer("P. 1:11 ack 1 val 101 ecr 0");
    assert_eq!(talk.given, 10, "an attacker cannot make the peer's own segments look old");
}

#[test]
fn a_reset_counts_with_an_old_timestamp_or_none() {
    for text in ["R 1:1", "R 1:1 val 3 ecr 0"] {
        Conversation::stamped(100).peer(text).closed(CloseReason::Reset).silence();
    }
}

#[test]
fn a_segment_without_agreed_timestamps_is_dropped() {
    let mut talk = Conversation::stamped(100);
    talk.peer("P. 1:11 ack 1").silence();
    assert_eq!(talk.given, 0);
    talk.peer("S 1:1").we(". 1:1 ack 1").silence();
}

#[test]
fn an_echo_gives_the_round_trip_of_a_retransmission() {
    let mut talk = Conversation::stamped(100);
    talk.write(10).we("P. 1:11 ack 1 val 0 ecr 100").wait(210).we("P. 1:11 ack 1 val 210 ecr 100");
    talk.wait(10).peer(". 1:1 ack 11 val 101 ecr 210");
    // With Karn's rule alone, the timeout would stay doubled.
    talk.write(10).we("P. 11:21 ack 1").wait(209).silence().wait(2).we("P. 11:21 ack 1");
}

#[test]
fn an_echo_of_an_unsent_timestamp_is_ignored() {
    let mut talk = Conversation::stamped(100);
    talk.write(10).wait(210).we_whatever();
    talk.wait(10).peer(". 1:1 ack 11 val 101 ecr 3000000000").peer(". 1:1 ack 11 val 101 ecr 900");
    talk.write(10).we("P. 11:21 ack 1").wait(419).silence().wait(1).we("P. 11:21 ack 1");
}

#[test]
fn after_24_days_of_silence_any_timestamp_is_new() {
    let mut talk = Conversation::stamped(100);
    talk.now = talk.now + Micros::from_secs(24 * 24 * 3600);
    talk.peer("P. 1:11 ack 1 val 99 ecr 0");
    assert_eq!(talk.given, 10);
}

#[test]
fn each_connection_has_its_own_timestamp_offset() {
    let numbers = InitialSequences::new(&[1; 16]);
    let now = Instant(1_000_000);
    assert_ne!(
        numbers.next(now, &1u64).timestamp_offset,
        numbers.next(now, &2u64).timestamp_offset
    );
    assert_eq!(
        numbers.next(now, &1u64).timestamp_offset,
        numbers.next(now + Micros(99), &1u64).timestamp_offset
    );
}

const NOW: Instant = Instant(5_000_000);

fn stamped(flags: TcpFlags, sequence: u32, value: u32) -> SegmentRepr<'static> {
    let options = Options { timestamps: Some(Timestamps { value, echo: 0 }), ..Options::default() };
    let (sequence, acknowledgment) = (SequenceNumber(sequence), SequenceNumber(11));
    SegmentRepr { sequence, acknowledgment, flags, options, ..SegmentRepr::default() }
}

#[test]
fn syn_ack_echoes_the_latest_syn_and_older_acks_are_refused() {
    let mut table = HalfOpenTable::new(1, 1460);
    let beginning = InitialNumbers { iss: SequenceNumber(10), timestamp_offset: 7 };
    let id = table.syn_arrived(NOW, 1, &stamped(TcpFlags::SYN, 0, 50), beginning).unwrap();
    table.segment_arrived(NOW, id, &1, &stamped(TcpFlags::SYN, 0, 60));
    let sent = table.output(NOW, |_, answer| {
        assert_eq!(answer.options.timestamps, Some(Timestamps { value: 5007, echo: 60 }));
        Ok(())
    });
    assert!(sent.is_ok());
    let old = table.segment_arrived(NOW, id, &1, &stamped(TcpFlags::ACK, 1, 59));
    assert!(matches!(old, HalfOpenVerdict::Respond(answer) if answer.flags == TcpFlags::ACK));
    let bare = SegmentRepr { options: Options::default(), ..stamped(TcpFlags::ACK, 1, 0) };
    assert_eq!(table.segment_arrived(NOW, id, &1, &bare), HalfOpenVerdict::Nothing);
    let verdict = table.segment_arrived(NOW, id, &1, &stamped(TcpFlags::ACK, 1, 61));
    let HalfOpenVerdict::Completed(handshake) = verdict else { panic!("{verdict:?}") };
    assert_eq!((handshake.mss, handshake.timestamps.is_some()), (536 - 12, true));
}

#[test]
fn a_later_timestamp_reopens_a_time_wait_connection() {
    let clock = TimestampClock { offset: 0, recent: 100 };
    let over = TimeWait {
        snd_nxt: SequenceNumber(7),
        rcv_nxt: SequenceNumber(3),
        window: 99,
        timestamps: Some(clock),
    };
    for (sequence, value, opens) in
        [(2, 101, true), (2, 100, false), (3, 100, true), (3, 99, false)]
    {
        let mut table = TimeWaitTable::with_capacity(1);
        let (id, _) = table.insert(NOW, 1, over);
        let verdict = table.segment_arrived(NOW, id, &1, &stamped(TcpFlags::SYN, sequence, value));
        assert_eq!(
            matches!(verdict, TimeWaitVerdict::NewConnection { .. }),
            opens,
            "{sequence} {value}"
        );
        if let TimeWaitVerdict::Respond(answer) = verdict {
            assert_eq!(answer.options.timestamps, Some(Timestamps { value: 5000, echo: 100 }));
        }
    }
}
