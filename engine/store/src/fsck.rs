//! The offline check of a disk: reports its contents and its damage. It uses the code that opens a
//! store.
//!
//! Invariant: the disk is only read.

use crate::account::Account;
use crate::chunk::{CHUNK_OCTETS, chunks_of};
use crate::finding::{Damage, Finding, Findings, Names};
use crate::layout::PAGE_BYTES;
use crate::outcome::{OpenRefusal, Outcome, State};
use crate::store::Store;
use crate::types::{AccountId, DiskSpace, Limits, MailboxId, MailboxInfo, Uid};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use machine::{DiskCompletion, DiskError, DiskOperation, Sector};
use tasks::{Continuation, EntryPoint, FrameId};

/// The error of [`ReadSectors::read`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnreadableSectors;

/// A disk that can be read.
pub trait ReadSectors {
    /// The number of sectors.
    fn sectors(&self) -> u64;

    /// Fills `bytes`, a whole number of sectors, from `sector` on.
    ///
    /// Errors: [`UnreadableSectors`] when any of the sectors cannot be read.
    fn read(&mut self, sector: Sector, bytes: &mut [u8]) -> Result<(), UnreadableSectors>;
}

/// The contents of a disk and the damage on it.
#[derive(Clone, Debug)]
pub struct DiskReport {
    /// The reason if the disk cannot be opened. Then the other fields have no meaning.
    pub refused: Option<OpenRefusal>,
    /// The format version of the disk.
    pub format: u32,
    /// The store's id.
    pub id: [u8; 16],
    /// Bytes of one segment.
    pub segment_bytes: u64,
    /// The number of segments.
    pub segments: u32,
    /// The use of the space.
    pub space: DiskSpace,
    /// All accounts.
    pub accounts: Vec<AccountReport>,
    /// Everything on the disk that differs from what was written.
    pub findings: Vec<Finding>,
}

/// The contents of an account.
#[derive(Clone, Debug)]
pub struct AccountReport {
    /// The account.
    pub id: AccountId,
    /// The address; empty if no record of the account is left.
    pub address: String,
    /// The number of notes.
    pub notes: usize,
    /// The mailboxes of the account.
    pub mailboxes: Vec<MailboxReport>,
}

/// The contents of a mailbox.
#[derive(Clone, Debug)]
pub struct MailboxReport {
    /// The mailbox, within its account.
    pub id: MailboxId,
    /// The name of the mailbox.
    pub name: String,
    /// The counters of the mailbox.
    pub info: MailboxInfo,
    /// The number of damaged messages.
    pub damaged: u32,
}

impl DiskReport {
    /// Whether the disk can be opened and has no damage.
    pub fn is_clean(&self) -> bool {
        self.refused.is_none() && !self.findings.iter().any(Finding::is_wrong)
    }
}

/// Reads everything on a disk.
pub fn fsck(disk: &mut impl ReadSectors) -> DiskReport {
    let limits = Limits {
        deliveries: 0,
        recipients: 0,
        reads: 1,
        buffer_bytes: 0,
        resident_bytes: u64::MAX,
    };
    let mut store = Store::inspect(limits, disk.sectors());
    while store.state() == State::Opening && pump(&mut store, disk) {}
    let refused = match store.state() {
        State::Refused(reason) => Some(reason),
        State::Opening | State::Serving | State::ReadOnly(_) => None,
    };
    let mut findings = Findings::default();
    store.findings().iter().for_each(|found| findings.note(found.sector, found.damage.clone()));
    let mut accounts = Vec::new();
    if refused.is_none() {
        accounts = read_accounts(&mut store, disk, &mut findings);
    }
    let geometry = store.parts().segments.geometry();
    DiskReport {
        refused,
        format: store.format(),
        id: if refused.is_none() { store.parts().superblock.id } else { [0; 16] },
        segment_bytes: u64::from(geometry.segment_pages) * PAGE_BYTES as u64,
        segments: geometry.segments(),
        space: store.space(),
        accounts,
        findings: findings.into_all(),
    }
}

/// Serves the store's requests. Returns false if the store had none.
fn pump(store: &mut Store, disk: &mut impl ReadSectors) -> bool {
    let mut any = false;
    while let Some(mut request) = store.next_request() {
        any = true;
        let result = match request.operation {
            DiskOperation::Read => {
                disk.read(request.sector, &mut request.buffer).map_err(|_| DiskError::Failed)
            }
            DiskOperation::Write | DiskOperation::Flush => unreachable!("a check that writes"),
        };
        let (token, operation, buffer) = (request.token, request.operation, request.buffer);
        store.disk_completed(DiskCompletion { token, operation, result, buffer });
    }
    any
}

fn read_accounts(
    store: &mut Store,
    disk: &mut impl ReadSectors,
    findings: &mut Findings,
) -> Vec<AccountReport> {
    let ids: Vec<AccountId> = store.parts().indexes.accounts().map(Account::id).collect();
    ids.into_iter().map(|id| read_account(store, disk, id, findings)).collect()
}

