//! Whether a stranger is told to come again, where the configuration wants that (`mail::Greylist`): by the domain that lets him send, or where none does by his network. So SPF is looked at before the first
//! RCPT is answered, as long as it takes and no longer (`sender`). The postmaster is reached at once, and by whom a list of `dnswl` names so is everybody.

use mail::Origin;
use smtp::{ForwardPath, RecipientRefusal};

use super::lists::Standing;
use super::{Hands, sender};

/// Whether it is known who sends, if that matters for this recipient.
pub(super) fn is_known(path: &ForwardPath<'_>, greeting_name: &str, hands: &mut Hands<'_>) -> bool {
    !concerns(path, hands) || hands.common.recipient(path).is_err() || sender::is_known(greeting_name, hands)
}

/// Whether the letter of the open transaction may come to this recipient.
///
/// Errors: it may when it comes again.
pub(super) fn check(path: &ForwardPath<'_>, hands: &mut Hands<'_>) -> Result<(), RecipientRefusal> {
    if !concerns(path, hands) {
        return Ok(());
    }
    let Hands { common, caller, transaction: Some(transaction), .. } = hands else { return Ok(()) };
    let origin = transaction.authorized_domain().map_or(Origin::Host(caller.address), Origin::Domain);
    let now = common.turn.now;
    let may =
        common.greylist.as_mut().is_none_or(|list| list.may_come(origin, &transaction.reverse_path, path.text(), now));
    if may { Ok(()) } else { Err(RecipientRefusal::ComeAgain) }
}

fn concerns(path: &ForwardPath<'_>, hands: &Hands<'_>) -> bool {
    let is_trusted = Standing::of(hands.client.as_deref()).is_some_and(Standing::is_trusted);
    hands.common.greylist.is_some() && !path.is_postmaster() && hands.common.is_judged(hands.caller) && !is_trusted
}
