//! Requests that wait for a request handler.
//!
//! The accounts of a core take turns, so that one account with many requests does not delay the
//! others.
//!
//! Invariants:
//! - Requests of one account are handled in the order of their arrival.
//! - An account has at most [`HANDLERS_OF_ACCOUNT_MAX`] request handlers. Its further requests
//!   wait, and requests of other accounts overtake them.
//! - At most [`REQUESTS_MAX`] requests wait, and at most [`REQUESTS_OF_ACCOUNT_MAX`] of one
//!   account. The number of connections is no limit, since a request stays when its client
//!   disconnects.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use channel::Ticket;
use http::{Reply, Status};
use store::AccountId;

use crate::request::Request;

/// The maximum number of request handlers of one account: a quarter of all.
pub(crate) const HANDLERS_OF_ACCOUNT_MAX: usize = 16;

/// The maximum number of waiting requests: eight for each request handler.
const REQUESTS_MAX: usize = 512;

/// The maximum number of waiting requests of one account: a quarter of all.
const REQUESTS_OF_ACCOUNT_MAX: usize = 128;

/// The waiting requests, by their accounts.
#[derive(Default)]
pub(crate) struct WaitingRequests {
    of_accounts: BTreeMap<AccountId, VecDeque<(Ticket, Box<Request>)>>,
    /// The accounts with requests, in the order of their turns.
    turns: VecDeque<AccountId>,
    count: usize,
}

impl WaitingRequests {
    /// Adds a request. Errors: the request, if too many wait.
    pub(crate) fn push(
        &mut self,
        ticket: Ticket,
        request: Box<Request>,
    ) -> Result<(), Box<Request>> {
        let account = request.account();
        let of_account = self.of_accounts.get(&account).map_or(0, VecDeque::len);
        if self.count >= REQUESTS_MAX || of_account >= REQUESTS_OF_ACCOUNT_MAX {
            return Err(request);
        }
        if of_account == 0 {
            self.turns.push_back(account);
        }
        self.of_accounts.entry(account).or_default().push_back((ticket, request));
        self.count += 1;
        Ok(())
    }

    /// Takes the next request of an account that may have one more request handler. `handlers`: the
    /// number of request handlers that an account has.
    pub(crate) fn pop(
        &mut self,
        handlers: impl Fn(AccountId) -> usize,
    ) -> Option<(Ticket, Box<Request>)> {
        let account = self.turns.remove(self.next_turn(handlers)?)?;
        let of_account = self.of_accounts.get_mut(&account);
        let Some((request, of_account)) = of_account.and_then(|all| Some((all.pop_front()?, all)))
        else {
            unreachable!("an account with a turn has a request");
        };
        if of_account.is_empty() {
            self.of_accounts.remove(&account);
        } else {
            self.turns.push_back(account);
        }
        self.count -= 1;
        Some(request)
    }

    /// Whether [`WaitingRequests::pop`] would return a request.
    pub(crate) fn has_next(&self, handlers: impl Fn(AccountId) -> usize) -> bool {
        self.next_turn(handlers).is_some()
    }

    /// The index of the first account in turn that may have one more handler. The other accounts
    /// are skipped. They are few, since each of them has many handlers.
    fn next_turn(&self, handlers: impl Fn(AccountId) -> usize) -> Option<usize> {
        self.turns.iter().position(|account| handlers(*account) < HANDLERS_OF_ACCOUNT_MAX)
    }

    /// The number of waiting requests.
    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

/// The reply when too many requests wait on the core that owns the account.
pub fn too_many_requests() -> Reply {
    let words = "The server is busy. Go back, and try again in a moment.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}
