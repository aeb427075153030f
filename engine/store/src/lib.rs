//! The log: every account, mailbox and message of a Barepost machine, on a raw disk, append only.
//!
//! `docs/format.md` is the essay this crate is written from: every byte, every invariant, every power cut. In short:
//! superblocks in four slots say where the journal of each of 64 shards begins; a journal is a chain of hashed blocks, each
//! written twice; bodies lie in segments, in chunks that know what and where they are. One flush commits what a whole turn
//! gathered, and only then anybody is told.
//!
//! The store never waits. It hands out [`machine::DiskRequest`]s ([`Store::next_request`]) and takes their completions
//! ([`Store::disk_completed`]); what was asked of it ends as a [`Wake`] ([`Store::next_wake`]).
//!
//! | where | what |
//! |---|---|
//! | `layout`, `superblock`, `block`, `chunk`, `frame`, `record` | the format: parse and emit, nothing else |
//! | `outbox`, `types`, `body`, `outcome` | what the store is told, and what it answers |
//! | `format3`, `format4` | how each format keeps entries of outboxes |
//! | `messages`, `notes`, `quotas`, `conversations`, `mailbox`, `account`, `index` | what is known in memory; changes only by applying durable records |
//! | `backing`, `pool`, `segments` | requests in flight, buffers in memory, space on the disk |
//! | `indexes`, `journal`, `journals`, `orders`, `group`, `keeper` | all shards: what is known, what gathers, what is in flight |
//! | `parts` | all of these: what everything below is done with |
//! | `writing`, `checkpoint`, `sealing`, `retry` | one flush for everybody; bounded recovery; serving again after a failure |
//! | `delivery`, `reading`, `cleaning` | messages that come, bodies that are read, deleted mail's space |
//! | `lanes`, `replay`, `rebuild`, `opening` | from a disk to an index |
//! | `condition`, `store` | the whole: what users ask for, and what passes between it and the disk and other cores |
//! | `fsck`, `beginning` | what is done with a store from outside |
//!
//! A file imports only what stands above it here.
//!
//! Invariants:
//! - Nothing is visible, and nobody is told, before it is durable.
//! - No page that holds anything acknowledged is written again before everything in it is dead.
//! - Nothing read from the disk is believed without its keyed hash, nor can it make the store panic.
//! - In the steady path memory is allocated only where the index grows.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod backing;
mod beginning;
mod block;
mod body;
mod bytes;
mod checkpoint;
mod chunk;
mod cleaning;
mod condition;
mod conversations;
mod delivery;
mod digest;
mod finding;
mod format3;
mod format4;
mod frame;
mod fsck;
mod group;
mod hash;
mod index;
mod indexes;
mod journal;
mod journals;
mod keeper;
mod lanes;
mod layout;
mod mailbox;
mod messages;
mod notes;
mod opening;
mod orders;
mod outbox;
mod outcome;
mod parts;
mod pending;
mod pool;
mod quotas;
mod reading;
mod rebuild;
mod record;
mod replay;
mod retry;
mod sealing;
mod segments;
mod shards;
mod store;
mod superblock;
#[cfg(test)]
mod tests;
mod types;
mod writing;

pub use account::{AccountInfo, NewAccount, NewPassword};
pub use beginning::Beginning;
pub use body::Body;
pub use chunk::{BODY_OCTETS_MAX, CHUNK_OCTETS, SUMMARY_BYTES, Summarize};
pub use delivery::DeliveryId;
pub use finding::{Damage, Finding};
pub use fsck::{AccountReport, MailboxReport, ReadSectors, Report, Unreadable, fsck};
pub use index::{RESIDENT_BYTES_PER_MESSAGE, RESIDENT_BYTES_PLACED};
pub use keeper::{Answer, Errand};
pub use layout::{CRASH_SECTOR, CRASH_SECTORS, PAGE_BYTES, SHARDS};
pub use notes::{
    ARRIVALS_MAX, NOTE_BYTES_MAX, NOTE_KEY_MAX, NOTES_BYTES_MAX, NOTES_MAX, NoteChange,
};
pub use orders::{MAILBOX_NAME_MAX, MAILBOXES_MAX};
pub use outbox::{
    EntryChange, EntrySource, EntryState, OutboxEntry, Packing, RESIDENT_BYTES_QUEUED,
};
pub use outcome::{Outcome, Reason, Refusal, State, Wake, WhyReadOnly};
pub use quotas::{OUTBOX_PART, Usage};
pub use segments::{Room, Space};
pub use store::{Owners, Share, Store};
pub use superblock::FORMAT_VERSION;
pub use types::{
    ARCHIVE, AccountId, BUILT_IN, Closing, DRAFTS, Filed, Flags, Guid, Head, INBOX, JUNK, Limits,
    MailboxId, MailboxInfo, MarkChange, Marks, MessageInfo, Modseq, OUTBOX, Origin, Recipient,
    SENT, TRASH, Uid, UidRange,
};
