//! What clients said and heard: which letters there must be, may be and must not be.
//!
//! The ledger is the oracle: a plain map that knows nothing of how a machine keeps its promises. One for each machine.

use std::collections::BTreeMap;

use crate::Dice;

/// Those who get letters.
pub(super) const ACCOUNTS: [&str; 2] = ["ada@barepost.test", "grace@barepost.test"];

/// A letter, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct LetterId(usize);

/// A moment in the order of what became known of deletions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Moment(u64);

/// What is known of a letter in one account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It was never sent whole, or it was refused, or a restart has shown that it did not come to be.
    Absent,
    /// It was sent, and nobody said what came of it.
    PerhapsDelivered,
    /// It is there: a client was told so, or somebody has seen it.
    Present,
    /// It was there, and nobody said what came of its deletion.
    PerhapsDeleted,
    /// It was deleted, and that was known then.
    Deleted(Moment),
}

struct Letter {
    body: Vec<u8>,
    /// What was spoken to send it (RFC 3848).
    protocol: &'static str,
    recipients: Vec<usize>,
    fates: [Fate; ACCOUNTS.len()],
    /// A sector of it went bad: it may be unreadable, and it may be gone.
    is_harmed: bool,
}

/// The ledger of one machine.
#[derive(Default)]
pub(super) struct Ledger {
    letters: Vec<Letter>,
    /// By account and unique-id.
    unique_ids: BTreeMap<(usize, String), LetterId>,
    moments: u64,
}

impl Ledger {
    /// A new letter, to be sent by this protocol. Every line of it names it.
    pub(super) fn write(
        &mut self,
        recipients: &[usize],
        protocol: &'static str,
        dice: &mut Dice,
    ) -> (LetterId, Vec<u8>) {
        let id = self.letters.len();
        let size = match dice.below(40) {
            0 => dice.below(150_000),
            1..5 => dice.below(30_000),
            _ => dice.below(2_000),
        };
        let mut body = format!("Subject: {id}\r\n\r\n").into_bytes();
        while (body.len() as u64) < size {
            match dice.below(6) {
                0 => body.extend_from_slice(format!("..{id}.\r\n").as_bytes()),
                1 => body.extend_from_slice(b"\r\n"),
                _ => body.extend_from_slice(format!("<{id}> {:x} {:x}\r\n", dice.roll(), dice.roll()).as_bytes()),
            }
        }
        self.letters.push(Letter {
            body: body.clone(),
            protocol,
            recipients: recipients.to_vec(),
            fates: [Fate::Absent; ACCOUNTS.len()],
            is_harmed: false,
        });
        (LetterId(id), body)
    }

    fn turns_into(&mut self, id: LetterId, fate: Fate) {
        let letter = &mut self.letters[id.0];
        letter.recipients.iter().for_each(|account| letter.fates[*account] = fate);
    }

    /// A sector goes bad in which a letter of this number lies.
    pub(super) fn harm(&mut self, number: usize) {
        if let Some(letter) = self.letters.get_mut(number) {
            letter.is_harmed = true;
        }
    }

    /// How many letters may be unreadable.
    pub(super) fn harmed(&self) -> usize {
        self.letters.iter().filter(|letter| letter.is_harmed).count()
    }

    /// It is on its way, whole.
    pub(super) fn sent(&mut self, id: LetterId) {
        self.turns_into(id, Fate::PerhapsDelivered);
    }

    /// Acknowledged. A reader may have deleted it before its sender heard so.
    pub(super) fn delivered(&mut self, id: LetterId) {
        let letter = &mut self.letters[id.0];
        for account in &letter.recipients {
            let fate = &mut letter.fates[*account];
            assert!(*fate != Fate::Absent, "letter {} was acknowledged, and a power cut has taken it", id.0);
            if *fate == Fate::PerhapsDelivered {
                *fate = Fate::Present;
            }
        }
    }

    /// Refused by a machine whose disk works: it is not there, and will not be.
    pub(super) fn refused(&mut self, id: LetterId) {
        let is_seen =
            self.letters[id.0].fates.iter().any(|fate| !matches!(fate, Fate::Absent | Fate::PerhapsDelivered));
        assert!(!is_seen, "letter {} was refused, and somebody has seen it", id.0);
        self.turns_into(id, Fate::Absent);
    }

    /// Its deletion was asked for.
    pub(super) fn perhaps_deleted(&mut self, id: LetterId, account: usize) {
        let fate = &mut self.letters[id.0].fates[account];
        if !matches!(fate, Fate::Deleted(_)) {
            *fate = Fate::PerhapsDeleted;
        }
    }

