//! What clients said and heard: which letters there must be, may be and must not be.

use std::collections::{BTreeMap, BTreeSet};

use simulated::Dice;

use crate::room::Room;

/// Those who get letters.
pub(crate) const ACCOUNTS: [&str; 2] = ["ada@barepost.test", "grace@barepost.test"];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LetterId(usize);

/// What is known of a letter in one account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It was never sent whole, or it was refused.
    Absent,
    /// It was sent, and nobody said what came of it.
    PerhapsDelivered,
    /// It is there: a client was told so, or has seen it.
    Present,
    /// It was there, and nobody said what came of its deletion.
    PerhapsDeleted,
    /// It was deleted.
    Deleted,
}

struct Letter {
    body: Vec<u8>,
    recipients: Vec<usize>,
    fates: [Fate; 2],
}

#[derive(Default)]
pub(crate) struct Ledger {
    letters: Vec<Letter>,
    /// By account and unique-id.
    unique_ids: BTreeMap<(usize, String), LetterId>,
}

impl Ledger {
    /// A new letter.
    pub(crate) fn write(&mut self, recipients: &[usize], dice: &mut Dice) -> (LetterId, Vec<u8>) {
        let id = self.letters.len();
        let size = match dice.below(20) {
            0 => dice.below(200_000),
            1..4 => dice.below(40_000),
            _ => dice.below(2_000),
        };
        let mut body = format!("Subject: {id}\r\n\r\n").into_bytes();
        while (body.len() as u64) < size {
            match dice.below(4) {
                0 => body.extend_from_slice(b".a dot\r\n"),
                1 => body.extend_from_slice(b"\r\n"),
                _ => body.extend_from_slice(format!("{:x} {:x}\r\n", dice.roll(), dice.roll()).as_bytes()),
            }
        }
        self.letters.push(Letter { body: body.clone(), recipients: recipients.to_vec(), fates: [Fate::Absent; 2] });
        (LetterId(id), body)
    }

    fn turns_into(&mut self, id: LetterId, fate: Fate) {
        let letter = &mut self.letters[id.0];
        letter.recipients.iter().for_each(|account| letter.fates[*account] = fate);
    }

    pub(crate) fn sent(&mut self, id: LetterId) {
        self.turns_into(id, Fate::PerhapsDelivered);
    }

    /// Acknowledged. A reader may have deleted it before its sender heard so.
    pub(crate) fn delivered(&mut self, id: LetterId) {
        for fate in &mut self.letters[id.0].fates {
            if *fate == Fate::PerhapsDelivered {
                *fate = Fate::Present;
            }
        }
    }

    pub(crate) fn refused(&mut self, id: LetterId) {
        assert!(!self.letters[id.0].fates.contains(&Fate::Present), "refused, and somebody has seen it");
        self.turns_into(id, Fate::Absent);
    }

    pub(crate) fn perhaps_deleted(&mut self, id: LetterId, account: usize) {
        self.letters[id.0].fates[account] = Fate::PerhapsDeleted;
    }

    pub(crate) fn deleted(&mut self, id: LetterId, account: usize) {
        self.letters[id.0].fates[account] = Fate::Deleted;
    }

    /// How many copies of letters are there, and how many were deleted.
    pub(crate) fn present_and_deleted(&self) -> (usize, usize) {
        let count = |fate| self.letters.iter().flat_map(|letter| letter.fates).filter(|one| *one == fate).count();
        (count(Fate::Present), count(Fate::Deleted))
    }

    /// Somebody found `message` in `account`: which letter it is.
    pub(crate) fn found(&mut self, account: usize, unique_id: &str, message: &[u8]) -> LetterId {
        let body = without_trace_of_any(message);
        let subject = body.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let number = String::from_utf8_lossy(subject).strip_prefix("Subject: ").and_then(|id| id.parse().ok());
        let id: usize = number.unwrap_or_else(|| panic!("no letter of ours: {:?}", String::from_utf8_lossy(body)));
        let letter = &mut self.letters[id];
        assert!(letter.body == body, "letter {id} is not what was sent");
        let fate = &mut letter.fates[account];
        assert!(!matches!(fate, Fate::Absent | Fate::Deleted), "letter {id} is {fate:?} and was found in {account}");
        if *fate == Fate::PerhapsDelivered {
            *fate = Fate::Present;
        }
        let known = self.unique_ids.entry((account, unique_id.to_string())).or_insert(LetterId(id));
        assert_eq!(*known, LetterId(id), "a unique-id names two letters");
        LetterId(id)
    }

    /// After a power cut: all that must be there is, once, and what is there must be allowed to.
    pub(crate) fn audit(&mut self, room: &mut Room) {
        for (account, name) in ACCOUNTS.into_iter().enumerate() {
            let mut talk = room.log_in(name);
            assert!(room.pop3(&mut talk, "UIDL").starts_with("+OK"));
            let list = String::from_utf8(room.pop3_lines(&mut talk)).expect("unique-ids are text");
            let mut found = BTreeSet::new();
            for (number, line) in list.lines().enumerate() {
                let unique_id = line.split(' ').nth(1).expect("a unique-id");
                let message = room.retrieve_any(&mut talk, number + 1);
                let letter = self.found(account, unique_id, &message);
                assert!(found.insert(letter), "{letter:?} is there twice");
            }
            for (number, letter) in self.letters.iter_mut().enumerate() {
                let is_there = found.contains(&LetterId(number));
                let fate = &mut letter.fates[account];
                *fate = match *fate {
                    Fate::Present => {
                        assert!(is_there, "letter {number} was acknowledged, and is gone from {account}");
                        Fate::Present
                    }
                    _ if is_there => Fate::Present,
                    Fate::PerhapsDeleted => Fate::Deleted,
                    Fate::PerhapsDelivered => Fate::Absent,
                    known => known,
                };
            }
            room.pop3(&mut talk, "QUIT");
            room.close(&talk);
        }
        room.until_nothing_is_in_use();
    }
}

/// The message below its trace fields, wherever it came from.
fn without_trace_of_any(message: &[u8]) -> &[u8] {
    let at = message.windows(11).position(|window| window == b"\r\nSubject: ").expect("a letter has a subject");
    &message[at + 2..]
}
