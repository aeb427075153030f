//! The usage of accounts: counted exactly in all cases, and never above the quota.

use super::disk::Cut;
use super::rig::{MIB, NOW, Rig, body};
use crate::outcome::{Outcome, Refusal};
use crate::quotas::Usage;
use crate::types::{
    ARCHIVE, AccountId, Closing, DRAFTS, Flags, INBOX, JUNK, OUTBOX, Recipient, SENT, TRASH,
};
use alloc::vec::Vec;

impl Rig {
    /// The octets of messages in all mailboxes except the outbox.
    fn recount(&self, account: AccountId) -> u64 {
        let known = self.store.account(account).unwrap();
        let mailboxes: Vec<_> =
            known.mailboxes().map(|(id, _)| id).filter(|id| *id != OUTBOX).collect();
        let all = mailboxes.into_iter().flat_map(|mailbox| self.list_in(account, mailbox));
        all.map(|message| u64::from(message.octets)).sum()
    }

    fn check_count(&self, account: AccountId) -> u64 {
        let taken = self.store.account(account).unwrap().taken();
        let outbox = self
            .list_in(account, OUTBOX)
            .iter()
            .map(|message| u64::from(message.octets))
            .sum::<u64>();
        let usage = Usage { mailboxes: taken, outbox };
        assert_eq!((taken, self.store.usage(account)), (self.recount(account), usage));
        taken
    }
}

fn limit(rig: &mut Rig, octets: u64) {
    rig.store.set_quotas(|address| address.starts_with("ada").then_some(octets));
}

#[test]
fn usage_is_always_the_sum_of_the_messages() {
    let mut rig = Rig::new(32 * MIB);
    let ada = rig.create("ada@example.org");
    assert_eq!(rig.check_count(ada), 0);
    for (number, length) in [1, 900, 5_000, 40_000, 90_000].into_iter().enumerate() {
        rig.deliver(&[ada], &body(number as u64, length)).unwrap();
        rig.check_count(ada);
    }
    let outbox = Recipient { mailbox: OUTBOX, ..Recipient::inbox(ada) };
    rig.deliver_to(
        &[outbox, Recipient::inbox(ada), Recipient { mailbox: SENT, ..outbox }],
        &body(9, 700),
    )
    .unwrap();
    assert_eq!(rig.check_count(ada), 1 + 900 + 5_000 + 40_000 + 90_000 + 2 * 700);
    rig.file(ada, INBOX, &[2, 4], ARCHIVE);
    rig.file(ada, OUTBOX, &[1], SENT);
    assert_eq!(rig.check_count(ada), 1 + 900 + 5_000 + 40_000 + 90_000 + 3 * 700);
    rig.remove(ada, &[1, 5]).unwrap();
    rig.remove_in(ada, ARCHIVE, &[2]).unwrap();
    assert_eq!(rig.check_count(ada), 900 + 5_000 + 3 * 700);
    let (number, continuation) = rig.continuation();
    rig.store.create_mailbox(ada, "Own", NOW, continuation).unwrap();
    let Outcome::MailboxCreated(own) = rig.outcome(number) else { panic!("no mailbox") };
    rig.file(ada, INBOX, &[3], own);
    let (before, mut rig) = (rig.check_count(ada), rig);
    for _ in 0..3 {
        rig = rig.cut(Cut::Prefix(0));
        assert_eq!(rig.check_count(ada), before);
        rig.deliver(&[ada], &body(50, 3_000)).unwrap();
        let newest = rig.list(ada).iter().map(|message| message.uid.0).max().unwrap();
        rig.remove(ada, &[newest]).unwrap();
    }
    assert_eq!(rig.check_count(ada), before);
}

#[test]
fn outbox_is_full_at_half_of_the_quota() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    let outbox = Recipient { mailbox: OUTBOX, ..Recipient::inbox(ada) };
    let is_full = |rig: &Rig| rig.store.account(ada).unwrap().is_outbox_full();
    rig.deliver_to(&[outbox], &body(1, 4_999)).unwrap();
    assert!(!is_full(&rig), "full without a limit");
    limit(&mut rig, 10_000);
    assert!(!is_full(&rig));
    rig.deliver_to(&[outbox], &body(2, 1)).unwrap();
    assert!(is_full(&rig));
    rig.deliver(&[ada], &body(3, 10_000)).unwrap();
    assert_eq!(rig.check_count(ada), 10_000, "the outbox counts for the mailboxes");
    let mut rig = rig.cut(Cut::Prefix(0));
    limit(&mut rig, 10_000);
    assert!(is_full(&rig));
    rig.remove_in(ada, OUTBOX, &[2]).unwrap();
    assert!(!is_full(&rig));
}

