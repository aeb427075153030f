//! Half-open connections, TIME-WAIT, strays, and initial sequence numbers.

use alloc::vec::Vec;

use machine::{Instant, Micros};

use crate::tcp::*;

const NOW: Instant = Instant(5_000_000);
const ISS: SequenceNumber = SequenceNumber(u32::MAX);
const BEGINNING: InitialNumbers = InitialNumbers { iss: ISS, timestamp_offset: 7 };
const IRS: SequenceNumber = SequenceNumber(u32::MAX - 1);

fn segment(
    flags: TcpFlags,
    sequence: SequenceNumber,
    acknowledgment: SequenceNumber,
) -> SegmentRepr<'static> {
    SegmentRepr { sequence, acknowledgment, flags, window: 1000, ..SegmentRepr::default() }
}

fn syn() -> SegmentRepr<'static> {
    let options = Options { mss: Some(1400), window_scale: Some(7), ..Options::default() };
    SegmentRepr { options, ..segment(TcpFlags::SYN, IRS, SequenceNumber(0)) }
}

fn sent(table: &mut HalfOpenTable<u32>, now: Instant) -> Vec<(u32, SegmentToSend)> {
    let mut all = Vec::new();
    let result = table.output(now, |key, segment| {
        all.push((*key, *segment));
        Ok(())
    });
    assert!(result.is_ok());
    all
}

#[test]
fn a_completed_handshake_returns_the_agreed_options() {
    let mut table = HalfOpenTable::new(4, 1460);
    let id = table.syn_arrived(NOW, 9, &syn(), BEGINNING).unwrap();
    let answers = sent(&mut table, NOW);
    assert_eq!(answers.len(), 1);
    let (key, answer) = answers[0];
    assert_eq!((key, answer.flags), (9, TcpFlags::SYN.with(TcpFlags::ACK)));
    assert_eq!((answer.sequence, answer.acknowledgment), (ISS, IRS + 1));
    assert_eq!(
        answer.options,
        Options { mss: Some(1460), window_scale: Some(WINDOW_SHIFT), ..Options::default() }
    );
    let later = NOW + Micros::from_millis(30);
    let verdict = table.segment_arrived(later, id, &9, &segment(TcpFlags::ACK, IRS + 1, ISS + 1));
    let HalfOpenVerdict::Completed(handshake) = verdict else { panic!("{verdict:?}") };
    assert_eq!(handshake.round_trip, Some(Micros::from_millis(30)));
    assert_eq!((handshake.mss, handshake.peer_window_shift), (1400, Some(7)));
    table.remove(id, &9);
    assert!(table.is_empty());
}

#[test]
fn a_peer_that_does_not_scale_gets_no_scale() {
    let mut table = HalfOpenTable::new(4, 1460);
    table.syn_arrived(NOW, 9, &segment(TcpFlags::SYN, IRS, IRS), BEGINNING);
    let (_, answer) = sent(&mut table, NOW)[0];
    assert_eq!(answer.options, Options { mss: Some(1460), ..Options::default() });
}

#[test]
fn an_unanswered_syn_ack_is_repeated_five_times_and_given_up() {
    let mut table = HalfOpenTable::new(4, 1460);
    table.syn_arrived(NOW, 9, &syn(), BEGINNING);
    let mut now = NOW;
    assert_eq!(sent(&mut table, now).len(), 1);
    for second in [1, 2, 4, 8, 16] {
        assert_eq!(sent(&mut table, now + Micros(Micros::from_secs(second).0 - 1)).len(), 0);
        now = now + Micros::from_secs(second);
        assert_eq!(table.next_deadline(), Some(now));
        assert_eq!(table.give_up(now), None);
        assert_eq!(sent(&mut table, now).len(), 1);
    }
    now = now + Micros::from_secs(32);
    assert_eq!(sent(&mut table, now).len(), 0);
    assert_eq!(table.give_up(now), Some(9));
    assert_eq!(table.next_deadline(), None);
}

#[test]
fn a_syn_ack_that_the_card_refused_is_sent_later() {
    let mut table = HalfOpenTable::new(4, 1460);
    table.syn_arrived(NOW, 9, &syn(), BEGINNING);
    assert_eq!(table.output(NOW, |_, _| Err(CardFull)), Err(CardFull));
    assert_eq!(sent(&mut table, NOW).len(), 1);
    assert_eq!(sent(&mut table, NOW).len(), 0);
}

