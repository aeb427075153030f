//! The recipients of a message: the answers to RCPT.
//!
//! | recipient | where the message goes |
//! |---|---|
//! | an account | into its inbox, or into the outbox from which its mail is forwarded |
//! | our address for a forwarded message's sender (SRS) | out again, if its reverse path is empty |
//! | a remote address, named by a logged-in client | out again |
//!
//! A message that goes out again is not checked here (DMARC, lists, filter): the next server checks
//! it. So all recipients of a message from a client without a login are accounts, or all go out
//! again. A recipient of the other kind is refused with 452, so that the client names it in another
//! transaction.

use alloc::boxed::Box;

use relay::srs::{self, Restored};
use smtp::{Domain, LOCAL_PART_BYTES_MAX, RecipientRefusal, SmtpPath};
use store::AccountId;

use super::host::{ClientStatus, SmtpHost};
use super::lists::Listings;
use super::login::check_relaying;
use super::posting::Wishes;
use super::transaction::InboundTransaction;
use super::{greylist, limits};

/// Whether all facts for the answer to RCPT are known. If not, asks the next question.
pub(super) fn may_answer(
    path: &SmtpPath<'_>,
    greeting_name: &str,
    host: &mut SmtpHost<'_, '_>,
) -> bool {
    // A recipient without an account here is answered at once.
    let Ok(account) = host.cx.recipient(path) else { return true };
    is_looked_up(path, host)
        && is_room_known(account, host)
        && greylist::is_known(path, account, greeting_name, host)
}

/// Whether the client's listings are known, or not needed. If not, begins or continues the lookup.
fn is_looked_up(path: &SmtpPath<'_>, host: &mut SmtpHost<'_, '_>) -> bool {
    if path.is_for_administrator() || host.inbound.lists.are_none() {
        return true;
    }
    let SmtpHost { inbound, cx, caller, client, .. } = host;
    if client.is_none() {
        let listings = Listings::begin(*caller, &mut inbound.lists, cx);
        **client = listings.map(|listings| Box::new(ClientStatus::External(listings)));
    }
    ClientStatus::listings(client.as_deref()).is_none_or(|listings| listings.is_known(*caller, cx))
}

/// Whether the account's usage is known, or not needed. Otherwise, asks the core that owns the
/// account.
fn is_room_known(account: AccountId, host: &mut SmtpHost<'_, '_>) -> bool {
    let SmtpHost { cx, caller, transaction, .. } = host;
    transaction
        .as_deref_mut()
        .is_none_or(|transaction| transaction.taken.is_known(account, *caller, cx))
}

/// Adds a recipient to the open transaction.
///
/// Errors: the recipient does not get the message.
pub(super) fn name(
    named: &smtp::RcptTo<'_>,
    host: &mut SmtpHost<'_, '_>,
) -> Result<(), RecipientRefusal> {
    let path = &named.path;
    if let Some(listings) = host.listings().filter(|_| !path.is_for_administrator()) {
        if listings.is_not_looked_up() {
            // A limit has prevented the lookup. The client is looked up again with the next
            // recipient.
            *host.client = None;
            return Err(RecipientRefusal::Unchecked);
        }
        if listings.refusal().is_some() {
            return Err(RecipientRefusal::Unwanted);
        }
    }
    limits::may_name_another(host.caller, &mut host.inbound.rate_limits, host.cx)?;
    let added = match add_original_sender(path, host) {
        Ok(true) => Ok(()),
        Ok(false) => add_recipient(named, host),
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = added {
        limits::note_guess(refusal, host.caller, &mut host.inbound.rate_limits, host.cx);
        return Err(refusal);
    }
    let Some(transaction) = host.transaction.as_mut() else {
        return Err(RecipientRefusal::Unavailable);
    };
    if transaction.first_recipient.is_empty() {
        transaction.first_recipient.push_str(path.text());
    }
    Ok(())
}

/// Whether a recipient address stands for the sender of a message that was forwarded (SRS). If so,
/// the sender becomes a recipient, and gets the bounce.
///
/// Errors: the address has an invalid hash, or the message is no bounce because it has a reverse
/// path.
fn add_original_sender(
    path: &SmtpPath<'_>,
    host: &mut SmtpHost<'_, '_>,
) -> Result<bool, RecipientRefusal> {
    let is_user = host.account().is_some();
    let cx = &*host.cx;
    let mut plain = [0; LOCAL_PART_BYTES_MAX];
    let (local_part, is_ours) = match path {
        SmtpPath::LocalPart(name) => (*name, true),
        SmtpPath::Mailbox(mailbox) => {
            let Domain::Name(domain) = mailbox.domain else { return Ok(false) };
            (mailbox.plain_local_part(&mut plain), cx.directory.serves(domain))
        }
    };
    if !is_ours || !srs::is_rewritten(local_part) {
        return Ok(false);
    }
    let key = srs::SrsKey::new(cx.store.secret_of_paths());
    let Restored::Of(sender) = key.restore(local_part, cx.turn.wall) else {
        return Err(RecipientRefusal::UnknownUser);
    };
    let transaction =
        host.transaction.as_mut().filter(|transaction| transaction.reverse_path.is_empty());
    let postmaster = cx.directory.postmaster(cx.store).ok();
    let (transaction, postmaster) =
        transaction.zip(postmaster).ok_or(RecipientRefusal::UnknownUser)?;
    if !is_user && !transaction.recipients.is_empty() {
        return Err(RecipientRefusal::TooMany);
    }
    transaction.add_elsewhere(&sender, Wishes::default(), cx.store)?;
    transaction.posting.postmaster = Some(postmaster);
    Ok(true)
}

/// Adds a local recipient, or a remote one after a login.
fn add_recipient(
    named: &smtp::RcptTo<'_>,
    host: &mut SmtpHost<'_, '_>,
) -> Result<(), RecipientRefusal> {
    let path = &named.path;
    let is_user = host.account().is_some();
    let wishes = if is_user { Wishes::of(named) } else { Wishes::default() };
    let recipient = match host.cx.recipient(path) {
        Ok(account) => Some(host.cx.directory.entrance(host.cx.store, account)),
        Err(RecipientRefusal::NotLocal) => {
            check_relaying(path, host)?;
            None
        }
        Err(refusal) => return Err(refusal),
    };
    let Some(transaction) = host.transaction.as_mut() else {
        return Err(RecipientRefusal::Unavailable);
    };
    if !is_user && transaction.posting.goes_to_queue() {
        return Err(RecipientRefusal::TooMany);
    }
    match recipient {
        // Two addresses of one account get one copy.
        Some(recipient) if transaction.recipients.contains(&recipient) => {}
        Some(recipient) => {
            let largest = host.inbound.settings.message_bytes_max;
            let InboundTransaction { taken, declared, .. } = &mut **transaction;
            let room = taken.check(recipient.account, *declared, largest, host.cx)?;
            greylist::check(path, host)?;
            let Some(transaction) = host.transaction.as_mut() else {
                return Err(RecipientRefusal::Unavailable);
            };
            transaction.note_room(room)?;
            transaction.add(recipient, wishes, host.cx.store)?;
        }
        None => transaction.add_elsewhere(path.text(), wishes, host.cx.store)?,
    }
    Ok(())
}
