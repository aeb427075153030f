//! What clients said and heard: which letters there must be, may be and must not be.
//!
//! The ledger is the oracle: a plain map that knows nothing of how a machine keeps its promises. One for each machine.

use std::collections::BTreeMap;

use super::doubt::Doubt;
use super::leaving::{Course, Departure};
use super::peer::Mailbox;
use super::posted::{Posted, octets_near_an_edge};
use super::reported::ReportOf;
use crate::Dice;

/// Those who get letters. The last one reads and writes at the webmail, the others by POP3 and SMTP.
pub(super) const ACCOUNTS: [&str; 3] = ["ada@barepost.test", "grace@barepost.test", "mary@barepost.test"];
/// Those who read by POP3 come first.
pub(super) const BY_POP3: usize = 2;
pub(super) const AT_WEBMAIL: usize = 2;

/// The copies that there may be of a letter: one in each account that gets it, and the one that its writer keeps at the webmail.
pub(super) const COPIES: usize = ACCOUNTS.len() + 1;
pub(super) const OWN: usize = ACCOUNTS.len();

/// Mailboxes that everybody has, by their numbers: `docs/format.md`, section 7.
pub(super) const INBOX: u32 = 1;
pub(super) const DRAFTS: u32 = 2;
pub(super) const SENT: u32 = 3;
pub(super) const OUTBOX: u32 = 7;

/// How letters come from the webmail, and drafts.
const WRITTEN: &str = "the webmail";

/// A letter, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct LetterId(pub(super) usize);

/// A moment in the order of what became known of deletions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Moment(u64);

/// What is known of one copy of a letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
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

pub(super) struct Copy {
    pub(super) fate: Fate,
    pub(super) place: Doubt<u32>,
    pub(super) is_starred: Doubt<bool>,
    /// How often anything of this became another.
    pub(super) changes: u64,
}

pub(super) struct Letter {
    body: Vec<u8>,
    /// What was spoken to send it (RFC 3848).
    protocol: &'static str,
    /// Those of its copies that there are to be.
    pub(super) recipients: Vec<usize>,
    pub(super) copies: [Copy; COPIES],
    /// A sector of it went bad: it may be unreadable, and it may be gone.
    pub(super) is_harmed: bool,
    pub(super) departure: Departure,
    /// It goes to another server as well.
    is_for_others: bool,
    /// Its subject, if it is a report. A report may come at any time.
    pub(super) report: Option<ReportOf>,
}

/// A message that somebody has found.
pub(super) struct Found {
    pub(super) mailbox: u32,
    pub(super) unique_id: String,
    pub(super) is_starred: bool,
    /// How far it has come, if it is its writer's.
    pub(super) course: Course,
    pub(super) message: Vec<u8>,
}

/// The ledger of one machine.
pub(super) struct Ledger {
    pub(super) letters: Vec<Letter>,
    /// By account, mailbox and unique-id.
    unique_ids: BTreeMap<(usize, u32, String), LetterId>,
    moments: u64,
    /// The name by which who is at the webmail writes.
    pub(super) name: Doubt<String>,
    /// What browsers have to show there: of sessions that go on, as far as anybody knows, and of those that are over.
    pub(super) tickets: Vec<String>,
    pub(super) over: Vec<String>,
    /// Messages for another server, and by which station they go there.
    pub(super) posted: Vec<Posted>,
    pub(super) station: usize,
    /// Entries of outboxes when they were looked at last.
    pub(super) entries: usize,
    /// Messages that a client has heard of since the machine's indexes were last checked.
    pub(super) touched: Vec<LetterId>,
    /// Reports by account, mailbox and UID.
    pub(super) reports: BTreeMap<(usize, u32, u32), LetterId>,
}

/// What the header of a letter may hold before it is sent.
const DATED: &str = "Date: Fri, 13 Feb 2009 23:31:30 +0000\r\nMessage-ID: <NUMBER.letter@elsewhere.test>\r\n";

impl Default for Ledger {
    fn default() -> Ledger {
        let name = Doubt::none(String::new());
        Ledger {
            letters: Vec::new(),
            unique_ids: BTreeMap::new(),
            moments: 0,
            name,
            tickets: Vec::new(),
            over: Vec::new(),
            posted: Vec::new(),
            station: 0,
            entries: 0,
            touched: Vec::new(),
            reports: BTreeMap::new(),
        }
    }
}