#[test]
fn a_repeated_syn_makes_the_round_trip_unknown() {
    let mut table = HalfOpenTable::new(4, 1460);
    let id = table.syn_arrived(NOW, 9, &syn(), BEGINNING).unwrap();
    sent(&mut table, NOW);
    for _ in 0..100 {
        assert_eq!(table.segment_arrived(NOW, id, &9, &syn()), HalfOpenVerdict::Nothing);
        sent(&mut table, NOW);
    }
    let verdict = table.segment_arrived(NOW, id, &9, &segment(TcpFlags::ACK, IRS + 1, ISS + 1));
    assert!(matches!(verdict, HalfOpenVerdict::Completed(TcpHandshake { round_trip: None, .. })));
}

#[test]
fn one_syn_is_never_answered_more_than_six_times() {
    let mut table = HalfOpenTable::new(4, 1460);
    let id = table.syn_arrived(NOW, 9, &syn(), BEGINNING).unwrap();
    let mut count = 0;
    for _ in 0..100 {
        count += sent(&mut table, NOW).len();
        table.segment_arrived(NOW, id, &9, &syn());
    }
    assert_eq!(count, usize::from(SYN_ACKS_MAX));
}

#[test]
fn only_valid_segments_change_a_half_open_connection() {
    let mut table = HalfOpenTable::new(4, 1460);
    let id = table.syn_arrived(NOW, 9, &syn(), BEGINNING).unwrap();
    sent(&mut table, NOW);
    let mut hear = |segment: &SegmentRepr<'_>| table.segment_arrived(NOW, id, &9, segment);
    let wrong_acknowledgment = hear(&segment(TcpFlags::ACK, IRS + 1, ISS + 2));
    let HalfOpenVerdict::Respond(reset) = wrong_acknowledgment else {
        panic!("{wrong_acknowledgment:?}")
    };
    assert_eq!((reset.flags, reset.sequence), (TcpFlags::RST, ISS + 2));
    assert_eq!(hear(&segment(TcpFlags::RST, IRS, ISS)), HalfOpenVerdict::Nothing);
    assert!(matches!(hear(&segment(TcpFlags::RST, IRS + 2, ISS)), HalfOpenVerdict::Respond(_)));
    assert!(matches!(hear(&segment(TcpFlags::SYN, IRS + 1, ISS)), HalfOpenVerdict::Respond(_)));
    assert!(matches!(
        hear(&segment(TcpFlags::ACK, IRS + 70_000, ISS + 1)),
        HalfOpenVerdict::Respond(_)
    ));
    assert_eq!(hear(&segment(TcpFlags::FIN, IRS + 1, ISS)), HalfOpenVerdict::Nothing);
    assert_eq!(hear(&segment(TcpFlags::RST, IRS + 1, ISS)), HalfOpenVerdict::Removed);
    assert_eq!(hear(&segment(TcpFlags::ACK, IRS + 1, ISS + 1)), HalfOpenVerdict::Nothing);
    assert!(table.is_empty());
}

#[test]
fn a_full_table_refuses_and_evicts_nothing() {
    let mut table = HalfOpenTable::new(3, 1460);
    for key in 0..3 {
        assert!(table.syn_arrived(NOW, key, &syn(), BEGINNING).is_some());
    }
    for key in 3..1000 {
        assert_eq!(table.syn_arrived(NOW, key, &syn(), BEGINNING), None);
    }
    assert_eq!(sent(&mut table, NOW).len(), 3);
    assert_eq!(HalfOpenTable::new(0, 1460).syn_arrived(NOW, 1, &syn(), BEGINNING), None);
}

#[test]
fn a_stale_entry_id_finds_nothing() {
    let mut table = HalfOpenTable::new(1, 1460);
    let id = table.syn_arrived(NOW, 1, &syn(), BEGINNING).unwrap();
    table.remove(id, &1);
    table.syn_arrived(NOW, 2, &syn(), BEGINNING).unwrap();
    assert_eq!(
        table.segment_arrived(NOW, id, &1, &segment(TcpFlags::ACK, IRS + 1, ISS + 1)),
        HalfOpenVerdict::Nothing
    );
    table.remove(id, &1);
    assert_eq!(table.len(), 1);
}

const OVER: TimeWait = TimeWait {
    snd_nxt: SequenceNumber(7),
    rcv_nxt: SequenceNumber(3),
    window: 99,
    timestamps: None,
};

#[test]
fn time_wait_repeats_the_last_ack_for_a_minute() {
    let mut table = TimeWaitTable::with_capacity(4);
    let (id, _) = table.insert(NOW, 9u32, OVER);
    let fin = segment(TcpFlags::FIN.with(TcpFlags::ACK), SequenceNumber(2), SequenceNumber(7));
    let later = NOW + Micros::from_secs(10);
    let verdict = table.segment_arrived(later, id, &9, &fin);
    let TimeWaitVerdict::Respond(answer) = verdict else { panic!("{verdict:?}") };
    assert_eq!(
        (answer.sequence, answer.acknowledgment, answer.flags),
        (OVER.snd_nxt, OVER.rcv_nxt, TcpFlags::ACK)
    );
    assert_eq!(
        table.next_deadline(),
        Some(later + TIME_WAIT),
        "a repeated FIN starts the wait anew"
    );
    assert_eq!(table.expired(NOW + TIME_WAIT), None);
    assert_eq!(table.expired(later + TIME_WAIT), Some(9));
    assert!(table.is_empty() && table.next_deadline().is_none());
}

