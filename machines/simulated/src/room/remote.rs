//! The other mail server of a room, as machines and clients know it: its address and its mailboxes.
//!
//! Some mailboxes take each message at the first or a later attempt. One does not exist, and one is
//! always deferred.

use chance::Dice;

/// The host number, from its address: 10.0.0.99.
pub(super) const HOST: usize = 89;
pub(super) const SMARTHOST: &str = "10.0.0.99:25";

/// A mailbox of the other server. Each machine has its own set, so that the address shows which
/// machine a message comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RemoteMailbox {
    /// These take every message.
    Bob,
    Carol,
    /// It does not exist.
    Unknown,
    /// It is always deferred.
    Away,
}

impl RemoteMailbox {
    const ALL: [(RemoteMailbox, &str); 4] = [
        (RemoteMailbox::Bob, "bob"),
        (RemoteMailbox::Carol, "carol"),
        (RemoteMailbox::Unknown, "unknown"),
        (RemoteMailbox::Away, "away"),
    ];

    /// Its address, for mail of a machine.
    pub(super) fn address(self, station: usize) -> String {
        let (_, name) = RemoteMailbox::ALL[self as usize];
        format!("{name}{station}@far.test")
    }

    /// The mailbox of this address, and the machine that may send to it.
    pub(super) fn named(address: &str) -> Option<(RemoteMailbox, usize)> {
        let local = address.strip_suffix("@far.test")?;
        let (mailbox, number) = RemoteMailbox::ALL
            .iter()
            .find_map(|(one, name)| Some((*one, local.strip_prefix(name)?)))?;
        Some((mailbox, number.parse().ok()?))
    }

    /// Draws the mailboxes of a message. Most of them take it.
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

    /// Whether it takes mail, sooner or later.
    pub(super) fn takes(self) -> bool {
        matches!(self, RemoteMailbox::Bob | RemoteMailbox::Carol)
    }
}
