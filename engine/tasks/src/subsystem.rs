//! The subsystems whose frames wait for the store, or for what is computed.

use crate::Entry;

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subsystem {
    /// Sessions of any protocol, with what concerns passwords.
    Auth,
    /// SMTP sessions.
    Inbound,
    /// POP3 sessions.
    Pop3,
    /// The accounts of the configuration, made at start.
    Accounts,
    /// Certificates that take the place of others.
    Certificates,
    /// Messages for accounts of several cores, and those of other cores at the account's owner.
    Shards,
    /// Request handlers of the webmail.
    Webmail,
    /// Messages that leave the account that has written them.
    Submission,
    /// Delivery attempts, and administration of the queue.
    Outbound,
}

impl Subsystem {
    const ALL: [Subsystem; 9] = [
        Subsystem::Auth,
        Subsystem::Inbound,
        Subsystem::Pop3,
        Subsystem::Accounts,
        Subsystem::Certificates,
        Subsystem::Shards,
        Subsystem::Webmail,
        Subsystem::Submission,
        Subsystem::Outbound,
    ];

    /// The one to which a frame belongs that waits at this entry.
    pub fn of(entry: Entry) -> Option<Subsystem> {
        Subsystem::ALL.get(usize::from(entry.subsystem())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subsystem_is_found_by_the_entries_of_its_points() {
        for subsystem in Subsystem::ALL {
            for point in 0..16 {
                assert_eq!(Subsystem::of(Entry::new(subsystem as u8, point)), Some(subsystem));
            }
        }
        assert_eq!(Subsystem::of(Entry::new(Subsystem::ALL.len() as u8, 0)), None);
    }
}
