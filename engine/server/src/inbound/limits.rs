//! How much a stranger may do within a session, by what his address and his network have done lately (`mail::Strangers`).

use mail::Deed;
use smtp::RecipientRefusal;

use super::host::SmtpHost;

impl SmtpHost<'_, '_> {
    /// Whether a stranger may do this now, by how often he has. It is counted if he may.
    pub(super) fn may_do(&mut self, deed: Deed) -> bool {
        let SmtpHost { inbound, cx, caller, .. } = self;
        !cx.is_judged(*caller) || inbound.strangers.may(deed, caller.address, cx.turn.now)
    }

    /// Whether a stranger may name one more recipient.
    ///
    /// Errors: he has named too many lately, or too many who are not here: then he does not hear whether this one is.
    pub(super) fn may_name_another(&mut self) -> Result<(), RecipientRefusal> {
        let SmtpHost { inbound, cx, caller, .. } = self;
        if cx.is_judged(*caller) && !inbound.strangers.could(Deed::Guess, caller.address, cx.turn.now) {
            return Err(RecipientRefusal::Guessing);
        }
        if self.may_do(Deed::Recipient) { Ok(()) } else { Err(RecipientRefusal::TooOften) }
    }

    /// A recipient was refused. A stranger who named one who is not here may have guessed.
    pub(super) fn note_guess(&mut self, refusal: RecipientRefusal) {
        let SmtpHost { inbound, cx, caller, .. } = self;
        if refusal == RecipientRefusal::UnknownUser && cx.is_judged(*caller) {
            inbound.strangers.has_done(Deed::Guess, caller.address, cx.turn.now);
        }
    }
}
