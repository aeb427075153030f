//! Flips bits of a disk of 1.25 MiB, one at a time: a few bits of each sector, and every bit in the
//! test part `every-bit`. The store serves, returns all other messages unchanged, and names the
//! damaged message.
//!
//! A bit in a sector that opening does not read cannot change the result of opening. For such a
//! sector only the messages in it are read again. All other messages would be read from the same
//! sectors as before.

extern crate std;

use super::disk::{Cut, TestDisk};
use super::rig::{MIB, NOW, Rig, body};
use crate::outcome::Refusal;
use crate::types::{
    ARCHIVE, AccountId, BUILT_IN, Closing, Flags, HeadSize, INBOX, MailboxId, MarkChange,
    MessageInfo, OUTBOX,
};
use crate::{NoteChange, Recipient};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use machine::SECTOR_BYTES;

const BYTES: u64 = MIB + MIB / 4;
const SECTORS: u64 = BYTES / SECTOR_BYTES as u64;
const SECTOR_BITS: usize = SECTOR_BYTES * 8;
const ADDRESSES: [&str; 2] = ["ada@example.org", "bob@example.org"];
/// Octets of the messages of each account: parts of a page, whole pages, and several chunks. The
/// last message is in the outbox.
const SIZES: [&[usize]; 2] = [
    &[0, 10, 300, 1000, 4000, 5000, 9000, 300, 33_000, 700, 36_000],
    &[300, 5000, 10, 100, 700, 1000],
];

/// A message, its octets, and the sectors that a read of it accesses.
struct Known {
    account: AccountId,
    mailbox: MailboxId,
    info: MessageInfo,
    octets: Vec<u8>,
    sectors: BTreeSet<u64>,
}

/// The state of an account, without its messages.
#[derive(PartialEq, Debug)]
struct AccountContents {
    address: String,
    password_hash: String,
    notes: Vec<(Vec<u8>, Vec<u8>)>,
}

struct Filled {
    disk: TestDisk,
    accounts: Vec<(AccountId, AccountContents)>,
    messages: Vec<Known>,
    /// The sectors that opening reads.
    opening: BTreeSet<u64>,
}

fn account_contents(rig: &mut Rig, account: AccountId) -> AccountContents {
    let known = rig.store.account(account).unwrap();
    let notes = known.notes().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    AccountContents {
        address: known.address().into(),
        password_hash: known.password_hash().into(),
        notes,
    }
}

/// Messages of all kinds in the mailboxes of two accounts, some of them moved, flagged and removed.
fn filled() -> Filled {
    let mut rig = Rig::new(BYTES);
    for ((first, address), sizes) in [100, 200].into_iter().zip(ADDRESSES).zip(SIZES) {
        let account = rig.create(address);
        let (last, sizes) = sizes.split_last().unwrap();
        for (number, size) in (first..).zip(sizes) {
            rig.deliver(&[account], &body(number, *size)).unwrap();
        }
        let entry =
            Recipient { mailbox: OUTBOX, flags: Flags::LEAVING, ..Recipient::inbox(account) };
        let mut octets = body(first + 50, *last);
        let head = HeadSize::OCTETS_MAX.min(*last);
        octets.rotate_left(head);
        let closing = Closing { head: HeadSize::of(head).unwrap(), ..NOW.into() };
        rig.deliver_closed(&[entry], &octets, closing).unwrap();
        rig.file(account, INBOX, &[5], ARCHIVE);
        rig.remove(account, &[4]).unwrap();
        let (number, continuation) = rig.continuation();
        let uid = rig.list(account)[1].uid;
        rig.store
            .mark(account, INBOX, uid, MarkChange::of(Flags(0), Flags::FLAGGED), continuation)
            .unwrap();
        rig.outcome(number);
        let (number, continuation) = rig.continuation();
        let note = NoteChange::Put(b"key"[..].into(), b"value"[..].into());
        rig.store.change_notes(account, alloc::vec![note], continuation).unwrap();
        rig.outcome(number);
    }
    rig.disk.cut(Cut::Prefix(usize::MAX));
    let disk = rig.disk;
    let mut rig = unmoved(&disk);
    let opening = core::mem::take(&mut rig.disk.looked_at);
    let (mut accounts, mut messages) = (Vec::new(), Vec::new());
    for address in ADDRESSES {
        let account = rig.store.find(address).unwrap();
        accounts.push((account, account_contents(&mut rig, account)));
        for (mailbox, _) in BUILT_IN {
            for info in rig.list_in(account, mailbox) {
                rig.disk.looked_at.clear();
                let octets = rig.read_in(account, mailbox, &info).unwrap();
                let sectors = core::mem::take(&mut rig.disk.looked_at);
                messages.push(Known { account, mailbox, info, octets, sectors });
            }
        }
    }
    // One message of each account was removed.
    assert_eq!(messages.len(), SIZES.concat().len() - ADDRESSES.len());
    Filled { disk, accounts, messages, opening }
}

/// A serving store without compaction.
fn unmoved(disk: &TestDisk) -> Rig {
    let mut rig = Rig::opening(disk.clone());
    rig.store.cleaner_mut().turn_off();
    rig.disk.looked_at.clear();
    rig.settle();
    rig
}

fn flip(disk: &mut TestDisk, sector: u64, bit: usize) {
    let mut bytes = disk.peek(sector);
    bytes[bit / 8] ^= 1 << (bit % 8);
    disk.poke(sector, bytes);
}

