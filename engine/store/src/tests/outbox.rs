//! The outbox: what leaves from there came by a delivery, and is told of once.

use super::disk::Cut;
use super::rig::{MIB, Rig, body};
use crate::outcome::Refusal;
use crate::types::{AccountId, Flags, INBOX, MessageInfo, OUTBOX, Recipient, SENT, Uid, UidRange};
use alloc::vec::Vec;

fn to_outbox(account: AccountId, flags: u8) -> Recipient {
    Recipient { mailbox: OUTBOX, flags: Flags(flags), keywords: u16::from(flags) << 8, ..Recipient::inbox(account) }
}

impl Rig {
    fn posted(&mut self) -> Vec<(AccountId, Uid)> {
        let mut all: Vec<(AccountId, Uid)> = core::iter::from_fn(|| self.store.next_posted()).collect();
        all.sort();
        all
    }
}

#[test]
fn one_letter_is_in_an_outbox_as_often_as_it_is_delivered_there() {
    for length in [900, 70_000] {
        let mut rig = Rig::new(16 * MIB);
        let (ada, eve) = (rig.create("ada@example.org"), rig.create("eve@example.org"));
        let all = [to_outbox(ada, 1), to_outbox(ada, 3), Recipient::inbox(eve), to_outbox(ada, 5)];
        rig.deliver_to(&all, &body(1, length)).unwrap();
        for _ in 0..2 {
            let list = rig.list_in(ada, OUTBOX);
            let marks = |message: &MessageInfo| (message.flags.0, message.keywords);
            assert_eq!(list.iter().map(marks).collect::<Vec<_>>(), [(1, 0x100), (3, 0x300), (5, 0x500)]);
            for message in &list {
                assert!(rig.read_in(ada, OUTBOX, message) == Ok(body(1, length)));
            }
            assert_eq!(rig.list(eve).len(), 1);
            rig = rig.cut(Cut::Prefix(0));
        }
        assert!(rig.fsck().is_clean());
    }
}

#[test]
fn what_comes_into_an_outbox_is_told_of_once_and_nothing_else_is() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 100)).unwrap();
    assert!(!rig.store.has_posted());
    rig.deliver_to(&[to_outbox(ada, 1), to_outbox(ada, 1)], &body(1, 100)).unwrap();
    rig.deliver_to(&[to_outbox(ada, 1)], &body(2, 100)).unwrap();
    assert!(rig.store.has_posted());
    assert_eq!(rig.posted(), [(ada, Uid(1)), (ada, Uid(2)), (ada, Uid(3))]);
    assert_eq!(rig.posted(), []);
    let mut rig = rig.cut(Cut::Prefix(0));
    assert_eq!(rig.posted(), [], "what an earlier life was told of is looked for");
    assert_eq!(rig.list_in(ada, OUTBOX).len(), 3);
}

#[test]
fn nothing_is_filed_into_an_outbox() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver_to(&[Recipient::inbox(ada), to_outbox(ada, 1)], &body(1, 100)).unwrap();
    let (_, continuation) = rig.continuation();
    let one = [UidRange::one(Uid(1))];
    assert_eq!(rig.store.file(ada, INBOX, &one, OUTBOX, continuation), Err(Refusal::BuiltIn));
    rig.file(ada, OUTBOX, &[1], SENT);
    assert_eq!((rig.list_in(ada, OUTBOX).len(), rig.list_in(ada, SENT).len()), (0, 1));
}