impl Ledger {
    /// The ledger of this machine.
    pub(super) fn of(station: usize) -> Ledger {
        Ledger { station, ..Ledger::default() }
    }

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
        let is_submitted = protocol.ends_with('A');
        let head = format!("Subject: {id}\r\n");
        // What is lacking is added, and blind copies are nobody's business.
        let (dated, blind) = match is_submitted {
            true if dice.one_in(2) => (DATED.replace("NUMBER", &id.to_string()), "Bcc: mary@barepost.test\r\n"),
            true => (String::new(), "Bcc: mary@barepost.test\r\n"),
            false => (String::new(), ""),
        };
        let mut body = Vec::from(b"\r\n");
        while (body.len() as u64) < size {
            match dice.below(6) {
                0 => body.extend_from_slice(format!("..{id}.\r\n").as_bytes()),
                1 => body.extend_from_slice(b"\r\n"),
                _ => body.extend_from_slice(format!("<{id}> {:x} {:x}\r\n", dice.roll(), dice.roll()).as_bytes()),
            }
        }
        let kept = [head.as_bytes(), dated.as_bytes(), &body].concat();
        self.letters.push(Letter::new(kept, protocol, recipients));
        (LetterId(id), [head.as_bytes(), blind.as_bytes(), dated.as_bytes(), &body].concat())
    }

    /// A new letter that is written at the webmail, and its text. Every line of it names it, and so does its subject.
    pub(super) fn compose(
        &mut self,
        recipients: &[usize],
        elsewhere: &[Mailbox],
        dice: &mut Dice,
    ) -> (LetterId, String) {
        let id = self.letters.len();
        let size = match elsewhere {
            [] if dice.one_in(10) => dice.below(10_000),
            [] => dice.below(600),
            _ => octets_near_an_edge(1, dice),
        };
        let mut text = String::new();
        while (text.len() as u64) <= size {
            text += &format!("<{id}> {:x} {:x}\r\n", dice.roll(), dice.roll());
        }
        let copies: Vec<usize> = recipients.iter().copied().chain([OWN]).collect();
        let mut letter = Letter::new(text.clone().into_bytes(), WRITTEN, &copies);
        // What is on its way may be a draft until everybody has it.
        letter.copies[OWN].place = if recipients.is_empty() && elsewhere.is_empty() {
            Doubt::none(DRAFTS)
        } else {
            Doubt::between(vec![DRAFTS, SENT])
        };
        letter.is_for_others = !elsewhere.is_empty();
        self.letters.push(letter);
        if !elsewhere.is_empty() {
            self.post(id, AT_WEBMAIL, text.clone().into_bytes(), elsewhere);
        }
        (LetterId(id), text)
    }

    fn turns_into(&mut self, id: LetterId, fate: Fate) {
        let letter = &mut self.letters[id.0];
        letter.recipients.iter().for_each(|copy| letter.copies[*copy].turns_into(fate));
    }

    /// A sector goes bad in which a letter of this number lies.
    pub(super) fn harm(&mut self, number: usize) {
        if let Some(letter) = self.letters.get_mut(number) {
            letter.is_harmed = true;
        }
        self.harm_posted(number);
    }

    /// How many letters may be unreadable.
    pub(super) fn harmed(&self) -> usize {
        self.letters.iter().filter(|letter| letter.is_harmed).count()
    }

    /// It is on its way, whole.
    pub(super) fn sent(&mut self, id: LetterId) {
        self.turns_into(id, Fate::PerhapsDelivered);
    }

    /// Its writer was told that it is on its way, or will be, and has a copy of it.
    pub(super) fn promised(&mut self, id: LetterId) {
        self.touched.push(id);
        let letter = &mut self.letters[id.0];
        assert!(letter.copies[OWN].fate != Fate::Absent, "letter {} is on its way, and a power cut has taken it", id.0);
        letter.copies[OWN].is_seen();
    }

    /// Acknowledged. A reader may have deleted it before its sender heard so.
    pub(super) fn delivered(&mut self, id: LetterId) {
        self.touched.push(id);
        let letter = &mut self.letters[id.0];
        for copy in &letter.recipients {
            let copy = &mut letter.copies[*copy];
            assert!(copy.fate != Fate::Absent, "letter {} was acknowledged, and a power cut has taken it", id.0);
            copy.is_seen();
        }
    }

    /// Refused by a machine whose disk works: it is not there, and will not be.
    pub(super) fn refused(&mut self, id: LetterId) {
        self.touched.push(id);
        let copies = &self.letters[id.0].copies;
        let is_seen = copies.iter().any(|copy| !matches!(copy.fate, Fate::Absent | Fate::PerhapsDelivered));
        assert!(!is_seen, "letter {} was refused, and somebody has seen it", id.0);
        self.turns_into(id, Fate::Absent);
        self.letter_answered(id, false);
    }

    /// Its deletion was asked for.
    pub(super) fn perhaps_deleted(&mut self, id: LetterId, copy: usize) {
        let copy = &mut self.letters[id.0].copies[copy];
        if !matches!(copy.fate, Fate::Deleted(_)) {
            copy.turns_into(Fate::PerhapsDeleted);
        }
    }

    /// Its deletion was acknowledged.
    pub(super) fn deleted(&mut self, id: LetterId, copy: usize) {
        self.touched.push(id);
        self.moments += 1;
        let (number, copy) = (copy, &mut self.letters[id.0].copies[copy]);
        assert!(
            matches!(copy.fate, Fate::PerhapsDeleted | Fate::Deleted(_)),
            "letter {} was deleted, acknowledged so, and is {:?} again in {number}",
            id.0,
            copy.fate
        );
        copy.turns_into(Fate::Deleted(Moment(self.moments)));
    }

    /// What is known of deletions now.
    pub(super) fn moment(&self) -> Moment {
        Moment(self.moments)
    }

    /// Somebody who listed the messages after `listed` found one in `account`: which letter it is, and which copy of it.
    pub(super) fn found(&mut self, account: usize, found: &Found, listed: Moment) -> (LetterId, usize) {
        let id = self.is_whole(&found.message);
        let copy = self.copy_in(id, account, found.mailbox);
        match self.letters[id.0].copies[copy].fate {
            Fate::PerhapsDelivered => self.letters[id.0].copies[copy].is_seen(),
            Fate::Present | Fate::PerhapsDeleted => {}
            // Who listed it before it was deleted may read it late.
            Fate::Deleted(moment) if moment > listed => {}
            fate => panic!("letter {} is {fate:?} and was found in {account}", id.0),
        }
        self.is_named((account, found.mailbox, found.unique_id.clone()), id);
        (id, copy)
    }

    /// Which copy of a letter it is that lies there.
    pub(super) fn copy_in(&self, id: LetterId, account: usize, mailbox: u32) -> usize {
        let has = |copy| self.letters[id.0].recipients.contains(&copy);
        let is_own = account == AT_WEBMAIL && has(OWN) && (matches!(mailbox, DRAFTS | SENT) || !has(account));
        if is_own { OWN } else { account }
    }

    /// Which letter this is. It must be as it was sent, and say how that was.
    pub(super) fn is_whole(&self, message: &[u8]) -> LetterId {
        if let Some(of) = ReportOf::read(message).unwrap_or_else(|wrong| panic!("{wrong}")) {
            return self.report(of);
        }
        let (trace, body) = parts(message);
        let subject = body.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let number = String::from_utf8_lossy(subject).strip_prefix("Subject: ").and_then(|id| id.parse().ok());
        let id: usize = number.unwrap_or_else(|| panic!("no letter of ours: {:?}", String::from_utf8_lossy(body)));
        let Letter { body: sent, protocol, .. } = &self.letters[id];
        if *protocol == WRITTEN {
            assert!(text_of(body) == sent, "letter {id} is not what was written");
            return LetterId(id);
        }
        let body = if protocol.ends_with('A') { without_additions(body, sent) } else { body.to_vec() };
        assert!(*sent == body, "letter {id} is not what was sent");
        let trace = String::from_utf8_lossy(trace);
        assert!(trace.contains(&format!(" with {protocol} id ")), "letter {id} was sent by {protocol}: {trace}");
        LetterId(id)
    }

    /// A unique-id names one letter for ever.
    fn is_named(&mut self, place: (usize, u32, String), id: LetterId) {
        let known = self.unique_ids.entry(place.clone()).or_insert(id);
        assert_eq!(*known, id, "the unique-id {place:?} names two letters");
    }

    /// All that is on the disk was looked at, by account.
    pub(super) fn audit_all(&mut self, mut found: Vec<Vec<Found>>) {
        let is_entry = |found: &mut Found| found.mailbox == OUTBOX;
        let entries: Vec<Found> = found.iter_mut().flat_map(|found| found.extract_if(.., is_entry)).collect();
        self.entries = entries.len();
        self.courses(&found[AT_WEBMAIL]);
        found.iter().enumerate().for_each(|(account, found)| self.audit(account, found));
        self.audit_outboxes(entries.iter().map(|entry| &entry.message[..]));
        self.name.settle();
        self.letters.iter().enumerate().for_each(|(number, letter)| letter.has_come_as_it_should(number));
    }

    /// All that is in an account was looked at, and nothing can be on its way but what is held: what was uncertain is certain now.
    /// `found`: messages, in the order in which the machine lists them.
    pub(super) fn audit(&mut self, account: usize, found: &[Found]) {
        let listed = self.moment();
        let grows = |one: &Found, next: &Found| one.mailbox != next.mailbox || one.unique_id < next.unique_id;
        assert!(found.is_sorted_by(grows), "unique-ids do not grow");
        let mut once = Vec::new();
        for message in found {
            let (id, copy) = self.found(account, message, listed);
            once.push((id, copy));
            self.letters[id.0].copies[copy].lies(id, message);
        }
        once.sort_unstable();
        assert!(once.is_sorted_by(|one, next| one < next), "a letter is there twice: {once:?}");
        self.moments += 1;
        let now = Moment(self.moments);
        for (number, letter) in self.letters.iter_mut().enumerate() {
            let may_still_come = letter.may_still_come();
            for copy in [account, OWN].into_iter().take(if account == AT_WEBMAIL { 2 } else { 1 }) {
                let is_there = once.binary_search(&(LetterId(number), copy)).is_ok();
                let (copy, name) = (&mut letter.copies[copy], copy);
                let fate = match copy.fate {
                    _ if is_there => Fate::Present,
                    // Its loss may be taken back as long as it is not durable itself.
                    Fate::Present | Fate::PerhapsDeleted if letter.is_harmed => Fate::PerhapsDeleted,
                    Fate::PerhapsDelivered if may_still_come => Fate::PerhapsDelivered,
                    Fate::Present => panic!("letter {number} was there, and is gone from {name}"),
                    Fate::PerhapsDeleted => Fate::Deleted(now),
                    Fate::PerhapsDelivered => Fate::Absent,
                    known => known,
                };
                copy.turns_into(fate);
            }
        }
    }
}

