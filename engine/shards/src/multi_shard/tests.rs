//! Messages for several cores, part by part.

use super::*;

fn part(number: u32) -> DeliveryHandle {
    DeliveryHandle::Remote(RemoteDeliveryId(FrameId::new(number, 0)))
}

fn number(delivery: DeliveryHandle) -> usize {
    let DeliveryHandle::Remote(RemoteDeliveryId(frame)) = delivery else {
        panic!("a part of another kind")
    };
    frame.index()
}

/// Three parts that take pseudo-random numbers of octets at a time, offered in pieces of changing
/// lengths.
#[test]
fn every_part_gets_each_octet_once_for_any_progress() {
    let octets: Vec<u8> =
        (0..5000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut multi_shard = MultiShardDeliveries::new(1);
    let delivery = multi_shard.begin().expect("there is room for one");
    assert_eq!(multi_shard.begin(), Err(Refusal::Busy));
    let parts = multi_shard.get(delivery).expect("it has begun");
    let no_part = |_: DeliveryHandle, _: &[u8]| unreachable!("a part without a place");
    assert_eq!(
        parts.append(&octets, part_at(delivery, ShardWaitPoint::RemoteRoom), no_part),
        Ok(0)
    );
    parts.stage = Stage::Octets;
    (0..3).for_each(|number| parts.add(part(number)));
    let mut got = [const { Vec::new() }; 3];
    let (mut at, mut clock) = (0, 7_usize);
    while at < octets.len() {
        clock = clock * 5 % 1009;
        let offered = &octets[at..octets.len().min(at + 1 + clock)];
        let taken =
            parts.append(offered, part_at(delivery, ShardWaitPoint::RemoteRoom), |part, octets| {
                clock = clock * 5 % 1009;
                let count = octets.len().min(clock % 300);
                got[number(part)].extend_from_slice(&octets[..count]);
                Ok(count)
            });
        at += taken.expect("no part refuses");
    }
    assert!(got.iter().all(|got| *got == octets));
}

#[test]
fn multi_shard_message_ends_with_its_last_part() {
    for refused in [None, Some(Refusal::DiskFull)] {
        let mut multi_shard = MultiShardDeliveries::new(1);
        let delivery = multi_shard.begin().expect("there is room for one");
        let parts = multi_shard.get(delivery).expect("it has begun");
        let session =
            Continuation { frame: FrameId::new(5, 6), entry: ShardWaitPoint::RemoteStored.entry() };
        (parts.outstanding, parts.continuation) = (2, Some(session));
        let mut end = |outcome| {
            multi_shard.woken(Wake {
                continuation: part_at(delivery, ShardWaitPoint::PartStored),
                outcome,
            })
        };
        assert!(end(refused.map_or(Outcome::Delivered, Outcome::Refused)).is_none());
        let wake = end(Outcome::Delivered).expect("the session is woken");
        assert_eq!(wake.continuation, session);
        match refused {
            None => assert!(matches!(wake.outcome, Outcome::Delivered)),
            Some(refused) => {
                assert!(matches!(wake.outcome, Outcome::Refused(reported) if reported == refused))
            }
        }
        assert_eq!(multi_shard.len(), 0);
    }
}

#[test]
fn late_room_wake_does_not_end_a_multi_shard_message() {
    let mut multi_shard = MultiShardDeliveries::new(1);
    let delivery = multi_shard.begin().expect("there is room for one");
    let session =
        Continuation { frame: FrameId::new(5, 6), entry: ShardWaitPoint::RemoteStored.entry() };
    let room = || Wake {
        continuation: part_at(delivery, ShardWaitPoint::PartRoom),
        outcome: Outcome::DeliveryReady,
    };
    for stage in [Stage::Preparing, Stage::Committed] {
        let parts = multi_shard.get(delivery).expect("it has begun");
        (parts.stage, parts.outstanding, parts.continuation) = (stage, 1, Some(session));
        assert!(multi_shard.woken(room()).is_none());
    }
    let stored = Wake {
        continuation: part_at(delivery, ShardWaitPoint::PartStored),
        outcome: Outcome::Delivered,
    };
    let wake = multi_shard.woken(stored).expect("the session is woken");
    assert_eq!(wake.continuation, session);
}

/// A message without octets is complete before anything else is requested.
#[test]
fn message_with_a_refused_reservation_is_not_committed() {
    for refused in [None, Some(Refusal::IndexFull)] {
        let mut multi_shard = MultiShardDeliveries::new(1);
        let delivery = multi_shard.begin().expect("there is room for one");
        let parts = multi_shard.get(delivery).expect("it has begun");
        let session =
            Continuation { frame: FrameId::new(5, 6), entry: ShardWaitPoint::RemoteStored.entry() };
        parts.refused = refused;
        let completed = parts.complete(machine::UnixTime::from_seconds(1).into(), session);
        assert_eq!(completed, refused.map_or(Ok(()), Err));
        assert_eq!(
            (parts.stage, parts.continuation.is_some()),
            (Stage::Beginning, refused.is_none())
        );
    }
}
