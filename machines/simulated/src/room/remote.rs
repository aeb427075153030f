//! The address and the mailboxes of the other mail server of a room.
//!
//! Two mailboxes take each message, at the first or a later attempt. One mailbox does not exist,
//! and one always defers.

use chance::Dice;

/// The host number, from its address: 10.0.0.99.
pub(super) const HOST: usize = 89;
pub(super) const SMARTHOST: &str = "10.0.0.99:25";

/// A mailbox of the other server. Each machine sends to its own set of addresses, so that the
/// address shows which machine has sent a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RemoteMailbox {
    /// `Bob` and `Carol` take every message.
    Bob,
    Carol,
    /// The mailbox does not exist.
    Unknown,
    /// The mailbox always defers.
    Away,
}

impl RemoteMailbox {
    const ALL: [(RemoteMailbox, &str); 4] = [
        (RemoteMailbox::Bob, "bob"),
        (RemoteMailbox::Carol, "carol"),
        (RemoteMailbox::Unknown, "unknown"),
        (RemoteMailbox::Away, "away"),
    ];

    /// The address of the mailbox, for mail from the machine `station`.
    pub(super) fn address(self, station: usize) -> String {
        let (_, name) = RemoteMailbox::ALL[self as usize];
        format!("{name}{station}@far.test")
    }

    /// The mailbox with this address, and the machine that may send to it.
    pub(super) fn named(address: &str) -> Option<(RemoteMailbox, usize)> {
        let local = address.strip_suffix("@far.test")?;
        let (mailbox, number) = RemoteMailbox::ALL
            .iter()
            .find_map(|(one, name)| Some((*one, local.strip_prefix(name)?)))?;
        Some((mailbox, number.parse().ok()?))
    }

    /// Draws the recipients of a message. Most messages go to mailboxes that take them.
    pub(super) fn some(dice: &mut Dice) -> Vec<RemoteMailbox> {
        match dice.below(12) {
            0 => vec![RemoteMailbox::Unknown],
            1 => vec![RemoteMailbox::Unknown, RemoteMailbox::Bob],
            2 => vec![RemoteMailbox::Bob, RemoteMailbox::Away, RemoteMailbox::Carol],
            3 => vec![RemoteMailbox::Away, RemoteMailbox::Unknown],
            4 | 5 => vec![RemoteMailbox::Bob, RemoteMailbox::Carol],
            _ => vec![RemoteMailbox::Bob],
        }
    }

    /// Whether the mailbox takes mail, at the first or a later attempt.
    pub(super) fn takes(self) -> bool {
        matches!(self, RemoteMailbox::Bob | RemoteMailbox::Carol)
    }
}
