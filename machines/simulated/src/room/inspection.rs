//! Checks the contents of a disk against the model of its machine. After that, uncertain facts are
//! certain.

use super::fixture::{AT_WEBMAIL, OUTBOX};
use super::ledger::Ledger;
use super::letter::{Fate, Found, LetterId, OWN};

impl Ledger {
    /// Checks all contents of the disk, by account.
    pub(super) fn audit_all(&mut self, mut found: Vec<Vec<Found>>) {
        let is_entry = |found: &mut Found| found.mailbox == OUTBOX;
        let entries: Vec<Found> =
            found.iter_mut().flat_map(|found| found.extract_if(.., is_entry)).collect();
        self.entries = entries.len();
        self.courses(&found[AT_WEBMAIL]);
        found.iter().enumerate().for_each(|(account, found)| self.audit(account, found));
        self.posted
            .audit(entries.iter().map(|entry| &entry.message[..]), |report| self.has_come(report));
        self.name.settle();
        self.letters
            .iter()
            .enumerate()
            .for_each(|(number, letter)| letter.has_come_as_it_should(number));
    }

    /// Checks the contents of one account. No message is on its way except held ones, so uncertain
    /// facts become certain. `found`: messages, in the order in which the machine lists them.
    pub(super) fn audit(&mut self, account: usize, found: &[Found]) {
        let listed = self.moment();
        let grows = |one: &Found, next: &Found| {
            one.mailbox != next.mailbox || one.unique_id < next.unique_id
        };
        assert!(found.is_sorted_by(grows), "unique-ids do not grow");
        let mut once = Vec::new();
        for message in found {
            let (id, copy) = self.found(account, message, listed);
            once.push((id, copy));
            self.letters[id.0].copies[copy].lies(id, message);
        }
        once.sort_unstable();
        assert!(once.is_sorted_by(|one, next| one < next), "a message is stored twice: {once:?}");
        let now = self.next_moment();
        for (number, letter) in self.letters.iter_mut().enumerate() {
            let may_still_come = letter.may_still_come();
            for copy in [account, OWN].into_iter().take(if account == AT_WEBMAIL { 2 } else { 1 }) {
                let is_there = once.binary_search(&(LetterId(number), copy)).is_ok();
                let (copy, name) = (&mut letter.copies[copy], copy);
                let fate = match copy.fate {
                    _ if is_there => Fate::Present,
                    // Its loss may be undone as long as the loss itself is not durable.
                    Fate::Present | Fate::PerhapsDeleted if letter.is_harmed => {
                        Fate::PerhapsDeleted
                    }
                    Fate::PerhapsDelivered if may_still_come => Fate::PerhapsDelivered,
                    Fate::Present => panic!("message {number} was there, and is gone from {name}"),
                    Fate::PerhapsDeleted => Fate::Deleted(now),
                    Fate::PerhapsDelivered => Fate::Absent,
                    known => known,
                };
                copy.turns_into(fate);
            }
        }
    }

    /// Notes the progress of each message that the webmail client sent, according to the disk. No
    /// request is pending.
    fn courses(&mut self, found: &[Found]) {
        self.letters.iter_mut().for_each(|letter| letter.departure.looked_at(None));
        for message in found {
            let id = self.is_whole(&message.message);
            if self.copy_in(id, AT_WEBMAIL, message.mailbox) == OWN {
                self.letters[id.0].departure.looked_at(Some(message.course));
            }
        }
        for (number, letter) in
            self.letters.iter_mut().enumerate().filter(|(_, letter)| letter.is_sent_by_webmail())
        {
            let is_settled = letter.departure.settle();
            assert!(
                is_settled,
                "message {number} has an impossible progress: {:?}",
                letter.departure
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
        let mut ledger = Ledger::default();
        let (letter, _) = ledger.write(&[0, 1], "ESMTP", &mut Dice::new(1));
        ledger.sent(letter);
        ledger.harm(letter.0);
        (0..ACCOUNTS.len()).for_each(|account| ledger.audit(account, &[]));
        ledger.refused(letter);
        (0..ACCOUNTS.len()).for_each(|account| ledger.audit(account, &[]));
    }
}
