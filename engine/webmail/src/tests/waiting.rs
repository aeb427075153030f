//! Tests of waiting requests.

use alloc::boxed::Box;
use alloc::vec::Vec;
use channel::Ticket;
use machine::CoreId;
use store::AccountId;
use tasks::FrameId;

use crate::waiting::WaitingRequests;
use crate::{Request, SECRET_BYTES};

/// Adds a request of this session and account. Returns whether the limits allow it.
fn push(waiting: &mut WaitingRequests, session: u32, account: u64) -> bool {
    let ticket = Ticket { core: CoreId::FIRST, frame: FrameId::new(session, 0) };
    let request = Request::Form(crate::SessionTicket::new(account, [0; SECRET_BYTES]));
    waiting.push(ticket, Box::new(request)).is_ok()
}

/// The sessions of the requests, in the order in which they are handled.
fn taken_up(waiting: &mut WaitingRequests, handlers: impl Fn(AccountId) -> usize) -> Vec<usize> {
    let next = || waiting.pop(&handlers).map(|(ticket, _)| ticket.frame.index());
    core::iter::from_fn(next).collect()
}

#[test]
fn accounts_take_turns_and_keep_their_order() {
    let mut waiting = WaitingRequests::default();
    for (session, account) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (5, 2)] {
        assert!(push(&mut waiting, session, account));
    }
    assert_eq!(taken_up(&mut waiting, |_| 0), [0, 3, 4, 1, 5, 2]);
    assert_eq!(waiting.count(), 0);
}

#[test]
fn account_with_all_its_handlers_is_passed_over() {
    let mut waiting = WaitingRequests::default();
    for (session, account) in [(0, 1), (1, 2), (2, 1)] {
        assert!(push(&mut waiting, session, account));
    }
    let handlers = |account| if account == AccountId::from_bits(1) { 16 } else { 15 };
    assert_eq!(taken_up(&mut waiting, handlers), [1]);
    assert!(!waiting.has_next(handlers));
    assert_eq!(taken_up(&mut waiting, |_| 15), [0, 2]);
}

#[test]
fn waiting_requests_of_an_account_are_limited() {
    let mut waiting = WaitingRequests::default();
    let pushed = (0..1000).filter(|session| push(&mut waiting, *session, 1));
    assert_eq!(pushed.count(), 128);
    assert!(push(&mut waiting, 0, 2), "a request of another account may wait");
    assert!(waiting.pop(|_| 0).is_some());
    assert!(push(&mut waiting, 0, 1) && !push(&mut waiting, 0, 1));
}

#[test]
fn waiting_requests_of_all_accounts_are_limited() {
    let mut waiting = WaitingRequests::default();
    let pushed = (0..1000).filter(|session| push(&mut waiting, *session, u64::from(*session)));
    assert_eq!(pushed.count(), 512);
    assert_eq!(taken_up(&mut waiting, |_| 0).len(), 512);
    assert!(push(&mut waiting, 0, 1));
}