fn read_account(
    store: &mut Store,
    disk: &mut impl ReadSectors,
    id: AccountId,
    findings: &mut Findings,
) -> AccountReport {
    let account = store.parts().indexes.account(id);
    let address = account.map(|account| String::from(account.texts().address)).unwrap_or_default();
    let notes = account.map_or(0, |account| account.notes().len());
    let known: Vec<(MailboxId, String, MailboxInfo)> = account
        .iter()
        .flat_map(|account| account.mailboxes())
        .map(|mailbox| (MailboxId(mailbox.id()), String::from(mailbox.name()), mailbox.info()))
        .collect();
    let mailboxes = known
        .into_iter()
        .map(|(mailbox, name, info)| MailboxReport {
            id: mailbox,
            name,
            info,
            damaged: read_mailbox(store, disk, (id, mailbox), findings),
        })
        .collect();
    AccountReport { id, address, notes, mailboxes }
}

/// Reads all bodies. Returns the number of damaged messages.
fn read_mailbox(
    store: &mut Store,
    disk: &mut impl ReadSectors,
    (id, mailbox): (AccountId, MailboxId),
    findings: &mut Findings,
) -> u32 {
    let messages: Vec<(Uid, u32)> =
        store.messages(id, mailbox).map(|message| (message.uid, message.octets)).collect();
    let mut damaged = 0;
    for (uid, octets) in messages {
        let message = (id, mailbox, uid);
        if (0..chunks_of(octets)).all(|index| chunk_is_sound(store, disk, message, index)) {
            continue;
        }
        damaged += 1;
        // If no read has reported a fault, the index names no place for one of the chunks.
        let missing = Finding { sector: Sector(0), damage: Damage::Body(id, mailbox, uid) };
        let fault = store.next_read_fault().unwrap_or(missing);
        findings.note(fault.sector, fault.damage);
    }
    damaged
}

type MessageKey = (AccountId, MailboxId, Uid);

fn chunk_is_sound(
    store: &mut Store,
    disk: &mut impl ReadSectors,
    (id, mailbox, uid): MessageKey,
    index: u32,
) -> bool {
    let unused = Continuation { frame: FrameId::new(0, 0), entry: EntryPoint(0) };
    let entry = store
        .parts()
        .indexes
        .of(id.shard())
        .mailbox(id, mailbox.0)
        .and_then(|mailbox| mailbox.messages().find(uid.0));
    let Some(offset) = entry.map(|entry| entry.offset_of(index * CHUNK_OCTETS as u32)) else {
        return false;
    };
    if store.read(id, mailbox, uid, offset, unused).is_err() {
        return false;
    }
    pump(store, disk);
    match store.next_wake().map(|wake| wake.outcome) {
        Some(Outcome::Body(body)) => {
            store.give_back(body);
            true
        }
        _ => false,
    }
}

impl Names for DiskReport {
    fn address(&self, account: AccountId) -> Option<&str> {
        let known = self.accounts.iter().find(|known| known.id == account)?;
        Some(known.address.as_str()).filter(|address| !address.is_empty())
    }

    fn mailbox(&self, account: AccountId, mailbox: MailboxId) -> Option<&str> {
        let account = self.accounts.iter().find(|known| known.id == account)?;
        let mailbox = account.mailboxes.iter().find(|known| known.id == mailbox)?;
        Some(&mailbox.name)
    }
}

impl fmt::Display for DiskReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = self.refused {
            return writeln!(out, "cannot be opened: {reason}");
        }
        write!(out, "Barepost disk, format {}, id ", self.format)?;
        self.id.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        writeln!(out)?;
        let kib = |bytes: u64| bytes / 1024;
        writeln!(
            out,
            "{} KiB: {} segments of {} KiB; {} KiB free, {} KiB of bodies, {} KiB of journals, {} KiB reserved",
            kib(self.space.bytes),
            self.segments,
            kib(self.segment_bytes),
            kib(self.space.free_bytes),
            kib(self.space.body_bytes),
            kib(self.space.journal_bytes),
            kib(self.space.reserve_bytes),
        )?;
        for account in &self.accounts {
            let address = if account.address.is_empty() { "(nameless)" } else { &account.address };
            if account.notes > 0 {
                writeln!(out, "{address}: {} notes", account.notes)?;
            }
            for mailbox in &account.mailboxes {
                let info = &mailbox.info;
                write!(
                    out,
                    "{address} {}: {} messages, {} bytes, UIDVALIDITY {}, UIDNEXT {}, HIGHESTMODSEQ {}",
                    mailbox.name,
                    info.messages,
                    info.octets,
                    info.uid_validity,
                    info.uid_next.0,
                    info.highest_modseq.0
                )?;
                match mailbox.damaged {
                    0 => writeln!(out)?,
                    damaged => writeln!(out, ", {damaged} damaged")?,
                }
            }
        }
        self.findings.iter().try_for_each(|finding| writeln!(out, "{}", finding.named(self)))?;
        if self.is_clean() { writeln!(out, "nothing is wrong") } else { Ok(()) }
    }
}
