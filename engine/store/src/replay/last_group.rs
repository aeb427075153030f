//! The messages of a journal's last group: their last chunks are checked, because the group may be
//! durable without them.
//!
//! Invariant: a message is removed only if no group is known to have followed. Its last chunk must
//! have been read, and must differ from the chunk that the record names. An unreadable place counts
//! as a following group. A place with two rotten copies looks like the end of the journal, so a
//! group in that place stays unknown.

use crate::chunk;
use crate::finding::{Damage, Finding};
use crate::hash::HashKey;
use crate::index::PageChange;
use crate::lanes::DiskPiece;
use crate::layout::{Geometry, Page};
use crate::replay::{MissingPiece, Replay, ReplayMode};
use crate::types::{AccountId, Uid};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A message of the last group. Its last chunk may be torn.
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
    /// The key of the note of the message's arrival, if the account had one.
    pub(crate) arrival: Option<Box<[u8]>>,
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
            self.findings
                .push(Finding { sector: page.sector(), damage: Damage::Body(account, Uid(uid)) });
        } else if !sound {
            let mut pages = Vec::new();
            self.index.remove(account, mailbox, &[(uid, uid)], &mut |space| {
                if let PageChange::Dead(page, count) = space {
                    pages.push((page, count));
                }
            });
            let arrival = self.index.take_back_arrival(account, recent.guid);
            self.dropped.push(Dropped { account, mailbox, uid, pages, arrival });
            let damage = Damage::Torn(account, Uid(uid));
            self.findings.push(Finding { sector: page.sector(), damage });
        }
        Ok(())
    }
}