#[test]
fn time_wait_ignores_resets_and_acknowledgments() {
    let mut table = TimeWaitTable::with_capacity(4);
    let (id, _) = table.insert(NOW, 9u32, OVER);
    for sequence in 0..10 {
        for flags in [TcpFlags::RST, TcpFlags::ACK, TcpFlags::RST.with(TcpFlags::ACK)] {
            let stray = segment(flags, SequenceNumber(sequence), SequenceNumber(7));
            assert_eq!(table.segment_arrived(NOW, id, &9, &stray), TimeWaitVerdict::Nothing);
        }
    }
    assert_eq!(table.len(), 1);
}

#[test]
fn time_wait_ignores_segments_without_ack_or_syn() {
    let mut table = TimeWaitTable::with_capacity(4);
    let (id, _) = table.insert(NOW, 9u32, OVER);
    for sequence in 0..10 {
        let stray = segment(TcpFlags::FIN, SequenceNumber(sequence), SequenceNumber(0));
        assert_eq!(table.segment_arrived(NOW, id, &9, &stray), TimeWaitVerdict::Nothing);
    }
}

#[test]
fn only_a_newer_syn_reopens_a_time_wait_connection() {
    let mut table = TimeWaitTable::with_capacity(4);
    let (id, _) = table.insert(NOW, 9u32, OVER);
    let old = segment(TcpFlags::SYN, SequenceNumber(2), SequenceNumber(0));
    assert!(matches!(table.segment_arrived(NOW, id, &9, &old), TimeWaitVerdict::Respond(_)));
    let new = segment(TcpFlags::SYN, SequenceNumber(3), SequenceNumber(0));
    let verdict = table.segment_arrived(NOW, id, &9, &new);
    assert_eq!(verdict, TimeWaitVerdict::NewConnection { snd_nxt: OVER.snd_nxt });
    assert!(table.is_empty());
}

#[test]
fn a_full_time_wait_table_evicts_its_oldest() {
    let mut table = TimeWaitTable::with_capacity(2);
    for key in 0..10u32 {
        let (_, forgotten) = table.insert(NOW, key, OVER);
        assert_eq!(forgotten, key.checked_sub(2));
    }
}

#[test]
fn strays_are_reset_acceptably_and_resets_are_not_answered() {
    let acknowledging = segment(TcpFlags::ACK, SequenceNumber(5), SequenceNumber(6));
    let reset = reset_for(&acknowledging).unwrap();
    assert_eq!((reset.flags, reset.sequence), (TcpFlags::RST, SequenceNumber(6)));
    let bare =
        SegmentRepr { payload: b"abc", ..segment(TcpFlags::SYN.with(TcpFlags::FIN), ISS, IRS) };
    let reset = reset_for(&bare).unwrap();
    assert_eq!(
        (reset.flags, reset.sequence),
        (TcpFlags::RST.with(TcpFlags::ACK), SequenceNumber(0))
    );
    assert_eq!(reset.acknowledgment, ISS + 5);
    assert_eq!(reset_for(&segment(TcpFlags::RST, ISS, IRS)), None);
}

#[test]
fn initial_numbers_depend_on_connection_secret_and_time() {
    let ours = InitialSequences::new(&[1; 16]);
    let others = InitialSequences::new(&[2; 16]);
    assert_ne!(ours.next(NOW, &1u64), ours.next(NOW, &2u64));
    assert_ne!(ours.next(NOW, &1u64), others.next(NOW, &1u64));
    let second_later = ours.next(NOW + Micros::from_secs(1), &1u64);
    assert_eq!(second_later.iss.since(ours.next(NOW, &1u64).iss), 250_000);
}

#[test]
fn a_successor_begins_beyond_its_predecessors_numbers() {
    let ours = InitialSequences::new(&[1; 16]);
    let clock = ours.next(NOW, &1u64).iss;
    assert_eq!(ours.beyond(clock - 1, NOW, &1u64), ours.next(NOW, &1u64));
    for ahead in [0, 1, 1000, 1 << 30] {
        assert!(ours.beyond(clock + ahead, NOW, &1u64).iss.is_after(clock + ahead));
    }
}
