//! Requests that wait for a request handler.
//!
//! The accounts of a core take turns, so that one account with many requests does not delay the
//! others.
//!
//! Invariants:
//! - Requests of one account are handled in the order of their arrival.
//! - An account has at most [`HANDLERS_OF_ACCOUNT_MAX`] request handlers. Its further requests
//!   wait, and those of other accounts overtake them.
//! - At most [`REQUESTS_MAX`] wait, and [`REQUESTS_OF_ACCOUNT_MAX`] of an account. A client that
//!   disconnects does not cancel its request, so the number of connections is no bound.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use channel::Ticket;
use http::{Reply, Status};
use store::AccountId;

use crate::request::Request;

/// The most request handlers of one account: a quarter of all.
pub(crate) const HANDLERS_OF_ACCOUNT_MAX: usize = 16;

/// The most waiting requests: eight for each request handler.
const REQUESTS_MAX: usize = 512;

/// The most waiting requests of one account: a quarter of all.
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

    /// The next request of an account that may have one more request handler. `handlers`: how many
    /// an account has.
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

    /// Whether there is such a request.
    pub(crate) fn has_next(&self, handlers: impl Fn(AccountId) -> usize) -> bool {
        self.next_turn(handlers).is_some()
    }

    /// The first turn of an account with a free handler. Accounts without one are passed over. They
    /// are few, since each has many handlers.
    fn next_turn(&self, handlers: impl Fn(AccountId) -> usize) -> Option<usize> {
        self.turns.iter().position(|account| handlers(*account) < HANDLERS_OF_ACCOUNT_MAX)
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

/// The reply when too many requests wait on the core that owns the account.
pub fn too_many_requests() -> Reply {
    let words = "The server is busy. Go back, and try again in a moment.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}
