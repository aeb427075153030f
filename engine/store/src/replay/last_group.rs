//! Checks the messages of a journal's last group. The group may be durable although the last chunk
//! of one of its messages is not. Such a message is torn, and is removed.
//!
//! Invariants:
//! - A message is removed only if its last chunk was read, and differs from the chunk that the
//!   record names.
//! - No message is removed if the next place is unreadable: the disk reports errors for both copies
//!   of the block there. Then a later group may have followed the last group. (A place is the
//!   position of one journal block, which is stored in two copies.)
//! - If the disk returns rotten bytes instead of an error, the place looks like the end of the
//!   journal, and its group is not noticed. If that group moved the last chunk of a message, the
//!   message is removed.

use crate::chunk;
use crate::finding::{Damage, Finding};
use crate::hash::HashKey;
use crate::index::PageChange;
use crate::lanes::DiskPiece;
use crate::layout::{Geometry, Page};
use crate::replay::{MissingPiece, Replay, ReplayMode};
use crate::types::{AccountId, MailboxId, Uid};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A message of the last group. Its last chunk may not have been written completely.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    pub(super) account: AccountId,
    pub(super) mailbox: u32,
    pub(super) uid: u32,
    pub(super) guid: u64,
    pub(super) check: u64,
}

/// A torn message that was removed from the index, and the pages of its chunks.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) account: AccountId,
    pub(crate) mailbox: u32,
    pub(crate) uid: u32,
    pub(crate) pages: Vec<(Page, u32)>,
    /// The keys of the notes of the message's arrival.
    pub(crate) arrivals: Vec<Box<[u8]>>,
}

impl Replay {
    /// Reads the last chunk of a message in the last group, and removes the message if it is torn.
    /// A message with an unreadable chunk stays, because it may have been acknowledged.
    pub(super) fn verify(
        &mut self,
        piece: Option<&DiskPiece>,
        key: &HashKey,
        geometry: Geometry,
        recent: Recent,
        number: usize,
    ) -> Result<(), MissingPiece> {
        self.mode = ReplayMode::Verifying { number: number + 1 };
        let entry = self
            .index
            .mailbox(recent.account, recent.mailbox)
            .and_then(|one| one.messages().find(recent.uid));
        let Some(entry) = entry.filter(|entry| entry.guid() == recent.guid) else { return Ok(()) };
        let last = chunk::chunks_of(entry.octets) - 1;
        let place =
            self.index.chunk(entry, last).filter(|(page, pages)| geometry.holds(*page, *pages));
        let Some((page, pages)) = place else { return Ok(()) };
        let Some(piece) = piece.filter(|piece| piece.is_at(page, pages)) else {
            self.mode = ReplayMode::Verifying { number };
            return Err((page, pages));
        };
        let Recent { account, mailbox, uid, .. } = recent;
        let sound = chunk::parse(piece.bytes(), key, page)
            .is_some_and(|chunk| chunk.hash == recent.check && chunk.header.guid == recent.guid);
        if !piece.is_readable() {
            let damage = Damage::Unreadable(account, MailboxId(mailbox), Uid(uid));
            self.findings.push(Finding { sector: page.sector(), damage });
        } else if !sound {
            let mut pages = Vec::new();
            self.index.remove(account, mailbox, &[(uid, uid)], &mut |space| {
                if let PageChange::Dead(page, count) = space {
                    pages.push((page, count));
                }
            });
            let arrivals = self.index.take_back_arrivals(account, recent.guid);
            self.dropped.push(Dropped { account, mailbox, uid, pages, arrivals });
            let damage = Damage::Torn(account, Uid(uid));
            self.findings.push(Finding { sector: page.sector(), damage });
        }
        Ok(())
    }
}
