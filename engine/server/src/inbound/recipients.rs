//! Whom a message is for: what becomes of RCPT.
//!
//! | who is named | where the message goes |
//! |---|---|
//! | an account | into its inbox, or where its mail is sent on from |
//! | who sent a letter that was sent on, by an address of ours | out again (`posting`), if it comes from nobody |
//! | somebody elsewhere, by who has logged in | out again, too |
//!
//! A message that goes out again is not checked here (DMARC, lists, filter): the next server does
//! that. So a message from a client without a login is either for accounts or goes out again. The
//! second kind of recipient is refused with 452, and the client sends it a message of its own.

use relay::srs::{self, Restored};
use smtp::{Domain, ForwardPath, LOCAL_PART_BYTES_MAX, RecipientRefusal};

use super::host::SmtpHost;
use super::posting::Wishes;
use super::{greylist, quota};

/// Somebody is named whom the message of the open transaction is for.
///
/// Errors: he does not get it.
pub(super) fn name(named: &smtp::Recipient<'_>, host: &mut SmtpHost<'_, '_>) -> Result<(), RecipientRefusal> {
    let path = &named.path;
    if !path.is_postmaster() && host.is_not_looked_up() {
        return Err(RecipientRefusal::Unchecked);
    }
    if !path.is_postmaster() && host.refusal().is_some() {
        return Err(RecipientRefusal::Unwanted);
    }
    host.may_name_another()?;
    let added = match host.is_returning(path) {
        Ok(true) => Ok(()),
        Ok(false) => host.add_recipient(named),
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = added {
        host.note_guess(refusal);
        return Err(refusal);
    }
    let Some(transaction) = host.transaction.as_mut() else { return Err(RecipientRefusal::Unavailable) };
    if transaction.first_recipient.is_empty() {
        transaction.first_recipient.push_str(path.text());
    }
    Ok(())
}

impl SmtpHost<'_, '_> {
    /// Whether an address stands for who sent a letter that was sent on; then he is to get what is said of it.
    ///
    /// Errors: it says so, and does not; or this is said by somebody, who may as well write to him.
    fn is_returning(&mut self, path: &ForwardPath<'_>) -> Result<bool, RecipientRefusal> {
        let ForwardPath::Mailbox(mailbox) = path else { return Ok(false) };
        let Domain::Name(domain) = mailbox.domain else { return Ok(false) };
        let is_user = self.account().is_some();
        let cx = &*self.cx;
        let mut plain = [0; LOCAL_PART_BYTES_MAX];
        let local_part = mailbox.plain_local_part(&mut plain);
        if !srs::is_rewritten(local_part) || !cx.directory.serves(domain) {
            return Ok(false);
        }
        let key = srs::Key::new(cx.store.secret_of_paths());
        let Restored::Of(sender) = key.restore(local_part, cx.turn.wall) else {
            return Err(RecipientRefusal::UnknownUser);
        };
        let transaction = self.transaction.as_mut().filter(|transaction| transaction.reverse_path.is_empty());
        let keeper = cx.directory.postmaster(cx.store).ok();
        let (transaction, keeper) = transaction.zip(keeper).ok_or(RecipientRefusal::UnknownUser)?;
        if !is_user && !transaction.recipients.is_empty() {
            return Err(RecipientRefusal::TooMany);
        }
        transaction.add_elsewhere(&sender, Wishes::default(), cx.store)?;
        transaction.posting.keeper = Some(keeper);
        Ok(true)
    }

    /// Somebody here is to get the message of the open transaction, or whoever logged in names somebody elsewhere.
    fn add_recipient(&mut self, named: &smtp::Recipient<'_>) -> Result<(), RecipientRefusal> {
        let path = &named.path;
        let is_user = self.account().is_some();
        let wishes = if is_user { Wishes::of(named) } else { Wishes::default() };
        let recipient = match self.cx.recipient(path) {
            Ok(account) => Some(self.cx.directory.entrance(self.cx.store, account)),
            Err(RecipientRefusal::NotLocal) => {
                self.check_relaying(path)?;
                None
            }
            Err(refusal) => return Err(refusal),
        };
        let Some(transaction) = self.transaction.as_mut() else { return Err(RecipientRefusal::Unavailable) };
        if !is_user && transaction.posting.is_wanted() {
            return Err(RecipientRefusal::TooMany);
        }
        match recipient {
            // Two addresses of one account get one copy.
            Some(recipient) if transaction.recipients.contains(&recipient) => {}
            Some(recipient) => {
                let room = quota::check(recipient.account, self)?;
                greylist::check(path, self)?;
                let Some(transaction) = self.transaction.as_mut() else { return Err(RecipientRefusal::Unavailable) };
                transaction.note_room(room)?;
                transaction.add(recipient, wishes, self.cx.store)?;
            }
            None => transaction.add_elsewhere(path.text(), wishes, self.cx.store)?,
        }
        Ok(())
    }
}
