//! Rate limits of a session, by the recent actions of its client's address and network
//! (`mail::ClientRateLimits`).

use connections::Caller;
use mail::{ClientRateLimits, RateLimitedAction};
use smtp::RecipientRefusal;

use super::context::SmtpContext;

/// Whether the rate limits allow the client this action now. If so, counts the action.
pub(super) fn may_do(
    action: RateLimitedAction,
    caller: Caller,
    rate_limits: &mut ClientRateLimits,
    cx: &SmtpContext<'_>,
) -> bool {
    !cx.inbound_policy_applies(caller) || rate_limits.may(action, caller.address, cx.turn.now)
}

/// Checks whether a client may name one more recipient, without counting the recipient.
///
/// Errors: too many recipients recently, or too many unknown recipients. The client does not learn
/// whether this recipient exists.
pub(super) fn could_name_another(
    caller: Caller,
    rate_limits: &mut ClientRateLimits,
    cx: &SmtpContext<'_>,
) -> Result<(), RecipientRefusal> {
    let mut could = |action| {
        !cx.inbound_policy_applies(caller) || rate_limits.could(action, caller.address, cx.turn.now)
    };
    match () {
        () if !could(RateLimitedAction::Guess) => Err(RecipientRefusal::Guessing),
        () if !could(RateLimitedAction::Recipient) => Err(RecipientRefusal::TooOften),
        () => Ok(()),
    }
}

/// Checks whether a client may name one more recipient, and counts the recipient if it is allowed.
pub(super) fn may_name_another(
    caller: Caller,
    rate_limits: &mut ClientRateLimits,
    cx: &SmtpContext<'_>,
) -> Result<(), RecipientRefusal> {
    could_name_another(caller, rate_limits, cx)?;
    if cx.inbound_policy_applies(caller) {
        rate_limits.has_done(RateLimitedAction::Recipient, caller.address, cx.turn.now);
    }
    Ok(())
}

/// Counts a refused recipient that does not exist. The client may have guessed its address.
pub(super) fn note_guess(
    refusal: RecipientRefusal,
    caller: Caller,
    rate_limits: &mut ClientRateLimits,
    cx: &SmtpContext<'_>,
) {
    if refusal == RecipientRefusal::UnknownUser && cx.inbound_policy_applies(caller) {
        rate_limits.has_done(RateLimitedAction::Guess, caller.address, cx.turn.now);
    }
}
