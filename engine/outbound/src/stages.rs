//! The stages of an attempt, and the results of its steps.

use dns::Name;
use machine::{Instant, Micros};
use relay::Reply;
use store::AccountId;

use super::failure::FailureReason;

/// The delay before an entry is tried again after the store has refused something.
pub(super) const AGAIN: Micros = Micros::from_secs(60);

/// The delay before an entry is tried again if the time for attempts is over, but the sender's
/// mailbox has no space for a report. The attempt then tries the recipient and the report again.
pub(super) const ROOM_AGAIN: Micros = Micros::from_secs(60 * 60);

/// The step that an attempt takes next, or waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The beginning of the entry is to be read.
    ReadHead,
    /// The next step is to be chosen.
    Choose,
    /// A delivery to an account of this machine is to begin.
    BeginDelivery(DeliveryKind),
    /// The bytes of the delivery are being given to the store.
    HandOver(DeliveryKind),
    /// The delivery is complete, and on its way to the disk.
    Commit(DeliveryKind),
    /// The message that is forwarded is to be read and hashed.
    Hash,
    /// A signature of the ARC set is being computed.
    Sign,
    /// The results are to be written to the entry's record.
    Mark,
    /// The note of a delivery is to be removed. The note has prevented a repetition of the
    /// delivery, and a durable mark does so now.
    ForgetNote,
    /// The owner of the destination (the core that counts its connections) is to give leave to make
    /// one more connection.
    AskLeave,
    /// The hosts that take mail for these recipients are to be looked up.
    LookUpHosts,
    /// The MTA-STS policy of the recipients' domain is to be fetched.
    FetchPolicy,
    /// A connection to one of the hosts is to be opened.
    Connect,
    /// The SMTP conversation with a host is under way.
    Converse,
    /// All recipients are done: the entry is to be removed.
    Remove,
    /// The attempt is over. `Some`: the time at which the entry is tried again.
    Over(Option<Instant>),
}

/// A delivery to an account of this machine, with the bit of the recipient (its position in the
/// envelope).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DeliveryKind {
    /// The message, for this account.
    Message(u8, AccountId),
    /// The message, into the outbox, for a forwarding address.
    Forward(u8),
    /// The message, written anew, into the outbox: it replaces this entry.
    Replacement,
    /// The report about all recipients that do not get the message. This is the first of them.
    FailureReport(u8),
    /// The report that recipients, or their hosts, have the message. This is the first of them.
    SuccessReport(u8),
    /// The report that delivery is delayed, about all recipients that wait.
    DelayReport,
    /// The notice that the entry cannot be read.
    Notice,
}

/// The continuation of an attempt after a step of its stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StepResult {
    /// The attempt continues at once.
    GoesOn,
    /// The attempt waits for the answer to a request.
    Waits,
    /// The attempt has computed as much as it may in a turn, and goes on in the next turn.
    Computes,
}

/// The continuation of an attempt after it has acted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AttemptProgress {
    /// The attempt waits for the answer to a request.
    Waits,
    /// The store was busy: the attempt asks again in the next turn.
    Turn,
    /// The attempt has computed as much as it may in a turn, and goes on in the next turn.
    Computes,
    /// The attempt is over. `Some`: the time at which the entry is tried again.
    Over(Option<Instant>),
}

/// The result for a recipient.
#[derive(Clone, Debug)]
pub(super) enum DeliveryResult {
    /// A host has accepted the message.
    Delivered(Acceptance),
    /// The recipient is tried again.
    Later(FailureReason),
    /// The recipient does not get the message.
    Never(FailureReason),
}

/// The acceptance of a message by a host.
#[derive(Clone, Debug)]
pub(super) struct Acceptance {
    pub(super) reply: Reply,
    pub(super) host: Option<Name>,
    pub(super) reporter: Reporter,
}

/// The host that reports success to the sender, if the sender wants a report (RFC 3461 sections
/// 5.2.1 and 5.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reporter {
    /// The next host: this server has told it which reports the sender wants.
    Host,
    /// This machine, which knows only that the next host has the message.
    Us,
}

/// The positions of the set bits, lowest first.
pub(super) fn bits(set: u16) -> impl Iterator<Item = u8> {
    (0..16).filter(move |bit| set >> bit & 1 == 1)
}
