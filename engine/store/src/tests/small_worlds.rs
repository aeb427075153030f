//! Small worlds, exhaustively: every sequence of up to two operations on a disk of each format, and
//! of up to three in the test part `small-worlds`. Each is cut at every write. For each cut, the
//! sectors that it can undo are taken in order, and every subset of each eight neighbours is tried.
//!
//! Operations follow each other in two ways: requested together, so that one group commits them, or
//! one after another. Only the last group is cut, because the groups before it are the last groups
//! of shorter sequences.
//!
//! Checks of each world: the store serves. Each message is intact. Acknowledged changes are
//! visible. An unacknowledged change is visible completely or not at all. The next power cut
//! changes nothing.

extern crate std;

use super::disk::{Cut, CutEffect, TestDisk};
use super::rig::{MIB, NOW, Rig, body};
use crate::outbox::{EntryChange, EntryState, OutboxEntry, Packing};
use crate::outcome::Outcome;
use crate::superblock::Format;
use crate::types::{
    AccountId, Closing, Flags, HeadSize, INBOX, MailboxId, MarkChange, OUTBOX, Recipient, UidRange,
};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    /// Delivers a message to the inbox.
    Deliver,
    /// Sets a flag of a message in the inbox.
    Flag,
    /// Removes a message from the inbox.
    Delete,
    /// Delivers a message with a head to the outbox.
    Send,
    /// Marks a recipient as done. Its message is in the outbox from the beginning.
    Progress,
    /// Makes a checkpoint, and empties segments with dead pages.
    Compact,
}

const OPERATIONS: [Operation; 6] = [
    Operation::Deliver,
    Operation::Flag,
    Operation::Delete,
    Operation::Send,
    Operation::Progress,
    Operation::Compact,
];

/// The number of consecutive sectors of which all subsets are tried.
const SUBSET_SECTORS: usize = 8;
/// Octets of each message, and of the head of a sent message.
const OCTETS: usize = 400;
const HEAD_OCTETS: usize = 104;
/// The number of messages that are delivered at the beginning, and the UIDs of those removed again.
const FIRST_MESSAGES: u64 = 20;
const DEAD: [u32; 8] = [1, 2, 3, 4, 9, 10, 11, 12];

/// The contents of an account: mailbox, number and marks of each message. The marks are the flags,
/// and above them a bit for each recipient that is done.
type Contents = BTreeSet<(u32, u64, u16)>;

/// The position of the bits of recipients.
const DONE_SHIFT: u32 = 8;

/// A change that one operation makes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Add(MailboxId, u64, u16),
    Mark(u64, u16),
    Remove(u64),
    Nothing,
}

fn applied(contents: &Contents, change: Change) -> Contents {
    let mut after = contents.clone();
    let known = |wanted: u64| contents.iter().find(|(_, number, _)| *number == wanted).copied();
    match change {
        Change::Add(mailbox, number, flags) => drop(after.insert((mailbox.0, number, flags))),
        Change::Mark(number, mark) => {
            if let Some(old) = known(number) {
                after.remove(&old);
                after.insert((old.0, old.1, old.2 | mark));
            }
        }
        Change::Remove(number) => drop(known(number).map(|old| after.remove(&old))),
        Change::Nothing => {}
    }
    after
}

/// A store and its expected contents.
struct World {
    rig: Rig,
    ada: AccountId,
    contents: Contents,
    /// The number of the next message.
    next: u64,
}

/// A requested operation: the number of its outcome, and its change.
struct RequestedOperation {
    number: u32,
    change: Change,
}