#[test]
fn message_over_quota_is_refused_and_others_are_delivered() {
    let mut rig = Rig::new(16 * MIB);
    let (ada, eve) = (rig.create("ada@example.org"), rig.create("eve@example.org"));
    limit(&mut rig, 10_000);
    assert_eq!(rig.store.account(ada).unwrap().allowed(), Some(10_000));
    assert_eq!(rig.store.account(eve).unwrap().allowed(), None);
    assert_eq!(rig.deliver(&[ada], &body(1, 10_001)), Err(Refusal::LargerThanQuota));
    assert_eq!(rig.deliver(&[ada], &body(1, 70_000)), Err(Refusal::LargerThanQuota));
    rig.deliver(&[ada], &body(1, 6_000)).unwrap();
    assert_eq!(rig.deliver(&[ada], &body(2, 4_001)), Err(Refusal::OverQuota));
    assert_eq!(rig.deliver(&[eve, ada], &body(2, 4_001)), Err(Refusal::OverQuota));
    assert_eq!(
        (rig.list(eve).len(), rig.store.usage(ada).mailboxes),
        (0, 6_000),
        "the message was delivered, or keeps a reservation"
    );
    for mailbox in [INBOX, DRAFTS, SENT, ARCHIVE, JUNK, TRASH] {
        let to = Recipient { mailbox, ..Recipient::inbox(ada) };
        assert_eq!(rig.deliver_to(&[to], &body(2, 4_001)), Err(Refusal::OverQuota), "{mailbox:?}");
    }
    let junk = Closing { mailbox: Some(JUNK), ..NOW.into() };
    assert_eq!(
        rig.deliver_closed(&[Recipient::inbox(ada)], &body(2, 4_001), junk),
        Err(Refusal::OverQuota)
    );
    let outbox = Recipient { mailbox: OUTBOX, flags: Flags::SEEN, ..Recipient::inbox(ada) };
    rig.deliver_to(&[outbox], &body(3, 20_000)).unwrap();
    rig.deliver(&[eve], &body(3, 20_000)).unwrap();
    rig.deliver(&[ada], &body(4, 4_000)).unwrap();
    assert_eq!(rig.check_count(ada), 10_000);
    rig.file(ada, INBOX, &[1], TRASH);
    assert_eq!(
        rig.deliver(&[ada], &body(5, 1)),
        Err(Refusal::OverQuota),
        "a message in Trash does not count"
    );
    rig.remove_in(ada, TRASH, &[1]).unwrap();
    rig.deliver(&[ada], &body(5, 6_000)).unwrap();
    assert!(rig.fsck().is_clean());
}

#[test]
fn concurrent_messages_fit_the_quota_or_are_refused() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    limit(&mut rig, 10_000);
    let deliveries: Vec<_> =
        (0..8).map(|_| rig.store.begin(&[Recipient::inbox(ada)]).unwrap()).collect();
    for (number, delivery) in deliveries.iter().enumerate() {
        rig.append(*delivery, &body(number as u64, 3_000)).unwrap();
    }
    // Space for two deliveries is reserved before they are committed. One of the two is given up.
    for delivery in &deliveries[..2] {
        let (_, continuation) = rig.continuation();
        assert_eq!(rig.store.prepare(*delivery, continuation), Ok(true));
    }
    assert_eq!(rig.store.usage(ada).mailboxes, 6_000);
    rig.store.abort(deliveries[1]);
    assert_eq!(rig.store.usage(ada).mailboxes, 3_000);
    let requested: Vec<u32> = [0, 2, 3, 4, 5, 6, 7]
        .map(|number: usize| {
            let (requested, continuation) = rig.continuation();
            rig.store.commit(deliveries[number], NOW, continuation).unwrap();
            requested
        })
        .into();
    rig.settle();
    let delivered = requested
        .iter()
        .filter(|number| matches!(rig.outcomes.remove(number), Some(Outcome::Delivered)));
    assert_eq!(delivered.count(), 3);
    assert_eq!((rig.check_count(ada), rig.list(ada).len()), (9_000, 3));
    let itself = [Recipient::inbox(ada), Recipient { mailbox: SENT, ..Recipient::inbox(ada) }];
    assert_eq!(rig.deliver_to(&itself, &body(20, 501)), Err(Refusal::OverQuota));
    rig.deliver_to(&itself, &body(20, 500)).unwrap();
    assert_eq!(rig.check_count(ada), 10_000);
}

#[test]
fn account_over_a_lowered_quota_keeps_mail_but_gets_none() {
    let mut rig = Rig::new(16 * MIB);
    let ada = rig.create("ada@example.org");
    rig.deliver(&[ada], &body(1, 9_000)).unwrap();
    let mut rig = rig.cut(Cut::Prefix(0));
    limit(&mut rig, 5_000);
    assert_eq!(rig.deliver(&[ada], &body(2, 100)), Err(Refusal::OverQuota));
    assert_eq!(rig.list(ada).len(), 1);
    rig.remove(ada, &[1]).unwrap();
    rig.deliver(&[ada], &body(2, 100)).unwrap();
}
