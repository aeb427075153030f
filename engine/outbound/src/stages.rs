//! What an attempt does next, and what comes of it.

use dns::Name;
use machine::{Instant, Micros};
use relay::Reply;
use store::AccountId;

use super::why::Why;

/// When an entry is looked at again of which the store has refused something.
pub(super) const AGAIN: Micros = Micros::from_secs(60);

/// The same where whoever sent the letter has no room for a report, and the time is over in which it is tried again: whom it is of is tried again, too.
pub(super) const ROOM_AGAIN: Micros = Micros::from_secs(60 * 60);

/// What is to be done next, or is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The beginning of the entry is to be read.
    Opened,
    /// It is to be seen what comes next.
    Sorted,
    /// Something is to be brought to somebody here.
    Brought(Deed),
    /// He is given what it says.
    Handed(Deed),
    /// He has all, and it is on its way to the disk.
    Delivered(Deed),
    /// The letter is to be read that is sent on.
    Hashed,
    /// It is to be sealed.
    Sealed,
    /// What was done is to be marked.
    Marked,
    /// A delivery that cannot be repeated is to be forgotten.
    Forgotten,
    /// It is to be found out which hosts take mail for those on the road.
    Sought,
    /// Their domain's policy is to be fetched.
    Inquired,
    /// One of these hosts is to be called.
    Called,
    /// It is spoken with.
    Spoken,
    /// All are done with: the entry is to be removed.
    Removed,
    /// That was all. When the entry is to be tried again, if it is.
    Over(Option<Instant>),
}

/// What is brought to somebody here. With the bit of the recipient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    /// The letter.
    Letter(u8, AccountId),
    /// The same, on its way to somebody to whom it is sent on.
    SentOn(u8),
    /// That somebody does not get it.
    Report(u8),
    /// That somebody has it, or his host.
    Arrival(u8),
    /// That it takes long, for all who have not got it.
    Delay,
    /// That it cannot be read.
    Notice,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The courier waits for what he has asked for.
    Waits,
    /// The store does not do what he has asked for: he asks again in the next turn.
    Turn,
    /// He has computed as much as one may in a turn, and goes on in the next.
    Computes,
    /// He is done. When the entry is to be tried again, if it is.
    Over(Option<Instant>),
}

/// What came of it for somebody elsewhere.
#[derive(Clone, Debug)]
pub(super) enum Come {
    Delivered(Taken),
    Later(Why),
    Never(Why),
}

/// A host has it.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) reply: Reply,
    pub(super) host: Option<Name>,
    pub(super) reporter: Reporter,
}

/// Who tells the sender that his letter has arrived, where he wants to hear that (RFC 3461 sections 5.2.1 and 5.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reporter {
    /// The host: it knows what he wants.
    Host,
    /// We, and we know only that the host has it.
    Us,
}

/// Whether something that comes is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    Yes,
    No,
    /// No, but another part is, and is asked for when this one has come.
    Another,
}

/// How far a courier has come with an entry that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    /// The account is to be told.
    Wanted,
    /// The store has refused the notice in this round.
    PutOff,
    /// It was looked whether the notice's arrival is still noted.
    LookedFor,
}

/// The bits that are set, the lowest first.
pub(super) fn bits(set: u16) -> impl Iterator<Item = u8> {
    (0..16).filter(move |bit| set >> bit & 1 == 1)
}
