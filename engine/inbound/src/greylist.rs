//! Whether a stranger is told to come again, if the configuration says so (`mail::Greylist`). It is
//! known by the domain that lets it send, or else by its network. So SPF is looked at before the
//! first RCPT is answered, as long as it takes and no longer (`sender`). Mail for the postmaster is
//! never deferred, nor is mail from a host on a list of `dnswl`.

use mail::Origin;
use smtp::{ForwardPath, RecipientRefusal};

use super::host::SmtpHost;
use super::lists::Standing;

/// Whether it is known who sends, if that matters for this recipient.
pub(super) fn is_known(path: &ForwardPath<'_>, greeting_name: &str, host: &mut SmtpHost<'_, '_>) -> bool {
    !concerns(path, host) || host.cx.recipient(path).is_err() || host.is_sender_known(greeting_name)
}

/// Whether the letter of the open transaction may come to this recipient.
///
/// Errors: it may when it comes again.
pub(super) fn check(path: &ForwardPath<'_>, host: &mut SmtpHost<'_, '_>) -> Result<(), RecipientRefusal> {
    if !concerns(path, host) {
        return Ok(());
    }
    let SmtpHost { inbound, cx, caller, transaction: Some(transaction), .. } = host else { return Ok(()) };
    let origin = transaction
        .finding
        .authorized_domain(&transaction.reverse_path)
        .map_or(Origin::Host(caller.address), Origin::Domain);
    let now = cx.turn.now;
    let may =
        inbound.greylist.as_mut().is_none_or(|list| list.may_come(origin, &transaction.reverse_path, path.text(), now));
    if may { Ok(()) } else { Err(RecipientRefusal::ComeAgain) }
}

fn concerns(path: &ForwardPath<'_>, host: &SmtpHost<'_, '_>) -> bool {
    let is_trusted = host.standing().is_some_and(Standing::is_trusted);
    host.inbound.greylist.is_some() && !path.is_postmaster() && host.cx.is_judged(host.caller) && !is_trusted
}
