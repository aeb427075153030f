//! What a client may do in a session, by what its network has done lately (`mail::Strangers`).

use connections::Caller;
use mail::{Deed, Strangers};
use smtp::RecipientRefusal;

use super::context::Context;

/// Whether a client may do this now, by how often it has. It is counted if it may.
pub(super) fn may_do(
    deed: Deed,
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) -> bool {
    !cx.is_judged(caller) || strangers.may(deed, caller.address, cx.turn.now)
}

/// Whether a client may name one more recipient. It is not counted.
///
/// Errors: too many recipients lately, or too many unknown ones: it is not told about this one.
pub(super) fn could_name_another(
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) -> Result<(), RecipientRefusal> {
    let mut could =
        |deed| !cx.is_judged(caller) || strangers.could(deed, caller.address, cx.turn.now);
    match () {
        () if !could(Deed::Guess) => Err(RecipientRefusal::Guessing),
        () if !could(Deed::Recipient) => Err(RecipientRefusal::TooOften),
        () => Ok(()),
    }
}

/// The same. It is counted if the client may.
pub(super) fn may_name_another(
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) -> Result<(), RecipientRefusal> {
    could_name_another(caller, strangers, cx)?;
    if cx.is_judged(caller) {
        strangers.has_done(Deed::Recipient, caller.address, cx.turn.now);
    }
    Ok(())
}

/// A recipient was refused. A client that named one that does not exist may have guessed.
pub(super) fn note_guess(
    refusal: RecipientRefusal,
    caller: Caller,
    strangers: &mut Strangers,
    cx: &Context<'_>,
) {
    if refusal == RecipientRefusal::UnknownUser && cx.is_judged(caller) {
        strangers.has_done(Deed::Guess, caller.address, cx.turn.now);
    }
}
