//! How much a stranger may do within a session, by what his address and his network have done lately (`mail::Strangers`).

use mail::Deed;
use smtp::RecipientRefusal;

use super::Hands;

impl Hands<'_> {
    /// Whether a stranger may do this now, by how often he has. It is counted if he may.
    pub(super) fn may_do(&mut self, deed: Deed) -> bool {
        let Hands { common, caller, .. } = self;
        !common.is_judged(*caller) || common.strangers.may(deed, caller.address, common.turn.now)
    }

    /// Whether a stranger may name one more recipient.
    ///
    /// Errors: he has named too many lately, or too many who are not here: then he does not hear whether this one is.
    pub(super) fn may_name_another(&mut self) -> Result<(), RecipientRefusal> {
        let Hands { common, caller, .. } = self;
        if common.is_judged(*caller) && !common.strangers.could(Deed::Guess, caller.address, common.turn.now) {
            return Err(RecipientRefusal::Guessing);
        }
        if self.may_do(Deed::Recipient) { Ok(()) } else { Err(RecipientRefusal::TooOften) }
    }

    /// A recipient was refused. A stranger who named one who is not here may have guessed.
    pub(super) fn note_guess(&mut self, refusal: RecipientRefusal) {
        let Hands { common, caller, .. } = self;
        if refusal == RecipientRefusal::UnknownUser && common.is_judged(*caller) {
            common.strangers.has_done(Deed::Guess, caller.address, common.turn.now);
        }
    }
}