impl World {
    fn new(format: Format) -> World {
        let mut rig = Rig::of_format(MIB, format);
        rig.store.cleaner_mut().turn_off();
        let ada = rig.create("ada@example.org");
        for number in 1..=FIRST_MESSAGES {
            rig.deliver(&[ada], &body(number, OCTETS)).unwrap();
        }
        rig.remove(ada, &DEAD).unwrap();
        let living = (1..=FIRST_MESSAGES).filter(|number| !DEAD.contains(&(*number as u32)));
        let sent = FIRST_MESSAGES + 1;
        rig.deliver_to(&[to_outbox(ada)], &body(sent, OCTETS)).unwrap();
        let outbox = (OUTBOX.0, sent, u16::from(Flags::SEEN.0));
        let contents = living.map(|number| (INBOX.0, number, 0)).chain([outbox]).collect();
        rig.outcomes.clear();
        World { rig, ada, contents, next: sent + 1 }
    }

    /// Requests `operation`, which has position `place` in its group.
    fn ask(&mut self, operation: Operation, place: usize) -> RequestedOperation {
        let (number, continuation) = self.rig.continuation();
        let target = self.rig.list(self.ada).get(place).copied();
        let target_number =
            self.contents.iter().filter(|one| one.0 == INBOX.0).nth(place).map(|one| one.1);
        let change = match (operation, target.zip(target_number)) {
            (Operation::Deliver, _) => self.begin(Recipient::inbox(self.ada), 0, continuation),
            (Operation::Send, _) => self.begin(to_outbox(self.ada), HEAD_OCTETS, continuation),
            (Operation::Progress, _) => {
                let uid = self.rig.list_in(self.ada, OUTBOX)[0].uid;
                let mut change = EntryChange::default();
                change.done(place as u8);
                self.rig
                    .store
                    .change_entry(self.ada, uid, (change, Packing::Done), continuation)
                    .unwrap();
                Change::Mark(FIRST_MESSAGES + 1, 1 << place << DONE_SHIFT)
            }
            (Operation::Flag, Some((message, target_number))) => {
                let flag = [Flags::SEEN, Flags::ANSWERED, Flags::FLAGGED][place];
                let change = MarkChange::of(Flags(0), flag);
                self.rig.store.mark(self.ada, INBOX, message.uid, change, continuation).unwrap();
                Change::Mark(target_number, flag.0.into())
            }
            (Operation::Delete, Some((message, target_number))) => {
                self.rig
                    .store
                    .remove(self.ada, INBOX, &[UidRange::one(message.uid)], continuation)
                    .unwrap();
                Change::Remove(target_number)
            }
            (Operation::Compact, _) => {
                self.rig.store.parts_mut().journals.needs_mending(self.ada.shard());
                self.rig.store.cleaner_mut().turn_on();
                Change::Nothing
            }
            (operation, None) => panic!("there is no message for {operation:?}"),
        };
        RequestedOperation { number, change }
    }

    /// Delivers the next message.
    fn begin(
        &mut self,
        recipient: Recipient,
        head: usize,
        continuation: tasks::Continuation,
    ) -> Change {
        let number = self.next;
        self.next += 1;
        let mut octets = body(number, OCTETS);
        octets.rotate_left(head);
        let delivery = self.rig.store.begin(&[recipient]).unwrap();
        self.rig.append(delivery, &octets).unwrap();
        let closing = Closing { head: HeadSize::of(head).unwrap(), ..NOW.into() };
        self.rig.store.commit(delivery, closing, continuation).unwrap();
        Change::Add(recipient.mailbox, number, recipient.flags.0.into())
    }

    fn ask_all(&mut self, group: &[Operation]) -> Vec<RequestedOperation> {
        let requested = group
            .iter()
            .enumerate()
            .map(|(place, operation)| self.ask(*operation, place))
            .collect();
        self.rig.store.turn_ended();
        self.rig.exchange();
        requested
    }

    /// Completes all operations of a group.
    fn live(&mut self, group: &[Operation]) {
        let requested = self.ask_all(group);
        self.rig.settle();
        for one in &requested {
            self.contents = applied(&self.contents, one.change);
        }
        self.rig.outcomes.clear();
    }

