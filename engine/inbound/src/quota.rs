//! Whether a recipient has space for a message, before the message arrives (RFC 5321 section
//! 4.5.3.1.10, RFC 3463 X.2.2).
//!
//! | space | reply |
//! |---|---|
//! | the message does not fit into the mailboxes now | 452 4.2.2: it can be tried again later |
//! | the message is larger than the quota | 552 5.2.2: it never fits |
//!
//! The client declares the size of a message (SIZE, RFC 1870); otherwise the message counts as
//! empty until it has arrived. When the message has arrived, the store decides by its exact size
//! (`store::quotas`), for all recipients together. So a client that declares no size may name
//! several recipients only if each has space for the largest message. Each other recipient needs a
//! separate transaction (452 4.5.3).
//!
//! The usage of an account on another core is known only to that core, so RCPT waits for that
//! core's answer.

use configuration::Quota;
use connections::Caller;
use shards::{UsageOf, Used};
use smtp::RecipientRefusal;
use store::{AccountId, OUTBOX_PART, Usage};

use super::context::SmtpContext;
use super::trace::TRACE_BYTES_MAX;
use super::waiting::replied_at;

/// The most bytes that this server adds to a message: its trace fields.
const ADDED_OCTETS: u64 = 2 * TRACE_BYTES_MAX as u64;

/// The usage of the account that RCPT names, if it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum KnownUsage {
    #[default]
    NotAsked,
    Asked(AccountId),
    Known(AccountId, Usage),
}

/// Whether an account has space for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AvailableSpace {
    /// The account has space for a message of the declared size, or for the largest message if no
    /// size is declared.
    AnySize,
    /// No size is declared. The account has space for some messages, but not for the largest.
    ThisMessage,
}

impl KnownUsage {
    /// Whether the account's usage is known, or does not matter. Otherwise, asks the core that owns
    /// the account.
    pub(super) fn is_known(
        &mut self,
        account: AccountId,
        caller: Caller,
        cx: &mut SmtpContext<'_>,
    ) -> bool {
        if matches!(self, KnownUsage::Known(known, _) if *known == account)
            || allowed(account, cx).is_none()
        {
            return true;
        }
        if *self == KnownUsage::Asked(account) {
            return false;
        }
        let used = cx.store.ask_owner(UsageOf(account), replied_at(caller.connection.0));
        *self =
            used.map_or(KnownUsage::Asked(account), |used| KnownUsage::Known(account, used.usage));
        used.is_some()
    }

    /// Takes the usage of an account. Returns whether the session waits for it.
    pub(super) fn learn(&mut self, Used { account, usage }: Used) -> bool {
        let is_asked = *self == KnownUsage::Asked(account);
        if is_asked {
            *self = KnownUsage::Known(account, usage);
        }
        is_asked
    }

    /// Checks that an account has space for a message of `declared` bytes, or of at most `largest`
    /// bytes if no size is declared. Drops the known usage, which may change before the next
    /// recipient is named.
    ///
    /// Errors: as [`KnownUsage::room`].
    pub(super) fn check(
        &mut self,
        account: AccountId,
        declared: Option<u64>,
        largest: u64,
        cx: &SmtpContext<'_>,
    ) -> Result<AvailableSpace, RecipientRefusal> {
        core::mem::take(self).room(account, declared, largest, cx)
    }

    /// The same check as [`KnownUsage::check`], but the usage stays known.
    ///
    /// Errors: the account has no space, or its usage is unknown.
    pub(super) fn room(
        &self,
        account: AccountId,
        declared: Option<u64>,
        largest: u64,
        cx: &SmtpContext<'_>,
    ) -> Result<AvailableSpace, RecipientRefusal> {
        let Some(allowed) = allowed(account, cx) else { return Ok(AvailableSpace::AnySize) };
        // Forwarded mail goes through the outbox.
        let is_forwarding = cx.directory.forwards(cx.store, account);
        let KnownUsage::Known(known, usage) = *self else {
            return Err(RecipientRefusal::Unavailable);
        };
        if known != account {
            return Err(RecipientRefusal::Unavailable);
        }
        if is_forwarding && usage.outbox >= allowed / OUTBOX_PART {
            return Err(RecipientRefusal::MailboxFull);
        }
        let has_room = |octets: u64| {
            usage.mailboxes.saturating_add(octets).saturating_add(ADDED_OCTETS) <= allowed
        };
        match declared {
            Some(octets) if octets.saturating_add(ADDED_OCTETS) > allowed => {
                Err(RecipientRefusal::NeverFits)
            }
            octets if !has_room(octets.unwrap_or(0)) => Err(RecipientRefusal::MailboxFull),
            None if has_room(largest) => Ok(AvailableSpace::AnySize),
            None => Ok(AvailableSpace::ThisMessage),
            Some(_) => Ok(AvailableSpace::AnySize),
        }
    }
}

/// The quota of an account in bytes. `None`: the account cannot have reached its quota.
fn allowed(account: AccountId, cx: &SmtpContext<'_>) -> Option<u64> {
    let directory = cx.directory;
    let store = &cx.store.own.store;
    // While less than half of the disk is used, no account can have reached its quota.
    if !store.is_half_full() && directory.has_usual_quotas() {
        return None;
    }
    let known = cx.store.account(account)?;
    // An account that keeps no copy of forwarded mail needs space too: its inbox gets the reports.
    let quota = directory.quota(known.address);
    let may_be_short = quota != Quota::HalfOfDisk || store.is_half_full();
    quota.octets(store.disk_bytes()).filter(|_| may_be_short)
}
