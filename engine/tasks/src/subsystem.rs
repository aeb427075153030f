//! The subsystems with frames that wait for the store or for a computation.

use crate::EntryPoint;

/// A subsystem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subsystem {
    /// Sessions of any protocol that wait for a password check.
    Auth,
    /// SMTP sessions.
    Inbound,
    /// POP3 sessions.
    Pop3,
    /// Creating the accounts of the configuration, at start.
    Accounts,
    /// Uploaded certificates.
    Certificates,
    /// Messages for accounts of several cores. Also the requests that other cores send to the core
    /// that owns an account.
    Shards,
    /// Request handlers of the webmail.
    Webmail,
    /// Messages that an account sends.
    Submission,
    /// Delivery attempts, and queue administration.
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

    /// The subsystem of a frame that waits at `entry`.
    pub fn of(entry: EntryPoint) -> Option<Subsystem> {
        Subsystem::ALL.get(usize::from(entry.subsystem())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_of_a_subsystem_lead_to_it() {
        for subsystem in Subsystem::ALL {
            for point in 0..16 {
                assert_eq!(Subsystem::of(EntryPoint::new(subsystem as u8, point)), Some(subsystem));
            }
        }
        assert_eq!(Subsystem::of(EntryPoint::new(Subsystem::ALL.len() as u8, 0)), None);
    }
}