impl Letter {
    fn new(body: Vec<u8>, protocol: &'static str, recipients: &[usize]) -> Letter {
        let copies = std::array::from_fn(|_| Copy {
            fate: Fate::Absent,
            place: Doubt::none(INBOX),
            is_starred: Doubt::none(false),
            changes: 0,
        });
        let (recipients, departure) = (recipients.to_vec(), Departure::wanted());
        Letter { body, protocol, recipients, copies, is_harmed: false, departure, is_for_others: false, report: None }
    }

    /// A report that may come to an account.
    pub(super) fn report(of: ReportOf, account: usize) -> Letter {
        let mut letter = Letter::new(Vec::new(), "a report", &[account]);
        letter.report = Some(of);
        letter.copies[account].turns_into(Fate::PerhapsDelivered);
        letter
    }

    /// Whether it may come after a power cut, though no client sends it.
    fn may_still_come(&self) -> bool {
        self.is_harmed || self.departure.is_under_way() || self.report.is_some()
    }

    /// Whether it is no draft, and was written at the webmail.
    pub(super) fn is_sent_by_webmail(&self) -> bool {
        self.protocol == WRITTEN && (self.recipients != [OWN] || self.is_for_others)
    }
}

impl Copy {
    pub(super) fn turns_into(&mut self, fate: Fate) {
        (self.fate, self.changes) = (fate, self.changes + 1);
    }

