//! Messages that are delivered several times but arrive once, and the flags of delayed sends.

use super::cuts::at_every_point;
use super::disk::Cut;
use super::rig::{MIB, NOW, Rig, body};
use crate::outcome::{Outcome, Refusal};
use crate::types::{AccountId, DRAFTS, Flags, Guid, Recipient, SENT, SentId};
use crate::{ARRIVALS_MAX, NOTES_MAX, NoteChange};
use alloc::format;
use alloc::vec::Vec;

fn origin(of: AccountId, number: u128) -> SentId {
    SentId::of(of, Guid(number))
}

fn once(account: AccountId, origin: SentId) -> Recipient {
    Recipient { once: Some(origin), ..Recipient::inbox(account) }
}

impl Rig {
    fn forget_arrival(&mut self, account: AccountId, origin: SentId) -> Outcome {
        let (number, continuation) = self.continuation();
        self.at(account).forget_arrival(account, origin, continuation).unwrap();
        self.outcome(number)
    }
}

#[test]
fn repeated_message_is_refused_until_its_arrival_is_forgotten() {
    let mut rig = Rig::new(16 * MIB);
    let (ada, eve) = (rig.create("ada@example.org"), rig.create("eve@example.org"));
    rig.deliver_to(&[once(ada, origin(eve, 7))], &body(1, 1000)).unwrap();
    rig.remove(ada, &[1]).unwrap();
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.deliver_to(&[once(ada, origin(eve, 7))], &body(1, 1000)), Err(Refusal::Arrived));
    assert!(rig.list(ada).is_empty());
    for other in [once(ada, origin(eve, 8)), once(ada, origin(ada, 7)), once(eve, origin(eve, 7))] {
        rig.deliver_to(&[other], &body(2, 1000)).unwrap();
    }
    assert!(matches!(rig.forget_arrival(ada, origin(eve, 7)), Outcome::Changed));
    assert!(matches!(
        rig.forget_arrival(ada, origin(eve, 7)),
        Outcome::Refused(Refusal::NoSuchNote)
    ));
    let mut rig = rig.cut(Cut::Prefix(0));
    rig.deliver_to(&[once(ada, origin(eve, 7))], &body(1, 1000)).unwrap();
    assert_eq!((rig.list(ada).len(), rig.list(eve).len()), (3, 1));
}

/// After a power cut at any point, a repeated delivery succeeds if the message is missing, and is
/// refused if the message has arrived. This also holds if the record is durable but the message is
/// torn.
#[test]
fn repeated_message_is_there_once_after_a_cut_anywhere() {
    for length in [1500, 40_000] {
        let mut rig = Rig::new(4 * MIB);
        let ada = rig.create("ada@example.org");
        let octets = body(2, length);
        let to = once(ada, origin(ada, 7));
        let mut ends = [0, 0];
        let ends = core::cell::RefCell::new(&mut ends);
        at_every_point(
            rig,
            |rig| {
                let delivery = rig.store.begin(&[to]).unwrap();
                rig.append(delivery, &octets).unwrap();
                let (_, continuation) = rig.continuation();
                rig.store.commit(delivery, NOW, continuation).unwrap();
                rig.store.turn_ended();
                rig.exchange();
            },
            |rig, acknowledged| {
                // The power may fail again before anything else is written. A dropped message must
                // not come back, nor must its note.
                for cut in [None, Some(Cut::Prefix(0))] {
                    let disk = rig.disk.clone();
                    let again = Rig::on(disk);
                    let mut again = if let Some(cut) = cut { again.cut(cut) } else { again };
                    let was_there = !again.list(ada).is_empty();
                    assert!(was_there || !acknowledged);
                    ends.borrow_mut()[usize::from(was_there)] += 1;
                    let repeated = again.deliver_to(&[to], &octets);
                    assert_eq!(repeated, if was_there { Err(Refusal::Arrived) } else { Ok(()) });
                    let list = again.list(ada);
                    assert_eq!(list.len(), 1);
                    assert!(again.read(ada, &list[0]).unwrap() == octets);
                    assert_eq!(again.deliver_to(&[to], &octets), Err(Refusal::Arrived));
                }
            },
        );
        assert!(ends.borrow().iter().all(|count| *count > 20), "{ends:?}");
    }
}

impl Rig {
    /// Delivers a message to Ada that stands for three origins.
    fn deliver_for_three(&mut self, ada: AccountId, octets: &[u8]) -> Result<(), Refusal> {
        let delivery = self.store.begin(&[once(ada, origin(ada, 7))])?;
        let others = [8, 9].map(|number| origin(ada, number));
        if let Err(refusal) = self.store.stand_for(delivery, &others) {
            self.store.abort(delivery);
            return Err(refusal);
        }
        self.append(delivery, octets)?;
        let (_, continuation) = self.continuation();
        self.store.commit(delivery, NOW, continuation)
    }
}

