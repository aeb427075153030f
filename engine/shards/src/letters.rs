//! Deliveries of a session: into the store of this core, of another core, or of several.
//!
//! The kind is decided when a message begins, and its [`LetterId`] has it from then on.

use machine::CoreId;
use store::{AccountId, Closing, Guid, Origin, Recipient, Refusal};
use tasks::Continuation;

use crate::archive::Archive;
use crate::messages::LetterId;

impl Archive {
    /// Begins a message. Errors: as [`store::Store::begin`]. An error that another core finds later
    /// ends the message later.
    pub fn begin(&mut self, recipients: &[Recipient]) -> Result<LetterId, Refusal> {
        let owner = recipients.first().map_or(self.core, |first| self.owners.of(first.account));
        if recipients.iter().skip(1).all(|recipient| self.owners.of(recipient.account) == owner) {
            return self.begin_at(owner, recipients);
        }
        self.begin_spread(recipients)
    }

    fn begin_at(&mut self, owner: CoreId, recipients: &[Recipient]) -> Result<LetterId, Refusal> {
        match self.distant_at(owner) {
            None => self.own.store.begin(recipients).map(LetterId::Own),
            Some(distant) => distant.begin(owner, recipients).map(LetterId::Distant),
        }
    }

    /// Whether a core that gets a part of a message is short of buffers or places.
    pub fn is_short_for(&self, letter: LetterId) -> bool {
        match (letter, &self.elsewhere) {
            (LetterId::Own(_), _) => self.is_short_of_buffers_itself(),
            (LetterId::Distant(letter), Some(elsewhere)) => {
                elsewhere.distant.is_owner_short(letter)
            }
            (LetterId::Spread(letter), Some(elsewhere)) => {
                elsewhere.spread.parts_of(letter).any(|part| self.is_short_for(part))
            }
            _ => false,
        }
    }

    /// As [`store::Store::append`].
    pub fn append(
        &mut self,
        letter: LetterId,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        match (letter, &mut self.elsewhere) {
            (LetterId::Own(delivery), _) => self.own.store.append(delivery, octets, continuation),
            (LetterId::Distant(letter), Some(elsewhere)) => {
                elsewhere.distant.append(letter, octets, continuation)
            }
            (LetterId::Spread(letter), Some(_)) => self.append_spread(letter, octets, continuation),
            _ => Err(Refusal::NoSuchDelivery),
        }
    }

    /// As [`store::Store::commit`].
    pub fn commit(
        &mut self,
        letter: LetterId,
        closing: impl Into<Closing>,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let closing = closing.into();
        match (letter, &mut self.elsewhere) {
            (LetterId::Own(delivery), _) => self.own.store.commit(delivery, closing, continuation),
            (LetterId::Distant(letter), Some(elsewhere)) => {
                elsewhere.distant.commit(letter, closing, continuation)
            }
            (LetterId::Spread(letter), Some(_)) => {
                self.prepare_spread(letter, closing, continuation)
            }
            _ => Err(Refusal::NoSuchDelivery),
        }
    }

    /// As [`store::Store::abort`].
    pub fn abort(&mut self, letter: LetterId) {
        match (letter, &mut self.elsewhere) {
            (LetterId::Own(delivery), _) => self.own.store.abort(delivery),
            (LetterId::Distant(letter), Some(elsewhere)) => elsewhere.distant.abort(letter),
            (LetterId::Spread(letter), Some(_)) => self.abort_spread(letter),
            _ => {}
        }
    }

    /// As [`store::Store::forget_arrival`].
    pub fn forget_arrival(
        &mut self,
        account: AccountId,
        origin: Origin,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let owner = self.owners.of(account);
        match self.distant_at(owner) {
            None => self.own.store.forget_arrival(account, origin, continuation),
            Some(distant) => {
                distant.forget_arrival(owner, account, origin, continuation);
                Ok(())
            }
        }
    }

    /// Whether the arrival of a message with this origin is noted, or that is unknown on this core.
    pub fn may_have_arrived(&self, account: AccountId, origin: Origin) -> bool {
        self.owners.of(account) != self.core || self.own.store.has_arrived(account, origin)
    }

    /// The GUID for a message's first recipient, if this core owns all recipients.
    pub fn guid(&self, letter: LetterId) -> Option<Guid> {
        if let LetterId::Own(delivery) = letter { self.own.store.guid(delivery) } else { None }
    }
}