    /// Its deletion was acknowledged.
    pub(super) fn deleted(&mut self, id: LetterId, account: usize) {
        self.moments += 1;
        let fate = &mut self.letters[id.0].fates[account];
        assert!(
            matches!(fate, Fate::PerhapsDeleted | Fate::Deleted(_)),
            "letter {} was deleted, acknowledged so, and is {fate:?} again in {account}",
            id.0
        );
        *fate = Fate::Deleted(Moment(self.moments));
    }

    /// What is known of deletions now.
    pub(super) fn moment(&self) -> Moment {
        Moment(self.moments)
    }

    /// Somebody who listed the messages after `listed` found `message` in `account`: which letter it is.
    pub(super) fn found(&mut self, account: usize, unique_id: &str, message: &[u8], listed: Moment) -> LetterId {
        let id = self.is_whole(message);
        let fate = &mut self.letters[id.0].fates[account];
        match *fate {
            Fate::PerhapsDelivered => *fate = Fate::Present,
            Fate::Present | Fate::PerhapsDeleted => {}
            // Who listed it before it was deleted may read it late.
            Fate::Deleted(moment) if moment > listed => {}
            Fate::Deleted(_) | Fate::Absent => panic!("letter {} is {fate:?} and was found in {account}", id.0),
        }
        self.is_named(account, unique_id, id);
        id
    }

    /// Which letter this is. It must be as it was sent, and say how that was.
    fn is_whole(&self, message: &[u8]) -> LetterId {
        let (trace, body) = parts(message);
        let subject = body.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let number = String::from_utf8_lossy(subject).strip_prefix("Subject: ").and_then(|id| id.parse().ok());
        let id: usize = number.unwrap_or_else(|| panic!("no letter of ours: {:?}", String::from_utf8_lossy(body)));
        let Letter { body: sent, protocol, .. } = &self.letters[id];
        assert!(sent == body, "letter {id} is not what was sent");
        let trace = String::from_utf8_lossy(trace);
        assert!(trace.contains(&format!(" with {protocol} id ")), "letter {id} was sent by {protocol}: {trace}");
        LetterId(id)
    }

    /// A unique-id names one letter for ever.
    fn is_named(&mut self, account: usize, unique_id: &str, id: LetterId) {
        let known = self.unique_ids.entry((account, unique_id.to_string())).or_insert(id);
        assert_eq!(*known, id, "the unique-id {unique_id} names two letters");
    }

    /// All that is in an account was looked at, and nothing can be on its way: what was uncertain is certain now.
    /// `found`: unique-ids and messages, in the order in which the machine lists them.
    pub(super) fn audit(&mut self, account: usize, found: &[(String, Vec<u8>)]) {
        let listed = self.moment();
        let mut letters = Vec::new();
        for (unique_id, message) in found {
            letters.push(self.found(account, unique_id, message, listed));
        }
        assert!(found.is_sorted_by(|(one, _), (next, _)| one < next), "unique-ids do not grow");
        let mut once = letters.clone();
        once.sort_unstable();
        assert!(once.is_sorted_by(|one, next| one < next), "a letter is there twice: {once:?}");
        self.moments += 1;
        let now = Moment(self.moments);
        for (number, letter) in self.letters.iter_mut().enumerate() {
            let is_there = once.binary_search(&LetterId(number)).is_ok();
            let fate = &mut letter.fates[account];
            *fate = match *fate {
                _ if is_there => Fate::Present,
                // Its loss may be taken back as long as it is not durable itself.
                Fate::Present | Fate::PerhapsDeleted if letter.is_harmed => Fate::PerhapsDeleted,
                Fate::PerhapsDelivered if letter.is_harmed => Fate::PerhapsDelivered,
                Fate::Present => panic!("letter {number} was there, and is gone from {account}"),
                Fate::PerhapsDeleted => Fate::Deleted(now),
                Fate::PerhapsDelivered => Fate::Absent,
                known => known,
            };
        }
    }
}

/// The trace fields of a message, and what is below them.
fn parts(message: &[u8]) -> (&[u8], &[u8]) {
    let at = message.windows(11).position(|window| window == b"\r\nSubject: ");
    message.split_at(at.unwrap_or_else(|| panic!("not a letter: {:?}", String::from_utf8_lossy(message))) + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_on_bad_sectors_may_still_be_refused_by_the_reply_that_is_on_its_way() {
        let mut ledger = Ledger::default();
        let (letter, _) = ledger.write(&[0, 1], "ESMTP", &mut Dice::new(1));
        ledger.sent(letter);
        ledger.harm(letter.0);
        (0..ACCOUNTS.len()).for_each(|account| ledger.audit(account, &[]));
        ledger.refused(letter);
        (0..ACCOUNTS.len()).for_each(|account| ledger.audit(account, &[]));
    }
}