/// A message that stands for three others arrives with all three notes or with none, also if the
/// record is durable but the message is torn.
#[test]
fn message_for_several_origins_arrives_for_all_or_none() {
    for length in [1500, 40_000] {
        let mut rig = Rig::new(4 * MIB);
        let ada = rig.create("ada@example.org");
        let octets = body(2, length);
        let mut ends = [0, 0];
        let ends = core::cell::RefCell::new(&mut ends);
        at_every_point(
            rig,
            |rig| {
                rig.deliver_for_three(ada, &octets).unwrap();
                rig.store.turn_ended();
                rig.exchange();
            },
            |rig, acknowledged| {
                for cut in [None, Some(Cut::Prefix(0))] {
                    let again = Rig::on(rig.disk.clone());
                    let mut again = if let Some(cut) = cut { again.cut(cut) } else { again };
                    let was_there = !again.list(ada).is_empty();
                    assert!(was_there || !acknowledged);
                    ends.borrow_mut()[usize::from(was_there)] += 1;
                    for number in 7..10 {
                        assert_eq!(again.store.has_arrived(ada, origin(ada, number)), was_there);
                    }
                    let repeated = again.deliver_for_three(ada, &octets);
                    assert_eq!(repeated, if was_there { Err(Refusal::Arrived) } else { Ok(()) });
                }
            },
        );
        assert!(ends.borrow().iter().all(|count| *count > 20), "{ends:?}");
    }
}

#[test]
fn origins_of_one_message_are_bounded() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let others = |count: u128| (1..=count).map(|number| origin(ada, number)).collect::<Vec<_>>();
    let most = crate::ARRIVALS_OF_MESSAGE_MAX as u128 - 1;
    for (count, result) in [(most + 1, Err(Refusal::TooMany)), (most, Ok(()))] {
        let delivery = rig.store.begin(&[once(ada, origin(ada, 0))]).unwrap();
        assert_eq!(rig.store.stand_for(delivery, &others(count)), result);
        rig.store.abort(delivery);
    }
    for number in 1000..1000 + ARRIVALS_MAX as u128 - most {
        rig.deliver_to(&[once(ada, origin(ada, number))], &body(1, 100)).unwrap();
    }
    assert_eq!(rig.store.arrivals_left(ada) as u128, most);
    let delivery = rig.store.begin(&[once(ada, origin(ada, 0))]).unwrap();
    assert_eq!(rig.store.stand_for(delivery, &others(most)), Err(Refusal::TooMany));
    assert_eq!(rig.store.stand_for(delivery, &[origin(ada, 1000)]), Err(Refusal::Arrived));
    assert_eq!(rig.store.stand_for(delivery, &others(most - 1)), Ok(()));
    // Deliveries that are under way count.
    let second = rig.store.begin(&[once(ada, origin(ada, 2000))]).unwrap();
    let beside = [origin(ada, 2001)];
    assert_eq!(rig.store.arrivals_left(ada), 0);
    assert_eq!(rig.store.stand_for(second, &beside), Err(Refusal::TooMany));
    rig.store.abort(delivery);
    assert_eq!(rig.store.stand_for(second, &beside), Ok(()));
}

#[test]
fn arrivals_are_bounded_and_do_not_count_as_notes() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    for number in 0..ARRIVALS_MAX {
        rig.deliver_to(&[once(ada, origin(ada, number as u128))], &body(1, 100)).unwrap();
    }
    assert_eq!(
        rig.deliver_to(&[once(ada, origin(ada, 1000))], &body(1, 100)),
        Err(Refusal::TooMany)
    );
    for number in 0..NOTES_MAX {
        let key = format!("{number:02}");
        rig.note(ada, alloc::vec![NoteChange::Put(key.as_bytes().into(), [1][..].into())]).unwrap();
    }
    let one_more = NoteChange::Put(b"one more"[..].into(), [1][..].into());
    assert_eq!(rig.note(ada, alloc::vec![one_more]), Err(Refusal::TooMany));
    rig.deliver(&[ada], &body(1, 100)).unwrap();
    assert!(matches!(rig.forget_arrival(ada, origin(ada, 3)), Outcome::Changed));
    rig.deliver_to(&[once(ada, origin(ada, 1000))], &body(1, 100)).unwrap();
    assert!(rig.fsck().is_clean());
}

#[test]
fn moved_message_loses_its_sending_flags() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let flags = Flags::SEEN.with(Flags::LEFT).with(Flags::HELD);
    rig.deliver_to(&[Recipient { mailbox: DRAFTS, flags, ..Recipient::inbox(ada) }], &body(1, 100))
        .unwrap();
    assert!(rig.list_in(ada, DRAFTS)[0].flags.are_on_their_way());
    rig.file(ada, DRAFTS, &[1], SENT);
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.list_in(ada, SENT)[0].flags, Flags::SEEN);
    rig.deliver(&[ada], &body(1, 100)).unwrap();
}
