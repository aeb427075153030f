//! Rate limits of a session, by what its network has done lately (`mail::Strangers`).

use connections::Caller;
use mail::{Deed, Strangers};
use smtp::RecipientRefusal;

use super::context::Context;

/// Whether the rate limits allow the client this action now. If so, it is counted.
pub(super) fn may_do(
    deed: Deed,
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) -> bool {
    !cx.inbound_policy_applies(caller) || strangers.may(deed, caller.address, cx.turn.now)
}

/// Whether a client may name one more recipient. It is not counted.
///
/// Errors: too many recipients lately, or too many unknown ones. The client does not learn whether
/// this one exists.
pub(super) fn could_name_another(
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) -> Result<(), RecipientRefusal> {
    let mut could = |deed| {
        !cx.inbound_policy_applies(caller) || strangers.could(deed, caller.address, cx.turn.now)
    };
    match () {
        () if !could(Deed::Guess) => Err(RecipientRefusal::Guessing),
        () if !could(Deed::Recipient) => Err(RecipientRefusal::TooOften),
        () => Ok(()),
    }
}

/// The same, and it is counted if the client may.
pub(super) fn may_name_another(
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) -> Result<(), RecipientRefusal> {
    could_name_another(caller, strangers, cx)?;
    if cx.inbound_policy_applies(caller) {
        strangers.has_done(Deed::Recipient, caller.address, cx.turn.now);
    }
    Ok(())
}

/// Notes a refused recipient. A client that named an unknown recipient may have guessed.
pub(super) fn note_guess(
    refusal: RecipientRefusal,
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) {
    if refusal == RecipientRefusal::UnknownUser && cx.inbound_policy_applies(caller) {
        strangers.has_done(Deed::Guess, caller.address, cx.turn.now);
    }
}
