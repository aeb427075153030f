//! The rollout of an uploaded, durable certificate to all cores. When all cores show the
//! certificate, the session that sent it gets its reply.
//!
//! Invariant: a core's answer counts only for the version of the list that the answer names. When
//! the machine starts, the other cores answer for the first list, and such an answer may arrive
//! late.

use channel::Ticket;

use super::shown::ListVersion;

/// A list of certificates that other cores must show.
pub(super) struct Rollout {
    ticket: Ticket,
    version: ListVersion,
    /// The number of other cores that do not show the list yet. `None`: they were not told yet.
    left: Option<usize>,
}

impl Rollout {
    /// The rollout of a version with a certificate that the session with this ticket has sent.
    pub(super) fn new(ticket: Ticket, version: ListVersion) -> Rollout {
        Rollout { ticket, version, left: None }
    }

    /// Sets the number of other cores that were told to show the list.
    pub(super) fn others_are_told(&mut self, others: usize) {
        self.left = Some(others);
    }

    /// Notes that another core shows this version.
    pub(super) fn another_shows(&mut self, version: ListVersion) {
        if version == self.version
            && let Some(left) = &mut self.left
        {
            *left -= 1;
        }
    }

    /// The session that gets its reply now, if all other cores show the list.
    pub(super) fn to_be_answered(&self) -> Option<Ticket> {
        (self.left == Some(0)).then_some(self.ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::CoreId;
    use tasks::FrameId;

    #[test]
    fn an_answer_about_an_earlier_list_does_not_count() {
        let ticket = Ticket { core: CoreId(1), frame: FrameId::new(3, 1) };
        let mut rollout = Rollout::new(ticket, ListVersion(2));
        assert_eq!(rollout.to_be_answered(), None);
        rollout.others_are_told(2);
        for (version, answered) in [(1, None), (2, None), (1, None), (2, Some(ticket))] {
            rollout.another_shows(ListVersion(version));
            assert_eq!(rollout.to_be_answered(), answered);
        }
    }
}
