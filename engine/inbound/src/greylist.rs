//! Greylisting of external mail, if the configuration asks for it (`mail::Greylist`). The origin of
//! a message is the sender's domain if it authorizes the client by SPF, and otherwise the network
//! of the client. So the SPF check must be complete before the first RCPT is answered
//! (`spf_check`). Mail for the administrator, and mail from a host on a `dnswl` list, is never
//! deferred.
//!
//! One core knows the state of an origin for all cores ([`shards::Facts`]), and RCPT waits for its
//! reply. If a recipient is refused for another reason, that core is not asked: a message that was
//! refused does not count as a first try.

use mail::SenderOrigin;
use shards::GreylistQuery;
use smtp::{RecipientRefusal, SmtpPath};
use store::AccountId;

use super::deferral::Deferral;
use super::host::SmtpHost;
use super::limits;
use super::lists::Listings;
use super::transaction::InboundTransaction;
use super::waiting::replied_at;

/// Whether the greylisting decision for this recipient is known, or not needed. If the decision is
/// needed and not known, asks the next question.
pub(super) fn is_known(
    path: &SmtpPath<'_>,
    account: AccountId,
    greeting_name: &str,
    host: &mut SmtpHost<'_, '_>,
) -> bool {
    !applies_to(path, host)
        || !is_welcome(account, host)
        || host.is_sender_known(greeting_name) && is_decided(path, host)
}

/// Whether no other reason to refuse the recipient is known. If another reason is known, the core
/// of the origin is not asked, so the attempt is not recorded.
fn is_welcome(account: AccountId, host: &mut SmtpHost<'_, '_>) -> bool {
    let is_refused =
        |listings: &Listings| listings.is_not_looked_up() || listings.refusal().is_some();
    if host.listings().is_some_and(is_refused) {
        return false;
    }
    let SmtpHost { inbound, cx, caller, transaction: Some(transaction), .. } = host else {
        return false;
    };
    let InboundTransaction { taken, declared, .. } = &**transaction;
    limits::could_name_another(*caller, &mut inbound.rate_limits, cx).is_ok()
        && taken.room(account, *declared, inbound.settings.message_bytes_max, cx).is_ok()
}

/// Whether it is known if the message is deferred. If it is not known, asks the core that knows the
/// origin.
fn is_decided(path: &SmtpPath<'_>, host: &mut SmtpHost<'_, '_>) -> bool {
    let SmtpHost { cx, caller, transaction: Some(transaction), .. } = host else { return true };
    let origin = transaction
        .spf_state
        .authorized_domain(&transaction.reverse_path)
        .map_or(SenderOrigin::Host(caller.address), SenderOrigin::Domain);
    let Some(triplet) = cx.store.own.facts.triplet(origin, &transaction.reverse_path, path.text())
    else {
        return true;
    };
    match transaction.deferral {
        Deferral::None => true,
        Deferral::Deferred(deferred) if deferred == triplet => true,
        Deferral::Asked(asked) if asked == triplet => false,
        _ => {
            let question = GreylistQuery::new(triplet, cx.turn.now);
            let reply = cx.store.ask_owner(question, replied_at(caller.connection.0));
            transaction.deferral = reply.map_or(Deferral::Asked(triplet), Deferral::of);
            reply.is_some()
        }
    }
}

/// Whether the message of the open transaction is accepted for this recipient now.
///
/// Errors: the message is deferred until the client tries again.
pub(super) fn check(
    path: &SmtpPath<'_>,
    host: &mut SmtpHost<'_, '_>,
) -> Result<(), RecipientRefusal> {
    if !applies_to(path, host) {
        return Ok(());
    }
    let Some(transaction) = host.transaction.as_deref_mut() else { return Ok(()) };
    if transaction.deferral == Deferral::None {
        return Ok(());
    }
    // With the next recipient, the core that knows the origin is asked again.
    transaction.deferral = Deferral::NotAsked;
    Err(RecipientRefusal::Greylisted)
}

/// Whether the recipient's mail from this client is greylisted at all.
fn applies_to(path: &SmtpPath<'_>, host: &SmtpHost<'_, '_>) -> bool {
    let is_trusted = host.listings().is_some_and(Listings::is_trusted);
    host.cx.store.own.facts.is_greylisting()
        && !path.is_for_administrator()
        && host.cx.inbound_policy_applies(host.caller)
        && !is_trusted
}