    /// Cuts the last group everywhere. Returns the number of worlds.
    fn cut_everywhere(mut self, group: &[Operation]) -> u64 {
        let requested = self.ask_all(group);
        let (mut worlds, mut looked_at) = (0, None);
        loop {
            // Completed and pending writes differ only after a flush is requested.
            let allowed = self.allowed(&requested);
            let point = Some((self.rig.disk.flushes, self.rig.disk.volatile_writes(), allowed));
            if point != looked_at {
                looked_at = point;
                for_each_remains(&self.rig.disk, |disk| {
                    let allowed = &looked_at.as_ref().unwrap().2;
                    check(disk, self.ada, self.next, allowed);
                    worlds += 1;
                });
            }
            if self.rig.disk.is_idle() {
                break;
            }
            self.rig.turn(1);
        }
        for one in requested.iter().filter(|one| !matches!(one.change, Change::Nothing)) {
            let outcome = self.rig.outcomes.get(&one.number);
            assert!(
                matches!(outcome, Some(Outcome::Delivered | Outcome::Changed)),
                "{:?}: {outcome:?}",
                one.change
            );
        }
        worlds
    }

    /// The contents that are allowed if the power fails now: all acknowledged changes, and any of
    /// the other changes.
    fn allowed(&self, requested: &[RequestedOperation]) -> BTreeSet<Contents> {
        let mut allowed = BTreeSet::from([self.contents.clone()]);
        for one in requested {
            let with = allowed.iter().map(|contents| applied(contents, one.change)).collect();
            if self.rig.outcomes.contains_key(&one.number) {
                allowed = with;
            } else {
                allowed.extend(with);
            }
        }
        allowed
    }
}

/// Calls `visit` with disks that a power cut may leave of `disk`. For each eight consecutive
/// sectors, every subset of them is new, with all other sectors old or all other sectors new. In
/// further disks, one sector is garbage.
fn for_each_remains(disk: &TestDisk, mut visit: impl FnMut(TestDisk)) {
    let sectors = disk.changing();
    let mut cut = |fate: &dyn Fn(usize) -> CutEffect| {
        let mut left = disk.clone();
        left.cut_each(|sector| sectors.binary_search(&sector).map_or(CutEffect::New, fate));
        visit(left);
    };
    for start in 0..=sectors.len().saturating_sub(SUBSET_SECTORS) {
        let window = start..sectors.len().min(start + SUBSET_SECTORS);
        for subset in 0..1_usize << window.len() {
            let in_window = |place: usize| {
                if subset >> (place - start) & 1 == 1 { CutEffect::New } else { CutEffect::Old }
            };
            let last = in_window(window.end.saturating_sub(1).max(start));
            for usual in [CutEffect::Old, CutEffect::New] {
                // A subset in which the last sector has the same fate as all sectors outside of the
                // window belonged to the previous window.
                if start == 0 && usual == CutEffect::Old
                    || window.len() < sectors.len() && (start == 0 || last != usual)
                {
                    cut(&|place| if window.contains(&place) { in_window(place) } else { usual });
                }
            }
        }
    }
    for garbage in 0..sectors.len() {
        for usual in [CutEffect::Old, CutEffect::New] {
            cut(&|place| if place == garbage { CutEffect::Garbage } else { usual });
        }
    }
}

/// A new message in the outbox.
fn to_outbox(account: AccountId) -> Recipient {
    let entry = Some(OutboxEntry::submitted(9, 4));
    Recipient { mailbox: OUTBOX, flags: Flags::SEEN, entry, ..Recipient::inbox(account) }
}

/// The number at the start of each body.
fn number_of(octets: &[u8]) -> u64 {
    u64::from_le_bytes(octets[..8].try_into().unwrap())
}

