//! Checks the contents of a disk against the model of its machine. The disk also decides the facts
//! that were uncertain in the model.

use super::fixture::{AT_WEBMAIL, OUTBOX};
use super::message::{CopyState, FoundMessage, MessageId, OWN};
use super::model::Model;

impl Model {
    /// Checks the messages of all accounts. `found`: the messages of each account.
    pub(super) fn audit_all(&mut self, mut found: Vec<Vec<FoundMessage>>) {
        let is_entry = |found: &mut FoundMessage| found.mailbox == OUTBOX;
        let entries: Vec<FoundMessage> =
            found.iter_mut().flat_map(|found| found.extract_if(.., is_entry)).collect();
        self.entries = entries.len();
        self.record_progress(&found[AT_WEBMAIL]);
        found.iter().enumerate().for_each(|(account, found)| self.audit(account, found));
        self.posted.audit(entries.iter().map(|entry| &entry.message[..]), |report| {
            self.has_arrived(report)
        });
        self.name.settle();
        self.messages
            .iter()
            .enumerate()
            .for_each(|(number, message)| message.check_recipients(number));
    }

    /// Checks the contents of one account. No message is being delivered except held ones, so
    /// uncertain facts become certain. `found`: the account's messages, in the order in which the
    /// machine lists them.
    pub(super) fn audit(&mut self, account: usize, found: &[FoundMessage]) {
        let listed = self.moment();
        let grows = |one: &FoundMessage, next: &FoundMessage| {
            one.mailbox != next.mailbox || one.unique_id < next.unique_id
        };
        assert!(found.is_sorted_by(grows), "unique-ids are not in increasing order");
        let mut once = Vec::new();
        for message in found {
            let (id, copy) = self.found(account, message, listed);
            once.push((id, copy));
            self.messages[id.0].copies[copy].found_by_audit(id, message);
        }
        once.sort_unstable();
        assert!(once.is_sorted_by(|one, next| one < next), "a message is stored twice: {once:?}");
        let now = self.next_moment();
        for (number, message) in self.messages.iter_mut().enumerate() {
            let may_still_arrive = message.may_still_arrive();
            for copy in [account, OWN].into_iter().take(if account == AT_WEBMAIL { 2 } else { 1 }) {
                let is_there = once.binary_search(&(MessageId(number), copy)).is_ok();
                let (copy, name) = (&mut message.copies[copy], copy);
                let fate = match copy.fate {
                    _ if is_there => CopyState::Present,
                    // A message on bad sectors may be missing now and there again after a restart,
                    // until its removal from the index is durable.
                    CopyState::Present | CopyState::PerhapsDeleted if message.is_harmed => {
                        CopyState::PerhapsDeleted
                    }
                    CopyState::PerhapsDelivered if may_still_arrive => CopyState::PerhapsDelivered,
                    CopyState::Present => {
                        panic!("message {number} was stored, and is gone from {name}")
                    }
                    CopyState::PerhapsDeleted => CopyState::Deleted(now),
                    CopyState::PerhapsDelivered => CopyState::Absent,
                    known => known,
                };
                copy.set_state(fate);
            }
        }
    }

    /// Notes the progress of each message that the webmail client sent, according to the disk. No
    /// request is pending.
    fn record_progress(&mut self, found: &[FoundMessage]) {
        self.messages.iter_mut().for_each(|message| message.departure.set_progress(None));
        for message in found {
            let id = self.identify(&message.message);
            if self.copy_in(id, AT_WEBMAIL, message.mailbox) == OWN {
                self.messages[id.0].departure.set_progress(Some(message.send_state));
            }
        }
        for (number, message) in
            self.messages.iter_mut().enumerate().filter(|(_, message)| message.is_sent_by_webmail())
        {
            let is_settled = message.departure.settle();
            assert!(
                is_settled,
                "message {number} has an impossible progress: {:?}",
                message.departure
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::ACCOUNTS;
    use super::*;
    use chance::Dice;

    #[test]
    fn a_late_refusal_of_a_damaged_message_is_valid() {
        let mut model = Model::default();
        let (message, _) = model.write(&[0, 1], "ESMTP", &mut Dice::new(1));
        model.sent(message);
        model.harm(message.0);
        (0..ACCOUNTS.len()).for_each(|account| model.audit(account, &[]));
        model.refused(message);
        (0..ACCOUNTS.len()).for_each(|account| model.audit(account, &[]));
    }
}
