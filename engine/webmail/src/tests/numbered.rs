//! Tests of request handlers with a number.

use store::AccountId;
use tasks::FrameId;

use crate::numbered::{MoreWanted, Numbered};

/// Begins an open reply of an account, if the limits allow it. Returns whether they do.
fn begin(replies: &mut Numbered<MoreWanted>, number: u64, account: u64) -> bool {
    let account = AccountId::from_bits(account);
    let may_begin = replies.may_begin(account);
    if may_begin {
        replies.begin(number, account, FrameId::new(number as u32, 0));
    }
    may_begin
}

#[test]
fn account_has_a_share_of_open_replies() {
    let mut replies = Numbered::replies();
    let begun = (0..100).filter(|number| begin(&mut replies, *number, 1));
    assert_eq!(begun.count(), 8);
    assert!(begin(&mut replies, 100, 2), "another account may begin a reply");
    assert!(replies.end(0).is_some());
    assert!(begin(&mut replies, 101, 1) && !begin(&mut replies, 102, 1));
}

#[test]
fn open_replies_of_all_accounts_are_limited() {
    let mut replies = Numbered::replies();
    let begun = (0..100).filter(|number| begin(&mut replies, *number, *number));
    assert_eq!(begun.count(), 32);
    assert_eq!(replies.count(), 32);
}

#[test]
fn event_for_an_ended_number_is_dropped() {
    let mut replies = Numbered::replies();
    for number in [1, 2] {
        assert!(begin(&mut replies, number, 1));
        replies.arrived(number, MoreWanted);
    }
    assert_eq!(replies.end(1), Some(FrameId::new(1, 0)));
    assert_eq!(replies.end(1), None);
    assert_eq!(replies.next().map(|(frame, MoreWanted)| frame.index()), Some(2));
    assert!(replies.next().is_none() && !replies.has_arrived());
}
