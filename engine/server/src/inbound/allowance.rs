//! Whether an account may send one more message today: asked before its message begins, of who counts that (`allowances`).
//!
//! | | |
//! |---|---|
//! | as much of its mail waits to be sent as may | 452 4.2.2 |
//! | it has sent as many messages as it may | 451 4.7.0 |
//! | the message is for more new people elsewhere than it may still write to | 451 4.7.0, in other words |

use smtp::MessageRefusal;
use store::AccountId;

use crate::allowances::{MaySend, Met, Permitted, Verdict};

use super::host::SmtpHost;
use super::transaction::Transaction;
use super::waiting::replied_at;

/// What is known of whether a message may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Permission {
    #[default]
    NotAsked,
    Asked(AccountId),
    Known(Verdict),
}

/// Whether it is known whether the message of the open transaction may be sent. It is asked for where it is not.
pub(super) fn is_known(host: &mut SmtpHost<'_, '_>) -> bool {
    let Some(account) = host.account() else { return true };
    let SmtpHost { cx, caller, transaction, .. } = host;
    let Some(transaction) = transaction.as_deref_mut() else { return true };
    match transaction.permission {
        Permission::Known(_) => return true,
        Permission::Asked(_) => return false,
        Permission::NotAsked => {}
    }
    let daily = cx.store.account(account).map(|known| cx.directory.daily(known.address));
    let Some(daily) = daily else { return true };
    let question = MaySend::new(account, cx.turn.wall, daily, transaction.people_elsewhere());
    match cx.store.ask_owner(question, replied_at(caller.connection.0)) {
        Some(Permitted { verdict, .. }) => settle(account, verdict, host),
        None => transaction.permission = Permission::Asked(account),
    }
    host.transaction.as_deref().is_none_or(|transaction| transaction.permission != Permission::Asked(account))
}

/// Whether an account may send its message is known.
pub(super) fn learn(
    Permitted { account, verdict }: Permitted,
    session: &mut smtp::Session,
    host: &mut SmtpHost<'_, '_>,
) {
    let is_asked = |transaction: &Transaction| transaction.permission == Permission::Asked(account);
    if host.transaction.as_deref().is_some_and(is_asked) {
        settle(account, verdict, host);
        session.sender_known(host);
    }
}

/// Notes the verdict, and has administrators told.
fn settle(account: AccountId, verdict: Verdict, host: &mut SmtpHost<'_, '_>) {
    let SmtpHost { cx, transaction, .. } = host;
    if let Some(transaction) = transaction.as_deref_mut() {
        transaction.permission = Permission::Known(verdict);
    }
    let line = cx.store.account(account).and_then(|known| verdict.line(known.address));
    cx.console.extend(line);
}

impl Permission {
    /// Errors: the message may not be sent.
    pub(super) fn check(self) -> Result<(), MessageRefusal> {
        match self {
            Permission::Known(Verdict::Refused(Met::Outbox, _)) => Err(MessageRefusal::OutboxFull),
            Permission::Known(Verdict::Refused(Met::Messages(_), _)) => Err(MessageRefusal::TooManyToday),
            Permission::Known(Verdict::Refused(Met::People(_), _)) => Err(MessageRefusal::TooManyNewToday),
            Permission::Known(Verdict::Granted) | Permission::NotAsked | Permission::Asked(_) => Ok(()),
        }
    }
}
