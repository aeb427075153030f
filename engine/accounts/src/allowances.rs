//! Whether the webmail may send one more message for an account of this core.

use alloc::string::String;
use alloc::vec::Vec;

use machine::{ConsoleLines, UnixTime};
use shards::{Archive, MaySend, Met, Question, Verdict};
use store::AccountId;
use webmail::Excess;

use crate::directory::Directory;

/// Whether an account of this core may send one more message. If so, it counts.
///
/// `people`: the recipients elsewhere. Errors: why it may not.
pub fn may_send(
    account: AccountId,
    people: Vec<String>,
    now: UnixTime,
    directory: &Directory,
    archive: &mut Archive,
    console: &mut ConsoleLines,
) -> Result<(), Excess> {
    let Some(known) = archive.own.store.account(account) else { unreachable!("accounts that log in stay") };
    let address = String::from(known.address());
    let daily = directory.daily(&address);
    let verdict = MaySend::new(account, now, daily, people).answer(&mut archive.own).verdict;
    console.extend(verdict.line(&address));
    match verdict {
        Verdict::Granted => Ok(()),
        Verdict::Refused(Met::Messages(most), _) => Err(Excess::Letters(most)),
        Verdict::Refused(Met::People(most), _) => Err(Excess::People(most)),
        Verdict::Refused(Met::Outbox, _) => Err(Excess::Waiting),
    }
}