fn contents_of(rig: &mut Rig, ada: AccountId) -> Contents {
    let mut contents = Contents::new();
    for mailbox in [INBOX, OUTBOX] {
        for message in rig.list_in(ada, mailbox) {
            let octets = rig.read_in(ada, mailbox, &message).unwrap();
            let number = number_of(&octets);
            assert_eq!(octets, body(number, OCTETS), "a part of a message");
            let mut marks = u16::from(message.flags.0);
            if mailbox == OUTBOX {
                let entry =
                    rig.store.outbox_entry(ada, message.uid).expect("a message without an entry");
                assert_eq!(
                    (entry.state(), entry.first()),
                    (EntryState::Queued, 9),
                    "message {number}"
                );
                marks |= entry.done(Packing::Done) << DONE_SHIFT;
            }
            assert!(contents.insert((mailbox.0, number, marks)), "message {number} is there twice");
        }
    }
    contents
}

fn check(disk: TestDisk, ada: AccountId, next: u64, allowed: &BTreeSet<Contents>) {
    let mut rig = Rig::on(disk);
    assert!(rig.serving(), "{:?}", rig.store.state());
    let found = contents_of(&mut rig, ada);
    assert!(allowed.contains(&found), "found {found:?}, allowed {allowed:?}");
    let last = rig.list(ada).last().map(|message| message.uid);
    rig.deliver(&[ada], &body(next, OCTETS)).unwrap();
    let uid = rig.list(ada).last().unwrap().uid;
    assert!(Some(uid) > last, "a UID is reused");
    let mut rig = rig.cut(Cut::Prefix(0));
    let mut expected = found;
    expected.insert((INBOX.0, next, 0));
    assert_eq!(contents_of(&mut rig, ada), expected, "the second cut changed something");
}

/// All sequences that continue `first` with up to `more` of these operations, grouped in all ways.
fn sequences(operations: &[Operation], first: Operation, more: usize) -> Vec<Vec<Vec<Operation>>> {
    let mut all = alloc::vec![alloc::vec![alloc::vec![first]]];
    let mut begun = all.clone();
    for _ in 0..more {
        let mut longer = Vec::new();
        for (sequence, operation) in
            begun.iter().flat_map(|one| operations.iter().map(move |next| (one, *next)))
        {
            let mut after = sequence.clone();
            after.push(alloc::vec![operation]);
            longer.push(after);
            let mut together = sequence.clone();
            together.last_mut().unwrap().push(operation);
            longer.push(together);
        }
        all.extend(longer.iter().cloned());
        begun = longer;
    }
    all
}

/// Runs all sequences of up to `length` of these operations that begin with `first`.
fn live_through(format: Format, operations: &[Operation], first: Operation, length: usize) -> u64 {
    let mut worlds = 0;
    for sequence in sequences(operations, first, length - 1) {
        let mut world = World::new(format);
        let (last, before) = sequence.split_last().unwrap();
        before.iter().for_each(|group| world.live(group));
        worlds += world.cut_everywhere(last);
    }
    std::println!("{first:?} first: {worlds} worlds");
    worlds
}

/// Compaction has hundreds of times more worlds than the other operations. The part `small-worlds`
/// tests them.
#[test]
fn small_worlds_of_two_operations_hold() {
    let operations = &OPERATIONS[..5];
    for format in [Format::Three, Format::Four] {
        let worlds: u64 =
            operations.iter().map(|first| live_through(format, operations, *first, 2)).sum();
        assert!(worlds > 1000, "only {worlds} worlds");
    }
}

macro_rules! parts {
    ($($name:ident $format:ident $first:ident,)*) => {
        $(
            #[test]
            #[ignore = "one of the parts of small-worlds"]
            fn $name() {
                let worlds = live_through(Format::$format, &OPERATIONS, Operation::$first, 3);
                assert!(worlds > 100_000, "only {worlds} worlds");
            }
        )*
    };
}

parts! {
    small_worlds_from_a_delivery_hold Four Deliver,
    small_worlds_from_a_flag_hold Four Flag,
    small_worlds_from_a_deletion_hold Four Delete,
    small_worlds_from_a_send_hold Four Send,
    small_worlds_from_a_result_hold Four Progress,
    small_worlds_from_a_send_on_format_3_hold Three Send,
    small_worlds_from_a_result_on_format_3_hold Three Progress,
    small_worlds_from_a_compaction_hold Four Compact,
}