/// The flipped bits and their effects.
#[derive(Default, Debug)]
struct Tally {
    flipped: u64,
    opened_anew: u64,
    messages_lost: u64,
}

impl Filled {
    /// Flips the given bits of a sector, one at a time.
    fn flip_bits(&self, sector: u64, bits: impl Iterator<Item = usize>, tally: &mut Tally) {
        let mut served = None;
        for (count, bit) in bits.enumerate() {
            tally.flipped += 1;
            let lost = if self.opening.contains(&sector) {
                tally.opened_anew += 1;
                self.open_with_flipped(sector, bit)
            } else {
                // Opening has the same result with and without this bit, so one store tests all of
                // these bits.
                let rig = served.get_or_insert_with(|| unmoved(&self.disk));
                flip(&mut rig.disk, sector, bit);
                let lost = self.damaged(rig, sector);
                flip(&mut rig.disk, sector, bit);
                lost
            };
            assert!(lost.len() <= 1, "bit {bit} of sector {sector} costs {} messages", lost.len());
            tally.messages_lost += lost.len() as u64;
            if let [message] = *lost
                && count == 0
            {
                self.is_named(sector, bit, message);
            }
        }
    }

    /// The messages in this sector that cannot be read. Panics if another message has changed.
    fn damaged(&self, rig: &mut Rig, sector: u64) -> Vec<&Known> {
        let in_sector = self.messages.iter().filter(|message| message.sectors.contains(&sector));
        in_sector.filter(|message| !is_whole(rig, message)).collect()
    }

    /// Opens the disk with one bit flipped. Returns the messages that are gone or cannot be read.
    fn open_with_flipped(&self, sector: u64, bit: usize) -> Vec<&Known> {
        let mut disk = self.disk.clone();
        flip(&mut disk, sector, bit);
        let mut rig = Rig::on(disk);
        assert!(rig.serving(), "bit {bit} of sector {sector}: {:?}", rig.store.state());
        for (account, contents) in &self.accounts {
            assert_eq!(
                account_contents(&mut rig, *account),
                *contents,
                "bit {bit} of sector {sector}"
            );
        }
        let mut lost = Vec::new();
        for message in &self.messages {
            let list = rig.list_in(message.account, message.mailbox);
            match list.iter().find(|info| info.uid == message.info.uid) {
                Some(info) => {
                    assert_eq!(*info, message.info, "bit {bit} of sector {sector}");
                    if message.sectors.contains(&sector) && !is_whole(&mut rig, message) {
                        lost.push(message);
                    }
                }
                None => lost.push(message),
            }
        }
        if !lost.is_empty() {
            assert!(
                !rig.fsck().is_clean() || !rig.store.findings().is_empty(),
                "a loss is not reported"
            );
        }
        lost
    }

    /// Checks that fsck reports the damaged message, or a message that was dropped as torn. A
    /// damaged last chunk in a shard's last group looks like a chunk that a power cut tore.
    fn is_named(&self, sector: u64, bit: usize, message: &Known) {
        let mut disk = self.disk.clone();
        flip(&mut disk, sector, bit);
        let report = crate::fsck(&mut disk);
        let contents =
            &self.accounts.iter().find(|(account, _)| *account == message.account).unwrap().1;
        let account =
            report.accounts.iter().find(|account| account.address == contents.address).unwrap();
        let damaged: u32 = account.mailboxes.iter().map(|mailbox| mailbox.damaged).sum();
        assert!(
            damaged == 1 || !report.findings.is_empty(),
            "bit {bit} of sector {sector}: {report}"
        );
    }
}

/// Whether a message is read unchanged. Panics if a changed message is not reported as damaged.
fn is_whole(rig: &mut Rig, message: &Known) -> bool {
    match rig.read_in(message.account, message.mailbox, &message.info) {
        Ok(octets) => {
            assert!(octets == message.octets, "a damaged message is returned");
            true
        }
        Err(refusal) => {
            assert_eq!(refusal, Refusal::Damaged);
            false
        }
    }
}

/// Flips a few bits of each sector, at different positions in each sector.
#[test]
fn one_flipped_bit_costs_at_most_one_message() {
    let filled = filled();
    let mut tally = Tally::default();
    for sector in 0..SECTORS {
        let bits = (sector as usize * 37 % 2003..SECTOR_BITS).step_by(2003);
        filled.flip_bits(sector, bits, &mut tally);
    }
    assert!(
        tally.flipped > 4_000 && tally.opened_anew > 500 && tally.messages_lost > 300,
        "{tally:?}"
    );
}

macro_rules! parts {
    ($($name:ident $part:literal,)*) => {
        $(
            #[test]
            #[ignore = "one of the parts of every-bit"]
            fn $name() {
                let filled = filled();
                let mut tally = Tally::default();
                for sector in (0..SECTORS).filter(|sector| sector % 8 == $part) {
                    filled.flip_bits(sector, 0..SECTOR_BITS, &mut tally);
                }
                std::println!("{tally:?}");
                assert_eq!(tally.flipped, BYTES);
            }
        )*
    };
}

parts! {
    every_flipped_bit_of_sectors_0_of_8 0,
    every_flipped_bit_of_sectors_1_of_8 1,
    every_flipped_bit_of_sectors_2_of_8 2,
    every_flipped_bit_of_sectors_3_of_8 3,
    every_flipped_bit_of_sectors_4_of_8 4,
    every_flipped_bit_of_sectors_5_of_8 5,
    every_flipped_bit_of_sectors_6_of_8 6,
    every_flipped_bit_of_sectors_7_of_8 7,
}
