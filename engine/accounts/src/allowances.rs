//! The daily sending limits of accounts, checked for webmail on the core that owns the account.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use machine::{ConsoleLines, UnixTime};
use shards::{MaySend, OwnerQuery, ReachedLimit, SendingDecision, ShardedStore};
use store::AccountId;

use crate::directory::Directory;

/// The limit that keeps an account from sending a message today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Excess {
    /// The account has sent this many messages today.
    Messages(u32),
    /// With this message, the account would write to more than this many new external recipients
    /// today.
    NewRecipients(u32),
    /// The outbox of the account is at its limit.
    Waiting,
}

/// The text for the webmail page of the unsent message.
impl fmt::Display for Excess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Messages(most) => write!(
                out,
                "You have reached today’s limit of {most} sent messages. Try again tomorrow."
            ),
            Excess::Waiting => {
                out.write_str("Too many of your messages are waiting to be sent. Try again later.")
            }
            Excess::NewRecipients(most) => write!(
                out,
                "This message would exceed today’s limit of {most} new recipients. Remove some of them, \
                 or try again tomorrow."
            ),
        }
    }
}

/// Whether an account of this core may send one more message. If so, the message is counted.
///
/// `people`: the external recipients. Errors: the limit that was reached.
pub fn may_send(
    account: AccountId,
    people: Vec<String>,
    now: UnixTime,
    directory: &Directory,
    archive: &mut ShardedStore,
    console: &mut ConsoleLines,
) -> Result<(), Excess> {
    let Some(known) = archive.own.store.account(account) else {
        unreachable!("accounts that log in stay")
    };
    let address = String::from(known.address());
    let daily = directory.daily(&address);
    let verdict = MaySend::new(account, now, daily, people).answer(&mut archive.own).verdict;
    console.extend(verdict.line(&address));
    match verdict {
        SendingDecision::Granted => Ok(()),
        SendingDecision::Refused(ReachedLimit::Messages(most), _) => Err(Excess::Messages(most)),
        SendingDecision::Refused(ReachedLimit::NewRecipients(most), _) => {
            Err(Excess::NewRecipients(most))
        }
        SendingDecision::Refused(ReachedLimit::Outbox, _) => Err(Excess::Waiting),
    }
}