    /// Somebody has seen it, or was told of it.
    pub(super) fn is_seen(&mut self) {
        if self.fate == Fate::PerhapsDelivered {
            self.turns_into(Fate::Present);
        }
    }

    /// It lies there, and nothing that was asked for of it is under way any more.
    fn lies(&mut self, id: LetterId, found: &Found) {
        let is_leaving = matches!(found.course, Course::Held | Course::Leaving | Course::Left);
        if let Err(places) = self.place.settle_as(found.mailbox) {
            panic!("letter {} lies in {}, and has to lie in {places:?}", id.0, found.mailbox);
        }
        if is_leaving {
            self.place = Doubt::between(vec![DRAFTS, SENT]);
        }
        if let Err(stars) = self.is_starred.settle_as(found.is_starred) {
            panic!("letter {} has a star: {}, and has to: {stars:?}", id.0, found.is_starred);
        }
    }
}

/// What somebody has written at the webmail, of all below the first line of this.
fn text_of(message: &[u8]) -> &[u8] {
    let at = message.windows(4).position(|window| window == b"\r\n\r\n");
    &message[at.unwrap_or_else(|| panic!("not a letter: {:?}", String::from_utf8_lossy(message))) + 4..]
}

/// A message as a client that had logged in sent it: without the author, the date and the name that
/// it lacked.
fn without_additions(body: &[u8], sent: &[u8]) -> Vec<u8> {
    let text = text_of(body);
    let head = String::from_utf8_lossy(&body[..body.len() - text.len()]);
    let sent = String::from_utf8_lossy(sent);
    let mut lines: Vec<&str> = head.split_inclusive("\r\n").collect();
    let end = lines.pop().unwrap_or_default();
    for name in ["Message-ID: ", "Date: ", "From: "] {
        if !sent.contains(&format!("\r\n{name}")) {
            let added = lines.pop().unwrap_or_default();
            assert!(added.starts_with(name), "{name} was not added: {head:?}");
        }
    }
    [lines.concat().as_bytes(), end.as_bytes(), text].concat()
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
