//! Whether an account may send one more message today. Before it accepts DATA, a session asks
//! `shards::allowances`.
//!
//! | | |
//! |---|---|
//! | the account's outbox is full | 452 4.2.2 |
//! | the account has sent as many messages as it may | 451 4.7.0 |
//! | the message has more new remote recipients than allowed | 451 4.7.0, with another text |

use alloc::string::String;
use alloc::vec::Vec;

use connections::Caller;
use shards::{MaySend, Permitted, ReachedLimit, SendingDecision};
use smtp::MessageRefusal;
use store::AccountId;

use super::context::SmtpContext;
use super::waiting::replied_at;

/// Whether a message may be sent, as far as known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Permission {
    #[default]
    NotAsked,
    Asked(AccountId),
    Known(SendingDecision),
}

impl Permission {
    /// Whether it is known if the account may send a message to these remote recipients (`people`).
    /// If it is not known, asks the core that owns the account.
    pub(super) fn is_known(
        &mut self,
        account: AccountId,
        people: impl FnOnce() -> Vec<String>,
        caller: Caller,
        cx: &mut SmtpContext<'_>,
    ) -> bool {
        match self {
            Permission::Known(_) => return true,
            Permission::Asked(_) => return false,
            Permission::NotAsked => {}
        }
        let Some(known) = cx.store.account(account) else {
            unreachable!("accounts that log in stay")
        };
        let daily = cx.directory.daily(known.address);
        let question = MaySend::new(account, cx.turn.wall, daily, people());
        let permitted = cx.store.ask_owner(question, replied_at(caller.connection.0));
        match permitted {
            Some(Permitted { verdict, .. }) => self.settle(account, verdict, cx),
            None => *self = Permission::Asked(account),
        }
        *self != Permission::Asked(account)
    }

    /// Takes the owner's answer for an account. Returns whether the session waits for this answer.
    pub(super) fn learn(
        &mut self,
        Permitted { account, verdict }: Permitted,
        cx: &mut SmtpContext<'_>,
    ) -> bool {
        let is_asked = *self == Permission::Asked(account);
        if is_asked {
            self.settle(account, verdict, cx);
        }
        is_asked
    }

    /// Stores the verdict, and writes a line to the console if the verdict has one.
    fn settle(&mut self, account: AccountId, verdict: SendingDecision, cx: &mut SmtpContext<'_>) {
        *self = Permission::Known(verdict);
        let line = cx.store.account(account).and_then(|known| verdict.line(known.address));
        cx.console.extend(line);
    }

    /// Errors: the message may not be sent.
    pub(super) fn check(self) -> Result<(), MessageRefusal> {
        match self {
            Permission::Known(SendingDecision::Refused(ReachedLimit::Outbox, _)) => {
                Err(MessageRefusal::OutboxFull)
            }
            Permission::Known(SendingDecision::Refused(ReachedLimit::Messages(_), _)) => {
                Err(MessageRefusal::TooManyToday)
            }
            Permission::Known(SendingDecision::Refused(ReachedLimit::NewRecipients(_), _)) => {
                Err(MessageRefusal::TooManyNewToday)
            }
            Permission::Known(SendingDecision::Granted)
            | Permission::NotAsked
            | Permission::Asked(_) => Ok(()),
        }
    }
}
