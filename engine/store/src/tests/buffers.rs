//! Buffers are scarce, and no operation that waits for a buffer is forgotten.

use super::rig::{MIB, NOW, Rig, body, limits};
use crate::DeliveryId;
use crate::layout::PIECE_PAGES;
use crate::outcome::{Outcome, Refusal};
use crate::types::{AccountId, INBOX, Limits, Recipient, Uid, UidRange};
use alloc::vec::Vec;

/// A delivery that has filled its first page. If it found no larger buffer, also the number of the
/// continuation with which it waits.
fn begun(rig: &mut Rig, account: AccountId) -> (DeliveryId, Option<u32>) {
    let delivery = rig.store.begin(&[Recipient::inbox(account)]).unwrap();
    let (number, continuation) = rig.continuation();
    let octets = body(1, 8_000);
    let taken = rig.store.append(delivery, &octets, continuation).unwrap();
    rig.exchange();
    (delivery, (taken < octets.len()).then_some(number))
}

#[test]
fn delivery_behind_aborted_ones_gets_a_buffer() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada");
    let mut holders = Vec::new();
    let mut waiting = Vec::new();
    while waiting.len() < 6 {
        match begun(&mut rig, ada) {
            (delivery, None) => holders.push(delivery),
            (delivery, Some(number)) => waiting.push((delivery, number)),
        }
    }
    let (_, last) = waiting.pop().unwrap();
    waiting.into_iter().for_each(|(delivery, _)| rig.store.abort(delivery));
    rig.exchange();
    assert!(!rig.outcomes.contains_key(&last));
    rig.store.abort(holders.pop().unwrap());
    rig.exchange();
    assert!(matches!(rig.outcomes.get(&last), Some(Outcome::DeliveryReady)));
}

#[test]
fn delivery_with_a_buffer_is_not_woken_instead_of_another() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada");
    let mut buffers: Vec<_> =
        core::iter::from_fn(|| rig.store.parts_mut().pool.take_sparing(PIECE_PAGES)).collect();
    let (early, _) = begun(&mut rig, ada);
    let (late, woken_late) = begun(&mut rig, ada);
    assert!(woken_late.is_some());
    rig.store.give(buffers.pop().unwrap());
    // The early delivery is woken. Before it tries again, the late delivery gets more octets, as
    // from another core.
    let (_, continuation) = rig.continuation();
    assert_eq!(rig.store.append(late, &body(2, 100), continuation), Ok(100));
    let (number, continuation) = rig.continuation();
    assert_eq!(rig.store.append(early, &body(3, 100), continuation), Ok(0));
    rig.store.give(buffers.pop().unwrap());
    rig.exchange();
    assert!(matches!(rig.outcomes.get(&number), Some(Outcome::DeliveryReady)));
}

#[test]
fn aborted_deliveries_leave_the_buffer_queue() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada");
    let mut holders = Vec::new();
    let waiting = loop {
        match begun(&mut rig, ada) {
            (delivery, None) => holders.push(delivery),
            (delivery, Some(_)) => break delivery,
        }
    };
    rig.store.abort(waiting);
    for _ in 0..1_000 {
        let (delivery, number) = begun(&mut rig, ada);
        assert!(number.is_some());
        rig.store.abort(delivery);
        assert!(!rig.store.is_short_of_buffers());
    }
}

#[test]
fn waiting_read_never_returns_another_message() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada");
    rig.deliver(&[ada], &body(1, 20_000)).unwrap();
    let buffers: Vec<_> =
        core::iter::from_fn(|| rig.store.parts_mut().pool.take_sparing(PIECE_PAGES)).collect();
    let smaller: Vec<_> =
        core::iter::from_fn(|| rig.store.parts_mut().pool.take_sparing(5)).collect();
    let (number, continuation) = rig.continuation();
    rig.store.read(ada, INBOX, Uid(1), 10_000, continuation).unwrap();
    assert!(rig.store.is_short_of_buffers());
    // The removal and a new delivery are in one group, so the read cannot start between them.
    let (_, removal) = rig.continuation();
    rig.store.remove(ada, INBOX, &[UidRange::one(Uid(1))], removal).unwrap();
    rig.deliver(&[ada], &body(2, 100)).unwrap();
    buffers.into_iter().chain(smaller).for_each(|buffer| rig.store.give(buffer));
    let outcome = rig.outcome(number);
    assert!(matches!(outcome, Outcome::Refused(Refusal::NoSuchMessage)), "{outcome:?}");
    assert_eq!(rig.list(ada)[0].uid, Uid(2));
}

#[test]
fn every_delivery_gets_a_first_page_beside_a_message_to_many() {
    let many = Limits { recipients: 100, ..limits() };
    let mut rig = Rig::with_limits(16 * MIB, many);
    let all: Vec<_> = (0..100)
        .map(|number| Recipient::inbox(rig.create(&alloc::format!("user{number}"))))
        .collect();
    let delivery = rig.store.begin(&all).unwrap();
    rig.append(delivery, &body(1, 100)).unwrap();
    let (_, continuation) = rig.continuation();
    rig.store.commit(delivery, NOW, continuation).unwrap();
    for _ in 1..many.deliveries {
        let delivery = rig.store.begin(&all[..1]).unwrap();
        let (_, continuation) = rig.continuation();
        assert_eq!(rig.store.append(delivery, &body(2, 100), continuation), Ok(100));
    }
}
