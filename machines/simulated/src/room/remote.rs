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
pub(super) enum Mailbox {
    /// These take every message.
    Bob,
    Carol,
    /// It does not exist.
    Unknown,
    /// It is always deferred.
    Away,
}

impl Mailbox {
    const ALL: [(Mailbox, &str); 4] = [
        (Mailbox::Bob, "bob"),
        (Mailbox::Carol, "carol"),
        (Mailbox::Unknown, "unknown"),
        (Mailbox::Away, "away"),
    ];

    /// Its address, for mail of a machine.
    pub(super) fn address(self, station: usize) -> String {
        let (_, name) = Mailbox::ALL[self as usize];
        format!("{name}{station}@far.test")
    }

    /// The mailbox of this address, and the machine that may send to it.
    pub(super) fn named(address: &str) -> Option<(Mailbox, usize)> {
        let local = address.strip_suffix("@far.test")?;
        let (mailbox, number) =
            Mailbox::ALL.iter().find_map(|(one, name)| Some((*one, local.strip_prefix(name)?)))?;
        Some((mailbox, number.parse().ok()?))
    }

    /// Draws the mailboxes of a message. Most of them take it.
    pub(super) fn some(dice: &mut Dice) -> Vec<Mailbox> {
        match dice.below(12) {
            0 => vec![Mailbox::Unknown],
            1 => vec![Mailbox::Unknown, Mailbox::Bob],
            2 => vec![Mailbox::Bob, Mailbox::Away, Mailbox::Carol],
            3 => vec![Mailbox::Away, Mailbox::Unknown],
            4 | 5 => vec![Mailbox::Bob, Mailbox::Carol],
            _ => vec![Mailbox::Bob],
        }
    }

    /// Whether it takes mail, sooner or later.
    pub(super) fn takes(self) -> bool {
        matches!(self, Mailbox::Bob | Mailbox::Carol)
    }
}
